"""Which atoms are wanted: a small selection language on what files say of them.

    selection = term { "or" term }
    term = factor { "and" factor }
    factor = "not" factor | "(" selection ")" | atom set

Atom sets: ``all``, ``solute``, ``protein``, ``dna``, ``water``, ``ions``; ``name CA P``, ``resname HOH NA``,
``segid DI00 DJ00``, ``resid 1:10 20``; ``box x0 y0 z0 x1 y1 z1`` (angstrom, lower border included); and
``within 10 of`` a factor: residues of which an atom is that near (angstrom, in the periodic box) to one of its atoms.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.box_vectors import folded, with_images
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import residue_library

KEYWORDS = ("all", "solute", "protein", "dna", "water", "ions", "name", "resname", "segid", "resid", "box", "within")
_OPERATORS = ("and", "or", "not", "(", ")")


class Atoms(Protocol):
    """Some atoms in whole residues, and what a selection asks of them; columns (n,)."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    @property
    def name(self) -> np.ndarray:
        """Bytes."""
        ...

    @property
    def resname(self) -> np.ndarray:
        """Bytes, as the PDB names residues."""
        ...

    @property
    def segid(self) -> np.ndarray:
        """Bytes."""
        ...

    @property
    def resid(self) -> np.ndarray:
        """Numbers of residues in their segments."""
        ...

    @property
    def residue(self) -> np.ndarray:
        """What tells the residues of these atoms apart, ascending."""
        ...

    @property
    def position(self) -> np.ndarray:
        """(n, 3) angstrom."""
        ...


Mask = Callable[[Atoms], np.ndarray]
"""Gives (n,) bool."""


class Surroundings:
    """Residues near atoms of another selection, which are collected of the whole system first."""

    def __init__(self, radius: float, inner: Mask) -> None:
        self._radius, self._inner = radius, inner
        self._found: list[np.ndarray] = []
        self._tree: cKDTree | None = None
        self._box = np.ones(3)

    def collect(self, atoms: Atoms) -> None:
        """Those of some atoms that the distance is measured from."""
        self._found.append(atoms.position[self._inner(atoms)])

    def close(self, box: np.ndarray) -> None:
        """All are there; ``box`` (3,) or (3, 3) angstrom."""
        self._box, centres = box, np.concatenate([np.zeros((0, 3)), *self._found])
        self._tree = cKDTree(with_images(folded(centres, box), box, self._radius)[0]) if len(centres) else None

    def __call__(self, atoms: Atoms) -> np.ndarray:
        if self._tree is None or not len(atoms):
            return np.zeros(len(atoms), dtype=bool)
        distance, _ = self._tree.query(folded(atoms.position, self._box), distance_upper_bound=self._radius)
        return np.isin(atoms.residue, atoms.residue[np.isfinite(distance)])


@dataclass(frozen=True)
class Selection:
    """Which atoms are wanted."""

    mask: Mask
    surroundings: tuple[Surroundings, ...]
    """Inner ones first."""

    def look_around(self, parts: Callable[[], Iterable[Atoms]], box: np.ndarray) -> None:
        """Read all parts of a system once for every ``within``, before any of them is asked which atoms are wanted."""
        for each in self.surroundings:
            for atoms in parts():
                each.collect(atoms)
            each.close(box)

    def __call__(self, atoms: Atoms) -> np.ndarray:
        """(n,) bool."""
        return self.mask(atoms)


def parse_selection(text: str) -> Selection:
    """The selection that ``text`` stands for. Raises BadInputError naming the word that cannot be understood."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    parser = _Parser(words, text)
    mask = parser.alternatives()
    if parser.words:
        parser.refuse(parser.words[0])
    return Selection(mask, tuple(parser.surroundings))


class _Parser:
    """Recursive descent over the words of a selection."""

    def __init__(self, words: list[str], text: str) -> None:
        self.words, self.text = words, text
        self.surroundings: list[Surroundings] = []

    def refuse(self, word: str | None) -> None:
        """Raise the error that names ``word``."""
        found = f"'{word}'" if word else "its end"
        raise BadInputError(f"the selection '{self.text}' cannot be understood at {found}: use and, or, not, "
                            f"parentheses and {', '.join(KEYWORDS)}")

    def take(self, *expected: str) -> str | None:
        """The next word if it is one of those expected."""
        return self.words.pop(0) if self.words and self.words[0] in expected else None

    def alternatives(self) -> Mask:
        """Terms joined by ``or``."""
        parts = [self.term()]
        while self.take("or"):
            parts.append(self.term())
        return lambda atoms: np.logical_or.reduce([part(atoms) for part in parts])

    def term(self) -> Mask:
        """Factors joined by ``and``."""
        parts = [self.factor()]
        while self.take("and"):
            parts.append(self.factor())
        return lambda atoms: np.logical_and.reduce([part(atoms) for part in parts])

    def factor(self) -> Mask:
        """A set of atoms, a group in parentheses, or what is not in one of these."""
        if self.take("not"):
            inner = self.factor()
            return lambda atoms: ~inner(atoms)
        if self.take("("):
            inner = self.alternatives()
            if not self.take(")"):
                self.refuse(self.words[0] if self.words else None)
            return inner
        word = self.take(*KEYWORDS)
        if word is None:
            self.refuse(self.words[0] if self.words else None)
        if word == "within":
            return self.within()
        values = []
        if word in ("name", "resname", "segid", "resid", "box"):
            while self.words and self.words[0] not in (*_OPERATORS, *KEYWORDS):
                values.append(self.words.pop(0))
            if not values:
                self.refuse(self.words[0] if self.words else None)
        return self.atom_set(word, values)

    def within(self) -> Mask:
        """``within RADIUS of FACTOR``, behind its first word."""
        radius = self.numbers(self.words[:1], float)
        if not radius or not 0 < radius[0] < np.inf:
            self.refuse(self.words[0] if self.words else None)
        self.words.pop(0)
        if not self.take("of"):
            self.refuse(self.words[0] if self.words else None)
        self.surroundings.append(Surroundings(radius[0], self.factor()))
        return self.surroundings[-1]

    def atom_set(self, word: str, values: list[str]) -> Mask:
        """The atoms that a key word and its values name."""
        if word == "all":
            return lambda atoms: np.ones(len(atoms), dtype=bool)
        if word in ("name", "resname", "segid"):
            return lambda atoms: np.isin(getattr(atoms, word), [value.encode() for value in values])
        if word == "resid":
            ranges = [self.numbers(value.split(":"), int) for value in values]
            return lambda atoms: np.logical_or.reduce([(atoms.resid >= part[0]) & (atoms.resid <= part[-1])
                                                       for part in ranges])
        if word == "box":
            corners = np.array(self.numbers(values, float)).reshape(-1)
            if len(corners) != 6:
                self.refuse("box")
            return lambda atoms: ((atoms.position >= corners[:3]) & (atoms.position < corners[3:])).all(1)
        names = [name.encode() for kind in _KINDS[word] for name in _names_of(kind)]
        return lambda atoms: np.isin(atoms.resname, names)

    def numbers(self, words: list[str], kind: type) -> list:
        """Numbers, or the error that names the one that is none."""
        try:
            return [kind(word) for word in words]
        except ValueError:
            self.refuse(words[0])


_KINDS = {"protein": ("amino acid",), "dna": ("nucleotide",), "solute": ("amino acid", "nucleotide"),
          "water": ("water",), "ions": ("ion",)}


@cache
def _names_of(kind: str) -> tuple[str, ...]:
    return tuple({template.pdb_name for template in residue_library().values() if template.kind == kind})
