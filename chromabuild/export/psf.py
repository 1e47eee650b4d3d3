"""CHARMM PSF for other programs (extended columns, X-PLOR atom types), for systems that a text file can hold."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.solute import MAX_RESIDUES_PER_SEGMENT, Solute, base_36

MAX_ATOMS = 999_999_999  # the largest index that leaves a blank in a column of ten, for readers that split at blanks
ResidueLabel = Callable[[int], tuple[str, int]]
_ROWS_A_BLOCK = 1 << 14


def write_psf(topology: Topology, path: str | Path, solute: Solute | None = None) -> None:
    """Write atoms, bonds, angles, dihedrals, impropers and cross-terms in the order of the topology.

    ``solute`` gives every copy of a molecule its own segment ids and residue numbers; without it copies repeat those of
    their template. Solvent residues are numbered from 1 in segments of 9,999 residues, named by the first letter of
    their template's segment id and three base-36 digits. Fields are in CHARMM's columns and also separated by blanks
    (flag NAMD), so both kinds of readers agree. Raises BadInputError for too many atoms.
    """
    n_atoms = topology.n_atoms
    if n_atoms > MAX_ATOMS:
        raise BadInputError(f"{path}: {n_atoms:,} atoms are too many for a PSF (at most {MAX_ATOMS:,}): "
                            "give other programs a part of the system")
    bonds = topology.term("bond")["atoms"]
    dihedrals, impropers = _dihedrals(topology)
    impropers = np.concatenate([impropers, topology.term("improper")["atoms"]])
    nothing = np.empty((0, 2), dtype=np.int64)
    with atomic_path(path) as part, open(part, "wb") as file:
        file.write(f"PSF EXT XPLOR NAMD\n\n{1:10d} !NTITLE\n* chromabuild, force field {topology.force_field}\n\n"
                   f"{n_atoms:10d} !NATOM\n".encode("ascii"))
        file.writelines(_atom_lines(topology, solute))
        file.write(b"\n")
        _write_section(file, "!NBOND: bonds", bonds, 4)
        _write_section(file, "!NTHETA: angles", topology.term("angle")["atoms"], 3)
        _write_section(file, "!NPHI: dihedrals", dihedrals, 2)
        _write_section(file, "!NIMPHI: impropers", impropers, 2)
        _write_section(file, "!NDON: donors", nothing, 4)
        _write_section(file, "!NACC: acceptors", nothing, 4)
        cmap = topology.term("cmap")["atoms"]
        if len(cmap):
            _write_section(file, "!NCRTERM: cross-terms", np.hstack([cmap[:, :4], cmap[:, 1:]]), 1)


def _dihedrals(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Proper and improper dihedrals, (k, 4) each, sorted.

    A dihedral with several periodicities is one entry. AMBER's impropers stand among the dihedrals: they are those
    whose consecutive atoms are not all bonded. Both are decided once for each kind of molecule.
    """
    kinds = []
    for template in topology.templates:
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
        kinds.append((rows[proper], rows[~proper]))
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for t, count, start in zip(topology.run_template, topology.run_count, topology.run_first_atom[:-1], strict=True):
        offset = start + topology.templates[t].n_atoms * np.arange(count, dtype=np.int64)
        for rows, pieces in zip(kinds[t], found, strict=True):
            if len(rows):
                pieces.append((rows + offset[:, None, None]).reshape(-1, 4))
    nothing = np.empty((0, 4), dtype=np.int64)
    return np.concatenate([nothing, *found[0]]), np.concatenate([nothing, *found[1]])


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


def _atom_lines(topology: Topology, solute: Solute | None) -> Iterator[bytes]:
    """Blocks of lines, one an atom: index, segment, residue number, residue, name, type, charge, mass."""
    for template, count, first, label in labelled_runs(topology, solute):
        n_atoms, n_residues = template.n_atoms, len(template.residue_name)
        tails = _as_rows(_line_tails(template, topology.lj_name))
        for start in range(0, count * n_atoms, _ROWS_A_BLOCK):
            copy, atom = np.divmod(np.arange(start, min(start + _ROWS_A_BLOCK, count * n_atoms)), n_atoms)
            residue = copy * n_residues + template.atom_residue[atom]
            lowest = int(residue.min())
            labels = _as_rows([_label_columns(*label(k)) for k in range(lowest, int(residue.max()) + 1)])
            lines = np.hstack([_ten_columns(np.arange(len(atom)) + first + start + 1), labels[residue - lowest],
                               tails[atom]])
            yield lines[lines != 0].tobytes()


def _solute_label(solute: Solute, before: int, k: int) -> tuple[str, int]:
    return solute.segment_name[solute.residue_segment[before + k]], int(solute.residue_number[before + k])


def _template_label(template: MoleculeTemplate, k: int) -> tuple[str, int]:
    return template.residue_segid[k].decode(), int(template.residue_number[k])


def _solvent_label_after(letter: str, before: int, k: int) -> tuple[str, int]:
    return solvent_label(letter, before + k)


def _label_columns(segid: str, number: int) -> bytes:
    return f" {segid:<8s} {number:<8d} ".encode("ascii")


def _line_tails(template: MoleculeTemplate, lj_name: np.ndarray) -> list[bytes]:
    """What is the same in every copy of a molecule."""

    @cache
    def tail(residue: int, name: bytes, kind: int, charge: float, mass: float) -> bytes:
        return (f"{residue_name[residue]:<8s} {name.decode():<8s} {type_name[kind]:<4s} "
                f"{charge:14.6f}{mass:14.4f}{0:8d}\n").encode("ascii")

    type_name = [name.decode() for name in lj_name]
    residue_name = [name.decode() for name in template.residue_name]
    first_of_name = {name: k for k, name in reversed(list(enumerate(residue_name)))}
    return [tail(first_of_name[residue_name[residue]], *rest) for residue, *rest in zip(
        template.atom_residue.tolist(), template.atom_name.tolist(), template.lj_type.tolist(),
        template.charge.tolist(), template.mass.tolist(), strict=True)]


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


def _write_section(file: BinaryIO, label: str, atoms: np.ndarray, tuples_a_line: int) -> None:
    """Index tuples, counted from 1, in columns of ten."""
    file.write(f"{len(atoms):10d} {label}\n".encode("ascii"))
    width = tuples_a_line * atoms.shape[1]
    flat = atoms.ravel()
    for start in range(0, len(flat), width * _ROWS_A_BLOCK):
        text = _ten_columns(flat[start:start + width * _ROWS_A_BLOCK] + 1)
        whole = len(text) // width * width
        lines = text[:whole].reshape(-1, 10 * width)
        file.write(np.pad(lines, ((0, 0), (0, 1)), constant_values=ord("\n")).tobytes())
        if whole < len(text):
            file.write(text[whole:].tobytes() + b"\n")
    file.write(b"\n")
