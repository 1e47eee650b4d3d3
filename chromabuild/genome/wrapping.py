"""How many base pairs are on each nucleosome, from BED."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection
from chromabuild.genome.bed import bed_interval

FULL_HALF = 73
"""Base pairs on either side of the dyad of a whole nucleosome."""
ARM = 10
"""Base pairs beyond either end of a whole nucleosome that a linker histone can hold."""
SHORTEST = 101
"""Base pairs that an octamer keeps at least."""


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

    def says(self, fields: Sequence[str], is_narrow_peak: bool = False) -> bool:
        """Whether a record says itself how much is wrapped: columns 7 and 8 of narrowPeak are others."""
        return self.mode == "width" or self.mode == "thick" and not is_narrow_peak and len(fields) >= 8

    def of_record(self, path: str | Path, line: int, fields: Sequence[str], first: int, end: int, dyad: int,
                  is_narrow_peak: bool = False) -> tuple[int, int, bool]:
        """Base pairs before and after the ``dyad`` of a record, whose interval is first..end, and whether it says so.

        Raises BadInputError, with the line, for a stretch that is too short or too far from the dyad.
        """
        if not self.says(fields, is_narrow_peak):
            return self.half, self.half, False
        most = FULL_HALF
        if self.mode == "thick":
            first, end = bed_interval(path, line, fields[6].strip(), fields[7].strip())
            most = FULL_HALF + ARM
            if not first <= dyad < end or dyad - first > most or end - 1 - dyad > most:
                raise BadInputError(f"{path}, line {line}: wrapped DNA {first}-{end} does not lie within {FULL_HALF} "
                                    f"bp of the dyad {dyad}, with a linker histone {most}: correct columns 7 and 8, "
                                    "or leave them out")
        before, after = min(dyad - first, most), min(end - 1 - dyad, most)
        if before + 1 + after < SHORTEST:
            raise BadInputError(
                f"{path}, line {line}: {before + 1 + after} bp are wrapped, an octamer holds {SHORTEST} at least: "
                "correct the line or leave it out; if dimers are missing, say so in locus.missing_dimers and give it "
                "more here")
        return before, after, True


UNIFORM = Wrapping()
