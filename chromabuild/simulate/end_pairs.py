"""Hydrogen bonds of the base pairs at the ends of DNA, which hold these together against fraying.

A locus is cut out of a chromosome: its ends are none of nature's, and what frays there would not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from chromabuild.forcefield.topology_file import opened, template_groups

_ADENINE = (("N6", "O4", 2.95), ("N1", "N3", 2.82))
_GUANINE = (("O6", "N4", 2.91), ("N1", "N3", 2.95), ("N2", "O2", 2.86))
_BONDS = {("A", "T"): _ADENINE, ("G", "C"): _GUANINE,
          ("T", "A"): tuple((b, a, length) for a, b, length in _ADENINE),
          ("C", "G"): tuple((b, a, length) for a, b, length in _GUANINE)}
"""Atoms of both bases and their distance, angstrom (Seeman et al., J. Mol. Biol. 104, 109 (1976), and Rosenberg et al.,
ibid. 145)."""
_LARGEST_RESIDUE = 40
"""Atoms, of a nucleotide."""


@dataclass(frozen=True)
class EndBond:
    """A hydrogen bond."""

    atoms: tuple[int, int]
    """Global indices from 0."""
    length: float
    """Angstrom."""


@dataclass(frozen=True)
class _Strand:
    n_residues: int
    ends: tuple[str, str]
    """Bases at the 5' and at the 3' end."""
    atom: tuple[dict[str, int], dict[str, int]]
    """Global indices of the atoms of both, by name."""


def end_bonds(topology: str | Path) -> list[EndBond]:
    """The hydrogen bonds in a topology file, in the order of its atoms; none where DNA has no ends.

    A duplex is two strands that follow each other and whose ends are complementary. Raises BadInputError when the file
    cannot be read.
    """
    with opened(topology) as file:
        strands = list(_strands(file))
    found: list[EndBond] = []
    k = 0
    while k < len(strands) - 1:
        bonds = _bonds(strands[k], strands[k + 1])
        found += bonds
        k += 2 if bonds else 1
    return found


def _bonds(first: _Strand, second: _Strand) -> list[EndBond]:
    """Those of a duplex, none where the strands are not paired."""
    pairs = [(first.ends[end], second.ends[1 - end]) for end in (0, 1)]
    if first.n_residues != second.n_residues or not all(pair in _BONDS for pair in pairs):
        return []
    return [EndBond((first.atom[end][ours], second.atom[1 - end][theirs]), length)
            for end, pair in enumerate(pairs) for ours, theirs, length in _BONDS[pair]]


def _strands(file: h5py.File) -> Iterator[_Strand]:
    """Linear strands of DNA, in the order of their atoms."""
    groups = template_groups(file)
    sizes = np.array([len(group["atom_name"]) for group in groups])
    template, count = file["molecule/template"][...], file["molecule/count"][...]
    start = np.concatenate([[0], np.cumsum(sizes[template] * count)])
    for run, which in enumerate(template.tolist()):
        names = groups[which]["residue_name"]
        if len(names) < 2:
            continue
        ends = _atoms(groups[which], 0), _atoms(groups[which], len(names) - 1)
        if "HO5'" not in ends[0] or "HO3'" not in ends[1]:  # a protein, a circle, water
            continue
        for copy in range(int(count[run])):
            before = int(start[run]) + copy * int(sizes[which])
            yield _Strand(len(names), (names[0].decode()[1], names[-1].decode()[1]),
                          ({name: before + k for name, k in ends[0].items()},
                           {name: before + k for name, k in ends[1].items()}))


def _atoms(group: h5py.Group, residue: int) -> dict[str, int]:
    """Indices within the molecule of the atoms of its first or last residue, by name."""
    n_atoms = len(group["atom_name"])
    part = slice(0, _LARGEST_RESIDUE) if residue == 0 else slice(max(0, n_atoms - _LARGEST_RESIDUE), n_atoms)
    of_residue, names = group["atom_residue"][part], group["atom_name"][part]
    return {name.decode(): part.start + k for k, name in enumerate(names) if of_residue[k] == residue}
