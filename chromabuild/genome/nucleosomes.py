"""Mapped nucleosomes from BED, and the choice of those that fit on the sequence."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection
from chromabuild.genome.bed import bed_interval, bed_records, finite_score
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.circle import Circle, joined_parts
from chromabuild.genome.records_used import RecordsUsed
from chromabuild.genome.wrapping import ARM, FULL_HALF, UNIFORM, Wrapping
from mesoscale.fibre import Adjustment, MissingDimer

OCCUPANCY = 1 << 40  # streams of random numbers for positions on chromosomes lie beyond all others


@dataclass(frozen=True)
class Nucleosome:
    """A mapped nucleosome: dyad as a 0-based index into the sequence, score, and where it came from."""

    dyad: int
    score: float
    name: str
    line: int
    before: int = FULL_HALF
    """Base pairs wrapped before the dyad."""
    after: int = FULL_HALF
    ends_given: bool = False
    """Whether its record says how much is wrapped."""
    missing: MissingDimer = ""
    """H2A-H2B dimers that it lacks."""

    @property
    def first_bp(self) -> int:
        """First wrapped base pair."""
        return self.dyad - self.before

    @property
    def last_bp(self) -> int:
        """Last wrapped base pair."""
        return self.dyad + self.after


def read_nucleosomes(path: str | Path, chromosome: str, start: int, length: int, cut: bool = False,
                     wrapping: Wrapping = UNIFORM, used: RecordsUsed | None = None, circle: Circle | None = None
                     ) -> list[Nucleosome]:
    """Nucleosomes of a BED file, sorted: an interval's middle base is the dyad; column 4 names it, column 5 scores it.

    ``wrapping`` says how many base pairs are on each. In a narrowPeak file column 10 places the dyad, where it is not
    -1. `start` and `length` place the sequence on `chromosome`; ``cut`` leaves out those that do not touch it, and
    ``used`` counts dyads on it. A record of a ``circle`` may end beyond the sequence, or be in two parts. Raises
    BadInputError, with the line, for a malformed record, a dyad given twice and, without ``cut``, for another
    chromosome and a dyad outside the sequence.
    """
    found: list[Nucleosome] = []
    is_narrow_peak = str(path).removesuffix(".gz").endswith(".narrowPeak")
    records = bed_records(path, 10 if is_narrow_peak else 3, "narrowPeak" if is_narrow_peak else "BED")
    if not (cut or is_narrow_peak):
        records = joined_parts(path, records, circle)
    for line, fields in records:
        first, end = bed_interval(path, line, fields[1], fields[2])
        if not same_chromosome(fields[0], chromosome):
            if cut:
                continue
            raise BadInputError(
                f"{path}, line {line}: chromosome {fields[0]!r} is not the sequence's, {chromosome!r}: "
                "keep one chromosome and the same names in all files, or list its names in locus.chromosome_names"
            )
        dyad = (first + end - 1) // 2
        if is_narrow_peak and fields[9].strip() != "-1":
            dyad = first + _summit(path, line, fields[9], end - first)
        at = dyad if circle is None else circle.place(dyad)
        if cut and not start - FULL_HALF - ARM <= at < start + length + FULL_HALF + ARM:
            continue
        if not cut and not start <= at < start + length:
            raise BadInputError(
                f"{path}, line {line}: dyad {dyad} is outside the sequence {chromosome}:{start}-{start + length}: "
                "cut the file to the locus or correct `start`" + ", or set locus.circular" * (circle is None)
            )
        name = fields[3] if len(fields) > 3 and fields[3] else f"line{line}"
        score = finite_score(path, line, fields[4]) if len(fields) > 4 and fields[4] not in (".", "") else 1.0
        one = Nucleosome(at - start, score, name, line,
                         *wrapping.of_record(path, line, fields, first, end, dyad, is_narrow_peak))
        if one.last_bp >= 0 and one.first_bp < length:
            found.append(one)
    if not any(0 <= one.dyad < length for one in found):
        where = f" whose dyad lies in {chromosome}:{start + 1}-{start + length}" if cut and records else ""
        raise BadInputError(f"{path} holds no nucleosome{where}: " + (
            f"check locus.region and the names of chromosomes (its first is {records[0][1][0]})" if where
            else "give at least one BED record"))
    if wrapping.mode == "thick" and not any(wrapping.says(fields, is_narrow_peak) for _, fields in records):
        raise BadInputError(f"{path} has no record with columns 7 and 8 of BED (thickStart, thickEnd), which "
                            "locus.wrapping = thick needs: add them, or set locus.wrapping to width or uniform")
    if used is not None:
        used.count(path, sum(0 <= one.dyad < length for one in found), len(records))
    found.sort(key=lambda n: n.dyad)
    for one, other in zip(found, found[1:], strict=False):
        if one.dyad == other.dyad:
            raise BadInputError(
                f"{path}, line {other.line}: dyad {other.dyad + start} stands on line {one.line} already: keep one"
            )
    return found


def _summit(path: str | Path, line: int, text: str, length: int) -> int:
    """Bases from a peak's start to its summit."""
    if not re.fullmatch(r" *\d{1,15} *", text) or int(text) >= length:
        raise BadInputError(f"{path}, line {line}: summit {text!r} does not lie in the peak of {length} bp: correct it "
                            "or write -1")
    return int(text)


def without_crossing(found: list[Nucleosome], start: int, length: int) -> tuple[list[Nucleosome], list[Adjustment]]:
    """Nucleosomes of which all base pairs lie on the sequence; and the others.

    ``start`` and ``length`` place the sequence on the chromosome.
    """
    crossing = [n for n in found if n.first_bp < 0 or n.last_bp >= length]
    return ([n for n in found if n not in crossing],
            [{"nucleosome": n.name, "from": n.dyad + start, "to": None, "reason": "crosses the border of the region"}
             for n in crossing])


def shifted_dyads(dyads: np.ndarray, spacing: int | np.ndarray, lowest: int, highest: int) -> np.ndarray:
    """Integer positions nearest to `dyads` (n,) in the least-squares sense, `spacing` apart and within the bounds.

    ``spacing`` is one number, or one from each dyad to the next (n - 1,). With u_i the position less the sum of the
    spacings before it the constraint is that u does not decrease: isotonic regression, clipped to the bounds
    (which keeps it optimal) and rounded (which keeps the order). Raises ValueError when there is no room.
    """
    ramp = np.concatenate([[0], np.cumsum(np.broadcast_to(spacing, len(dyads) - 1))])
    if lowest + ramp[-1] > highest:
        apart = f"{np.unique(spacing)[0]} bp apart" if np.unique(spacing).size == 1 else "with their linkers"
        raise ValueError(f"{len(dyads)} nucleosomes {apart} need {ramp[-1] + 1} bp from first to last dyad")
    level = isotonic_regression(np.asarray(dyads, float) - ramp).x
    return np.rint(np.clip(level, lowest, highest - ramp[-1])).astype(int) + ramp


def best_subset(first: np.ndarray, end: np.ndarray, scores: np.ndarray) -> list[int]:
    """Indices of the subset with the highest sum of scores of which no two intervals first..end (half open) overlap.

    Weighted interval scheduling. Scores that are not positive are never chosen.
    """
    order = np.argsort(end, kind="stable")
    n = len(order)
    best = np.zeros(n + 1)
    before = np.searchsorted(np.asarray(end)[order], np.asarray(first)[order], side="right")
    for i in range(n):
        best[i + 1] = max(best[i], scores[order[i]] + best[before[i]])
    chosen, i = [], n
    while i > 0:
        if best[i] > best[i - 1]:
            chosen.append(int(order[i - 1]))
            i = int(before[i - 1])
        else:
            i -= 1
    return sorted(chosen)


def drawn_subset(dyads: np.ndarray, scores: np.ndarray, spacing: int, seed: int, start: int = 0) -> list[int]:
    """Indices of a subset whose members are at least `spacing` apart and which none of the others would fit into.

    A map of many cells holds alternatives. Each dyad of positive score waits for a time drawn from the exponential
    distribution of rate score, and is then occupied unless one that overlaps it is: of dyads that exclude each other
    one is chosen with the probability of its share of their scores. The time depends on the seed and on the position
    on the chromosome (`dyads` (n,) from `start`, ascending) alone.
    """
    waiting = np.full(len(dyads), np.inf)
    for k, (dyad, score) in enumerate(zip(dyads, scores, strict=True)):
        if score > 0:
            random = np.random.Generator(np.random.Philox(key=[seed, OCCUPANCY + start + int(dyad)]))
            waiting[k] = random.standard_exponential() / score
    chosen: list[int] = []
    free = np.isfinite(waiting)
    for k in np.argsort(waiting, kind="stable"):
        if free[k]:
            chosen.append(int(k))
            free &= np.abs(dyads - dyads[k]) >= spacing
    return sorted(chosen)


def resolve_overlaps(
    found: list[Nucleosome], section: LocusSection, start: int, length: int, seed: int = 1, turn: int = 0
) -> tuple[list[Nucleosome], list[Adjustment]]:
    """Nucleosomes that fit on the sequence, by ascending dyad, and what was moved or dropped (``Locus.adjustments``).

    The setting `overlaps` says what happens to those too close to each other or to an end. ``draw``: of those that
    share base pairs one is drawn by the seed, and what then stands too close is shifted. ``turn`` is how many base
    pairs of a circle lie before base pair 0 in the numbering of the chromosome, in which places are told.

    The default of `minimum_linker`, 10 bp, rests on sampling pairs of crystal cores: from 8 bp on every linker length
    found room at an elastic cost like that of long linkers (5 to 12 kBT); at 7 bp and less it was 24 to 510 kBT.
    """
    dyads, before, after = (np.array([getattr(n, key) for n in found]) for key in ("dyad", "before", "after"))
    spacing = after[:-1] + 1 + section.minimum_linker + before[1:]
    lowest, highest = int(before[0]), length - 1 - int(after[-1])

    def place(dyad: int) -> int:
        return start + (dyad + turn) % length if turn else start + dyad

    def crowded(k: int) -> str:
        if not before[k] <= dyads[k] < length - after[k]:
            return f"less than {before[k] if dyads[k] < before[k] else after[k]} bp from an end of the sequence"
        gaps = [(int(dyads[j + 1] - dyads[j]), int(spacing[j])) for j in (k - 1, k) if 0 <= j < len(spacing)]
        near, needed = min(gaps, key=lambda gap: gap[0] - gap[1], default=(0, 0))
        return f"dyads {near} bp apart, {needed} needed" if near < needed else "neighbours were moved"

    if section.overlaps == "error":
        for k, n in enumerate(found):
            problem = crowded(k)
            if problem != "neighbours were moved":
                raise BadInputError(
                    f"{section.nucleosomes}, line {n.line}: dyad {place(n.dyad)} does not fit ({problem}): "
                    "correct the map, extend the sequence, or set `overlaps: shift`; of two nucleosomes that overlap, "
                    "one can be a hexasome (locus.missing_dimers) or be unwrapped on that side (locus.wrapping)"
                )
        return found, []

    changes: list[Adjustment] = []
    if section.overlaps == "draw":
        drawn = drawn_subset(dyads, np.array([n.score for n in found]), section.wrapped_length, seed, start)
        for k in np.setdiff1d(np.arange(len(found)), drawn):
            n = found[k]
            reason = "an alternative was drawn" if n.score > 0 else f"score {n.score:g} is not positive"
            changes.append({"nucleosome": n.name, "from": place(n.dyad), "to": None, "reason": reason})
        if not drawn:
            raise BadInputError(f"{section.nucleosomes}: no nucleosome has a positive score: correct the scores, or "
                                "set `overlaps: shift`")
        found, dyads, before, after = [found[k] for k in drawn], dyads[drawn], before[drawn], after[drawn]
        spacing = after[:-1] + 1 + section.minimum_linker + before[1:]
        lowest, highest = int(before[0]), length - 1 - int(after[-1])
    if section.overlaps in ("shift", "draw"):
        try:
            moved = shifted_dyads(dyads, spacing, lowest, highest)
        except ValueError as error:
            raise BadInputError(
                f"{section.nucleosomes}: {error}, but the sequence leaves {max(highest - lowest + 1, 0)}: "
                "extend the sequence, lower `minimum_linker`, or set `overlaps: best-score`"
            ) from None
        result = []
        for k, (n, dyad) in enumerate(zip(found, moved.tolist(), strict=True)):
            result.append(replace(n, dyad=dyad))
            if dyad != n.dyad:
                reason = crowded(k)
                changes.append({"nucleosome": n.name, "from": place(n.dyad), "to": place(dyad), "reason": reason})
        return result, changes

    fits = np.flatnonzero((dyads >= before) & (dyads < length - after))
    first, end = (dyads - before)[fits], (dyads + after)[fits] + 1 + section.minimum_linker
    kept = {int(fits[k]) for k in best_subset(first, end, np.array([found[k].score for k in fits]))}
    for k, n in enumerate(found):
        if k not in kept:
            reason = crowded(k) if n.score > 0 else f"score {n.score:g} is not positive"
            changes.append({"nucleosome": n.name, "from": place(n.dyad), "to": None, "reason": reason})
    if not kept:
        raise BadInputError(
            f"{section.nucleosomes}: no nucleosome of positive score fits on the {length} bp of sequence: "
            "extend the sequence or correct the scores"
        )
    return [found[k] for k in sorted(kept)], changes
