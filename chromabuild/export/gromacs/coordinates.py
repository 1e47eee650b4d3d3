"""GROMACS coordinates (gro) and index groups (ndx)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import tilt_of, vectors_of
from chromabuild.base.files import atomic_path
from chromabuild.export.psf import labelled_runs
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute

_WRAPS = 100_000
"""Numbers of residues and atoms have five digits; readers take their order instead."""
_BLOCK = 1 << 16
_ATOMS_A_LINE = 15
_LEAN = [0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]
"""What follows the diagonal of the vectors where they lean: a_y, a_z, b_x, b_z, c_x, c_y."""


def write_gro(path: Path, system: BuiltSystem) -> None:
    """Write coordinates with the digits of the shards, 0.001 angstrom, and velocities where there are any.

    A solute gives every copy of a molecule its own residue numbers. The number of decimals tells readers the width of
    the columns.
    """
    columns = [system.position] + ([system.velocity] if system.velocity is not None else [])
    form = "{}{:5d}" + "{:9.4f}" * 3 + "{:9.5f}" * 3 * (len(columns) - 1) + "\n"
    with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
        file.write(f"chromabuild\n{len(system.position):5d}\n")
        for first, labels in _labels(system.topology, system.solute):
            rows = np.hstack([values[first:first + len(labels)] / 10 for values in columns]).tolist()
            file.writelines(form.format(text, k % _WRAPS, *row)
                            for k, (text, row) in enumerate(zip(labels, rows, strict=True), first + 1))
        vectors = vectors_of(system.box) / 10
        edges = [*np.diag(vectors), *(vectors[_LEAN] if tilt_of(vectors).any() else ())]
        file.write("".join(f"{edge:10.5f}" for edge in edges) + "\n")


def _labels(topology: Topology, solute: Solute | None) -> Iterator[tuple[int, list[str]]]:
    """Blocks of first atom, and residue number, residue and atom name of each: 15 columns."""
    for template, count, first, label in labelled_runs(topology, solute):
        n_residues = len(template.residue_name)
        names = [f"{template.residue_name[residue].decode():<5.5s}{atom.decode():>5.5s}" for residue, atom in
                 zip(template.atom_residue.tolist(), template.atom_name.tolist(), strict=True)]
        residues = template.atom_residue.tolist()
        copies = max(1, _BLOCK // template.n_atoms)
        for start in range(0, count, copies):
            block = []
            for copy in range(start, min(count, start + copies)):
                numbers = [f"{label(copy * n_residues + k)[1] % _WRAPS:5d}" for k in range(n_residues)]
                block += [numbers[residue] + name for residue, name in zip(residues, names, strict=True)]
            yield first + start * template.n_atoms, block


def write_index(path: Path, groups: Mapping[str, list[tuple[int, int]]]) -> None:
    """Write groups as ranges of atoms, first and last counted from 1."""
    with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
        for name, ranges in groups.items():
            file.write(f"[ {name} ]\n")
            for first, last in ranges:
                for start in range(first, last + 1, _ATOMS_A_LINE):
                    file.write(" ".join(map(str, range(start, min(start + _ATOMS_A_LINE, last + 1)))) + "\n")
