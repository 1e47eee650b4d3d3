"""Molecules of a foreign system that are alike, so that OpenMM reads one of each kind and not millions of waters.

A molecule is a run of whole residues that no term leaves. Two are of one kind where all that their files say of atoms
and terms is the same; those of several residues also in the numbers and segments of these. They are compared by sums of
64 bits over hashed atoms and terms, which chance makes equal once in 1e19 pairs of kinds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chromabuild.forcefield.topology_file import Topology

_SALT = np.uint64(0x9E3779B97F4A7C15)
_ROWS = 1 << 20
"""Terms at once."""


@dataclass(frozen=True)
class Residues:
    """Residues of a whole system, in order."""

    first_atom: np.ndarray
    """(r + 1,) int64."""
    number: np.ndarray
    """(r,) int64, as the file has them."""
    segid: np.ndarray
    """(r,) S4."""


@dataclass(frozen=True)
class Kinds:
    """The molecules of a system, and which are alike."""

    first_atom: np.ndarray
    """(m + 1,) int64: of each molecule."""
    first_residue: np.ndarray
    """(m,) int64."""
    kind: np.ndarray
    """(m,) int64: kinds in the order in which they first occur."""
    example: np.ndarray
    """(k,) int64: the first molecule of each kind, ascending."""

    @property
    def chosen(self) -> np.ndarray:
        """(n,) bool: atoms of the examples."""
        chosen = np.zeros(int(self.first_atom[-1]), dtype=bool)
        for molecule in self.example.tolist():
            chosen[self.first_atom[molecule]:self.first_atom[molecule + 1]] = True
        return chosen


def find_kinds(residues: Residues, alike: Iterable[np.ndarray],
               terms: Sequence[tuple[np.ndarray, np.ndarray | None]]) -> Kinds:
    """Kinds of molecules of ``n`` atoms.

    ``alike``: (n,) integers that atoms of one kind share (of their names, charges, ...); ``terms``: (t, w) atoms from
    0, and (t,) integers that name the parameters or None.
    """
    n = int(residues.first_atom[-1])
    first = _bounds(n, residues.first_atom, [atoms for atoms, _ in terms])
    n_molecules = len(first) - 1
    size = np.diff(first)
    molecule = np.repeat(np.arange(n_molecules, dtype=np.int32), size)
    first_residue = np.searchsorted(residues.first_atom, first[:-1])
    place = (np.arange(n, dtype=np.int64) - np.repeat(first[:-1], size)).astype(np.uint64)
    # Where residues begin is a property of the molecule too.
    value = place * np.uint64(2)
    value[residues.first_atom[:-1]] += np.uint64(1)
    for column in alike:
        value = _mixed(value ^ column.astype(np.uint64))
    total = np.add.reduceat(_mixed(value), first[:-1])
    for k, (atoms, parameter) in enumerate(terms):
        for rows in (slice(start, start + _ROWS) for start in range(0, len(atoms), _ROWS)):
            value = np.full(len(atoms[rows]), k + 1, dtype=np.uint64)
            for column in atoms[rows].T:
                value = _mixed(value ^ place[column])
            if parameter is not None:
                value = _mixed(value ^ parameter[rows].astype(np.uint64))
            np.add.at(total, molecule[atoms[rows, 0]], _mixed(value))
    n_residues = np.diff(first_residue, append=len(residues.number))
    labelled = np.repeat(n_residues > 1, n_residues)
    begin = residues.first_atom[:-1][labelled]
    label = _mixed(residues.number[labelled].astype(np.uint64) ^ place[begin])
    np.add.at(total, molecule[begin], _mixed(label ^ residues.segid[labelled].view("<u4").astype(np.uint64)))
    _, example, inverse = np.unique(total, return_index=True, return_inverse=True)
    order = np.argsort(example)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Kinds(first, first_residue, rank[inverse.reshape(-1)], example[order])


def _bounds(n: int, first_atom: np.ndarray, terms: Sequence[np.ndarray]) -> np.ndarray:
    """(m + 1,) first atom of each molecule: residues begin there and no term spans the gap before it."""
    step = np.zeros(n + 1, dtype=np.int64)
    for atoms in terms:
        if len(atoms):
            step += np.bincount(atoms.min(axis=1), minlength=n + 1)
            step -= np.bincount(atoms.max(axis=1), minlength=n + 1)
    spanned = np.cumsum(step[:n])
    inner = first_atom[1:-1]
    return np.concatenate([[0], inner[spanned[inner - 1] == 0], [n]]).astype(np.int64)


def _mixed(value: np.ndarray) -> np.ndarray:
    """Integers of 64 bits, each scattered over all of them (finalizer of splitmix64; Steele et al., OOPSLA 2014)."""
    value = value + _SALT
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return value


def expanded(examples: Topology, kinds: Kinds, residues: Residues) -> Topology:
    """The topology of the whole system from that of its examples, one molecule of each kind in their order."""
    template = np.repeat(examples.run_template, examples.run_count)  # of each molecule of the examples
    n_residues = np.array([len(t.residue_name) for t in examples.templates], dtype=np.int64)
    n_atoms = np.array([t.n_atoms for t in examples.templates], dtype=np.int64)
    atom = np.cumsum(n_atoms[template]) - n_atoms[template]
    residue = np.cumsum(n_residues[template]) - n_residues[template]
    size = np.diff(kinds.first_atom)[kinds.example]
    start = np.searchsorted(atom, np.concatenate([[0], np.cumsum(size)]))  # molecules of topology.h5 of each kind
    parts = np.diff(start)
    residue -= np.repeat(residue[start[:-1]], parts)
    of_molecule = parts[kinds.kind]
    owner = np.repeat(np.arange(len(kinds.kind)), of_molecule)
    part = np.arange(len(owner)) - np.repeat(np.cumsum(of_molecule) - of_molecule, of_molecule) + start[
        kinds.kind[owner]]
    which = template[part]
    own = kinds.first_residue[owner] + residue[part]
    number, segid = residues.number[own], residues.segid[own]
    follows = (n_residues[which[1:]] > 1) | ((np.diff(number) == 1) & (segid[1:] == segid[:-1]))
    begin = np.concatenate([[0], np.flatnonzero((which[1:] != which[:-1]) | ~follows) + 1])
    return replace(examples, run_template=which[begin].astype(np.int32),
                   run_count=np.diff(begin, append=len(which)).astype(np.int64),
                   run_residue=number[begin].astype(np.int64), run_segid=segid[begin])
