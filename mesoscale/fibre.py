"""Fibre: all that the mesoscale model needs to know of a locus, exact to the base pair."""

from dataclasses import dataclass, field
from typing import TypedDict

from mesoscale.contact_energies import ContactEnergy

Adjustment = TypedDict("Adjustment", {"nucleosome": str, "from": int, "to": int | None, "reason": str})
"""A mapped nucleosome that was moved, or left out (`to` is None): its name and its dyad on the chromosome, 0-based."""


@dataclass(frozen=True)
class Contact:
    """Two stretches of the fibre, first and end base pair (half open), that were seen together, and how strongly."""

    first: tuple[int, int]
    second: tuple[int, int]
    weight: float = 1.0


@dataclass(frozen=True)
class Fibre:
    """DNA of `sequence` (A, C, G, T of strand I, 5' to 3') with a nucleosome at each dyad: the 0-based index of a base
    pair in `sequence`, ascending.

    `wrapped_length` base pairs (odd) lie on each core, as many before the dyad as after it. `chromosome` and `start`
    (0-based) place base pair 0 on the genome. `adjustments` records what was done to the mapped positions.
    `acetylated` and `linker_histone` say of each nucleosome whether its tails are acetylated and whether it carries a
    linker histone; `tail_charge` by how much modifications change the formal charges of its 50 tail beads; empty: none.
    `contact_energies` hold contacts at their frequencies; `contacts` then restrain nothing and are reported alone.
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
    contact_energies: tuple[ContactEnergy, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.wrapped_length % 2 == 0:
            raise ValueError(f"wrapped length {self.wrapped_length} is even: the dyad must be the middle base pair")
        if self.dyads and (self.first_bp[0] < 0 or self.last_bp[-1] >= len(self.sequence)):
            raise ValueError(
                f"the first or last nucleosome reaches beyond the {len(self.sequence)} bp of the sequence: "
                "extend the sequence or leave the nucleosome out"
            )
        for marks in (self.acetylated, self.linker_histone, self.tail_charge):
            if len(marks) not in (0, len(self.dyads)):
                raise ValueError(f"{len(marks)} marks for {len(self.dyads)} nucleosomes: give one for each, or none")
        for k, linker in enumerate(self.linkers):
            if linker < 0:
                raise ValueError(f"nucleosomes {k} and {k + 1} share {-linker} bp: move them apart")

    @property
    def first_bp(self) -> list[int]:
        """First wrapped base pair of each nucleosome."""
        return [dyad - (self.wrapped_length - 1) // 2 for dyad in self.dyads]

    @property
    def last_bp(self) -> list[int]:
        """Last wrapped base pair of each nucleosome."""
        return [dyad + (self.wrapped_length - 1) // 2 for dyad in self.dyads]

    @property
    def linkers(self) -> list[int]:
        """Free base pairs between neighbouring nucleosomes."""
        return [after - before - 1 for before, after in zip(self.last_bp, self.first_bp[1:], strict=False)]
