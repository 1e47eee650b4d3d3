"""OpenMM as judge of chromamd's energies and as second engine, driven by our Topology file, not by OpenMM's own files.

The tests compare three things: chromamd on a Topology, OpenMM on the same Topology (here), and OpenMM's ForceField on
the same atoms. Energies in kcal/mol, forces in kcal/mol/angstrom, lengths in angstrom.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import numpy as np
import openmm
from openmm import app, unit
from scipy.integrate import quad
from scipy.special import erfcinv

from chromabuild.base.box_vectors import vectors_of
from chromabuild.base.constants import ANGSTROM_PER_NM, BOLTZMANN, GRAMS_PER_CM3, KJ_PER_KCAL
from chromabuild.base.errors import BadInputError, IntegrityError, InterruptedRunError, UnstableRunError
from chromabuild.base.files import atomic_path, open_growing
from chromabuild.base.settings import DynamicsSection
from chromabuild.base.smooth_numbers import smooth_number
from chromabuild.forcefield.hydrogens import repartitioned_masses
from chromabuild.forcefield.molecule_runs import trajectory_ranges
from chromabuild.forcefield.topology_file import Topology
from chromabuild.shards import read_shards
from chromabuild.simulate.chromamd import RowProgress
from chromabuild.simulate.end_pairs import EndBond, end_bonds
from chromabuild.simulate.energy_log import MARK
from chromabuild.simulate.groups import held_atoms
from chromabuild.simulate.openmm_checkpoint import (
    Checkpoint,
    CheckpointWriter,
    cut_to,
    read_checkpoint,
    stop_signals,
)
from chromabuild.simulate.openmm_platform import ON_GPUS, chosen_platform, context_on, device_of
from chromabuild.simulate.protocol import PlannedPhase, Task

STEPS_A_CHANGE = 10
"""Steps between changes of a temperature or of a constant that changes over a phase."""
STEPS_AT_ONCE = 100
"""Steps between looks at signals and at the clock."""
FARTHEST_MOVE = 1.0
"""Nanometres in a step, a hundred times what thermal motion gives: beyond it a run is unstable."""
SPLINE_ORDER = 5
"""Order of the charge-spreading B-splines, fixed in OpenMM."""

_SIGNS_OF_INSTABILITY = {"NaN": "a position is no number", "position is infinite": "a position is no number",
                         "a position is no number": "a position is no number",
                         "moves too far": f"an atom moves by more than {FARTHEST_MOVE * ANGSTROM_PER_NM:.0f} angstrom "
                                          "in a step",
                         "the energy is no number": "the energy is no number",
                         "periodic box size has decreased": "the box has shrunk to less than twice the cutoff"}
"""Words of errors, and what they mean."""
TERMS = ("bond", "angle", "urey_bradley", "dihedral", "improper", "cmap", "lennard_jones", "electrostatic")
"""Energy terms; the 1-4 pairs are part of the last two. Force group k of a system holds term k."""


@dataclass(frozen=True)
class NonbondedOptions:
    """How non-bonded interactions are cut; every engine must be given the same."""

    cutoff: float
    """Angstrom, for Lennard-Jones (plain truncation unless switched) and real-space electrostatics."""
    alpha: float
    """Ewald splitting parameter, 1/angstrom."""
    grid: tuple[int, int, int]
    """Points of the PME grid along each box edge."""
    switch_distance: float | None = None
    """Angstrom; from here to the cutoff the Lennard-Jones energy is switched off by CHARMM's function of r^2 (Brooks et
    al. 1983). None: plain truncation."""
    force_switch: bool = False
    """Switch the force of Lennard-Jones instead (Steinbach and Brooks, J. Comput. Chem. 15, 667 (1994))."""
    tail: bool = False
    """Count Lennard-Jones beyond the cutoff, as of a uniform density."""

    @property
    def is_switched(self) -> bool:
        """Whether Lennard-Jones is switched off before the cutoff."""
        return self.switch_distance is not None and self.switch_distance < self.cutoff


def system_from_topology(topology: Topology, box: np.ndarray, options: NonbondedOptions,
                         rigid: bool = False, by_term: bool = True) -> openmm.System:
    """An OpenMM System with one force group per entry of ``TERMS``.

    ``box``: (3,) edges or (3, 3) vectors, angstrom. ``rigid``: constrain X-H bonds and waters as the topology lists
    them, and leave out the terms that constraints replace, as chromamd does. ``by_term``: keep Lennard-Jones and
    charges apart; together, in the group of the charges, they take half the time. Then, unless pairs have parameters of
    their own, OpenMM's own correction stands for Lennard-Jones beyond the cutoff: a ``CustomVolumeForce`` brings all
    positions to the processor in each step, which takes two thirds of its time on a GPU. OpenMM counts pairs of an atom
    with itself twice where ``tail_energy`` counts them once: 0.05 kcal/mol in water of any volume.
    """
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*(vectors_of(box) / ANGSTROM_PER_NM))
    for mass in topology.masses().tolist():
        system.addParticle(mass)
    add_virtual_sites(system, topology)
    bond, angle = topology.term("bond"), topology.term("angle")
    if rigid:
        constraint = topology.term("constraint")
        for (i, j), distance in _rows(constraint["atoms"], constraint["distance"] / ANGSTROM_PER_NM):
            system.addConstraint(i, j, distance)
        key = topology.n_atoms
        constrained = constraint["atoms"].min(axis=1) * key + constraint["atoms"].max(axis=1)
        bond = _select(bond, ~np.isin(bond["atoms"].min(axis=1) * key + bond["atoms"].max(axis=1), constrained))
        atoms_in_run = np.diff(topology.run_first_atom)
        in_rigid_water = np.repeat([topology.templates[t].rigid_water for t in topology.run_template], atoms_in_run)
        angle = _select(angle, ~in_rigid_water[angle["atoms"][:, 0]])
    _add_harmonic_bonds(system, bond, TERMS.index("bond"))
    _add_harmonic_bonds(system, topology.term("urey_bradley"), TERMS.index("urey_bradley"))

    force = openmm.HarmonicAngleForce()
    for atoms, k, theta0 in _rows(angle["atoms"], 2 * KJ_PER_KCAL * angle["k"], np.radians(angle["theta0"])):
        force.addAngle(*atoms, theta0, k)
    _add(system, force, "angle")
    dihedral = topology.term("dihedral")
    force = openmm.PeriodicTorsionForce()
    for atoms, k, n, phase in _rows(dihedral["atoms"], KJ_PER_KCAL * dihedral["k"], dihedral["n"],
                                    np.radians(dihedral["phase"])):
        force.addTorsion(*atoms, n, phase, k)
    _add(system, force, "dihedral")
    improper = topology.term("improper")
    if len(improper["atoms"]):
        force = openmm.CustomTorsionForce("k*d^2; d = min(delta, 2*pi - delta); delta = abs(theta - psi0);"
                                          "pi = 3.14159265358979324")
        force.addPerTorsionParameter("k")
        force.addPerTorsionParameter("psi0")
        for atoms, k, psi0 in _rows(improper["atoms"], KJ_PER_KCAL * improper["k"], np.radians(improper["psi0"])):
            force.addTorsion(*atoms, [k, psi0])
        _add(system, force, "improper")
    cmap = topology.term("cmap")
    if len(cmap["atoms"]):
        force = openmm.CMAPTorsionForce()
        for energy in topology.cmap_energy:
            size = round(len(energy) ** 0.5)
            force.addMap(size, KJ_PER_KCAL * energy.reshape(size, size).T.ravel())
        for atoms, number in _rows(cmap["atoms"], cmap["map"]):
            force.addTorsion(number, *atoms[:4], *atoms[1:])
        _add(system, force, "cmap")

    lj_type = topology.per_atom("lj_type")
    sigma = topology.lj_sigma[lj_type] / ANGSTROM_PER_NM
    epsilon = topology.lj_epsilon[lj_type] * KJ_PER_KCAL
    charge = topology.charges()
    pair14, exclusions = topology.term("pair14"), topology.exclusions()
    pair_epsilon, pair_charge = pair14["epsilon"] * KJ_PER_KCAL, pair14["charge_product"]
    pair_sigma = pair14["sigma"] / ANGSTROM_PER_NM
    by_pairs = options.is_switched or bool(topology.special_pairs.any())
    nothing, pair_nothing = np.zeros_like(charge), np.zeros_like(pair_charge)
    if by_term or by_pairs:
        lennard_jones = _nonbonded(nothing, sigma, nothing if by_pairs else epsilon, exclusions, pair14["atoms"],
                                   pair_nothing, pair_sigma, pair_epsilon, options)
        lennard_jones.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
        _add(system, lennard_jones, "lennard_jones")
        if by_pairs:
            _add(system, _lennard_jones_by_pairs(topology, lj_type, exclusions, options), "lennard_jones")
        sigma, pair_sigma = np.ones_like(sigma), np.ones_like(pair_sigma)
        epsilon, pair_epsilon = nothing, pair_nothing
    if options.tail and (by_term or by_pairs):
        _add(system, openmm.CustomVolumeForce(tail_energy(topology, options)), "lennard_jones")
    electrostatic = _nonbonded(charge, sigma, epsilon, exclusions, pair14["atoms"], pair_charge, pair_sigma,
                               pair_epsilon, options)
    electrostatic.setNonbondedMethod(openmm.NonbondedForce.PME)
    electrostatic.setUseDispersionCorrection(options.tail and not (by_term or by_pairs))
    electrostatic.setPMEParameters(options.alpha * ANGSTROM_PER_NM, *options.grid)
    _add(system, electrostatic, "electrostatic")
    return system


def add_virtual_sites(system: openmm.System, topology: Topology) -> None:
    """Say which particles of a system are virtual sites."""
    site = topology.term("virtual_site")
    for (i, *parents), w2, w3 in _rows(site["atoms"], site["w2"], site["w3"]):
        system.setVirtualSite(i, openmm.ThreeParticleAverageSite(*parents, 1 - w2 - w3, w2, w3))


def energies_by_term(system: openmm.System, position: np.ndarray,
                     platform: str = "Reference") -> tuple[dict[str, float], np.ndarray]:
    """Energy of every force group named by ``TERMS`` and the total force.

    ``position``: (n, 3) angstrom; virtual sites are placed anew, and no force is left on them. Returns energies
    (kcal/mol) and (n, 3) forces (kcal/mol/angstrom). The Reference platform calculates in double precision.
    """
    # The forces of a term alone: with others beside it each evaluation would make the neighbour lists of all of them.
    alone = openmm.System()
    alone.setDefaultPeriodicBoxVectors(*system.getDefaultPeriodicBoxVectors())
    for i in range(system.getNumParticles()):
        alone.addParticle(0.0 if system.isVirtualSite(i) else 1.0)
        if system.isVirtualSite(i):
            site = system.getVirtualSite(i)
            alone.setVirtualSite(i, openmm.ThreeParticleAverageSite(
                *(site.getParticle(k) for k in range(3)), *(site.getWeight(k) for k in range(3))))
    position = np.asarray(position, dtype=float) / ANGSTROM_PER_NM
    energies, total_force = {}, np.zeros_like(position)
    for k, term in enumerate(TERMS):
        for force in system.getForces():
            if force.getForceGroup() == k:
                alone.addForce(openmm.XmlSerializer.clone(force))
        context = openmm.Context(alone, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName(platform))
        context.setPositions(position)
        context.computeVirtualSites()
        state = context.getState(getEnergy=True, getForces=True)
        energies[term] = state.getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
        total_force += state.getForces(asNumpy=True).value_in_unit(unit.kilocalorie_per_mole / unit.angstrom)
        del context
        while alone.getNumForces():
            alone.removeForce(0)
    # OpenMM hands forces on to the parents, but still tells what they were.
    total_force[[i for i in range(alone.getNumParticles()) if alone.isVirtualSite(i)]] = 0.0
    return energies, total_force


def restart_name(phase: PlannedPhase, domains: int = 1) -> str:
    """The state that a phase leaves, relative to the folder."""
    return f"restart/{phase.stem}.xml"


def run_phase(task: Task, phase: PlannedPhase, previous: PlannedPhase | None, progress: RowProgress,
              begun: bool) -> None:
    """Run one phase on the platform of the settings: arguments and files as for ``chromamd.run_phase``.

    Dynamics that was ``begun`` goes on from its checkpoint, with other random numbers than without the interruption.

    Rigid X-H bonds and waters as there; OpenMM's own minimiser; leapfrog at constant energy, Langevin dynamics at
    constant temperature, whatever the thermostat; Monte Carlo moves at constant pressure, with which the places of
    restraints do not move. Temperature and constants that change do so every ``STEPS_A_CHANGE`` steps. The whole system
    is held in memory. Raises BadInputError for unreadable files, a platform that is not here and a restraint on
    nothing, IntegrityError when files do not fit together, InterruptedRunError when a signal stops it, UnstableRunError
    where positions or energies are no numbers any more, or the box has shrunk below twice the cutoff.
    """
    folder = task.folder
    (folder / "restart").mkdir(parents=True, exist_ok=True)
    molecules = Topology.read(task.topology)
    box, position = read_shards(task.bricks)
    if len(position) != molecules.n_atoms:
        raise IntegrityError(f"{task.bricks} has {len(position)} atoms, {task.topology} has {molecules.n_atoms}: "
                             "they are not of the same build; run chromabuild topology again")
    found = read_checkpoint(task, phase) if begun and phase.kind == "dynamics" else None
    context = _context(task, phase, molecules, box, position, found.step if found else phase.first_step)
    if found is not None:
        cut_to(found, task, phase)
        found.restore(context)
    elif previous is None:
        context.setPositions(position / ANGSTROM_PER_NM)
        context.computeVirtualSites()
    else:
        _resume(context, folder / restart_name(previous))
    n_sites = len(molecules.term("virtual_site")["atoms"])
    n_freedom = 3 * (molecules.n_atoms - n_sites) - context.getSystem().getNumConstraints() - 3
    with (TextIOWrapper(open_growing(folder / phase.log, "a" if found else "w"), encoding="utf-8") as log,
          _instability_told(phase, context)):
        if found is None:
            log.write(f"OpenMM {openmm.Platform.getOpenMMVersion()}, {device_of(context)}: {len(position)} atoms\n")
        table = _Table(log, context, n_freedom, float(molecules.masses().sum()), progress)
        if phase.kind == "minimise":
            table.write(0, header=True)
            openmm.LocalEnergyMinimizer.minimize(context, 10.0, phase.steps)
            table.write(phase.steps)
        else:
            _run_dynamics(task, phase, context, table, box, found)
        state = context.getState(getPositions=True, getVelocities=True)
    with atomic_path(folder / restart_name(phase)) as part:
        part.write_text(openmm.XmlSerializer.serialize(state), encoding="utf-8")


@contextmanager
def _instability_told(phase: PlannedPhase, context: openmm.Context) -> Iterator[None]:
    """Raises UnstableRunError for what OpenMM, writers of frames and checkpoints and the table say of such a run."""
    try:
        yield
    except (openmm.OpenMMException, ValueError, FloatingPointError) as error:
        what = next((what for words, what in _SIGNS_OF_INSTABILITY.items() if words in str(error)), None)
        if what is None:
            raise
        if phase.kind == "minimise":
            cause = "atoms that lie on each other: remove clashes with `chromabuild clash`"
        else:
            cause = ("strain that the build has left: minimise longer, or heat more slowly and with restraints; or the "
                     f"time step of {phase.timestep:g} fs is too long")
        time = context.getTime().value_in_unit(unit.picosecond)
        raise UnstableRunError(f"the run is unstable at {time:.3f} ps of phase {phase.name}: {what}; the likely cause "
                               f"is {cause}") from error


def _context(task: Task, phase: PlannedPhase, molecules: Topology, box: np.ndarray, position: np.ndarray,
             step: int) -> openmm.Context:
    """The system of a phase: its ensemble at the starting temperature, its masses, its restraints.

    Random numbers follow from the seed and the ``step`` from which it goes.
    """
    seed = 1 + (task.seed + 7919 * (step - phase.first_step)) % (2**31 - 2)  # 0 would mean: choose one
    system = system_from_topology(molecules, box, nonbonded_options(task.dynamics, box), rigid=True, by_term=False)
    if phase.hydrogen_mass_factor != 1:
        for atom, mass in enumerate(repartitioned_masses(molecules, phase.hydrogen_mass_factor).tolist()):
            system.setParticleMass(atom, mass)
    add_restraints(system, phase, molecules, position)
    if phase.end_pairs:
        add_end_bonds(system, phase.end_pairs, end_bonds(task.topology))
    timestep = phase.timestep / 1000 * unit.picosecond
    start = phase.temperature[0] * unit.kelvin
    if phase.ensemble == "NVE":
        integrator = openmm.VerletIntegrator(timestep)
    else:
        integrator = openmm.LangevinMiddleIntegrator(start, task.dynamics.friction / unit.picosecond, timestep)
        integrator.setRandomNumberSeed(seed)
    if phase.ensemble == "NPT":
        barostat = openmm.MonteCarloBarostat(phase.pressure * unit.atmosphere, start)
        barostat.setRandomNumberSeed(seed)
        system.addForce(barostat)
    return context_on(chosen_platform(task.dynamics, task.threads), system, integrator)


def add_restraints(system: openmm.System, phase: PlannedPhase, molecules: Topology, position: np.ndarray) -> None:
    """Hold the groups of a phase at ``position`` (n, 3) angstrom; the parameter ``hold_k`` is the constant of the kth.

    Raises BadInputError for a group that the system has no atom of.
    """
    for k, restraint in enumerate(phase.restraints):
        force = openmm.CustomExternalForce(f"hold_{k}*periodicdistance(x, y, z, x0, y0, z0)^2")
        force.addGlobalParameter(f"hold_{k}", restraint.ends()[0] * KJ_PER_KCAL * ANGSTROM_PER_NM**2)
        for name in ("x0", "y0", "z0"):
            force.addPerParticleParameter(name)
        for atom in held_atoms(phase.name, restraint.group, molecules).tolist():
            force.addParticle(atom, (position[atom] / ANGSTROM_PER_NM).tolist())
        system.addForce(force)


def add_end_bonds(system: openmm.System, constant: float, bonds: list[EndBond]) -> None:
    """Hold hydrogen bonds at their lengths with ``constant``, kcal/mol/angstrom^2."""
    force = openmm.CustomBondForce("k*(r - r0)^2")
    force.setUsesPeriodicBoundaryConditions(True)
    force.addGlobalParameter("k", constant * KJ_PER_KCAL * ANGSTROM_PER_NM**2)
    force.addPerBondParameter("r0")
    for bond in bonds:
        force.addBond(*bond.atoms, [bond.length / ANGSTROM_PER_NM])
    system.addForce(force)


def _resume(context: openmm.Context, path: Path) -> None:
    """Go on from the state that a phase left. Raises BadInputError when it is missing or unreadable."""
    try:
        state = openmm.XmlSerializer.deserialize(path.read_text(encoding="utf-8"))
    except (OSError, openmm.OpenMMException, ValueError) as error:
        raise BadInputError(f"cannot read {path} ({error}): run the phase before this one again") from error
    context.setPeriodicBoxVectors(*state.getPeriodicBoxVectors())
    # Arrays: lists of vectors take microseconds an atom.
    context.setPositions(state.getPositions(asNumpy=True))
    context.setVelocities(state.getVelocities(asNumpy=True))


def _run_dynamics(task: Task, phase: PlannedPhase, context: openmm.Context, table: "_Table", box: np.ndarray,
                  found: Checkpoint | None) -> None:
    """The steps of a phase of dynamics, or those behind a checkpoint, with its table and its frames."""
    checkpoints = CheckpointWriter(task, phase, context)
    step = found.step if found else phase.first_step
    done = (step - phase.first_step) * phase.timestep / 1000
    context.setTime((phase.first_time + done) * unit.picosecond)
    if found is None:
        if phase.draws_velocities:
            context.setVelocitiesToTemperature(phase.temperature[0], task.seed)
        table.write(step, header=True)
    last = phase.first_step + phase.steps
    with ExitStack() as stack:
        trajectory, frames = None, found.frames if found else 0
        if phase.trajectory:
            chosen = trajectory_ranges(task.topology, task.dynamics.trajectory_selection)
            written = np.concatenate([np.arange(start - 1, end) for start, end in chosen])
            file = stack.enter_context(open_growing(task.folder / phase.trajectory, "r+" if found else "w"))
            trajectory = app.DCDFile(file, _nameless(len(written), box), context.getIntegrator().getStepSize(),
                                     phase.first_step + phase.trajectory_period, phase.trajectory_period,
                                     append=found is not None)
            file.flush()  # its header, of which the first checkpoint may be
        is_stopped = stack.enter_context(stop_signals())
        while step < last:
            _set_progress(context, phase, (step - phase.first_step) / phase.steps)
            until = min([last, step + STEPS_AT_ONCE, *(step + period - step % period for period in _periods(phase))])
            _take_steps(context, until - step)
            step = until
            if step % phase.output_period == 0 or step == last:
                table.write(step)
            if trajectory is not None and step % phase.trajectory_period == 0:
                state = context.getState(getPositions=True, enforcePeriodicBox=True)
                trajectory.writeModel(state.getPositions(asNumpy=True)[written],
                                      periodicBoxVectors=state.getPeriodicBoxVectors())
                file.flush()
                frames += 1
            if is_stopped() or checkpoints.is_due() or step == last:
                checkpoints.write(step, frames)
            if is_stopped() and step < last:
                raise InterruptedRunError(f"phase {phase.name} was stopped by a signal after step {step}: the same "
                                          "command continues")


def _take_steps(context: openmm.Context, steps: int) -> None:
    """Integrate; on processors, raise FloatingPointError once an atom moves by more than ``FARTHEST_MOVE``.

    There the sums of the next step would use its position as an index into a grid, and the process would end by a
    segmentation fault. GPUs do not need the look at every step, and would wait for it.
    """
    integrator = context.getIntegrator()
    if context.getPlatform().getName() in ON_GPUS:
        integrator.step(steps)
        return
    for _ in range(steps):
        integrator.step(1)
        velocity = context.getState(getVelocities=True).getVelocities(asNumpy=True)
        move = integrator.getStepSize() * velocity
        if not np.abs(move.value_in_unit(unit.nanometer)).max() <= FARTHEST_MOVE:
            raise FloatingPointError("an atom moves too far")


def _periods(phase: PlannedPhase) -> list[int]:
    """Steps between events of a phase."""
    periods = (phase.output_period, phase.trajectory_period if phase.frames else 0,
               STEPS_A_CHANGE if phase.changes else 0)
    return [period for period in periods if period]


def _set_progress(context: openmm.Context, phase: PlannedPhase, share: float) -> None:
    """Temperature and constants of restraints when a share of the phase is done."""
    start, end = phase.temperature
    if start != end:
        temperature = start + share * (end - start)
        context.getIntegrator().setTemperature(temperature)
        if phase.ensemble == "NPT":
            context.setParameter(openmm.MonteCarloBarostat.Temperature(), temperature)
    for k, restraint in enumerate(phase.restraints):
        first, last = restraint.ends()
        if first != last:
            context.setParameter(f"hold_{k}", (first + share * (last - first)) * KJ_PER_KCAL * ANGSTROM_PER_NM**2)


def _nameless(n_atoms: int, box: np.ndarray) -> app.Topology:
    """As many atoms as the trajectory has, which is all that its writer asks for."""
    atoms = app.Topology()
    atoms.setPeriodicBoxVectors(vectors_of(box) / ANGSTROM_PER_NM * unit.nanometer)
    residue = atoms.addResidue("ALL", atoms.addChain())
    for _ in range(n_atoms):
        atoms.addAtom("X", None, residue)
    return atoms


def nonbonded_options(dynamics: DynamicsSection, box: np.ndarray) -> NonbondedOptions:
    """What the settings mean in a box, (3,) edges or (3, 3) vectors, angstrom: as chromamd takes them.

    Alpha follows from erfc(alpha cutoff) = 1e-5, the default of chromamd's ``pme_alpha_tol``, and the grid from its
    spacing.
    """
    cutoff, switch_distance, force_switch, tail = dynamics.cutoffs
    edges = np.linalg.norm(vectors_of(box), axis=1)
    return NonbondedOptions(
        cutoff=cutoff,
        switch_distance=switch_distance,
        force_switch=force_switch,
        tail=tail,
        alpha=float(erfcinv(1e-5)) / cutoff,
        grid=tuple(smooth_number(int(np.ceil(edge / dynamics.pme_spacing))) for edge in edges),
    )


class _Table:
    """The energy table of a run in the columns of chromamd."""

    def __init__(self, log: TextIO, context: openmm.Context, n_freedom: int, mass: float,
                 progress: RowProgress) -> None:
        self._log, self._context, self._n_freedom, self._mass = log, context, n_freedom, mass
        self._progress = progress
        self._conserves = isinstance(context.getIntegrator(), openmm.VerletIntegrator)

    def write(self, step: int, header: bool = False) -> None:
        """Append a row. Raises FloatingPointError where the energy is no number."""
        state = self._context.getState(getEnergy=True)
        potential = state.getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
        kinetic = state.getKineticEnergy().value_in_unit(unit.kilocalorie_per_mole)
        row = {"STEP": step, "TIME": state.getTime().value_in_unit(unit.picosecond), "TOTAL_ENE": potential + kinetic,
               "POTENTIAL_ENE": potential, "KINETIC_ENE": kinetic,
               "TEMPERATURE": 2 * kinetic / (self._n_freedom * BOLTZMANN)}
        if self._conserves:
            row["CONSERVED_ENE"] = potential + kinetic
        volume = state.getPeriodicBoxVolume().value_in_unit(unit.angstrom**3)
        row |= {"VOLUME": volume, "DENSITY": self._mass / volume * GRAMS_PER_CM3}
        if not np.isfinite(potential + kinetic):  # platforms differ in whether they say it themselves
            raise FloatingPointError("the energy is no number")
        if header:
            self._log.write(MARK + "".join(f"{name:>16s}" for name in row) + "\n")
        self._log.write(MARK + f"{step:16d}" + "".join(f"{value:16.{6 if name == 'DENSITY' else 4}f}"
                                                         for name, value in list(row.items())[1:]) + "\n")
        self._log.flush()
        self._progress(row)


def _nonbonded(charge: np.ndarray, sigma: np.ndarray, epsilon: np.ndarray, exclusions: np.ndarray, pairs: np.ndarray,
               pair_charge: np.ndarray, pair_sigma: np.ndarray, pair_epsilon: np.ndarray,
               options: NonbondedOptions) -> openmm.NonbondedForce:
    force = openmm.NonbondedForce()
    for q, s, e in zip(charge.tolist(), sigma.tolist(), epsilon.tolist(), strict=True):
        force.addParticle(q, s, e)
    for i, j in exclusions.tolist():
        force.addException(i, j, 0.0, 1.0, 0.0)
    for (i, j), q, s, e in _rows(pairs, pair_charge, pair_sigma, pair_epsilon):
        force.addException(i, j, q, s, e, True)
    force.setCutoffDistance(options.cutoff / ANGSTROM_PER_NM)
    force.setUseDispersionCorrection(False)
    return force


def _lennard_jones_by_pairs(topology: Topology, lj_type: np.ndarray, exclusions: np.ndarray,
                            options: NonbondedOptions) -> openmm.CustomNonbondedForce:
    """From the pair matrices; CHARMM's switching functions differ from the one built into OpenMM."""
    off = options.cutoff / ANGSTROM_PER_NM
    if not options.is_switched:
        form = "c12/r^12 - c6/r^6"
    elif not options.force_switch:
        on2, off2 = (options.switch_distance / ANGSTROM_PER_NM) ** 2, off**2
        form = (f"(c12/s^6 - c6/s^3)*select(step(s - {on2!r}), ({off2!r} - s)^2*({off2!r} + 2*s - {3 * on2!r})"
                f"/{(off2 - on2) ** 3!r}, 1); s = r^2")
    else:
        on = options.switch_distance / ANGSTROM_PER_NM
        form = (f"select(step(r - {on!r}), c12*{off**6 / (off**6 - on**6)!r}*(1/r^6 - {off**-6!r})^2"
                f" - c6*{off**3 / (off**3 - on**3)!r}*(1/r^3 - {off**-3!r})^2,"
                f" c12*(1/r^12 - {(on * off) ** -6!r}) - c6*(1/r^6 - {(on * off) ** -3!r}))")
    force = openmm.CustomNonbondedForce(f"{form}; c12 = c12_of(type1, type2); c6 = c6_of(type1, type2)")
    n = len(topology.lj_sigma)
    for name, matrix, power in (("c12_of", topology.lj_c12, 12), ("c6_of", topology.lj_c6, 6)):
        values = matrix * (KJ_PER_KCAL / ANGSTROM_PER_NM**power)
        force.addTabulatedFunction(name, openmm.Discrete2DFunction(n, n, values.ravel()))
    force.addPerParticleParameter("type")
    for number in lj_type.tolist():
        force.addParticle([number])
    for i, j in exclusions.tolist():
        force.addExclusion(i, j)
    force.setNonbondedMethod(openmm.CustomNonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(off)
    return force


def tail_energy(topology: Topology, options: NonbondedOptions) -> str:
    """For OpenMM, by the volume v: what the cutoff and a switch of the energy leave out of Lennard-Jones at a uniform
    density, 2 pi / v times the sum over pairs of the integral of (1 - S(r)) (c12/r^12 - c6/r^6) r^2."""
    of_template = [np.bincount(template.lj_type, minlength=len(topology.lj_sigma)) for template in topology.templates]
    counts = topology.run_count.astype(float) @ np.array(of_template, dtype=float)[topology.run_template]
    off = options.cutoff
    on = options.switch_distance if options.is_switched else off

    def missing(power: int) -> float:
        """Of r^-power times r^2, angstrom^(3 - power)."""
        beyond = off ** (3 - power) / (power - 3)
        if on == off:
            return beyond
        width = off * off - on * on
        return beyond + quad(lambda r: _switched_off((r * r - on * on) / width) * r ** (2 - power), on, off)[0]

    c12, c6 = (float(counts @ matrix @ counts) for matrix in (topology.lj_c12, topology.lj_c6))
    energy = 2 * np.pi * (c12 * missing(12) - c6 * missing(6)) * KJ_PER_KCAL / ANGSTROM_PER_NM**3
    return f"{energy!r}/v"


def _switched_off(share: float) -> float:
    """The share of the energy that CHARMM's switch has taken off, at a share of its way in r^2."""
    return share * share * (3 - 2 * share)


def _add_harmonic_bonds(system: openmm.System, term: dict[str, np.ndarray], group: int) -> None:
    force = openmm.HarmonicBondForce()
    stiffness = 2 * KJ_PER_KCAL * ANGSTROM_PER_NM**2 * term["k"]
    for (i, j), k, r0 in _rows(term["atoms"], stiffness, term["r0"] / ANGSTROM_PER_NM):
        force.addBond(i, j, r0, k)
    _add(system, force, TERMS[group])


def _add(system: openmm.System, force: openmm.Force, term: str) -> None:
    force.setForceGroup(TERMS.index(term))
    system.addForce(force)


def _rows(*columns: np.ndarray) -> zip:
    """Rows of several columns as Python numbers, which OpenMM's wrappers take without conversion."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _select(term: dict[str, np.ndarray], keep: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values[keep] for name, values in term.items()}
