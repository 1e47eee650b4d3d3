"""AMBER's prmtop as columns: the molecules of one that are alike, and a prmtop with one of each kind.

Sections, their order and the meaning of POINTERS: "AMBER file formats", ambermd.org/FileFormats.php.
"""

import mmap
import re
from itertools import chain
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.molecule_kinds import Kinds, Residues, find_kinds

_FORMAT = re.compile(rb"\(\s*(\d*)\s*([aAiIeEfFgG])\s*(\d+)")
_OF_ATOMS = ("ATOM_NAME", "CHARGE", "ATOMIC_NUMBER", "MASS", "ATOM_TYPE_INDEX", "AMBER_ATOM_TYPE", "RADII", "SCREEN")
"""Sections with a value an atom that are kept, and by which atoms are alike."""
_LEFT_OUT = ("TREE_CHAIN_CLASSIFICATION", "JOIN_ARRAY", "IROTAT", "SOLVENT_POINTERS", "ATOMS_PER_MOLECULE", "CAP_INFO",
             "CAP_INFO2", "POLARIZABILITY", "DIPOLE_DAMP_FACTOR")
_TERMS = {"BONDS_INC_HYDROGEN": (2, 2), "BONDS_WITHOUT_HYDROGEN": (2, 3), "ANGLES_INC_HYDROGEN": (3, 4),
          "ANGLES_WITHOUT_HYDROGEN": (3, 5), "DIHEDRALS_INC_HYDROGEN": (4, 6), "DIHEDRALS_WITHOUT_HYDROGEN": (4, 7)}
"""Atoms of a term (three times their index), behind which its type stands, and its place in POINTERS."""
_CHARMM_TERMS = {"CHARMM_UREY_BRADLEY": (2, "CHARMM_UREY_BRADLEY_COUNT"),
                 "CHARMM_IMPROPERS": (4, "CHARMM_NUM_IMPROPERS"), "CMAP_INDEX": (5, "CMAP_COUNT"),
                 "CHARMM_CMAP_INDEX": (5, "CHARMM_CMAP_COUNT")}
"""The same of terms whose atoms are counted from 1, and the section whose first number counts them."""
_BLOCK = 1 << 18
_NARROW = 8
"""Characters of numbers that fit into 32 bits, also sixteen times (``_marked``)."""


class Prmtop:
    """A prmtop, which stays on the disk but for what is asked for.

    Raises BadInputError, here and in all methods, for a file that is damaged or cut short.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with open(path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._sections: dict[str, tuple[bytes, int, int]] = {}
        marks = []
        place = self._data.find(b"%FLAG ")
        while place >= 0:
            marks.append(place)
            place = self._data.find(b"\n%FLAG ", place)
            place += place >= 0
        for start, end in zip(marks, [*marks[1:], len(self._data)], strict=True):
            head = self._data.find(b"\n", start) + 1
            name = self._data[start + 6:head].decode("ascii", "replace").strip()
            body = head
            while self._data[body:body + 1] == b"%":  # %COMMENT and %FORMAT
                line = body
                body = self._data.find(b"\n", body) + 1 or end
            found = _FORMAT.search(self._data[line:body]) if body > head else None
            if found is None:
                raise BadInputError(f"{self.path}: section {name} has no %FORMAT: it is damaged, write the file again")
            self._sections[name] = self._data[line:body], body, end
        self._forget()
        self.pointers = self.integers("POINTERS")
        if len(self.pointers) < 31 or self.pointers[0] < 1:
            raise BadInputError(f"{self.path}: POINTERS has {len(self.pointers)} numbers, and a prmtop has 31 and at "
                                "least one atom: it is cut short, write it again")

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return int(self.pointers[0])

    def __contains__(self, name: str) -> bool:
        return name in self._sections

    def cells(self, name: str, expected: int | None = None) -> np.ndarray:
        """(values, width) uint8: the characters of each value of a section; ``expected``: how many there must be."""
        if name not in self._sections:
            raise BadInputError(f"{self.path} has no section {name}: it is cut short or too old, write it again")
        form, start, end = self._sections[name]
        per_line, _, width = _FORMAT.search(form).groups()
        per_line, width = int(per_line or 1), int(width)
        body = np.frombuffer(self._data, np.uint8, end - start, start)
        line = per_line * width + 1
        rows = len(body) // line
        whole = body[:rows * line].reshape(rows, line)
        if rows and (whole[:, -1] != ord("\n")).any():
            found = self._ragged(start, end, width)
        else:
            rest = bytes(body[rows * line:]).rstrip(b"\r\n")
            rest = rest.ljust(-(-len(rest) // width) * width)
            found = np.empty((rows * per_line + len(rest) // width, width), np.uint8)
            found[:rows * per_line].reshape(rows, line - 1)[:] = whole[:, :-1]
            found[rows * per_line:] = np.frombuffer(rest, np.uint8).reshape(-1, width)
        self._forget()
        if expected is not None and len(found) < expected:
            raise BadInputError(f"{self.path}: section {name} has {len(found):,} values, and POINTERS ask for "
                                f"{expected:,}: it is cut short, write it again")
        return found if expected is None else found[:expected]

    def _forget(self) -> None:
        """What was read of the file needs no memory: it is read again from the disk where it is wanted again."""
        self._data.madvise(mmap.MADV_DONTNEED)

    def _ragged(self, start: int, end: int, width: int) -> np.ndarray:
        """Cells of lines of different length."""
        lines = [line.rstrip(b"\r") for line in self._data[start:end].split(b"\n")]
        return np.frombuffer(b"".join(line.ljust(-(-len(line) // width) * width) for line in lines),
                             np.uint8).reshape(-1, width)

    def integers(self, name: str, expected: int | None = None) -> np.ndarray:
        """(values,) of a section: int32 where its cells hold no larger numbers, int64 otherwise."""
        cells = self.cells(name, expected)
        values = np.empty(len(cells), np.int64 if cells.shape[1] > _NARROW else np.int32)
        try:
            for k in range(0, len(cells), _BLOCK):
                values[k:k + _BLOCK] = _integers(cells[k:k + _BLOCK])
            return values
        except ValueError:
            raise BadInputError(f"{self.path}: section {name} holds something else than whole numbers: it is damaged, "
                                "write it again") from None

    def section(self, name: str) -> bytes:
        """A section as it stands, with its head."""
        form, start, end = self._sections[name]
        return f"%FLAG {name}\n".encode() + form + self._data[start:end]

    def names(self) -> list[str]:
        """All sections."""
        return list(self._sections)

    def form(self, name: str) -> bytes:
        """The line of the format of a section."""
        return self._sections[name][0]


def box_of(prmtop: Prmtop) -> np.ndarray | None:
    """(6,) edges and angles of the box that stands in an older prmtop; None where there is none."""
    if not prmtop.pointers[27] or "BOX_DIMENSIONS" not in prmtop:
        return None
    numbers = [float(bytes(cell)) for cell in prmtop.cells("BOX_DIMENSIONS")[:4]]
    return np.array([*numbers[1:], *3 * numbers[:1]]) if len(numbers) == 4 and min(numbers) > 0 else None


def kinds_of(prmtop: Prmtop) -> tuple[Kinds, Residues]:
    """Molecules that are alike, and residues, which a prmtop numbers through the system."""
    n, n_residues = prmtop.n_atoms, int(prmtop.pointers[11])
    first = np.append(prmtop.integers("RESIDUE_POINTER", n_residues).astype(np.int64) - 1, n)
    if len(first) < 2 or first[0] != 0 or (np.diff(first) < 1).any():
        raise BadInputError(f"{prmtop.path}: RESIDUE_POINTER does not ascend from 1: it is damaged, write it again")
    residues = Residues(first, np.arange(1, n_residues + 1), np.full(n_residues, b"1", dtype="S4"))
    # One after another: each takes eight bytes an atom.
    alike = chain((_words(prmtop.cells(name, n)) for name in _OF_ATOMS if name in prmtop),
                  [np.repeat(_words(prmtop.cells("RESIDUE_LABEL", n_residues)), np.diff(first))])
    terms = [_checked(prmtop, name, *terms_of(prmtop, name)) for name in (*_TERMS, *_CHARMM_TERMS)
             if name in _TERMS or name in prmtop]
    owner, partner = exclusions_of(prmtop)
    terms.append(_checked(prmtop, "EXCLUDED_ATOMS_LIST", np.column_stack([owner, partner]), None))
    return find_kinds(residues, alike, terms), residues


def terms_of(prmtop: Prmtop, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(t, w) atoms from 0, negative where AMBER marks them so, and (t,) types, in which such marks count too."""
    if name in _TERMS:
        width, pointer = _TERMS[name]
        rows = prmtop.integers(name, (width + 1) * int(prmtop.pointers[pointer])).reshape(-1, width + 1)
        return rows[:, :width] // 3, _marked(rows)
    width, counter = _CHARMM_TERMS[name]
    rows = prmtop.integers(name, (width + 1) * int(prmtop.integers(counter)[0])).reshape(-1, width + 1)
    return rows[:, :width] - 1, rows[:, width]


def _marked(rows: np.ndarray) -> np.ndarray:
    """Types of terms together with the signs of their atoms."""
    types = 16 * rows[:, -1]
    for column in range(rows.shape[1] - 1):
        types += (rows[:, column] < 0).astype(types.dtype) << column
    return types


def exclusions_of(prmtop: Prmtop) -> tuple[np.ndarray, np.ndarray]:
    """(e,) each: atoms and those that they exclude, from 0; an atom that excludes none names itself."""
    counts = prmtop.integers("NUMBER_EXCLUDED_ATOMS", prmtop.n_atoms)
    partner = prmtop.integers("EXCLUDED_ATOMS_LIST", int(counts.sum())) - 1
    owner = np.repeat(np.arange(prmtop.n_atoms, dtype=partner.dtype), counts)
    return owner, np.where(partner < 0, owner, partner)


def _checked(prmtop: Prmtop, name: str, atoms: np.ndarray,
             parameter: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The same without marks. Raises BadInputError for atoms that are not there."""
    atoms = np.abs(atoms)
    if atoms.max(initial=0) >= prmtop.n_atoms:
        raise BadInputError(f"{prmtop.path}: section {name} names atom {int(atoms.max()) + 1:,} of "
                            f"{prmtop.n_atoms:,}: it is damaged, write it again")
    return atoms, parameter


def write_examples(prmtop: Prmtop, kinds: Kinds, residues: Residues, path: Path) -> None:
    """Write a prmtop with the first molecule of each kind alone; tables of parameters stay whole."""
    chosen = kinds.chosen
    new = np.cumsum(chosen) - 1
    pointers = prmtop.pointers.copy()
    made: dict[str, np.ndarray] = {name: prmtop.cells(name, prmtop.n_atoms)[chosen] for name in _OF_ATOMS
                                   if name in prmtop}
    for name, (width, pointer) in _TERMS.items():
        rows = prmtop.integers(name, (width + 1) * int(pointers[pointer])).reshape(-1, width + 1)
        rows = rows[chosen[np.abs(rows[:, 0]) // 3]]
        rows[:, :width] = np.where(rows[:, :width] < 0, -3, 3) * new[np.abs(rows[:, :width]) // 3]
        made[name] = rows.ravel()
        pointers[pointer] = len(rows)
    for name, (width, counter) in _CHARMM_TERMS.items():
        if name in prmtop:
            numbers = prmtop.integers(counter)
            rows = prmtop.integers(name, (width + 1) * int(numbers[0])).reshape(-1, width + 1)
            rows = rows[chosen[rows[:, 0] - 1]]
            rows[:, :width] = new[rows[:, :width] - 1] + 1
            made[name], made[counter] = rows.ravel(), np.concatenate([[len(rows)], numbers[1:]])
    owner, partner = exclusions_of(prmtop)
    keep = chosen[owner]
    owner, partner = new[owner[keep]], new[partner[keep]]
    made["NUMBER_EXCLUDED_ATOMS"] = np.bincount(owner, minlength=int(chosen.sum()))
    made["EXCLUDED_ATOMS_LIST"] = np.where(partner == owner, 0, partner + 1)
    mine = chosen[residues.first_atom[:-1]]
    made["RESIDUE_LABEL"] = prmtop.cells("RESIDUE_LABEL", len(mine))[mine]
    made["RESIDUE_POINTER"] = new[residues.first_atom[:-1][mine]] + 1
    pointers[[0, 10, 11]] = chosen.sum(), len(partner), mine.sum()
    pointers[[12, 13, 14]] = pointers[[3, 5, 7]]
    made["POINTERS"] = pointers
    with open(path, "wb") as file:
        file.write(b"%VERSION  VERSION_STAMP = V0001.000  DATE = 01/01/00  00:00:00\n")
        for name in prmtop.names():
            if name in made:
                file.write(f"%FLAG {name}\n".encode() + prmtop.form(name) + _lines(prmtop.form(name), made[name]))
            elif name not in _LEFT_OUT:
                file.write(prmtop.section(name))


def _lines(form: bytes, values: np.ndarray) -> bytes:
    """Values of a section, numbers or characters, in its lines."""
    per_line, _, width = _FORMAT.search(form).groups()
    per_line, width = int(per_line or 1), int(width)
    cell, content = (b"%%%dd" % width, values) if values.ndim == 1 else (b"%s", [row.tobytes() for row in values])
    lines, rest = divmod(len(values), per_line)
    text = (cell * per_line + b"\n") * lines + (cell * rest + b"\n" if rest or not lines else b"")
    return text % tuple(content if values.ndim > 1 else values.tolist())


def _words(cells: np.ndarray) -> np.ndarray:
    """(n,) uint64 that differ where (n, width) characters do (by chance once in 1e19)."""
    value = np.zeros(len(cells), dtype=np.uint64)
    for k in range(0, cells.shape[1], 4):
        part = np.zeros((len(cells), 4), dtype=np.uint8)
        part[:, :min(4, cells.shape[1] - k)] = cells[:, k:k + 4]
        value = value * np.uint64(0x9E3779B97F4A7C15) + part.view("<u4").ravel().astype(np.uint64) + np.uint64(1)
        value ^= value >> np.uint64(29)
    return value


def _integers(cells: np.ndarray) -> np.ndarray:
    """(n,) int64 of (n, width) characters. Raises ValueError for what is no whole number."""
    value = np.zeros(len(cells), dtype=np.int64)
    negative = np.zeros(len(cells), dtype=bool)
    for column in cells.T:
        digit = column - np.uint8(48)
        is_digit = digit < 10
        other = column[~is_digit]
        if ((other != ord(" ")) & (other != ord("-")) & (other != ord("\r")) & (other != ord("+"))).any():
            raise ValueError
        negative |= column == ord("-")
        value = np.where(is_digit, 10 * value + digit, value)
    return np.where(negative, -value, value)
