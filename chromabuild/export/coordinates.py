"""Coordinates as text: CHARMM's card files, and PDB for programs that want one beside other files."""

from pathlib import Path

import numpy as np

from chromabuild.base.files import atomic_path
from chromabuild.export.blocks import atom_blocks
from chromabuild.export.psf import labelled_runs
from chromabuild.export.system import BuiltSystem


def write_crd(path: Path, system: BuiltSystem) -> None:
    """Write coordinates as a CHARMM card file (extended form): ten decimals, residues counted through the system."""
    residues = 0
    with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
        file.write(f"* chromabuild\n*\n{len(system.position):10d}  EXT\n")
        for template, count, first, label in labelled_runs(system.topology, system.solute):
            names = [name.decode() for name in template.residue_name.tolist()]
            atoms = [(residue, name.decode()) for residue, name in zip(
                template.atom_residue.tolist(), template.atom_name.tolist(), strict=True)]
            for copy in range(count):
                start = first + copy * len(atoms)
                position = system.position[start:start + len(atoms)].tolist()
                for k, ((residue, name), (x, y, z)) in enumerate(zip(atoms, position, strict=True), start + 1):
                    segid, number = label(copy * len(names) + residue)
                    file.write(f"{k:10d}{residues + residue + 1:10d}  {names[residue]:<8s}  {name:<8s}{x:20.10f}"
                               f"{y:20.10f}{z:20.10f}  {segid:<8s}  {number:<8d}{0.0:20.10f}\n")
                residues += len(names)


def write_pdb(path: Path, system: BuiltSystem, occupancy: np.ndarray | None = None) -> None:
    """Write a PDB of all atoms, told apart by their order; ``occupancy``: what its column has, of the
    first atoms or of all; 0 unless given."""
    topology, k = system.topology, 0
    given = np.zeros(0) if occupancy is None else occupancy
    with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
        for names in atom_blocks(topology, [np.char.decode(t.atom_name, "ascii") for t in topology.templates]):
            values = np.zeros(len(names))
            own = given[k:k + len(names)]
            values[:len(own)] = own
            rows = zip(names.tolist(), system.position[k:k + len(names)].tolist(), values.tolist(), strict=True)
            file.writelines(
                f"ATOM  {number % 100_000:5d} {name:>4.4s} UNK X   1    {x:8.3f}{y:8.3f}{z:8.3f}{value:6.2f}  0.00\n"
                for number, (name, (x, y, z), value) in enumerate(rows, k + 1))
            k += len(names)
        file.write("END\n")
