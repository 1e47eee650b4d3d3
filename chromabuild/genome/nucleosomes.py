"""Mapped nucleosomes from BED, and the choice of those that fit on the sequence."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection
from chromabuild.genome.bed import bed_interval, bed_records, finite_score
from chromabuild.genome.chromosomes import same_chromosome
from mesoscale.fibre import Adjustment

OCCUPANCY = 1 << 40  # streams of random numbers for positions on chromosomes lie beyond all others


@dataclass(frozen=True)
class Nucleosome:
    """A mapped nucleosome: dyad as a 0-based index into the sequence, score, and where it came from."""

    dyad: int
    score: float
    name: str
    line: int


def read_nucleosomes(path: str | Path, chromosome: str, start: int, length: int, cut: bool = False) -> list[Nucleosome]:
    """Nucleosomes of a BED file, sorted: an interval's middle base is the dyad; column 4 names it, column 5 scores it.

    In a narrowPeak file column 10 places the dyad, where it is not -1. `start` and `length` place the sequence on
    `chromosome`; ``cut`` leaves out what lies elsewhere. Raises BadInputError, with the line, for a malformed record,
    a dyad given twice and, without ``cut``, for another chromosome and a dyad outside the sequence.
    """
    found: list[Nucleosome] = []
    is_narrow_peak = str(path).removesuffix(".gz").endswith(".narrowPeak")
    records = bed_records(path, 10 if is_narrow_peak else 3, "narrowPeak" if is_narrow_peak else "BED")
    for line, fields in records:
        first, end = bed_interval(path, line, fields[1], fields[2])
        if not same_chromosome(fields[0], chromosome):
            if cut:
                continue
            raise BadInputError(
                f"{path}, line {line}: chromosome {fields[0]!r} is not the sequence's, {chromosome!r}: "
                "keep one chromosome and the same names in all files"
            )
        dyad = (first + end - 1) // 2
        if is_narrow_peak and fields[9].strip() != "-1":
            dyad = first + _summit(path, line, fields[9], end - first)
        if cut and not start <= dyad < start + length:
            continue
        if not start <= dyad < start + length:
            raise BadInputError(
                f"{path}, line {line}: dyad {dyad} is outside the sequence {chromosome}:{start}-{start + length}: "
                "cut the file to the locus or correct `start`"
            )
        name = fields[3] if len(fields) > 3 and fields[3] else f"line{line}"
        score = finite_score(path, line, fields[4]) if len(fields) > 4 and fields[4] not in (".", "") else 1.0
        found.append(Nucleosome(dyad - start, score, name, line))
    if not found:
        where = f" whose dyad lies in {chromosome}:{start + 1}-{start + length}" if cut and records else ""
        raise BadInputError(f"{path} holds no nucleosome{where}: " + (
            f"check locus.region and the names of chromosomes (its first is {records[0][1][0]})" if where
            else "give at least one BED record"))
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


def without_crossing(found: list[Nucleosome], half: int, start: int, length: int
                     ) -> tuple[list[Nucleosome], list[Adjustment]]:
    """Nucleosomes of which all base pairs, ``half`` on either side of the dyad, lie on the sequence; and the others.

    ``start`` and ``length`` place the sequence on the chromosome.
    """
    crossing = [n for n in found if not half <= n.dyad < length - half]
    return ([n for n in found if n not in crossing],
            [{"nucleosome": n.name, "from": n.dyad + start, "to": None, "reason": "crosses the border of the region"}
             for n in crossing])


def shifted_dyads(dyads: np.ndarray, spacing: int, lowest: int, highest: int) -> np.ndarray:
    """Integer positions nearest to `dyads` (n,) in the least-squares sense, `spacing` apart and within the bounds.

    With u_i = x_i - i * spacing the constraint is that u does not decrease: isotonic regression, clipped to the bounds
    (which keeps it optimal) and rounded (which keeps the order). Raises ValueError when there is no room.
    """
    ramp = spacing * np.arange(len(dyads))
    if lowest + ramp[-1] > highest:
        raise ValueError(f"{len(dyads)} nucleosomes {spacing} bp apart need {ramp[-1] + 1} bp from first to last dyad")
    level = isotonic_regression(np.asarray(dyads, float) - ramp).x
    return np.rint(np.clip(level, lowest, highest - ramp[-1])).astype(int) + ramp


def best_subset(dyads: np.ndarray, scores: np.ndarray, spacing: int) -> list[int]:
    """Indices of the subset with the highest sum of scores whose members are at least `spacing` apart.

    Weighted interval scheduling; `dyads` (n,) ascending. Scores that are not positive are never chosen.
    """
    n = len(dyads)
    best = np.zeros(n + 1)
    before = np.searchsorted(dyads, np.asarray(dyads) - spacing, side="right")
    for i in range(n):
        best[i + 1] = max(best[i], scores[i] + best[before[i]])
    chosen, i = [], n
    while i > 0:
        if best[i] > best[i - 1]:
            chosen.append(i - 1)
            i = int(before[i - 1])
        else:
            i -= 1
    return chosen[::-1]


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
    found: list[Nucleosome], section: LocusSection, start: int, length: int, seed: int = 1
) -> tuple[list[Nucleosome], list[Adjustment]]:
    """Nucleosomes that fit on the sequence, by ascending dyad, and what was moved or dropped (``Locus.adjustments``).

    The setting `overlaps` says what happens to those too close to each other or to an end. ``draw``: of those that
    share base pairs one is drawn by the seed, and what then stands too close is shifted.

    The default of `minimum_linker`, 10 bp, rests on sampling pairs of crystal cores: from 8 bp on every linker length
    found room at an elastic cost like that of long linkers (5 to 12 kBT); at 7 bp and less it was 24 to 510 kBT.
    """
    half = (section.wrapped_length - 1) // 2
    spacing = section.wrapped_length + section.minimum_linker
    lowest, highest = half, length - 1 - half
    dyads = np.array([n.dyad for n in found])

    def crowded(k: int) -> str:
        near = min((abs(int(dyads[k] - dyads[j])) for j in (k - 1, k + 1) if 0 <= j < len(dyads)), default=spacing)
        if not lowest <= dyads[k] <= highest:
            return f"less than {half} bp from an end of the sequence"
        return f"dyads {near} bp apart, {spacing} needed" if near < spacing else "neighbours were moved"

    if section.overlaps == "error":
        for k, n in enumerate(found):
            problem = crowded(k)
            if problem != "neighbours were moved":
                raise BadInputError(
                    f"{section.nucleosomes}, line {n.line}: dyad {n.dyad + start} does not fit ({problem}): "
                    "correct the map, extend the sequence, or set `overlaps: shift`"
                )
        return found, []

    changes: list[Adjustment] = []
    if section.overlaps == "draw":
        drawn = drawn_subset(dyads, np.array([n.score for n in found]), section.wrapped_length, seed, start)
        for k in np.setdiff1d(np.arange(len(found)), drawn):
            n = found[k]
            reason = "an alternative was drawn" if n.score > 0 else f"score {n.score:g} is not positive"
            changes.append({"nucleosome": n.name, "from": n.dyad + start, "to": None, "reason": reason})
        if not drawn:
            raise BadInputError(f"{section.nucleosomes}: no nucleosome has a positive score: correct the scores, or "
                                "set `overlaps: shift`")
        found, dyads = [found[k] for k in drawn], dyads[drawn]
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
            result.append(Nucleosome(dyad, n.score, n.name, n.line))
            if dyad != n.dyad:
                reason = crowded(k)
                changes.append({"nucleosome": n.name, "from": n.dyad + start, "to": dyad + start, "reason": reason})
        return result, changes

    fits = np.flatnonzero((dyads >= lowest) & (dyads <= highest))
    kept = {int(fits[k]) for k in best_subset(dyads[fits], np.array([found[k].score for k in fits]), spacing)}
    for k, n in enumerate(found):
        if k not in kept:
            reason = crowded(k) if n.score > 0 else f"score {n.score:g} is not positive"
            changes.append({"nucleosome": n.name, "from": n.dyad + start, "to": None, "reason": reason})
    if not kept:
        raise BadInputError(
            f"{section.nucleosomes}: no nucleosome of positive score fits on the {length} bp of sequence: "
            "extend the sequence or correct the scores"
        )
    return [found[k] for k in sorted(kept)], changes
