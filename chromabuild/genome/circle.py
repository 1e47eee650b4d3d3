"""The numbering of a circle: intervals of input files that run across its end.

As in GFF3, an interval across base pair 1 ends beyond the last base pair: of a circle of 500 base pairs 490-520 is
490-500 and 0-20.
"""

from dataclasses import dataclass

import numpy as np

from chromabuild.base.settings import LocusSection


@dataclass(frozen=True)
class Circle:
    """Where the base pairs of a circle lie on its chromosome."""

    start: int
    """0-based."""
    length: int
    is_cut: bool = False
    """Whether it is closed from a part of a chromosome, on which what lies beyond its end is something else."""

    @classmethod
    def of(cls, start: int, length: int, section: LocusSection) -> "Circle | None":
        """That of the settings; None where they describe linear DNA."""
        return cls(start, length, section.region is not None) if section.circular else None

    @classmethod
    def around(cls, position: np.ndarray, section: LocusSection, closed: bool = False) -> "Circle | None":
        """The same of base pairs at positions (n,), which may begin anywhere in the circle; ``closed``: they are one,
        even if the settings do not say so."""
        return cls.of(int(position.min()), len(position), section.model_copy(
            update={"circular": closed or section.circular}))

    def holds(self, first: int, end: int) -> bool:
        """Whether an interval (half open) lies on it, across its end or not."""
        beyond = 0 if self.is_cut else self.length
        return (self.start <= first < self.start + self.length and end <= self.start + self.length + beyond
                and end - first <= self.length)

    def place(self, position: int) -> int:
        """The position within the circle of one that may be counted on beyond its end."""
        inside = not self.is_cut and self.start <= position < self.start + 2 * self.length
        return self.start + (position - self.start) % self.length if inside else position

    def pieces(self, first: int, end: int) -> list[tuple[int, int]]:
        """An interval, and what of it lies beyond the end as an interval from the start."""
        whole = [(first, end)]
        over = end - self.start - self.length
        return whole if self.is_cut or over <= 0 or first < self.start else [*whole, (self.start, self.start + over)]


def pieces_of(circle: Circle | None, first: int, end: int) -> list[tuple[int, int]]:
    """The pieces of an interval; of linear DNA, None, itself."""
    return [(first, end)] if circle is None else circle.pieces(first, end)


def bins_apart(bins: int, around: float | None = None) -> np.ndarray:
    """Distances (b,) in bins of the first bin to each; on a circle of ``around`` bins, which may have a part of one
    more, the shorter way round."""
    apart = np.arange(bins)
    return apart if around is None else np.minimum(apart, np.rint(around - apart).astype(int))


def given_interval(stretch: tuple[int, int], start: int, turn: int, length: int) -> tuple[int, int]:
    """On the chromosome, as input files have it, a stretch of a locus that lies at ``start``, of a circle with base
    pair 0 ``turn`` base pairs further on."""
    first, end = turned_interval(*stretch, -turn, length)
    return first + start, end + start


def turned_interval(first: int, end: int, turn: int, length: int) -> tuple[int, int]:
    """An interval of a circle, counted from ``turn`` base pairs further on; one across the new origin ends beyond
    ``length``."""
    begin = (first - turn) % length
    return begin, begin + end - first
