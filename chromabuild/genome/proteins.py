"""Where proteins other than histones sit on DNA: sites from BED, which may not meet a nucleosome or each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.bed import bed_interval, bed_records
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.circle import Circle
from chromabuild.genome.records_used import RecordsUsed

LEAST_GAP = 4
"""Free base pairs between a protein and its neighbour: fewer steps cannot take up how the two are turned."""


@dataclass(frozen=True)
class ProteinSite:
    """The footprint of a protein: base pairs ``first_bp`` up to ``end`` (half open), indices into the sequence."""

    name: str
    """Of its structure."""
    first_bp: int
    end: int
    reverse: bool
    """Whether strand I of its structure lies on the lower strand."""
    line: int


def read_protein_sites(path: str | Path, chromosome: str, start: int, length: int, cut: bool = False,
                       used: RecordsUsed | None = None, circle: Circle | None = None) -> list[ProteinSite]:
    """Sites of a BED file, sorted: the interval is the footprint, column 4 the name, column 6 the strand.

    `start` and `length` place the sequence on `chromosome`; ``cut`` leaves out what does not lie wholly on it, which
    ``used`` counts. A site of a ``circle`` may end beyond the sequence. Raises BadInputError, with the line, for a
    malformed record and, without ``cut``, for a site elsewhere.
    """
    found: list[ProteinSite] = []
    records = bed_records(path, 4, "BED with names")
    for line, fields in records:
        first, end = bed_interval(path, line, fields[1], fields[2])
        strand = fields[5].strip() if len(fields) > 5 else "+"
        if strand not in ("+", "-", "."):
            raise BadInputError(f"{path}, line {line}: strand {strand!r} is none of + - .: correct column 6")
        if not same_chromosome(fields[0], chromosome):
            if cut:
                continue
            raise BadInputError(f"{path}, line {line}: chromosome {fields[0]!r} is not the sequence's, {chromosome!r}: "
                                "keep one chromosome and the same names in all files, or list its names in "
                                "locus.chromosome_names")
        if not (start <= first < end <= start + length if circle is None else circle.holds(first, end)):
            if cut:
                continue
            raise BadInputError(f"{path}, line {line}: {first}-{end} reaches outside the sequence "
                                f"{chromosome}:{start}-{start + length}: cut the file to the locus or correct `start`"
                                + ", or set locus.circular" * (circle is None))
        found.append(ProteinSite(fields[3].strip(), first - start, end - start, strand == "-", line))
    if not found and not cut:
        raise BadInputError(f"{path} holds no protein: give at least one BED record, or leave locus.proteins empty")
    if used is not None:
        used.count(path, len(found), len(records))
    return sorted(found, key=lambda site: (site.first_bp, site.end))


def check_room(path: str | Path, sites: Sequence[ProteinSite], nucleosomes: Sequence[tuple[int, int, str]], start: int,
               turn: int = 0, circle: int | None = None) -> None:
    """Raises BadInputError, with the line, for a site that meets a nucleosome or another site, or has too small a gap.

    ``nucleosomes``: first and last wrapped base pair of each, and how a message calls it; ``start``: the position of
    base pair 0 on the chromosome, 0-based; of a circle of ``circle`` base pairs ``turn`` lie before base pair 0.
    """
    def told(first: int, end: int) -> str:
        begin = start + (first if circle is None else (first + turn) % circle)
        return f"{begin}-{begin + end - first}"

    held = [*nucleosomes, *((site.first_bp, site.end - 1, f"{site.name} of line {site.line}") for site in sites)]
    others = [(first + lap, last + lap, name) for lap in ((0,) if circle is None else (0, -circle, circle))
              for first, last, name in held]
    for site in sites:
        for first, last, name in others:
            if (first, last, name) == (site.first_bp, site.end - 1, f"{site.name} of line {site.line}"):
                continue
            gap = max(first - site.end, site.first_bp - last - 1)
            if gap < LEAST_GAP:
                what = f"shares {-gap} bp with" if gap < 0 else f"leaves {gap} bp beside"
                raise BadInputError(
                    f"{path}, line {site.line}: {site.name} on {told(site.first_bp, site.end)} {what} "
                    f"{name}, which holds {told(first, last + 1)}, and {LEAST_GAP} free base pairs are "
                    "needed between them: move one of them, or leave it out")
