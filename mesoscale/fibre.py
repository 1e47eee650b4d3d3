"""Fibre: all that the mesoscale model needs to know of a locus, exact to the base pair."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from mesoscale.contact_energies import ContactEnergy

Adjustment = TypedDict("Adjustment", {"nucleosome": str, "from": int, "to": int | None, "reason": str})
"""A mapped nucleosome that was moved, or left out (`to` is None): its name and its dyad on the chromosome, 0-based."""

MissingDimer = Literal["", "entry", "exit", "both"]
"""Which H2A-H2B dimers a nucleosome lacks: none, that beside the DNA that arrives (lower positions), that beside the
DNA that leaves, or both."""


@dataclass(frozen=True)
class Contact:
    """Two stretches of the fibre, first and end base pair (half open), that were seen together, and how strongly.

    Of a circle the end may lie beyond the last base pair."""

    first: tuple[int, int]
    second: tuple[int, int]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Body:
    """A protein on f base pairs of DNA as the fold sees it: rigid, in its own frame, nm and elementary charges."""

    origin: NDArray[np.float64]
    """(f, 3) of the base pairs that it holds."""
    frame: NDArray[np.float64]
    """(f, 3, 3)."""
    site: NDArray[np.float64]
    """(s, 3) of the protein's charges."""
    charge: NDArray[np.float64]
    """(s,) formal."""
    sphere: NDArray[np.float64]
    """(k, 3) of what nothing may enter beside its DNA."""
    radius: NDArray[np.float64]
    """(k,)."""

    @cached_property
    def checksum(self) -> str:
        """The same for bodies that are the same."""
        parts = (self.origin, self.frame, self.site, self.charge, self.sphere, self.radius)
        return hashlib.sha256(b"".join(np.ascontiguousarray(part, float).tobytes() for part in parts)).hexdigest()


@dataclass(frozen=True)
class BoundProtein:
    """A protein whose footprint begins at base pair `first_bp`."""

    name: str
    first_bp: int
    body: Body = field(repr=False, compare=False)
    reverse: bool = False
    """Whether strand I of its structure is strand II of the fibre; `body` has its base pairs in the fibre's order."""

    @property
    def last_bp(self) -> int:
        """Last base pair that it holds."""
        return self.first_bp + len(self.body.origin) - 1


class Place(NamedTuple):
    """A rigid core of the fibre: its base pairs, and which nucleosome or protein it is (the other number is -1)."""

    first_bp: int
    last_bp: int
    middle: int
    nucleosome: int
    protein: int


@dataclass(frozen=True)
class Fibre:
    """DNA of `sequence` (A, C, G, T of strand I, 5' to 3') with a nucleosome at each dyad: the 0-based index of a base
    pair in `sequence`, ascending.

    `wrapped_length` base pairs (odd) lie on each core, as many before the dyad as after it, unless `ends` says for
    each nucleosome how many base pairs lie on it before and after its dyad. `missing` names the H2A-H2B dimers that
    each lacks. `proteins` are other proteins, by ascending base pair. `chromosome` and `start`
    (0-based) place base pair 0 on the genome. `adjustments` records what was done to the mapped positions.
    `acetylated` and `linker_histone` say of each nucleosome whether its tails are acetylated and whether it carries a
    linker histone; `tail_charge` by how much its histones change the formal charges of its 50 tail beads, and
    `core_charge` the charges of the 300 sites of its core at the salt of the fold; empty: those of 1KX5.
    `contact_energies` hold contacts at their frequencies; `contacts` then restrain nothing and are reported alone.
    In a `circular` fibre the last base pair is followed by the first, which lies in a linker; `linking_number` is how
    often its strands turn about each other, None: as often as leaves them least torsion. Its base pair 0 may lie
    `turn` base pairs after the first on the chromosome, at `start`.
    Raises ValueError when the nucleosomes do not fit.
    """

    sequence: str
    dyads: tuple[int, ...]
    wrapped_length: int = 147
    contacts: tuple[Contact, ...] = ()
    name: str = "fibre"
    chromosome: str = ""
    start: int = 0
    adjustments: tuple[Adjustment, ...] = field(default=())
    acetylated: tuple[bool, ...] = ()
    linker_histone: tuple[bool, ...] = ()
    tail_charge: tuple[tuple[float, ...], ...] = ()
    # Not part of the text by which runs know each other, unless they are there: see `key`.
    ends: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    missing: tuple[MissingDimer, ...] = field(default=(), repr=False)
    proteins: tuple[BoundProtein, ...] = field(default=(), repr=False)
    contact_energies: tuple[ContactEnergy, ...] = field(default=(), repr=False)
    core_charge: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    circular: bool = field(default=False, repr=False)
    linking_number: int | None = field(default=None, repr=False)
    turn: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.wrapped_length % 2 == 0:
            raise ValueError(f"wrapped length {self.wrapped_length} is even: the dyad must be the middle base pair")
        for marks in (self.acetylated, self.linker_histone, self.tail_charge, self.core_charge, self.ends,
                      self.missing):
            if len(marks) not in (0, len(self.dyads)):
                raise ValueError(f"{len(marks)} marks for {len(self.dyads)} nucleosomes: give one for each, or none")
        places = self.places
        if places and (places[0].first_bp < 0 or places[-1].last_bp >= len(self.sequence)):
            what = "nucleosome" if places[0].protein < 0 and places[-1].protein < 0 else "nucleosome or protein"
            raise ValueError(
                f"the first or last {what} reaches beyond the {len(self.sequence)} bp of the sequence: "
                "extend the sequence or leave the nucleosome out"
            )
        for k, (one, other) in enumerate(zip(places, places[1:], strict=False)):
            linker = other.first_bp - one.last_bp - 1
            if linker < 0:
                raise ValueError(f"{'nucleosomes' if not self.proteins else 'cores'} {k} and {k + 1} share {-linker} "
                                 "bp: move them apart")

    @property
    def position(self) -> NDArray[np.int64]:
        """(n,) 0-based position of every base pair on the chromosome."""
        return self.start + np.roll(np.arange(len(self.sequence), dtype=np.int64), -self.turn)

    @property
    def wrapped(self) -> tuple[tuple[int, int], ...]:
        """Base pairs on each nucleosome before and after its dyad."""
        half = (self.wrapped_length - 1) // 2
        return self.ends or ((half, half),) * len(self.dyads)

    @property
    def first_bp(self) -> list[int]:
        """First wrapped base pair of each nucleosome."""
        return [dyad - before for dyad, (before, _) in zip(self.dyads, self.wrapped, strict=True)]

    @property
    def last_bp(self) -> list[int]:
        """Last wrapped base pair of each nucleosome."""
        return [dyad + after for dyad, (_, after) in zip(self.dyads, self.wrapped, strict=True)]

    @property
    def linkers(self) -> list[int]:
        """Free base pairs between neighbouring nucleosomes; of a circle the last ones are those across its seam."""
        behind = self.first_bp[1:] + [len(self.sequence) + first for first in self.first_bp[:1] if self.circular]
        return [after - before - 1 for before, after in zip(self.last_bp, behind, strict=False)]

    @property
    def places(self) -> list[Place]:
        """Nucleosomes and proteins in the order of their DNA."""
        found = [Place(first, last, dyad, k, -1) for k, (first, last, dyad)
                 in enumerate(zip(self.first_bp, self.last_bp, self.dyads, strict=True))]
        found += [Place(one.first_bp, one.last_bp, (one.first_bp + one.last_bp) // 2, -1, k)
                  for k, one in enumerate(self.proteins)]
        return sorted(found)

    @property
    def key(self) -> str:
        """A text by which one fibre can be told from another."""
        more = [self.ends, self.missing, [(repr(one), one.reverse, one.body.checksum) for one in self.proteins]]
        if self.core_charge:
            more.append(self.core_charge)
        if self.circular:
            more.append(("circular", self.linking_number, *([self.turn] if self.turn else [])))
        return repr(self) + (repr(more) if any(more) else "")
