"""Features along the sequence from BED files: genes, peaks, domains."""

from dataclasses import dataclass
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.bed import bed_interval, bed_records
from chromabuild.genome.chromosomes import same_chromosome


@dataclass(frozen=True)
class Track:
    """Features of one file that meet the locus."""

    name: str
    features: list[tuple[int, int, str, str]]
    """First base pair and end on the chromosome (0-based, half open), name, strand ``+``, ``-`` or ``.``."""


def read_track(path: str | Path, chromosome: str, start: int, end: int, turn: int = 0) -> Track:
    """Features of a BED file on base pairs ``start`` to ``end`` (0-based, half open) of ``chromosome``, by position.

    The page draws a circle from its base pair ``turn`` on: what lies before that is counted on beyond ``end``, and a
    feature across it is cut in two.

    Column 4 names a feature, column 6 gives its strand. Raises BadInputError, with the line, for a malformed record,
    and for a file without any feature of the locus.
    """
    features = []
    for line, fields in bed_records(path, 3, "BED"):
        first, beyond = bed_interval(path, line, fields[1], fields[2])
        if not same_chromosome(fields[0], chromosome) or beyond <= start or first >= end:
            continue
        name = fields[3].strip() if len(fields) > 3 else ""
        strand = fields[5].strip() if len(fields) > 5 else "."
        features.append((first, beyond, "" if name == "." else name, strand if strand in ("+", "-") else "."))
    if not features:
        raise BadInputError(f"{path} holds no feature of the locus, {chromosome}:{start + 1}-{end}: "
                            "check chromosome names and positions, or leave the track out")
    if turn:
        cut, length = start + turn, end - start
        features = [(a + by, b + by, *words) for first, beyond, *words in features for a, b, by in (
            (max(first, cut), min(beyond, end), 0), (max(first, start), min(beyond, cut), length)) if a < b]
    name = Path(path).name
    for suffix in (".gz", ".bed", ".narrowPeak"):
        name = name.removesuffix(suffix)
    return Track(name, sorted(features))
