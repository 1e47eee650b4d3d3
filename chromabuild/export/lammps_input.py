"""Input scripts of LAMMPS for the phases of a protocol.

Commands: LAMMPS manual. A restart file keeps styles, coefficients, groups and the places of ``fix spring/self``; the
rest, which is in ``settings.in``, is said again in every run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber_terms import SCEE, SCNB
from chromabuild.export.atom_types import AtomTypes
from chromabuild.export.lammps_maps import MAPS_A_FIX, POINTS
from chromabuild.export.parts import stretches_of
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.simulate.protocol import PlannedPhase

COULOMB_CONSTANT, CHARMM_COULOMB_CONSTANT = 332.06371, 332.0716
"""kcal angstrom/mol/e^2, of LAMMPS in units real, and of its styles with CHARMM's force switch."""
TRAJECTORY_GROUP = "in_trajectory"
_NO_FORCE = 1e-9
"""kcal/mol/angstrom^2: keeps the places of a group that is held again later."""
_RANGES_A_LINE, _ENERGIES = 8, "ebond eangle edihed eimp evdwl ecoul elong pe"
_SHORTEST_SWITCH = 1e-6
"""Angstrom."""
_NUMBERS_A_LINE = 12
_LARGEST_SEED = 900_000_000
_WATER_REACH = 1.5
"""Angstrom, more than a bond of water and the distance of its charge from the oxygen."""


@dataclass(frozen=True)
class RigidTypes:
    """Types, from 1, of what dynamics keeps at its length."""

    bonds: np.ndarray
    angles: np.ndarray
    """Of waters."""


def styles_input(topology: Topology, types: AtomTypes, kinds: np.ndarray, options: NonbondedOptions,
                 groups: Mapping[str, np.ndarray], trajectory: Sequence[tuple[int, int]],
                 water: tuple[int, int, int, int, float] | None = None, maps: Sequence[str] = ()) -> str:
    """Units, styles and the data file, coefficients that no rule gives, and groups of atoms.

    ``kinds``: (k,) of ``types`` that each of LAMMPS' types of atoms is; ``groups``: atoms from 0; ``trajectory``: first
    and last atom, from 1, of each stretch of the trajectory; ``water``: of four points, the types of its oxygen,
    hydrogen, bond and angle, and the distance (angstrom) of the oxygen's charge; ``maps``: lines of the data file that
    count correction maps.
    """
    angle, torsion = ("harmonic", "fourier") if types.scaled is None else ("charmm", "charmm")
    scales = f"lj 0 0 {1 / SCNB:.10g} coul 0 0 {1 / SCEE:.10g}" if types.scaled is None else "charmm"
    style = _pair_style(types.scaled is not None, options, water)
    tail = "yes" if options.tail and style.startswith("lj/cut/") else "no"  # styles that switch have none
    lines = ["# chromabuild: the force field", "units real", "boundary p p p", "atom_style full", "bond_style harmonic",
             f"angle_style {angle}", f"dihedral_style {torsion}", "improper_style harmonic",
             f"pair_style {style}", f"pair_modify mix arithmetic tail {tail}", f"special_bonds {scales}",
             *(["include maps.in"] if maps else []),
             " ".join(["read_data system.data", *(f'fix cmap{k} "{line}" CMAP{k}' for k, line in enumerate(maps, 1))])]
    lj_type = types.lj_type[kinds]
    special = topology.special_pairs
    for a in range(len(lj_type)):
        for b in range(a, len(lj_type)):
            i, j = lj_type[[a, b]]
            if special[i, j]:
                c12, c6 = float(topology.lj_c12[i, j]), float(topology.lj_c6[i, j])
                sigma, epsilon = ((c12 / c6) ** (1 / 6), c6**2 / (4 * c12)) if c12 and c6 else (1.0, 0.0)
                values = f"{epsilon:.10g} {sigma:.10g}"
                lines.append(f"pair_coeff {a + 1} {b + 1} {' '.join([values] * (1 if types.scaled is None else 2))}")
    for name, atoms in groups.items():
        lines += _group(name, list(stretches_of(atoms + 1)))
    return "\n".join([*lines, *_group(TRAJECTORY_GROUP, trajectory)]) + "\n"


def _pair_style(charmm: bool, options: NonbondedOptions, water: tuple[int, int, int, int, float] | None) -> str:
    if water is not None:
        return "lj/cut/tip4p/long {} {} {} {} {:.10g}".format(*water) + f" {options.cutoff:g}"
    if options.is_switched:
        style = "lj/charmmfsw/coul/long" if options.force_switch else "lj/charmm/coul/long"
        return f"{style} {options.switch_distance:g} {options.cutoff:g}"
    # Styles with 1-4 parameters switch: over no distance that matters where Lennard-Jones is truncated.
    return f"lj/charmm/coul/long {options.cutoff - _SHORTEST_SWITCH:.6f} {options.cutoff:g}" if charmm else \
        f"lj/cut/coul/long {options.cutoff:g}"


def map_input(n_maps: int) -> str:
    """The fixes of correction maps, before atoms are read."""
    return "".join(f"fix cmap{k} all cmap cmap{k}.txt\n" for k in range(1, n_maps + 1))


def map_file(energies: np.ndarray) -> str:
    """Maps (6 or fewer, points of a topology) from -180 degrees on, psi the faster; maps that LAMMPS wants besides are
    zero."""
    n = POINTS
    text = ["# chromabuild: correction maps, kcal/mol, from -180 degrees on, psi the faster\n"]
    for k in range(MAPS_A_FIX):
        energy = np.roll(energies[k].reshape(n, n), n // 2, axis=(0, 1)) if k < len(energies) else np.zeros((n, n))
        text += ["\n", *(" ".join(f"{value:.9f}" for value in row) + "\n"
                         for row in energy.reshape(-1, _NUMBERS_A_LINE).tolist())]
    return "".join(text)


def _map_columns(n_maps: int) -> str:
    return "".join(f" f_cmap{k}" for k in range(1, n_maps + 1))


def settings_input(coulomb_constant: float, dynamics: DynamicsSection, options: NonbondedOptions,
                   has_sites: bool = False, n_maps: int = 0) -> str:
    """What a restart file does not keep: PPPM, lists of neighbours, and the Coulomb constant of the force field.

    ``has_sites``: of four-point water; ``n_maps``: files of correction maps.
    """
    mesh = " ".join(map(str, options.grid))
    # The charge of an oxygen of the next domain is found from its hydrogens.
    reach = f"comm_modify cutoff {options.cutoff + dynamics.pairlist_buffer + _WATER_REACH:g}\n" if has_sites else ""
    constant = CHARMM_COULOMB_CONSTANT if options.is_switched and options.force_switch else COULOMB_CONSTANT
    return f"""\
# chromabuild: settings of every run
{reach}dielectric {constant / coulomb_constant:.9f}  # LAMMPS' Coulomb constant becomes that of the force field
kspace_style {"pppm/tip4p" if has_sites else "pppm"} 1e-5
kspace_modify gewald {options.alpha:.8f} mesh {mesh} order {min(dynamics.pme_spline_order, 7)}
neighbor {dynamics.pairlist_buffer:g} bin
neigh_modify delay 0 every 1 check yes
""" + "".join(f"fix_modify cmap{k} energy yes virial yes\n" for k in range(1, n_maps + 1))


def energy_input(n_maps: int = 0) -> str:
    """Energies of the coordinates, to compare: without tables of the Coulomb force."""
    return f"""\
# chromabuild: energies of the coordinates
include start.in
include settings.in
pair_modify table 0
thermo_style custom step {_ENERGIES}{_map_columns(n_maps)}
thermo_modify format float %.10g
fix motion all nve
run 0
"""


def phase_input(phase: PlannedPhase, before: PlannedPhase | None, dynamics: DynamicsSection, seed: int,
                held: Sequence[str], end_bonds: Sequence[EndBond], rigid: RigidTypes, masses: str | None,
                has_velocities: bool, n_maps: int = 0) -> str:
    """The script of a phase with constant restraints.

    ``held``: groups that this or a later phase holds; ``masses``: the file with the masses of this phase, where they
    change; ``has_velocities``: there are some, also without drawing any; ``n_maps``: files of correction maps.
    """
    start = [f"read_restart {before.stem}.restart", *(["include maps.in"] if n_maps else [])] if before else [
        "include start.in"]
    lines = [f"# chromabuild, phase {phase.name}", *start, "include settings.in",
             *([f"include {masses}"] if masses else [])]
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
    lines += [f"thermo_style custom step time temp press vol density etotal {_ENERGIES}{_map_columns(n_maps)}",
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
    time = 1000 * (1 / dynamics.friction if dynamics.thermostat == "langevin" else dynamics.temperature_time)
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
