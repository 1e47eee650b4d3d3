"""NAMD input: AMBER's prmtop or CHARMM's psf and parameters, which NAMD reads, binary coordinates and velocities, and a
configuration for each phase.

Keys: NAMD user's guide, "AMBER force field parameters", "CHARMM, X-PLOR and OPLS force fields", "Harmonic constraint
parameters", "Extra bond parameters", "Water models", "Stochastic velocity rescaling", "Nose-Hoover Langevin piston".
Energies of its constraints and extra bonds are k x^2, as ours.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import vectors_of
from chromabuild.base.constants import AKMA_VELOCITY, BAR_PER_ATM
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber import prmtop_of, write_prmtops
from chromabuild.export.amber_terms import SCEE, SCNB
from chromabuild.export.blocks import row_blocks
from chromabuild.export.charmm import is_charmm, psf_of, write_charmm
from chromabuild.export.coordinates import write_pdb
from chromabuild.export.parts import (
    PARTS,
    heavy_hydrogens,
    held_groups,
    phase_script,
    with_constant_restraints,
    write_texts,
)
from chromabuild.export.system import BuiltSystem
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import NonbondedOptions, nonbonded_options
from chromabuild.simulate.protocol import PlannedPhase

LONGEST_CYCLE = 20
"""Steps between assignments of atoms to patches: at most, and a divisor of the steps of a run."""
_WHOLE = 100.0
"""In the column of occupancy, which has two decimals, for all of a phase's restraints together."""


def export_namd(system: BuiltSystem, folder: Path, dynamics: DynamicsSection, phases: Sequence[PlannedPhase] = (),
                seed: int = 1, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write ``system.prmtop``, ``system.coor``, ``system.xsc``, ``system.vel`` where there are velocities and, for each
    of ``phases``, a configuration into ``folder``, which is made, and ``run.sh``; gives their paths.

    In a force field of CHARMM ``system.psf``, ``system.prm`` and ``system.pdb`` take the place of the prmtop. A phase
    whose restraints change becomes ten; ``NAME_held.pdb`` has the shares of restraints in its column of occupancy, also
    for later phases with the same shares. Where hydrogens are heavy, ``heavy.prmtop`` or ``heavy.psf`` has their
    masses. Raises BadInputError as ``write_prmtops`` and ``write_charmm`` do, for several masses of hydrogen, and for a
    restraint on nothing.
    """
    factor = heavy_hydrogens(phases, "NAMD")
    groups = held_groups(phases, system.topology)
    charmm = is_charmm(system.topology)
    has_sites = any(len(template.virtual_site_atoms) for template in system.topology.templates)
    if charmm:
        paths = [*write_charmm(system, folder, factor), folder / "system.pdb"]
        write_pdb(paths[-1], system)
    else:
        paths = write_prmtops(system, folder, factor)
    binary = {"system.coor": (system.position, 1.0)}
    if system.velocity is not None:
        binary["system.vel"] = (system.velocity, AKMA_VELOCITY)
    for name, (values, unit) in binary.items():
        with atomic_path(folder / name) as part, open(part, "wb") as file:
            file.write(np.int32(len(values)).tobytes())
            for rows in row_blocks(len(values)):
                file.write((np.asarray(values[rows], dtype="<f8") / unit).tobytes())
        paths.append(folder / name)
    options = nonbonded_options(dynamics, system.box)
    texts, lines = {"system.xsc": _cell(system)}, []
    before, held = "system", {}
    for phase in with_constant_restraints(phases):
        shares = _shares(phase)
        if phase.restraints and shares not in held:
            held[shares] = f"{phase.stem}_held.pdb"
            write_held(folder / held[shares], system, shares, groups)
            paths.append(folder / held[shares])
        texts[f"{phase.stem}.conf"] = phase_configuration(
            phase, dynamics, options, seed, before, before != "system" or system.velocity is not None, charmm,
            held.get(shares), has_sites)
        if phase.end_pairs:
            texts[f"{phase.stem}_end_pairs.txt"] = "".join(
                f"bond {bond.atoms[0]} {bond.atoms[1]} {phase.end_pairs:g} {bond.length:g}\n" for bond in end_bonds)
        lines.append(f"[[ -f {phase.stem}.coor ]] || $NAMD {phase.stem}.conf >{phase.stem}.log\n")
        before = phase.stem
    if phases:
        texts["run.sh"] = phase_script("NAMD names the program, with its options.", 'NAMD="${NAMD:-namd3 +p8}"', lines)
    return paths + write_texts(folder, texts)


def phase_configuration(phase: PlannedPhase, dynamics: DynamicsSection, options: NonbondedOptions, seed: int,
                        before: str, has_velocities: bool, charmm: bool = False, held: str | None = None,
                        has_sites: bool = False) -> str:
    """The configuration of a phase with constant restraints, from the files ``before.coor``, ``.vel`` and ``.xsc``;
    ``charmm``: with the files of CHARMM's force fields; ``held``: the file of its restraints; ``has_sites``:
    of four-point water."""
    cycle = next(k for k in range(min(LONGEST_CYCLE, phase.steps), 0, -1) if phase.steps % k == 0)
    rows: dict[str, object] = {
        **({"paraTypeCharmm": "on", "structure": psf_of(phase), "parameters": "system.prm",
            "coordinates": "system.pdb"} if charmm else {"amber": "on", "parmfile": prmtop_of(phase)}),
        "bincoordinates": f"{before}.coor",
        "extendedSystem": f"{before}.xsc", "outputName": phase.stem, "binaryOutput": "yes",
        **({"exclude": "scaled1-4", "1-4scaling": 1.0} if charmm else {
            "readexclusions": "yes", "exclude": "scaled1-4", "1-4scaling": round(1 / SCEE, 6), "scnb": SCNB}),
        "cutoff": options.cutoff, "switching": "on" if options.is_switched else "off",
        **({"switchdist": options.switch_distance} if options.is_switched else {}),
        **({"vdwForceSwitching": "on"} if options.is_switched and options.force_switch else {}),
        "pairlistdist": options.cutoff + max(1.5, dynamics.pairlist_buffer), "PME": "yes",
        "LJcorrection": "yes" if options.tail else "no",
        **{f"PMEGridSize{axis}": points for axis, points in zip("XYZ", options.grid, strict=True)},
        "PMEInterpOrder": dynamics.pme_spline_order, "PMETolerance": 1e-5, "timestep": phase.timestep,
        "stepspercycle": cycle, "nonbondedFreq": 1, "fullElectFrequency": 1, "wrapAll": "off", "seed": seed,
        "outputEnergies": phase.output_period, "DCDfreq": phase.trajectory_period if phase.frames else 0,
        "DCDfile": f"{phase.stem}.dcd" if phase.frames else None, "restartfreq": 0}
    rigid = {"rigidBonds": "all", "rigidTolerance": 1e-6, "useSettle": "on"}
    if has_sites:
        # NAMD finds the charge of a rigid water by its bond to the oxygen. Its lone pairs are those of a psf.
        rows |= {"waterModel": "tip4", "lonePairs": "off", **rigid}
    if phase.restraints:
        rows |= {"constraints": "on", "consexp": 2, "consref": held, "conskfile": held, "conskcol": "O",
                 "constraintScaling": f"{_constants(phase) / _WHOLE:.10g}"}
    if phase.end_pairs:
        rows |= {"extraBonds": "on", "extraBondsFile": f"{phase.stem}_end_pairs.txt"}
    runs = [f"minimize {phase.steps}"]
    if phase.kind == "minimise":
        rows["temperature"] = 0
    else:
        rows |= rigid
        rows |= {"temperature": phase.temperature[0]} if phase.draws_velocities or not has_velocities else {
            "binvelocities": f"{before}.vel"}
        rows["firsttimestep"] = phase.first_step
        bath, changed = _bath(phase, dynamics)
        rows |= bath
        runs = _runs(phase, cycle, changed)
    text = [f"# chromabuild, phase {phase.name}", *(f"{key:<20s} {value}" for key, value in rows.items()
                                                     if value is not None)]
    return "\n".join(text + runs) + "\n"


def _bath(phase: PlannedPhase, dynamics: DynamicsSection) -> tuple[dict[str, object], list[str]]:
    """Keys of temperature and pressure, and those of them that change with temperature."""
    start = phase.temperature[0]
    if phase.ensemble == "NVE":
        return {}, []
    if dynamics.thermostat in ("langevin", "nose-hoover"):
        keys: dict[str, object] = {"langevin": "on", "langevinDamping": dynamics.friction,
                                   "langevinTemp": start, "langevinHydrogen": "off"}
        changed = ["langevinTemp"]
    else:
        keys = {"stochRescale": "on", "stochRescaleTemp": start, "stochRescalePeriod": dynamics.temperature_time}
        changed = ["stochRescaleTemp"]
    if phase.ensemble == "NPT":
        keys |= {"useGroupPressure": "yes", "useFlexibleCell": "no", "langevinPiston": "on",
                 "langevinPistonTarget": round(phase.pressure * BAR_PER_ATM, 6), "langevinPistonPeriod": 200,
                 "langevinPistonDecay": 100, "langevinPistonTemp": start}
        changed.append("langevinPistonTemp")
    return keys, changed


def _runs(phase: PlannedPhase, cycle: int, changed: Sequence[str]) -> list[str]:
    """Commands that run the phase, in parts of constant temperature where it changes."""
    start, end = phase.temperature
    if start == end or not changed:
        return [f"run {phase.steps}"]
    cycles = phase.steps // cycle
    n = min(PARTS, cycles)
    cuts = [cycle * (cycles * k // n) for k in range(n + 1)]
    lines = []
    for first, last in zip(cuts[:-1], cuts[1:], strict=True):
        temperature = start + (end - start) * (first + last) / (2 * phase.steps)
        lines += [*(f"{key} {temperature:g}" for key in changed), f"run {last - first}"]
    return lines


def _constants(phase: PlannedPhase) -> float:
    """The sum of the constants of a phase's restraints, kcal/mol/angstrom^2."""
    return sum(restraint.ends()[0] for restraint in phase.restraints)


def _shares(phase: PlannedPhase) -> tuple[tuple[str, float], ...]:
    """Groups, and the share of each in that sum: phases that have them in common share a file."""
    whole = _constants(phase) or 1.0
    return tuple((restraint.group, round(restraint.ends()[0] / whole, 6)) for restraint in phase.restraints)


def write_held(path: Path, system: BuiltSystem, shares: Sequence[tuple[str, float]],
               groups: Mapping[str, np.ndarray]) -> None:
    """Write a PDB of all atoms whose column of occupancy has the shares of ``_WHOLE`` that restraints have."""
    value = np.zeros(max((int(groups[group][-1]) for group, _ in shares), default=-1) + 1)
    for group, share in shares:
        value[groups[group]] += _WHOLE * share
    write_pdb(path, system, value)


def _cell(system: BuiltSystem) -> str:
    """The extended system file of the box, its centre at half of the sum of its vectors."""
    vectors = vectors_of(system.box)
    numbers = " ".join(f"{value:.6f}" if value else "0" for value in [*vectors.ravel(), *vectors.sum(axis=0) / 2])
    return ("# chromabuild\n#$LABELS step a_x a_y a_z b_x b_y b_z c_x c_y c_z o_x o_y o_z\n"
            f"0 {numbers}\n")
