"""How many base pairs are on each nucleosome, and which H2A-H2B dimers it lacks, from BED."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection
from chromabuild.genome.bed import bed_interval, bed_records
from chromabuild.genome.chromosomes import same_chromosome
from mesoscale.fibre import MissingDimer

if TYPE_CHECKING:
    from chromabuild.genome.nucleosomes import Nucleosome

FULL_HALF = 73
"""Base pairs on either side of the dyad of a whole nucleosome."""
SHORTEST = 101
"""Base pairs that an octamer keeps at least."""
WITHOUT_DIMER = 38
"""Base pairs from the dyad that stay where the dimer is missing: hexasomes hold 112 bp, tetrasomes 77."""
SIDES: dict[str, tuple[MissingDimer, MissingDimer]] = {
    "proximal": ("entry", "exit"), "distal": ("exit", "entry"), "both": ("both", "both")}
"""What a name means on the upper strand, and on the lower."""


@dataclass(frozen=True)
class Wrapping:
    """What of a record of BED is wrapped: ``half`` base pairs on either side of the dyad, its interval, or its columns
    7 and 8."""

    mode: Literal["uniform", "width", "thick"] = "uniform"
    half: int = FULL_HALF

    @classmethod
    def of(cls, section: LocusSection) -> "Wrapping":
        """As the settings say."""
        return cls(section.wrapping, (section.wrapped_length - 1) // 2)

    def of_record(self, path: str | Path, line: int, fields: Sequence[str], first: int, end: int, dyad: int,
                  is_narrow_peak: bool = False) -> tuple[int, int]:
        """Base pairs before and after the ``dyad`` of a record, whose interval is first..end.

        Raises BadInputError, with the line, for a stretch that is too short or too far from the dyad.
        """
        if self.mode == "thick" and (is_narrow_peak or len(fields) < 8):
            return self.half, self.half
        if self.mode == "uniform":
            return self.half, self.half
        if self.mode == "thick":
            first, end = bed_interval(path, line, fields[6].strip(), fields[7].strip())
            if not first <= dyad < end or dyad - first > FULL_HALF or end - 1 - dyad > FULL_HALF:
                raise BadInputError(f"{path}, line {line}: wrapped DNA {first}-{end} does not lie within {FULL_HALF} "
                                    f"bp of the dyad {dyad}: correct columns 7 and 8, or leave them out")
        before, after = min(dyad - first, FULL_HALF), min(end - 1 - dyad, FULL_HALF)
        if before + 1 + after < SHORTEST:
            raise BadInputError(
                f"{path}, line {line}: {before + 1 + after} bp are wrapped, an octamer holds {SHORTEST} at least: "
                "correct the line or leave it out; if dimers are missing, say so in locus.missing_dimers and give it "
                "more here")
        return before, after


UNIFORM = Wrapping()


def without_dimers(path: str | Path, found: "list[Nucleosome]", chromosome: str, start: int) -> "list[Nucleosome]":
    """The nucleosomes, those whose mapped dyad lies in a record of a BED file without the dimers that it names.

    ``start`` is the position of base pair 0. Raises BadInputError, with the line, for a malformed record, an unknown
    name, two that do not agree, and a file that meets no nucleosome.
    """
    result, met = list(found), {}
    for line, fields in bed_records(path, 4, "BED with names"):
        first, end = bed_interval(path, line, fields[1], fields[2])
        name, strand = fields[3].strip(), fields[5].strip() if len(fields) > 5 else "+"
        if name not in SIDES:
            raise BadInputError(f"{path}, line {line}: {name!r} is none of {', '.join(SIDES)}: correct column 4")
        if strand not in ("+", "-", "."):
            raise BadInputError(f"{path}, line {line}: strand {strand!r} is none of + - .: correct column 6")
        if not same_chromosome(fields[0], chromosome):
            continue
        side = SIDES[name][strand == "-"]
        for k, one in enumerate(found):
            if not first <= one.dyad + start < end:
                continue
            if met.get(k, side) != side:
                raise BadInputError(f"{path}, line {line}: nucleosome {one.name} lacks another dimer already: keep one "
                                    "record for it, `both` where both are missing")
            met[k] = side
            result[k] = replace(one, missing=side,
                                before=min(one.before, WITHOUT_DIMER) if side in ("entry", "both") else one.before,
                                after=min(one.after, WITHOUT_DIMER) if side in ("exit", "both") else one.after)
    if not met:
        raise BadInputError(f"{path} meets no nucleosome of {chromosome}: check chromosome names and positions")
    return result
