"""Input scripts of LAMMPS for the phases of a protocol.

Commands: LAMMPS manual. A restart file keeps styles, coefficients, groups and the places of ``fix spring/self``; the
rest, which is in ``settings.in``, is said again in every run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber_terms import SCEE, SCNB
from chromabuild.export.parts import stretches_of
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.simulate.protocol import PlannedPhase

COULOMB_CONSTANT = 332.06371
"""kcal angstrom/mol/e^2, of LAMMPS in units real."""
TRAJECTORY_GROUP = "in_trajectory"
_NO_FORCE = 1e-9
"""kcal/mol/angstrom^2: keeps the places of a group that is held again later."""
_RANGES_A_LINE, _ENERGIES = 8, "ebond eangle edihed evdwl ecoul elong pe"
_LARGEST_SEED = 900_000_000
_WATER_REACH = 1.5
"""Angstrom, more than a bond of water and the distance of its charge from the oxygen."""


@dataclass(frozen=True)
class RigidTypes:
    """Types, from 1, of what dynamics keeps at its length."""

    bonds: np.ndarray
    angles: np.ndarray
    """Of waters."""


def styles_input(topology: Topology, lj_type: np.ndarray, options: NonbondedOptions, groups: Mapping[str, np.ndarray],
                 trajectory: Sequence[tuple[int, int]], water: tuple[int, int, int, int, float] | None = None) -> str:
    """Units, styles and the data file, coefficients that no rule gives, and groups of atoms.

    ``lj_type``: (types,) Lennard-Jones types of the types of atoms; ``groups``: atoms from 0; ``trajectory``: first and
    last atom, from 1, of each stretch of the trajectory; ``water``: of four points, the types of its oxygen, hydrogen,
    bond and angle, and the distance (angstrom) of the oxygen's charge.
    """
    pair = f"lj/cut/coul/long {options.cutoff:g}"
    if options.is_switched:
        style = "lj/charmmfsw/coul/long" if options.force_switch else "lj/charmm/coul/long"
        pair = f"{style} {options.switch_distance:g} {options.cutoff:g}"
    if water is not None:
        pair = "lj/cut/tip4p/long {} {} {} {} {:.10g}".format(*water) + f" {options.cutoff:g}"
    lines = ["# chromabuild: the force field", "units real", "boundary p p p", "atom_style full", "bond_style harmonic",
             "angle_style harmonic", "dihedral_style fourier", f"pair_style {pair}",
             "pair_modify mix arithmetic tail no", f"special_bonds lj 0 0 {1 / SCNB:.10g} coul 0 0 {1 / SCEE:.10g}",
             "read_data system.data"]
    special = topology.special_pairs
    for a in range(len(lj_type)):
        for b in range(a, len(lj_type)):
            i, j = lj_type[[a, b]]
            if special[i, j]:
                c12, c6 = float(topology.lj_c12[i, j]), float(topology.lj_c6[i, j])
                sigma, epsilon = ((c12 / c6) ** (1 / 6), c6**2 / (4 * c12)) if c12 and c6 else (1.0, 0.0)
                lines.append(f"pair_coeff {a + 1} {b + 1} {epsilon:.10g} {sigma:.10g}")
    for name, atoms in groups.items():
        lines += _group(name, list(stretches_of(atoms + 1)))
    return "\n".join([*lines, *_group(TRAJECTORY_GROUP, trajectory)]) + "\n"


def settings_input(coulomb_constant: float, dynamics: DynamicsSection, options: NonbondedOptions,
                   has_sites: bool = False) -> str:
    """What a restart file does not keep: PPPM, lists of neighbours, and the Coulomb constant of the force field.

    ``has_sites``: of four-point water.
    """
    mesh = " ".join(map(str, options.grid))
    # The charge of an oxygen of the next domain is found from its hydrogens.
    reach = f"comm_modify cutoff {options.cutoff + dynamics.pairlist_buffer + _WATER_REACH:g}\n" if has_sites else ""
    return f"""\
# chromabuild: settings of every run
{reach}dielectric {COULOMB_CONSTANT / coulomb_constant:.9f}  # LAMMPS' Coulomb constant becomes that of the force field
kspace_style {"pppm/tip4p" if has_sites else "pppm"} 1e-5
kspace_modify gewald {options.alpha:.8f} mesh {mesh} order {min(dynamics.pme_spline_order, 7)}
neighbor {dynamics.pairlist_buffer:g} bin
neigh_modify delay 0 every 1 check yes
"""


def energy_input() -> str:
    """Energies of the coordinates, to compare: without tables of the Coulomb force."""
    return f"""\
# chromabuild: energies of the coordinates
include start.in
include settings.in
pair_modify table 0
thermo_style custom step {_ENERGIES}
thermo_modify format float %.10g
fix motion all nve
run 0
"""


def phase_input(phase: PlannedPhase, before: PlannedPhase | None, dynamics: DynamicsSection, seed: int,
                held: Sequence[str], end_bonds: Sequence[EndBond], rigid: RigidTypes, masses: str | None,
                has_velocities: bool) -> str:
    """The script of a phase with constant restraints.

    ``held``: groups that this or a later phase holds; ``masses``: the file with the masses of this phase, where they
    change; ``has_velocities``: there are some, also without drawing any.
    """
    lines = [f"# chromabuild, phase {phase.name}", f"read_restart {before.stem}.restart" if before else
             "include start.in", "include settings.in", *([f"include {masses}"] if masses else [])]
    constant = dict.fromkeys(held, 0.0)
    for one in phase.restraints:
        constant[one.group] += one.ends()[0]
    for group, value in constant.items():
        lines += [f"fix held_{group} {group} spring/self {2 * value or _NO_FORCE:g}",
                  f"fix_modify held_{group} energy yes"]
    if phase.end_pairs:
        pairs = (f" bond {bond.atoms[0] + 1} {bond.atoms[1] + 1} {phase.end_pairs:g} {phase.end_pairs:g} "
                 f"{bond.length:g}" for bond in end_bonds)
        lines += ["fix ends all restrain &\n" + " &\n".join(pairs), "fix_modify ends energy yes"]
    lines += [f"thermo_style custom step time temp press vol density etotal {_ENERGIES}",
              f"thermo {phase.output_period}", "thermo_modify flush yes"]
    if phase.frames:
        lines += [f"dump frames {TRAJECTORY_GROUP} dcd {phase.trajectory_period} {phase.stem}.dcd",
                  "dump_modify frames unwrap yes"]
    if phase.kind == "minimise":
        lines += ["min_style cg", f"minimize 0 0 {phase.steps} {10 * phase.steps}"]
    else:
        lines += _dynamics(phase, dynamics, seed, rigid, has_velocities)
    return "\n".join([*lines, f"write_restart {phase.stem}.restart.part"]) + "\n"


def _dynamics(phase: PlannedPhase, dynamics: DynamicsSection, seed: int, rigid: RigidTypes,
              has_velocities: bool) -> list[str]:
    start, end = phase.temperature
    seed = 1 + (seed + phase.first_step) % _LARGEST_SEED
    lines = [f"reset_timestep {phase.first_step}", f"timestep {phase.timestep:g}"]
    motion, bath = "nve", ""
    time = 1000 * dynamics.thermostat_time
    if phase.ensemble == "NPT":
        motion = f"nph iso {phase.pressure:g} {phase.pressure:g} {1000 * dynamics.barostat_time:g}"
    if phase.ensemble != "NVE":
        if dynamics.thermostat == "nose-hoover":
            motion = f"nvt temp {start:g} {end:g} {time:g}" if phase.ensemble == "NVT" else (
                f"npt temp {start:g} {end:g} {time:g} {motion.removeprefix('nph ')}")
        else:
            name = {"bussi": "temp/csvr", "berendsen": "temp/berendsen", "langevin": "langevin"}[dynamics.thermostat]
            tail = {"bussi": f" {seed}", "berendsen": "", "langevin": f" {seed} zero yes"}[dynamics.thermostat]
            bath = f"fix bath all {name} {start:g} {end:g} {time:g}{tail}"
    # Forces first, then SHAKE, which must know all of them.
    if bath:
        lines.append(bath)
    types = [f" {letter} {' '.join(map(str, numbers.tolist()))}"
             for letter, numbers in (("b", rigid.bonds), ("a", rigid.angles)) if len(numbers)]
    if types:
        lines.append(f"fix rigid all shake 1e-6 100 0{''.join(types)}")
    lines.append(f"fix motion all {motion}")
    if phase.draws_velocities or not has_velocities:
        lines.append(f"velocity all create {start:g} {seed} dist gaussian")
    return [*lines, f"run {phase.steps}"]


def _group(name: str, ranges: Sequence[tuple[int, int]]) -> list[str]:
    """Commands that make a group of atoms, from stretches of their numbers."""
    words = [str(first) if first == last else f"{first}:{last}" for first, last in ranges]
    return [f"group {name} id {' '.join(words[k:k + _RANGES_A_LINE])}" for k in range(0, len(words), _RANGES_A_LINE)]
