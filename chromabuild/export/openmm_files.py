"""A built system as files of OpenMM: serialised System and State, PDBx, and a script that runs the protocol."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

from chromabuild.base.constants import ANGSTROM_PER_NM
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.elements import ELEMENTS, nearest_element
from chromabuild.export.parts import held_groups, write_texts
from chromabuild.export.psf import labelled_runs
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.hydrogens import bound_hydrogens
from chromabuild.forcefield.molecule_runs import MoleculeRuns
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import add_virtual_sites, nonbonded_options, system_from_topology
from chromabuild.simulate.protocol import PlannedPhase

LARGEST = 20_000_000
"""Atoms: a System takes 1 kB each in memory and on disk."""
CHECKPOINT_STEPS = 10_000


def export_openmm(system: BuiltSystem, folder: Path, dynamics: DynamicsSection, phases: Sequence[PlannedPhase] = (),
                  seed: int = 1, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write ``system.xml``, ``state.xml``, ``system.cif`` and, with ``phases``, ``protocol.json``, ``groups.npz`` and
    ``run.py`` into ``folder``, which is made; gives their paths.

    Raises BadInputError for a system that is too large, and for a restraint on nothing.
    """
    topology = system.topology
    system = replace(system, position=np.asarray(system.position))
    if topology.n_atoms > LARGEST:
        raise BadInputError(f"{topology.n_atoms:,} atoms are too many for OpenMM's files (at most {LARGEST:,}): export "
                            "--part solute")
    groups = _groups(system, dynamics, phases, end_bonds)
    made = system_from_topology(topology, system.box, nonbonded_options(dynamics, system.box), rigid=True,
                                by_term=False)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"system.xml": openmm.XmlSerializer.serialize(made), "state.xml": _state(system)}
    if phases:
        texts["protocol.json"] = json.dumps(_protocol(phases, dynamics, seed), indent=1) + "\n"
    paths = write_texts(folder, texts)
    with atomic_path(folder / "system.cif") as part, open(part, "w", encoding="ascii") as file:
        app.PDBxFile.writeFile(openmm_topology(system), system.position / ANGSTROM_PER_NM * unit.nanometer, file,
                               keepIds=True)
    paths.append(folder / "system.cif")
    if phases:
        with atomic_path(folder / "groups.npz") as part, open(part, "wb") as file:
            np.savez_compressed(file, **groups)
        script = Path(__file__).with_name("openmm_run.py").read_text(encoding="ascii")
        paths += [folder / "groups.npz", *write_texts(folder, {"run.py": script})]
    return paths


def openmm_topology(system: BuiltSystem) -> app.Topology:
    """Chains, residues, atoms and bonds, with the names and numbers of ``topology.psf``."""
    topology = system.topology
    result = app.Topology()
    result.setPeriodicBoxVectors(np.diag(system.box) / ANGSTROM_PER_NM * unit.nanometer)
    atoms: list = []
    for template, count, _, label in labelled_runs(topology, system.solute):
        elements = [app.Element.getByAtomicNumber(ELEMENTS[k].number) if mass else None
                    for k, mass in zip(nearest_element(template.mass).tolist(), template.mass.tolist(), strict=True)]
        names = [name.decode() for name in template.atom_name.tolist()]
        residues = [name.decode() for name in template.residue_name.tolist()]
        of_residue = template.atom_residue.tolist()
        chain = None
        for copy in range(count):
            here = []
            for k, name in enumerate(residues):
                segment, number = label(copy * len(residues) + k)
                if chain is None or chain.id != segment:
                    chain = result.addChain(segment)
                here.append(result.addResidue(name, chain, str(number)))
            first = len(atoms)
            atoms += [result.addAtom(name, element, here[residue])
                      for name, element, residue in zip(names, elements, of_residue, strict=True)]
            for i, j in template.bond_atoms.tolist():
                result.addBond(atoms[first + i], atoms[first + j])
    return result


def _state(system: BuiltSystem) -> str:
    """Serialised positions, velocities and box."""
    bare = openmm.System()
    bare.setDefaultPeriodicBoxVectors(*(np.diag(system.box) / ANGSTROM_PER_NM))
    for mass in system.topology.masses().tolist():
        bare.addParticle(min(mass, 1.0))
    add_virtual_sites(bare, system.topology)
    bare.addForce(openmm.HarmonicBondForce())  # without a force that is periodic, a State has no box
    bare.getForce(0).setUsesPeriodicBoundaryConditions(True)
    context = openmm.Context(bare, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(system.position / ANGSTROM_PER_NM)
    context.computeVirtualSites()
    if system.velocity is not None:
        context.setVelocities(system.velocity / ANGSTROM_PER_NM)
    return openmm.XmlSerializer.serialize(context.getState(getPositions=True, getVelocities=True))


def _protocol(phases: Sequence[PlannedPhase], dynamics: DynamicsSection, seed: int) -> dict:
    return {
        "seed": seed, "friction": 1 / dynamics.thermostat_time, "checkpoint_period": CHECKPOINT_STEPS,
        "units": "fs, K, atm, kcal/mol/angstrom^2, steps; friction 1/ps",
        "phases": [{
            "name": phase.stem, "kind": phase.kind, "steps": phase.steps, "ensemble": phase.ensemble,
            "temperature": list(phase.temperature), "pressure": phase.pressure, "timestep": phase.timestep,
            "hydrogen_mass_factor": phase.hydrogen_mass_factor, "end_pairs": phase.end_pairs,
            "restraints": [{"group": one.group, "constant": list(one.ends())} for one in phase.restraints],
            "output_period": phase.output_period, "trajectory_period": phase.trajectory_period if phase.frames else 0,
            "draws_velocities": phase.draws_velocities} for phase in phases]}


def _groups(system: BuiltSystem, dynamics: DynamicsSection, phases: Sequence[PlannedPhase],
            end_bonds: Sequence[EndBond]) -> dict[str, np.ndarray]:
    """Arrays of atoms, from 0, that the phases name, and the places (nm) of those that are held."""
    topology = system.topology
    ranges = MoleculeRuns.of(topology).ranges(dynamics.trajectory_selection)
    found = {"trajectory": np.concatenate([np.arange(first - 1, last) for first, last in ranges])}
    found |= held_groups(phases, topology)
    held = np.unique(np.concatenate([np.zeros(0, dtype=np.int64),
                                     *(atoms for name, atoms in found.items() if name != "trajectory")]))
    return found | {
        "held": held, "places": system.position[held] / ANGSTROM_PER_NM, "hydrogens": bound_hydrogens(topology),
        "end_pairs": np.array([bond.atoms for bond in end_bonds], dtype=np.int64).reshape(-1, 2),
        "end_pair_lengths": np.array([bond.length for bond in end_bonds]) / ANGSTROM_PER_NM}
