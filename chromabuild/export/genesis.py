"""GENESIS input: AMBER's prmtop or CHARMM's psf and parameters, coordinates, and a control file for each phase.

Keys: GENESIS user guide. Control files of chromamd have the same form; what differs are the files that are read, ramps
of temperature, and restraints, which cannot change in the course of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import tilt_of
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber import prmtop_of, write_prmtops
from chromabuild.export.blocks import row_blocks
from chromabuild.export.charmm import is_charmm, psf_of, write_charmm
from chromabuild.export.coordinates import write_crd, write_pdb
from chromabuild.export.genesis_parallel import FOLDER, parallel_files
from chromabuild.export.parts import (
    heavy_hydrogens,
    held_groups,
    phase_script,
    stretches_of,
    with_constant_restraints,
    write_texts,
)
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.chromamd import (
    Sections,
    barostat_period,
    control_text,
    ensemble_section,
    hydrogen_keys,
    sections_of_restraints,
)
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.groups import BACKBONE, mask
from chromabuild.simulate.openmm_engine import NonbondedOptions, nonbonded_options
from chromabuild.simulate.protocol import PlannedPhase

LONGEST_PERIOD = 10
"""Steps between updates of pair lists, thermostat and barostat: at most, and a divisor of all other periods."""
_RAMP_STEPS = 100
"""Changes of temperature in a phase that heats."""


@dataclass(frozen=True)
class ForceFieldFiles:
    """What GENESIS calls a force field, the keys of its files, and the residue that is a rigid water in them."""

    name: str
    structure: dict[str, object]
    reference: dict[str, object]
    """Of restraints."""
    water: str

    def with_masses_of(self, phase: PlannedPhase) -> dict[str, object]:
        """``structure`` with the masses of a phase."""
        own = {"prmtopfile": prmtop_of(phase)} if "prmtopfile" in self.structure else {"psffile": psf_of(phase)}
        return {**self.structure, **own}


_AMBER = ForceFieldFiles("AMBER", {"prmtopfile": "system.prmtop", "ambcrdfile": "system.inpcrd"},
                         {"ambreffile": "system.inpcrd"}, "WAT")
_CHARMM = ForceFieldFiles("CHARMM", {"psffile": "system.psf", "parfile": "system.prm", "crdfile": "system.crd"},
                          {"reffile": "system.pdb"}, "HOH")


def export_genesis(system: BuiltSystem, folder: Path, dynamics: DynamicsSection, phases: Sequence[PlannedPhase] = (),
                   seed: int = 1, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write ``system.prmtop``, ``system.inpcrd`` and, for each of ``phases``, a control file into ``folder``, which is
    made, and ``run.sh``; gives their paths.

    In a force field of CHARMM ``system.psf``, ``.prm``, ``.crd`` and ``.pdb`` (the reference of restraints) take the
    place of the first two. ``parallel`` has control files of prst_setup and of phases with a file a rank; where
    hydrogens are heavy, these start from ``heavy.prmtop`` or ``heavy.psf``. A phase whose restraints change becomes
    ten. Raises BadInputError as ``write_prmtops`` and ``write_charmm`` do, for several masses of hydrogen, a box
    whose edges lean, and a restraint on nothing.
    """
    if tilt_of(system.box).any():
        raise BadInputError("GENESIS knows rectangular boxes alone, and edges of this one lean: leave solvate.box "
                            "empty, or export to another program")
    factor = heavy_hydrogens(phases, "GENESIS")
    expressions = {group: selection_of(group, system.topology) for group in held_groups(phases, system.topology)}
    if is_charmm(system.topology):
        # Selections have residues as they are counted through the system.
        paths = [*write_charmm(system, folder, factor, counted=True), folder / "system.crd", folder / "system.pdb"]
        write_crd(paths[-2], system)
        write_pdb(paths[-1], system)
        files = _CHARMM
    else:
        paths = [*write_prmtops(system, folder, factor), folder / "system.inpcrd"]
        write_inpcrd(paths[-1], system)
        files = _AMBER
    options = nonbonded_options(dynamics, system.box)
    texts, lines, before = {}, [], None
    parts = with_constant_restraints(phases)

    def sections_of(phase: PlannedPhase, before: PlannedPhase | None = None) -> Sections:
        return phase_sections(phase, before, dynamics, options, system.box, seed, expressions, end_bonds, files)

    for phase in parts:
        texts[f"{phase.stem}.inp"] = control_text(sections_of(phase, before))
        lines.append(f"[[ -f {phase.stem}.rst ]] || $SPDYN {phase.stem}.inp >{phase.stem}.log\n")
        before = phase
    if texts:
        texts["run.sh"] = phase_script("SPDYN names the program, with its launcher.",
                                       'SPDYN="${SPDYN:-mpirun -np 8 spdyn}"', lines)
        (folder / FOLDER).mkdir(exist_ok=True)
        texts |= {f"{FOLDER}/{name}": text for name, text in
                  parallel_files(parts, sections_of, files.with_masses_of, files.reference).items()}
    return paths + write_texts(folder, texts)


def write_inpcrd(path: Path, system: BuiltSystem) -> None:
    """Write coordinates and box as AMBER's formatted coordinate file: six numbers of twelve columns a line."""
    with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
        file.write(f"chromabuild\n{len(system.position):6d}\n")
        for rows in row_blocks(len(system.position)):  # an even number of atoms, but for the last
            block = system.position[rows].ravel().tolist()
            lines = ("%12.7f" * 6 + "\n") * (len(block) // 6) + ("%12.7f" * 3 + "\n") * (len(block) % 6 // 3)
            file.write(lines % tuple(block))
        file.write(("%12.7f" * 6 + "\n") % (*system.box.tolist(), 90.0, 90.0, 90.0))


def phase_sections(phase: PlannedPhase, before: PlannedPhase | None, dynamics: DynamicsSection,
                   options: NonbondedOptions, box: np.ndarray, seed: int, expressions: Mapping[str, str],
                   end_bonds: Sequence[EndBond], files: ForceFieldFiles) -> Sections:
    """The control file of a phase with constant restraints; ``expressions``: of the groups that are held."""
    frames = phase.trajectory_period if phase.frames else 0
    # GENESIS wants every period to be a multiple of this one.
    common = int(np.gcd.reduce([phase.steps, phase.output_period, frames]))
    longest = min(LONGEST_PERIOD, common)
    if phase.kind != "minimise":
        longest = min(longest, barostat_period(phase))
    period = next(k for k in range(longest, 0, -1) if common % k == 0)
    periods = {"eneout_period": phase.output_period, "crdout_period": frames, "rstout_period": phase.steps,
               "nbupdate_period": period}
    switch = options.switch_distance if options.switch_distance is not None else options.cutoff
    sections: Sections = {
        "INPUT": {**files.structure, **(files.reference if phase.restraints else {}),
                  "rstfile": f"{before.stem}.rst" if before else None},
        "OUTPUT": {"dcdfile": f"{phase.stem}.dcd" if frames else None, "rstfile": f"{phase.stem}.rst"},
        "ENERGY": {"forcefield": files.name, "electrostatic": "PME", "switchdist": switch, "cutoffdist": options.cutoff,
                   "vdw_force_switch": options.force_switch or None,
                   "pairlistdist": options.cutoff + dynamics.pairlist_buffer, "pme_alpha": round(options.alpha, 8),
                   "pme_nspline": dynamics.pme_spline_order, "dispersion_corr": "EPRESS" if options.tail else "NONE",
                   **{f"pme_ngrid_{axis}": points for axis, points in zip("xyz", options.grid, strict=True)}}}
    if phase.kind == "minimise":
        sections["MINIMIZE"] = {"method": "SD", "nsteps": phase.steps, **periods}
    else:
        heavy = hydrogen_keys(phase)
        if heavy:
            heavy["hmr_ratio_xh1"] = heavy["hmr_ratio"]
        sections |= {
            "DYNAMICS": {"integrator": "VVER", "nsteps": phase.steps, "timestep": phase.timestep / 1000, "iseed": seed,
                         "thermostat_period": period, "barostat_period": period, **periods, **_ramp(phase, period),
                         **heavy},
            "CONSTRAINTS": {"rigid_bond": True, "fast_water": True, "water_model": files.water},
            "ENSEMBLE": ensemble_section(dynamics, phase) | {"temperature_end": None}}
    sections["BOUNDARY"] = {"type": "PBC", **{f"box_size_{axis}": round(edge, 6)
                                              for axis, edge in zip("xyz", box.tolist(), strict=True)}}
    return sections | sections_of_restraints(phase, expressions, end_bonds if phase.end_pairs else ())


def _ramp(phase: PlannedPhase, period: int) -> dict[str, object]:
    """Heating in steps of temperature."""
    start, end = phase.temperature
    if start == end:
        return {}
    multiples = phase.steps // period
    between = next(k for k in range(max(1, multiples // _RAMP_STEPS), 0, -1) if multiples % k == 0) * period
    return {"annealing": True, "anneal_period": between, "dtemperature": (end - start) * between / phase.steps}


def selection_of(group: str, topology: Topology) -> str:
    """The group in GENESIS' selection syntax, with the residues of the system counted from 1."""
    residues, named, first = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 1
    for t, count in zip(topology.run_template.tolist(), topology.run_count.tolist(), strict=True):
        template = topology.templates[t]
        n = len(template.residue_name)
        starts = first + n * np.arange(count, dtype=np.int64)[:, None]
        for found, atoms in ((residues, mask(group, template)), (named, template.atom_name == b"C1'")):
            if atoms.any():
                found.append((starts + np.unique(template.atom_residue[atoms])).ravel())
        first += n * count
    chosen = np.concatenate(residues)
    if group != "backbone":
        text = _residues(chosen)
        return text if group == "solute" else f"heavy and ({text})"
    is_dna = np.isin(chosen, np.concatenate(named))
    kinds: Mapping[str, np.ndarray] = {"dna": chosen[is_dna], "protein": chosen[~is_dna]}
    return " or ".join(f"(({' or '.join(f'an:{name}' for name in BACKBONE[kind])}) and ({_residues(rows)}))"
                       for kind, rows in kinds.items() if len(rows))


def _residues(rows: np.ndarray) -> str:
    return " or ".join(f"rno:{first}-{last}" for first, last in stretches_of(rows))
