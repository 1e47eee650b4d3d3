"""Long molecules as pieces: each distinct residue, with all terms that touch it, once (docs/reference/file-formats.md).

The engine looks up what an atom is, at any time and for any atom. With whole molecules as templates each of its ranks
would hold all terms of the DNA (21 kB a nucleotide); with pieces a rank holds some hundred residues and, of a molecule,
which of them stands where.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

_ATOM_COLUMNS = ("lj_type", "charge", "mass")
_ROWS_A_BLOCK, _PIECES_A_BLOCK = 1 << 19, 1 << 12
"""What is looked at in one go: the terms of the DNA of a locus take gigabytes."""


class _Molecule(Protocol):
    """What is cut: a MoleculeTemplate."""

    n_atoms: int
    atom_residue: np.ndarray
    constraint_atoms: np.ndarray


@dataclass(frozen=True)
class Pieces:
    """The distinct pieces of some molecules, one after another."""

    columns: dict[str, np.ndarray]
    """Atoms and terms of all pieces, by field of MoleculeTemplate. Terms name an atom beyond their piece as if the
    neighbour stood there: only its distance from the atoms of the piece has a meaning."""
    first_atom: np.ndarray
    """(p + 1,) int32: the atoms of piece i are first[i] .. first[i+1]-1."""
    first_term: dict[str, np.ndarray]
    """(p + 1,) int32 for each kind of term: its rows that belong to piece i. A term belongs to all that it touches."""
    of_molecule: list[np.ndarray | None]
    """(k,) int32: the pieces of each molecule; None for a molecule of one residue, which stays whole."""


def cut_into_pieces(molecules: Sequence[_Molecule], tables: dict[str, list[str]]) -> Pieces:
    """Cut molecules into residues (joined where a constraint crosses) and keep the distinct ones.

    ``tables``: the fields of each kind of term, the one with the atoms first.
    """
    number: dict[bytes, int] = {}
    of_molecule: list[np.ndarray | None] = []
    sizes = []
    atoms: dict[str, list[np.ndarray]] = {name: [] for name in _ATOM_COLUMNS}
    rows: dict[str, list[np.ndarray]] = {name: [] for columns in tables.values() for name in columns}
    counts: dict[str, list[np.ndarray]] = {kind: [] for kind in tables}
    for molecule in molecules:
        first = _boundaries(molecule)
        if len(first) == 2:
            of_molecule.append(None)
            continue
        keys = _keys(molecule, tables, first)
        known = len(number)
        of_molecule.append(np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int32))
        new, where = np.unique(of_molecule[-1], return_index=True)
        where = where[new >= known]
        start = sum(sizes) + np.concatenate([[0], np.cumsum(first[where + 1] - first[where])])
        sizes += (first[where + 1] - first[where]).tolist()
        inside = np.concatenate([np.arange(first[k], first[k + 1]) for k in where]) if len(where) else np.empty(0, int)
        for name, parts in atoms.items():
            parts.append(getattr(molecule, name)[inside])
        place = np.full(len(first) - 1, -1)
        place[where] = np.arange(len(where))
        is_inside = np.zeros(molecule.n_atoms, dtype=bool)
        is_inside[inside] = True
        for kind, columns in tables.items():
            atoms_of_term = getattr(molecule, columns[0])
            touching = np.flatnonzero(is_inside[atoms_of_term].any(axis=1))
            row, owner = _owned_rows(atoms_of_term[touching], first)
            row, owner = touching[row[place[owner] >= 0]], owner[place[owner] >= 0]
            order = np.argsort(place[owner], kind="stable")
            row, owner = row[order], owner[order]
            counts[kind].append(np.bincount(place[owner], minlength=len(where)))
            moved = (start[place[owner]] - first[owner])[:, None]
            for name in columns:
                values = getattr(molecule, name)[row]
                rows[name].append(values + moved if name == columns[0] else values)
    return Pieces(
        columns={name: np.concatenate(parts) for name, parts in (atoms | rows).items() if parts},
        first_atom=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        first_term={kind: np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, int), *parts]))]).astype(np.int32)
                    for kind, parts in counts.items()},
        of_molecule=of_molecule,
    )


def _boundaries(molecule: _Molecule) -> np.ndarray:
    """First atoms of the pieces of a molecule, and its end."""
    first = np.flatnonzero(np.diff(molecule.atom_residue, prepend=-1))
    crossed = np.zeros(molecule.n_atoms + 1, dtype=np.int64)
    if len(molecule.constraint_atoms):
        np.add.at(crossed, molecule.constraint_atoms.min(axis=1) + 1, 1)
        np.add.at(crossed, molecule.constraint_atoms.max(axis=1) + 1, -1)
    first = first[np.cumsum(crossed)[first] == 0]
    return np.append(first, molecule.n_atoms)


def _owned_rows(atoms: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every term under each of the pieces that it touches: its row, and the piece, ascending. (n,) int32."""
    piece_of_atom = np.repeat(np.arange(len(first) - 1, dtype=np.int32), np.diff(first))
    rows, owners = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
    for start in range(0, len(atoms), _ROWS_A_BLOCK):
        piece = piece_of_atom[atoms[start:start + _ROWS_A_BLOCK]]
        again = np.zeros(piece.shape, dtype=bool)
        for c in range(1, piece.shape[1]):
            again[:, c] = (piece[:, :c] == piece[:, c:c + 1]).any(axis=1)
        row, column = np.nonzero(~again)
        rows.append((row + start).astype(np.int32))
        owners.append(piece[row, column])
    row, owner = np.concatenate(rows), np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return row[order], owner[order]


def _keys(molecule: _Molecule, tables: dict[str, list[str]], first: np.ndarray) -> list[bytes]:
    """A digest of all that a piece is: equal pieces have equal ones."""
    digests = [_digests([getattr(molecule, name) for name in _ATOM_COLUMNS], first)]
    for atoms, *columns in tables.values():
        row, owner = _owned_rows(getattr(molecule, atoms), first)
        begin = np.searchsorted(owner, np.arange(len(first)))
        found: list[bytes] = []
        for k in range(0, len(first) - 1, _PIECES_A_BLOCK):
            bounds = begin[k:k + _PIECES_A_BLOCK + 1]
            part = slice(bounds[0], bounds[-1])
            offsets = (getattr(molecule, atoms)[row[part]] - first[owner[part]][:, None]).astype(np.int32)
            found += _digests([offsets, *(getattr(molecule, name)[row[part]] for name in columns)], bounds - bounds[0])
        digests.append(found)
    return [b"".join(parts) for parts in zip(*digests, strict=True)]


def _digests(columns: list[np.ndarray], first: np.ndarray) -> list[bytes]:
    """Digest of the rows first[i] .. first[i+1]-1 of some columns, for every i."""
    table = np.hstack([np.ascontiguousarray(values).reshape(len(values), -1).view(np.uint8) if len(values)
                       else np.empty((0, 1), np.uint8) for values in columns])
    data, bounds = memoryview(table.ravel()), (first * table.shape[1]).tolist()
    return [hashlib.blake2b(data[a:b], digest_size=16).digest() for a, b in pairwise(bounds)]
