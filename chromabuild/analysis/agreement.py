"""How well the contact map of an ensemble agrees with a measured one, on pixels that it was given and on others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter
from scipy.stats import rankdata

from chromabuild.analysis.contact_statistics import by_distance, distance_normalised, pixels, seen_bins, slope
from chromabuild.genome.circle import bins_apart

Array = NDArray[np.float64]
HELD_OUT = 5 * 10**6
"""Stream of random numbers that decides which pixels are held out."""
SMOOTHING = 1
"""Bins on either side over which maps are averaged for the smoothed correlation."""
LEAST_STRATUM = 3
"""Pixels that a distance needs for a correlation of its own."""
FLAT = 1e-9
"""A map that varies at a distance by no more than this share of its values does not vary there: that is rounding."""


@dataclass(frozen=True)
class Agreement:
    """Two maps, compared at some of their pixels, each divided by its mean at each distance."""

    pixels: int
    pearson: float | None
    spearman: float | None
    stratum_adjusted: float | None

    def as_dict(self) -> dict[str, float | int | None]:
        """Its values by name."""
        return {"pixels": self.pixels, "pearson": self.pearson, "spearman": self.spearman,
                "stratum_adjusted": self.stratum_adjusted}


@dataclass(frozen=True)
class MapComparison:
    """A simulated and a measured map."""

    everywhere: Agreement
    held_out: Agreement | None
    """At pixels that were held out of the restraints; None where none were."""
    smoothed: float | None
    """Stratum-adjusted correlation at all pixels, of maps averaged over SMOOTHING bins on either side."""
    slope: float | None
    measured_slope: float | None
    """Exponents of contacts against distance."""


def held_out_pixels(bins: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Symmetric choice (bins, bins) of pixels that are held out, each with probability ``share``; the same for the same
    seed and number of bins.

    >>> float(held_out_pixels(400, 0.2, 1).mean().round(2))
    0.2
    """
    drawn = np.random.Generator(np.random.Philox(key=[seed, HELD_OUT])).random((bins, bins)) < share
    return np.triu(drawn) | np.triu(drawn).T


def stratum_adjusted(one: np.ndarray, other: np.ndarray, chosen: np.ndarray, around: float | None = None
                     ) -> float | None:
    """Stratum-adjusted correlation coefficient of two maps (b, b) at the ``chosen`` pixels (b, b) above the diagonal.

    HiCRep (Yang et al., Genome Res. 27:1939, 2017): Pearson's correlation rho_k of the N_k pixels at each distance k,
    averaged with weights N_k r_k. r_k is the geometric mean of the variances of the two maps' ranks divided by N_k.
    Ranks are a permutation of 1 to N_k, equal values being put in some order, so that r_k = (1 + 1/N_k) / 12 for both.
    Pixels that are zero in both maps, and distances at which a map does not vary, have no weight. None where no
    distance has LEAST_STRATUM pixels. A factor at each distance does not matter. ``around``: of a circle, in bins.
    """
    total = weights = 0.0
    apart = bins_apart(len(one), around)
    for k in range(1, len(one)):
        x, y = (np.concatenate([np.diagonal(values, d)[np.diagonal(chosen, d)] for d in np.flatnonzero(apart == k)]
                               or [np.zeros(0)]) for values in (one, other))
        filled = (x != 0) | (y != 0)
        x, y = x[filled], y[filled]
        if len(x) < LEAST_STRATUM or np.ptp(x) <= FLAT * abs(x).max() or np.ptp(y) <= FLAT * abs(y).max():
            continue
        weight = len(x) * (1 + 1 / len(x)) / 12
        total += weight * float(np.corrcoef(x, y)[0, 1])
        weights += weight
    return float(total / weights) if weights > 0 else None


def smoothed(counts: np.ndarray, reach: int = SMOOTHING, is_circle: bool = False) -> Array:
    """A map (b, b) averaged over squares of ``reach`` bins on either side, which the border cuts or, of a circle, which
    go on at its other end."""
    size = 2 * reach + 1
    if is_circle:
        return uniform_filter(np.asarray(counts, float), size, mode="wrap")
    total, area = (uniform_filter(values, size, mode="constant") for values in (np.asarray(counts, float),
                                                                               np.ones(counts.shape)))
    return total / area


def compare(simulated: np.ndarray, measured: np.ndarray, bin_size: int, slope_range: tuple[float, float],
            held_out: np.ndarray | None = None, around: float | None = None) -> MapComparison:
    """Compare two symmetric maps (b, b) with bins of ``bin_size`` bp.

    ``held_out`` (b, b): pixels that the simulation was not given. Slopes are fitted over ``slope_range``, bp.
    ``around``: of a circle, in bins.
    """
    seen = seen_bins(measured, around)
    one, other = (distance_normalised(counts, seen, around) for counts in (simulated, measured))
    chosen = pixels(len(measured), seen, around)
    return MapComparison(
        everywhere=_agreement(one, other, chosen, around),
        held_out=None if held_out is None else _agreement(one, other, chosen & held_out, around),
        smoothed=stratum_adjusted(*(smoothed(np.nan_to_num(ratio), is_circle=around is not None)
                                    for ratio in (one, other)), chosen, around),
        slope=slope(by_distance(simulated, seen, around), bin_size, *slope_range),
        measured_slope=slope(by_distance(measured, seen, around), bin_size, *slope_range),
    )


def _agreement(one: np.ndarray, other: np.ndarray, chosen: np.ndarray, around: float | None) -> Agreement:
    x, y = one[chosen], other[chosen]
    flat = len(x) < LEAST_STRATUM or np.ptp(x) == 0 or np.ptp(y) == 0
    return Agreement(
        len(x), None if flat else float(np.corrcoef(x, y)[0, 1]),
        None if flat else float(np.corrcoef(rankdata(x), rankdata(y))[0, 1]),
        stratum_adjusted(np.nan_to_num(one), np.nan_to_num(other), chosen, around))
