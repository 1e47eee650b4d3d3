"""What a contact map says of the frequency of each contact: counts, how visible each bin is, and regularised ratios.

Counts O of a pair of bins are modelled as v_i v_j g(|i - j|) R: the visibilities v of the bins (restriction sites,
mapping, GC content; the factors that matrix balancing removes, Imakaev et al., Nat. Methods 9:999, 2012), the decay g
with distance, and a ratio R that folding changes. In a map of few counts R is noise for most pairs; it is averaged over
neighbouring pairs and drawn toward 1. On a circle the distance is the shorter way round: of an ideal ring of N base
pairs g is a function of s (N - s) / N, the same from either side.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from chromabuild.base.errors import BadInputError
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.circle import separation
from chromabuild.genome.contact_matrix import is_matrix
from chromabuild.genome.contacts import matrix_pixels, read_contacts

Array = NDArray[np.float64]
FEWEST_BINS, MOST_BINS = 8, 300  # a fit costs as many bins squared: a minute for 40
NEAREST = 2  # bins apart: what happens within a bin and its neighbour is below the resolution of the map
ROUNDS = 100  # of iterative proportional fitting: the largest change is then below 1e-6
POOLED = 1.15  # decays of distances within this factor are averaged
# Standard deviation in bins of the kernel that averages neighbouring pairs, and counts of prior weight drawing to 1.
# On the yeast locus held-out pixels are predicted equally well from 0.7 to 1.5 bins and 5 to 15 counts.
WIDTH, PRIOR = 0.7, 5.0


@dataclass(frozen=True, eq=False)
class BinnedCounts:
    """Counts (n, n), symmetric, of n bins of `size` base pairs from position `start` (0-based) of a chromosome."""

    chromosome: str
    start: int
    size: int
    count: Array
    around: float | None = None
    """Bins of a whole circle, which may have a part of one more; None: linear DNA."""

    @property
    def middle(self) -> Array:
        """Middles (n,) of the bins on the chromosome."""
        return self.start + self.size * (np.arange(len(self.count)) + 0.5)


def read_counts(path: str | Path, chromosome: str, start: int, end: int, circular: bool = False) -> BinnedCounts:
    """Counts of the whole bins within a region, which may be a circle: of a matrix (.cool, .mcool, .hic) at its finest
    resolution, or of a BEDPE file of pairs of bins with counts in column 8.

    Raises BadInputError for files that cannot be read, BEDPE of more than one bin size, and too few or many bins.
    """
    if is_matrix(path):
        matrix = matrix_pixels(str(path), chromosome, start, end)
        size, first, bins = (int(matrix[key]) for key in ("size", "first", "bins"))
        rows = zip(matrix["row"].tolist(), matrix["column"].tolist(), matrix["count"].tolist(), strict=True)
    else:
        found = [(a, b, c, d, weight, where) for one, a, b, other, c, d, weight, where in read_contacts(path)
                 if same_chromosome(one, chromosome) and same_chromosome(other, chromosome)]
        if not found:
            raise BadInputError(f"{path} holds no contact on {chromosome}: check names")
        size = found[0][1] - found[0][0]
        for a, b, c, d, _, where in found:
            if (b - a, d - c) != (size, size) or a % size or c % size:
                raise BadInputError(f"{path}, {where}: {a}-{b} and {c}-{d} are not bins of {size} bp as those before: "
                                    "give a map of one resolution, whose bins begin at multiples of their size")
        first, last = -(-start // size), end // size
        bins = last - first
        rows = [(a // size - first, c // size - first, weight) for a, _, c, _, weight, _ in found]
    if bins < FEWEST_BINS:
        raise BadInputError(f"{path}: {max(bins, 0)} whole bins of {size} bp lie within "
                            f"{chromosome}:{start + 1}-{end}, {FEWEST_BINS} are needed: give a map of higher "
                            "resolution or a longer locus")
    if bins > MOST_BINS:
        raise BadInputError(f"{path}: {bins} bins of {size} bp lie within {chromosome}:{start + 1}-{end}, more than "
                            f"{MOST_BINS}: give a map of lower resolution or a shorter locus")
    count = np.zeros((bins, bins))
    for i, j, value in rows:
        if 0 <= min(i, j) and max(i, j) < bins:
            count[i, j] = count[j, i] = value
    around = (end - start) / size if circular else None
    if not count[separation(bins, around) >= NEAREST].any():
        raise BadInputError(f"{path} holds no contact between bins within {chromosome}:{start + 1}-{end}: check names "
                            "and positions")
    return BinnedCounts(chromosome, first * size, size, count, around)


def visibilities(count: Array, known: NDArray[np.bool_], around: float | None = None) -> tuple[Array, Array]:
    """Visibility (n,) of each bin, of geometric mean 1, and decay (n,) with distance in bins, of counts (n, n), which
    may be those of a circle of `around` bins.

    Maximum likelihood of Poisson counts v_i v_j g(|i - j|) in the `known` pixels (n, n), symmetric, by iterative
    proportional fitting; decays of neighbouring distances are pooled. A bin without a count has the least visibility of
    all.
    """
    bins = len(count)
    apart = separation(bins, around)
    known = known & (apart > 0)
    seen = np.where(known, count, 0.0)
    visible = np.ones(bins)
    distance = np.arange(bins)
    pool = (distance[:, None] > 0) & (distance[None] > 0)
    pool &= (distance[None] * POOLED >= distance[:, None]) & (distance[None] <= POOLED * distance[:, None])
    total = np.bincount(apart.ravel(), seen.ravel(), bins)
    decay = np.zeros(bins)
    for _ in range(ROUNDS):
        weight = np.bincount(apart.ravel(), (known * np.outer(visible, visible)).ravel(), bins)
        decay[1:] = ((pool @ total) / np.maximum(pool @ weight, 1e-12))[1:]
        expected = known * np.outer(visible, visible) * decay[apart]
        factor = np.sqrt(seen.sum(axis=0) / np.maximum(expected.sum(axis=0), 1e-12))
        visible *= np.where(factor > 0, factor, 1.0)
        empty = seen.sum(axis=0) == 0
        visible[empty] = visible[~empty].min()
        visible /= np.exp(np.log(visible).mean())
    return visible, decay


def regularised_ratios(count: Array, known: NDArray[np.bool_], width: float = WIDTH, prior: float = PRIOR,
                       around: float | None = None) -> Array:
    """Ratio (n, n) of each pair to what visibilities and distance alone give, also where it is not `known`.

    Counts and expected counts of known pixels are summed with the weights of a Gaussian kernel of `width` bins; `prior`
    counts as expected are added to both. On a circle of `around` bins the last bin is a neighbour of the first.
    """
    visible, decay = visibilities(count, known, around)
    apart = separation(len(count), around)
    # Each pair once; on a circle, where every pair has its neighbours on either side of the diagonal, both ways.
    use = known & (np.triu(np.ones_like(known), 1) if around is None else apart > 0)
    expected = np.outer(visible, visible) * decay[apart]
    seen, wanted = (2 * np.pi * width**2 * gaussian_filter(np.where(use, values, 0.0), width,
                                                           mode="constant" if around is None else "wrap")
                    for values in (count, expected))
    ratio = np.triu((seen + prior) / (wanted + prior), 1)
    return ratio + ratio.T + np.eye(len(count))
