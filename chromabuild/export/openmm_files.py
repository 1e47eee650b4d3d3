"""A built system as files of OpenMM: serialised System and State, PDBx, and a script that runs the protocol."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
from openmm import app, unit

from chromabuild.base import box_vectors
from chromabuild.base.constants import ANGSTROM_PER_NM
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.blocks import ATOMS_AT_ONCE, row_blocks
from chromabuild.export.elements import ELEMENTS, nearest_element
from chromabuild.export.openmm_xml import write_state, write_system
from chromabuild.export.parts import held_groups, write_texts
from chromabuild.export.psf import labelled_runs
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.hydrogens import bound_hydrogens
from chromabuild.forcefield.molecule_runs import MoleculeRuns
from chromabuild.forcefield.topology_file import MoleculeTemplate
from chromabuild.shards.stored import vectors_of
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import nonbonded_options
from chromabuild.simulate.protocol import PlannedPhase

LARGEST = 20_000_000
"""Atoms: OpenMM itself takes 2 kB of memory each."""
CHECKPOINT_STEPS = 10_000


def export_openmm(system: BuiltSystem, folder: Path, dynamics: DynamicsSection, phases: Sequence[PlannedPhase] = (),
                  seed: int = 1, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write ``system.xml``, ``state.xml``, ``system.cif`` and, with ``phases``, ``protocol.json``, ``groups.npz`` and
    ``run.py`` into ``folder``, which is made; gives their paths.

    Raises BadInputError for a system that is too large, and for a restraint on nothing.
    """
    topology = system.topology
    if topology.n_atoms > LARGEST:
        raise BadInputError(f"{topology.n_atoms:,} atoms are too many for OpenMM's files (at most {LARGEST:,}; OpenMM "
                            "takes 2 kB of memory an atom): export --part solute")
    groups = _groups(system, dynamics, phases, end_bonds)
    options = nonbonded_options(dynamics, system.box)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in ("system.xml", "state.xml", "system.cif")]
    for path, write in zip(paths, (lambda file: write_system(file, topology, system.box, options),
                                   lambda file: write_state(file, system), lambda file: _write_cif(file, system)),
                           strict=True):
        with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
            write(file)
    if phases:
        with atomic_path(folder / "groups.npz") as part, open(part, "wb") as file:
            np.savez_compressed(file, **groups)
        texts = {"protocol.json": json.dumps(_protocol(phases, dynamics, seed), indent=1) + "\n",
                 "run.py": Path(__file__).with_name("openmm_run.py").read_text(encoding="ascii")}
        paths += [folder / "groups.npz", *write_texts(folder, texts)]
    return paths


def _write_cif(file: TextIO, system: BuiltSystem) -> None:
    """What ``PDBxFile.writeFile`` writes: its own header, with the bonds of what is not water, and lines in blocks."""
    app.PDBxFile.writeHeader(openmm_topology(system), file, keepIds=True)
    standard = {name for name in app.PDBFile._standardResidues if name != "HOH"}
    number = 0
    for template, count, first, label in labelled_runs(system.topology, system.solute):
        residues = [name.decode() for name in template.residue_name.tolist()]
        atoms = [(residue, f"{symbol:<3s} {name.decode():<4s} . {residues[residue]:<4s}", name.decode())
                 for residue, symbol, name in zip(template.atom_residue.tolist(), _symbols(template),
                                                  template.atom_name.tolist(), strict=True)]
        for some in row_blocks(count, max(1, ATOMS_AT_ONCE // len(atoms))):
            position = system.position[first + some.start * len(atoms):first + some.stop * len(atoms)]
            rows = iter(position.tolist())
            for copy in range(some.start, some.stop):
                labels = [label(copy * len(residues) + k) for k in range(len(residues))]
                for (residue, text, name), (x, y, z) in zip(atoms, rows, strict=False):
                    number += 1
                    segment, k = labels[residue]
                    kind = "ATOM" if residues[residue] in standard else "HETATM"
                    file.write(f"{kind}  {number:5d} {text} {segment} ? {k:5d} . {x:10.4f} {y:10.4f} {z:10.4f}  0.0  "
                               f"0.0  ?  ?  ?  ?  ?  .  {k:5d} {residues[residue]:>4s} {segment} {name:<4s}     1\n")
    file.write("#\n")


def _symbols(template: MoleculeTemplate) -> list[str]:
    return [app.Element.getByAtomicNumber(ELEMENTS[k].number).symbol if mass else "?"
            for k, mass in zip(nearest_element(template.mass).tolist(), template.mass.tolist(), strict=True)]


def openmm_topology(system: BuiltSystem) -> app.Topology:
    """Chains, residues, atoms and bonds of all but water and ions, with the names and numbers of ``topology.psf``."""
    topology = system.topology
    result = app.Topology()
    result.setPeriodicBoxVectors(box_vectors.vectors_of(system.box) / ANGSTROM_PER_NM * unit.nanometer)
    atoms: list = []
    for template, count, _, label in labelled_runs(topology, system.solute):
        if template.rigid_water or template.n_atoms == 1:
            continue
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


def _protocol(phases: Sequence[PlannedPhase], dynamics: DynamicsSection, seed: int) -> dict:
    return {
        "seed": seed, "friction": dynamics.friction, "checkpoint_period": CHECKPOINT_STEPS,
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
    """Arrays of atoms, from 0, that the phases name, and the places (nm) of those that are held; of the trajectory the
    first atom of each stretch and the one behind its last."""
    topology = system.topology
    ranges = MoleculeRuns.of(topology).ranges(dynamics.trajectory_selection)
    found = held_groups(phases, topology)
    held = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found.values()]))
    is_heavy = any(phase.hydrogen_mass_factor != 1 for phase in phases)
    return found | {
        "trajectory": np.array(ranges, dtype=np.int64).reshape(-1, 2) - [1, 0],
        "held": held, "places": vectors_of(system.position, held) / ANGSTROM_PER_NM,
        "hydrogens": bound_hydrogens(topology) if is_heavy else np.zeros((0, 2), dtype=np.int64),
        "end_pairs": np.array([bond.atoms for bond in end_bonds], dtype=np.int64).reshape(-1, 2),
        "end_pair_lengths": np.array([bond.length for bond in end_bonds]) / ANGSTROM_PER_NM}
