"""The numbering of a circle: intervals of input files that run across its end.

As in GFF3, an interval across base pair 1 ends beyond the last base pair: of a circle of 500 base pairs 490-520 is
490-500 and 0-20. Genome browsers take no such interval: tracks that we write have one part before the end and one from
base pair 1 on, and these are read as one.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection

PART = ".part"
"""Between the name of what lies across base pair 1 and the number of its part, 1 or 2."""


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


def joined_parts(path: str | Path, records: list[tuple[int, list[str]]], circle: Circle | None
                 ) -> list[tuple[int, list[str]]]:
    """Numbered records of BED, of which NAME.part1, up to the end of the circle, and NAME.part2, from base pair 1 on,
    are one interval NAME that ends beyond it; of its other columns score and strand are kept.

    Raises BadInputError, with the line, for a part without the other, and for parts on linear DNA.
    """
    parts = {(name, int(number)): (line, fields) for line, fields in records
             for name, found, number in [(fields[3] if len(fields) > 3 else "").rpartition(PART)]
             if found and number in ("1", "2")}
    lines = {line for line, _ in parts.values()}
    joined = [record for record in records if record[0] not in lines]
    for (name, number), (line, fields) in parts.items():
        second = parts.get((name, 3 - number), (0, None))[1]
        ends = (fields, second) if number == 1 else (second, fields)
        if circle is None and second is None:
            joined.append((line, fields))
            continue
        if circle is None:
            raise BadInputError(f"{path}, line {line}: {fields[3]} is a part of what lies across base pair 1 of a "
                                "circle: set locus.circular, or rename it")
        if second is None or ends[0][2] != str(circle.start + circle.length) or ends[1][1] != str(circle.start):
            raise BadInputError(
                f"{path}, line {line}: {fields[3]} needs {name}{PART}{3 - number}, and {name}{PART}1 must end at "
                f"{circle.start + circle.length}, {name}{PART}2 begin at {circle.start}: correct the two, or rename it")
        if number == 1:
            whole = [fields[0], fields[1], str(int(second[2]) + circle.length), name, *fields[4:6]]
            joined.append((line, whole))
    return joined


def bins_apart(bins: int, around: float | None = None) -> np.ndarray:
    """Distances (b,) in bins of the first bin to each; on a circle of ``around`` bins, which may have a part of one
    more, the shorter way round."""
    apart = np.arange(bins)
    return apart if around is None else np.minimum(apart, np.rint(around - apart).astype(int))


def separation(bins: int, around: float | None = None) -> np.ndarray:
    """Distance in bins (n, n) of each pair, on a circle of ``around`` bins the shorter way round."""
    return bins_apart(bins, around)[np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))]


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
