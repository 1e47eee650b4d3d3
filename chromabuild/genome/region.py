"""Places on a genome, as genome browsers write them."""

import re
from dataclasses import dataclass

from chromabuild.base.errors import BadInputError

_FORM = re.compile(r"^(?P<name>[^:\s]+):(?P<first>[\d,]+)-(?P<last>[\d,]+)$")


@dataclass(frozen=True)
class Region:
    """A stretch of a chromosome."""

    chromosome: str
    start: int
    """0-based position of its first base."""
    end: int
    """Half open."""

    @classmethod
    def parse(cls, text: str) -> "Region | None":
        """A place as NAME:FIRST-LAST, 1-based and inclusive, with or without commas; None when it has another form.

        >>> Region.parse("chrIV:433,501-441,500")
        Region(chromosome='chrIV', start=433500, end=441500)
        """
        found = _FORM.match(text)
        if found is None:
            return None
        first, last = (int(found[key].replace(",", "") or 0) for key in ("first", "last"))
        return cls(found["name"], first - 1, last)

    @classmethod
    def of_setting(cls, text: str) -> "Region":
        """The same of ``locus.region``. Raises BadInputError for another form and an empty stretch."""
        region = cls.parse(text.strip())
        if region is None or region.start < 0 or region.end <= region.start:
            raise BadInputError(f"locus.region = {text!r} is no region: write it as chrIV:433,501-441,500, from 1, "
                                "first and last base")
        return region

    def __str__(self) -> str:
        return f"{self.chromosome}:{self.start + 1}-{self.end}"
