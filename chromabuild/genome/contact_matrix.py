"""A measured contact map in whole bins of a locus, from .cool, .mcool, .hic or BEDPE with a count a pixel."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chromabuild.base.errors import BadInputError
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.contacts import matrix_pixels, read_contacts

MATRICES = (".cool", ".mcool", ".hic")


def is_matrix(path: str | Path) -> bool:
    """Whether a file of contacts is a matrix by its name."""
    return str(path).endswith(MATRICES)


def read_map(path: str | Path, chromosome: str, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Symmetric counts (b, b) of pairs of bins between ``edges`` (b + 1,) of equal size on ``chromosome``.

    Bins of the file must divide those. Raises BadInputError for a file that is missing, is no contact map, has bins
    that do not fit, or no pixel there.
    """
    size, first, bins = int(edges[1] - edges[0]), int(edges[0]), len(edges) - 1
    counts = np.zeros((bins, bins))
    if is_matrix(path):
        found = matrix_pixels(str(path), chromosome, first, int(edges[-1]), size)
        fine = int(found["size"])
        if size % fine:
            raise BadInputError(f"{path} has bins of {fine} bp, which {size} bp (ensemble.bin) are no multiple of: "
                                f"choose a multiple of {fine}")
        begin = int(found["first"]) * fine - first
        row, column = ((begin + found[name] * fine) // size for name in ("row", "column"))
        count = found["count"]
    else:
        row, column, count = _bedpe_pixels(path, chromosome, size)
        row, column = np.minimum(row, column) - first // size, np.maximum(row, column) - first // size
    inside = (row >= 0) & (column < bins) & np.isfinite(count)
    np.add.at(counts, (row[inside], column[inside]), count[inside])
    if not counts.any():
        raise BadInputError(f"{path} holds no pixel within {chromosome}:{first + 1}-{edges[-1]}: check the names of "
                            "chromosomes and the positions, or leave ensemble.map empty")
    return counts + np.triu(counts, 1).T


def _bedpe_pixels(path: str | Path, chromosome: str, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the two bins on the chromosome (n,), and the count, of every record that lies on it."""
    pixels = []
    for one, a, b, other, c, d, count, line in read_contacts(path):
        if not (same_chromosome(one, chromosome) and same_chromosome(other, chromosome)):
            continue
        if a // size != (b - 1) // size or c // size != (d - 1) // size:
            raise BadInputError(f"{path}, {line}: {a}-{b} with {c}-{d} does not lie in bins of {size} bp: choose "
                                "for ensemble.bin a multiple of the bins of the file")
        pixels.append((a // size, c // size, count))
    table = np.array(pixels, float).reshape(-1, 3)
    return table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2]
