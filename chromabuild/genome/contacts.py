"""Contacts between two places of a chromosome, from BEDPE or from a matrix of counts (.cool, .mcool, .hic)."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.genome.bed import bed_interval, bed_records, finite_score
from chromabuild.genome.chromosomes import Chromosome
from chromabuild.genome.circle import bins_apart

# A matrix of contacts holds a count for every pair of bins; only pairs seen this many times more often than the mean
# pair at the same distance say something about folding.
ENRICHMENT = 2.0


def read_contacts(path: str | Path) -> list[tuple[str, int, int, str, int, int, float, str]]:
    """Contacts of a BEDPE file: two intervals, the weight (column 8 when it is a number, else 1), and where it stood.

    Raises BadInputError, with the line, for a malformed record or a weight that is not positive.
    """
    contacts = []
    for line, fields in bed_records(path, 6, "BEDPE"):
        first = bed_interval(path, line, fields[1], fields[2])
        second = bed_interval(path, line, fields[4], fields[5])
        weight = finite_score(path, line, fields[7]) if len(fields) > 7 and fields[7] not in (".", "") else 1.0
        if weight <= 0:
            raise BadInputError(f"{path}, line {line}: score {fields[7]!r} is not positive: leave the contact out")
        contacts.append((fields[0], *first, fields[3], *second, weight, f"line {line}"))
    return contacts


def enriched_pairs(i: np.ndarray, j: np.ndarray, count: np.ndarray, bins: int, around: float | None = None
                   ) -> list[tuple[int, int, float]]:
    """Pairs of bins seen at least ENRICHMENT times as often as the mean pair at their distance, with that ratio.

    `i` <= `j` and `count` (n,) are the filled pixels of a matrix of `bins` bins. Pairs of neighbours are left out. On a
    circle of `around` bins, which may have a part of one more, the distance is the shorter way round.
    """
    apart = bins_apart(bins, around)
    distance = apart[j - i]
    total = np.bincount(distance, weights=count, minlength=bins)
    mean = total / np.maximum(np.bincount(apart, weights=bins - np.arange(bins), minlength=bins), 1)
    ratio = count / np.maximum(mean[distance], 1e-300)
    keep = (ratio >= ENRICHMENT) & (distance >= 2)
    return [(int(a), int(b), float(r)) for a, b, r in zip(i[keep], j[keep], ratio[keep], strict=True)]


def matrix_contacts(path: str, chromosome: str, start: int, end: int, circular: bool = False
                    ) -> tuple[list[tuple], str | None]:
    """Contacts of a .cool, .mcool or .hic file within a region (whole bins only), which may be `circular`, at its
    finest resolution; and how many pairs cross its border, None where none does."""
    matrix = matrix_pixels(path, chromosome, start, end, crossing=True)
    size, first = int(matrix["size"]), int(matrix["first"])
    pairs = enriched_pairs(matrix["row"], matrix["column"], matrix["count"], int(matrix["bins"]),
                           (end - start) / size if circular else None)
    origin, (crossing, total) = first * size, matrix["crossing"]
    told = (f"{crossing:.0f} pairs of bins of which one reaches outside the locus, {total:.7g} counts in all"
            ) if crossing else None
    return [
        (chromosome, origin + a * size, origin + (a + 1) * size, chromosome, origin + b * size, origin + (b + 1) * size,
         ratio, f"bins {origin + a * size} and {origin + b * size}")
        for a, b, ratio in pairs
    ], told  # fmt: skip


def matrix_pixels(path: str, chromosome: str, start: int, end: int, into: int | None = None, crossing: bool = False
                  ) -> dict[str, np.ndarray]:
    """Filled pixels of a .cool, .mcool or .hic file within a region: ``size`` (bp a bin), ``first`` (number of the
    first bin), ``bins`` (whole bins in the region); ``row`` <= ``column`` (n,), counted from the first, and ``count``;
    with ``crossing`` also number and sum (2,) of the counts of pairs of a bin in the region with one outside, which
    takes time on a genome.

    Of several resolutions the finest, or the coarsest that divides ``into``. Raises BadInputError for a file that is
    missing or no matrix.
    """
    if not Path(path).exists():
        raise BadInputError(f"{path} does not exist: correct the path in locus.yaml")
    script = Path(__file__).with_name("matrix_reader.py")
    names = [chromosome, *sorted(chromosome.others)] if isinstance(chromosome, Chromosome) else [chromosome]
    arguments = [path, "\t".join(names), str(start), str(end), str(into or 0), str(int(crossing))]
    read = subprocess.run([sys.executable, "-P", script, *arguments], capture_output=True)
    if read.returncode:
        said = read.stderr.decode(errors="replace").strip().splitlines()
        raise BadInputError(said[-1] if said else f"{path} cannot be read as .cool, .mcool or .hic")
    matrix = dict(np.load(io.BytesIO(read.stdout)))
    one, other = matrix["row"].astype(int), matrix["column"].astype(int)
    return matrix | {"row": np.minimum(one, other), "column": np.maximum(one, other),
                     "count": matrix["count"].astype(float)}
