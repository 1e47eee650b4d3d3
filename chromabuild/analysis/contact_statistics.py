"""Contact maps in numbers: contacts against distance along the chromosome, and what remains once it is divided out.

On a circle of ``around`` bins, of which the last may be cut, the distance is the shorter way round; None: linear DNA.
"""

import numpy as np
from numpy.typing import NDArray

from chromabuild.genome.circle import bins_apart, separation

Array = NDArray[np.float64]
LEAST_SEPARATION = 2
"""Bins from which on two places are compared: of the same bin and its neighbours the chain itself decides."""


def rebinned(counts: np.ndarray, place: np.ndarray, edges: np.ndarray) -> Array:
    """A symmetric map (k, k) summed to the bins between ``edges`` (b + 1,).

    ``place`` (k,) is the middle of its bins, in the units of the edges. What lies outside is left out; a pair within
    one bin counts once.
    """
    bins = len(edges) - 1
    to = np.searchsorted(edges, place, side="right") - 1
    inside = np.flatnonzero((to >= 0) & (to < bins))
    share = np.zeros((bins, len(place)))
    share[to[inside], inside] = 1.0
    upper = share @ np.triu(np.asarray(counts, float)) @ share.T
    return upper + upper.T - np.diag(np.diagonal(upper))


def seen_bins(counts: np.ndarray, around: float | None = None) -> NDArray[np.bool_]:
    """Which bins (b,) of a symmetric map (b, b) were seen at all: with a contact to a bin beyond their neighbours.

    Repeats and bins without cuts have none in Hi-C, and say nothing.
    """
    far = np.where(pixels(len(counts), around=around), counts, 0)
    return far.sum(axis=0) + far.sum(axis=1) > 0


def by_distance(counts: np.ndarray, seen: np.ndarray | None = None, around: float | None = None) -> Array:
    """Mean of a map (b, b) at each distance of 0 to b - 1 bins, over pairs of bins ``seen`` (b,; None: all); NaN where
    there is no pair."""
    bins = len(counts)
    seen = np.ones(bins, bool) if seen is None else seen
    pair = seen[:, None] & seen[None]
    total, pairs = (np.bincount(bins_apart(bins, around), [np.diagonal(values, k).sum() for k in range(bins)], bins)
                    for values in (np.where(pair, counts, 0.0), pair))
    return np.where(pairs > 0, total / np.maximum(pairs, 1), np.nan)


def distance_normalised(counts: np.ndarray, seen: np.ndarray | None = None, around: float | None = None) -> Array:
    """Observed over expected: a symmetric map (b, b) divided by its mean at each distance, over pairs of bins ``seen``.

    0 where that mean is zero, NaN at bins that were not seen.
    """
    bins = len(counts)
    mean = by_distance(counts, seen, around)
    expected = mean[separation(bins, around)]
    ratio = np.divide(counts, expected, out=np.zeros((bins, bins)), where=expected > 0)
    if seen is not None:
        ratio[~seen] = ratio[:, ~seen] = np.nan
    return ratio


def slope(mean: np.ndarray, bin_size: float, low: float, high: float) -> float | None:
    """Exponent of contacts against distance, from ``low`` to ``high`` bp: least squares of the logarithms.

    ``mean`` (b,) is at 0, 1, ... bins of ``bin_size`` bp. None where fewer than three distances have contacts.

    >>> round(slope(np.maximum(np.arange(50.0), 1) ** -1.2, 1.0, 9.0, 40.0), 3)
    -1.2
    """
    distance = np.arange(len(mean)) * bin_size
    taken = (distance >= low) & (distance <= high) & (distance > 0) & np.isfinite(mean) & (np.nan_to_num(mean) > 0)
    if np.count_nonzero(taken) < 3:
        return None
    return float(np.polyfit(np.log(distance[taken]), np.log(mean[taken]), 1)[0])


def pixels(bins: int, seen: np.ndarray | None = None, around: float | None = None) -> NDArray[np.bool_]:
    """The pixels (b, b) that maps are compared at: above the diagonal, LEAST_SEPARATION bins apart or more, both bins
    ``seen``."""
    seen = np.ones(bins, bool) if seen is None else seen
    return np.triu(seen[:, None] & seen[None], 1) & (separation(bins, around) >= LEAST_SEPARATION)
