"""CHARMM PSF for other programs (extended columns, X-PLOR atom types), for systems that a text file can hold."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.export.blocks import term_blocks, total
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.solute import MAX_RESIDUES_PER_SEGMENT, Solute, base_36

MAX_ATOMS = 999_999_999  # the largest index that leaves a blank in a column of ten, for readers that split at blanks
ResidueLabel = Callable[[int], tuple[str, int]]
_ROWS_A_BLOCK = 1 << 14


@dataclass(frozen=True)
class MoleculeEntries:
    """What a PSF has of a kind of molecule with n atoms."""

    types: list[str]
    """(n,) atom types."""
    mass: np.ndarray
    """(n,) u."""
    bonds: np.ndarray
    """(b, 2) atoms from 0."""
    dihedrals: np.ndarray
    """(d, 4)."""
    impropers: np.ndarray
    """(i, 4)."""
    forms: tuple[str, str] = ("14.6f", "14.4f")
    """Of charges and of masses."""


def write_psf(topology: Topology, path: str | Path, solute: Solute | None = None) -> None:
    """Write atoms, bonds, angles, dihedrals, impropers and cross-terms in the order of the topology.

    ``solute`` gives every copy of a molecule its own segment ids and residue numbers; without it copies repeat those of
    their template. Solvent residues are numbered from 1 in segments of 9,999 residues, named by the first letter of
    their template's segment id and three base-36 digits. Fields are in CHARMM's columns and also separated by blanks
    (flag NAMD), so both kinds of readers agree. Raises BadInputError for too many atoms.
    """
    names = [name.decode() for name in topology.lj_name]
    write_entries(topology, path, [_entries(template, names) for template in topology.templates], solute)


def write_entries(topology: Topology, path: str | Path, entries: Sequence[MoleculeEntries],
                  solute: Solute | None = None, counted: bool = False, empty_lists: bool = False) -> None:
    """Write a PSF as ``write_psf`` does, with what it has of each kind of molecule.

    ``counted``: residues are numbered from 1 through the whole system. ``empty_lists``: the sections of explicit
    exclusions and of groups, which some programs look for, are there without content.
    """
    n_atoms = topology.n_atoms
    if n_atoms > MAX_ATOMS:
        raise BadInputError(f"{path}: {n_atoms:,} atoms are too many for a PSF (at most {MAX_ATOMS:,}): "
                            "give other programs a part of the system")
    with atomic_path(path) as part, open(part, "wb") as file:
        file.write(f"PSF EXT XPLOR NAMD\n\n{1:10d} !NTITLE\n* chromabuild, force field {topology.force_field}\n\n"
                   f"{n_atoms:10d} !NATOM\n".encode("ascii"))
        file.writelines(_atom_lines(topology, entries, solute, counted))
        file.write(b"\n")
        templates = topology.templates
        _write_section(file, "!NBOND: bonds", topology, [[one.bonds for one in entries]], 4)
        _write_section(file, "!NTHETA: angles", topology, [[t.angle_atoms for t in templates]], 3)
        _write_section(file, "!NPHI: dihedrals", topology, [[one.dihedrals for one in entries]], 2)
        _write_section(file, "!NIMPHI: impropers", topology, [[one.impropers for one in entries],
                                                              [t.improper_atoms for t in templates]], 2)
        for label in ("!NDON: donors", "!NACC: acceptors"):
            _write_section(file, label, topology, [], 4)
        if empty_lists:
            _write_empty_lists(file, n_atoms)
        cross = [np.hstack([t.cmap_atoms[:, :4], t.cmap_atoms[:, 1:]]) for t in templates]
        if total(topology, [len(rows) for rows in cross]):
            _write_section(file, "!NCRTERM: cross-terms", topology, [cross], 1)


def _entries(template: MoleculeTemplate, names: list[str]) -> MoleculeEntries:
    """Lennard-Jones types, and proper and improper dihedrals, sorted.

    A dihedral with several periodicities is one entry. AMBER's impropers stand among the dihedrals: they are those
    whose consecutive atoms are not all bonded.
    """
    atoms = template.dihedral_atoms.astype(np.int64)
    high, low = atoms[:, 0] << 32 | atoms[:, 1], atoms[:, 2] << 32 | atoms[:, 3]
    order = np.lexsort((low, high))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    rows = atoms[order[new]]
    n_atoms = template.n_atoms
    keys = _pair_keys(template.bond_atoms.astype(np.int64), n_atoms)
    bonded = np.sort(np.append(keys, n_atoms**2))  # the last one is larger than any key
    proper = np.ones(len(rows), dtype=bool)
    for column in range(3):
        pairs = _pair_keys(rows[:, column:column + 2], n_atoms)
        proper &= bonded[np.searchsorted(bonded, pairs)] == pairs
    return MoleculeEntries([names[kind] for kind in template.lj_type.tolist()], template.mass, template.bond_atoms,
                           rows[proper], rows[~proper])


def _pair_keys(pairs: np.ndarray, n_atoms: int) -> np.ndarray:
    """One integer per unordered pair."""
    return pairs.min(axis=1) * n_atoms + pairs.max(axis=1)


def labelled_runs(topology: Topology,
                  solute: Solute | None) -> Iterator[tuple[MoleculeTemplate, int, int, ResidueLabel]]:
    """Of each run of equal molecules: kind, copies, first atom, and what gives segment id and number of its residue k.

    Residues of a run count from 0 through all copies.
    """
    solvent_before: Counter[str] = Counter()
    residues_before = 0
    for t, count, first in zip(topology.run_template, topology.run_count, topology.run_first_atom, strict=False):
        template = topology.templates[t]
        n_residues = len(template.residue_name)
        if solute is not None and residues_before < solute.n_residues:
            label = partial(_solute_label, solute, residues_before)
        elif count == 1 and n_residues > 1:
            label = partial(_template_label, template)
        else:
            letter = template.residue_segid[0].decode()[:1]
            label = partial(_solvent_label_after, letter, solvent_before[letter])
            solvent_before[letter] += int(count) * n_residues
        residues_before += int(count) * n_residues
        yield template, int(count), int(first), label


def _atom_lines(topology: Topology, entries: Sequence[MoleculeEntries], solute: Solute | None,
                counted: bool) -> Iterator[bytes]:
    """Blocks of lines, one an atom: index, segment, residue number, residue, name, type, charge, mass."""
    residues_before = 0
    for t, (template, count, first, label) in zip(topology.run_template, labelled_runs(topology, solute), strict=True):
        n_atoms, n_residues = template.n_atoms, len(template.residue_name)
        if counted:
            label = partial(_counted_label, label, residues_before)
        residues_before += count * n_residues
        tails = _as_rows(_line_tails(template, entries[t]))
        for start in range(0, count * n_atoms, _ROWS_A_BLOCK):
            copy, atom = np.divmod(np.arange(start, min(start + _ROWS_A_BLOCK, count * n_atoms)), n_atoms)
            residue = copy * n_residues + template.atom_residue[atom]
            lowest = int(residue.min())
            labels = _as_rows([_label_columns(*label(k)) for k in range(lowest, int(residue.max()) + 1)])
            lines = np.hstack([_ten_columns(np.arange(len(atom)) + first + start + 1), labels[residue - lowest],
                               tails[atom]])
            yield lines[lines != 0].tobytes()


def _counted_label(label: ResidueLabel, before: int, k: int) -> tuple[str, int]:
    return label(k)[0], before + k + 1


def _solute_label(solute: Solute, before: int, k: int) -> tuple[str, int]:
    return solute.segment_name[solute.residue_segment[before + k]], int(solute.residue_number[before + k])


def _template_label(template: MoleculeTemplate, k: int) -> tuple[str, int]:
    return template.residue_segid[k].decode(), int(template.residue_number[k])


def _solvent_label_after(letter: str, before: int, k: int) -> tuple[str, int]:
    return solvent_label(letter, before + k)


def _label_columns(segid: str, number: int) -> bytes:
    return f" {segid:<8s} {number:<8d} ".encode("ascii")


def _line_tails(template: MoleculeTemplate, entries: MoleculeEntries) -> list[bytes]:
    """What is the same in every copy of a molecule."""
    of_charge, of_mass = entries.forms

    @cache
    def tail(residue: int, name: bytes, kind: str, charge: float, mass: float) -> bytes:
        return (f"{residue_name[residue]:<8s} {name.decode():<8s} {kind:<4s} "
                f"{charge:{of_charge}}{mass:{of_mass}}{0:8d}\n").encode("ascii")

    residue_name = [name.decode() for name in template.residue_name]
    first_of_name = {name: k for k, name in reversed(list(enumerate(residue_name)))}
    return [tail(first_of_name[residue_name[residue]], *rest) for residue, *rest in zip(
        template.atom_residue.tolist(), template.atom_name.tolist(), entries.types,
        template.charge.tolist(), entries.mass.tolist(), strict=True)]


def _as_rows(texts: list[bytes]) -> np.ndarray:
    """(n, longest) uint8, filled up with NUL."""
    padded = np.array(texts)
    return padded.view(np.uint8).reshape(len(texts), padded.itemsize)


def _ten_columns(numbers: np.ndarray) -> np.ndarray:
    """(n, 10) uint8 text of integers from 1 to 9,999,999,999, right-justified, as ``%10d`` writes them."""
    high, low = np.divmod(numbers, 10_000)
    top, middle = np.divmod(high, 10_000)
    leading, inner = _four_digits()
    text = np.empty((len(numbers), 10), dtype=np.uint8)
    text[:, :2] = leading[top, 2:]
    text[:, 2:6] = np.where((top > 0)[:, None], inner[middle], leading[middle])
    text[:, 6:] = np.where((high > 0)[:, None], inner[low], leading[low])
    return text


@cache
def _four_digits() -> tuple[np.ndarray, np.ndarray]:
    """(10,000, 4) uint8 text of 0..9999, filled up with blanks (0: all blank) and with zeros."""
    blanks = [b"    ", *(b"%4d" % k for k in range(1, 10_000))]
    return _as_rows(blanks), _as_rows([b"%04d" % k for k in range(10_000)])


def solvent_label(letter: str, index: int) -> tuple[str, int]:
    """Segment id and residue number of the solvent residue ``index`` (from 0) of a species."""
    segment, number = divmod(index, MAX_RESIDUES_PER_SEGMENT)
    return letter + base_36(segment, 3), number + 1


def _write_section(file: BinaryIO, label: str, topology: Topology, kinds: Sequence[Sequence[np.ndarray]],
                   tuples_a_line: int) -> None:
    """Index tuples, counted from 1, in columns of ten; ``kinds``: one behind the other, each with the rows that every
    kind of molecule has."""
    count = sum(total(topology, [len(rows) for rows in of_template]) for of_template in kinds)
    file.write(f"{count:10d} {label}\n".encode("ascii"))
    _write_tuples(file, (rows for of_template in kinds for rows in term_blocks(topology, of_template, base=1)),
                  tuples_a_line)


def _write_tuples(file: BinaryIO, blocks: Iterable[np.ndarray], tuples_a_line: int) -> None:
    """Tuples of indices, (k, m) a block, and an empty line."""
    rest = np.empty(0, dtype=np.int64)  # of the last line that is not full yet
    for rows in blocks:
        width = tuples_a_line * rows.shape[1]
        flat = np.concatenate([rest, rows.ravel()])
        whole = len(flat) // width * width
        for start in range(0, whole, width * _ROWS_A_BLOCK):
            text = _ten_columns(flat[start:min(start + width * _ROWS_A_BLOCK, whole)])
            lines = text.reshape(-1, 10 * width)
            file.write(np.pad(lines, ((0, 0), (0, 1)), constant_values=ord("\n")).tobytes())
        rest = flat[whole:]
    if len(rest):
        file.write(_ten_columns(rest).tobytes() + b"\n")
    file.write(b"\n")


def _write_empty_lists(file: BinaryIO, n_atoms: int) -> None:
    """No explicit exclusion of any atom, and one group."""
    row = f"{0:10d}" * 8 + "\n"
    file.write(f"{0:10d} !NNB\n\n".encode("ascii"))
    for start in range(0, n_atoms // 8, _ROWS_A_BLOCK):
        file.write((row * min(_ROWS_A_BLOCK, n_atoms // 8 - start)).encode("ascii"))
    if n_atoms % 8:
        file.write((f"{0:10d}" * (n_atoms % 8) + "\n").encode("ascii"))
    file.write(f"\n{1:10d}{0:10d} !NGRP NST2\n{0:10d}{0:10d}{0:10d}\n\n".encode("ascii"))
