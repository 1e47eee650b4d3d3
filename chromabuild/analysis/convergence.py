"""When an ensemble has enough folds: its contact map no longer depends on which of them were taken."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chromabuild.analysis.contact_statistics import distance_normalised, pixels

Array = NDArray[np.float64]
FIRST_CHECK, CHECK_EVERY = 8, 4
"""Folds after which the rule is applied for the first time, and how many later again. What is decided does not depend
on how many folds are made side by side."""
SPLITS = 20
_STREAM = 6 * 10**6


@dataclass(frozen=True)
class Convergence:
    """How certain the mean distance-normalised map of some folds is."""

    folds: int
    split_half: float | None
    """Correlation of the means of two halves of the folds, averaged over SPLITS random halvings."""
    reliability: float | None
    """The correlation to be expected of this map with that of as many other folds: Spearman (1910) and Brown (1910)."""
    relative_error: float | None
    """Standard error of the mean map over the standard deviation of its pixels."""


def checks(most: int) -> list[int]:
    """Numbers of folds, up to ``most``, at which it is asked whether they are enough; the last is ``most``.

    >>> checks(18), checks(4)
    ([8, 12, 16, 18], [4])
    """
    return [*range(FIRST_CHECK, most, CHECK_EVERY), most]


def convergence(maps: np.ndarray, around: float | None = None) -> Convergence:
    """Of the maps (f, b, b) of single folds, each a mean of its conformations; ``around``: of a circle, in bins.

    Values are None with fewer than two folds, or where no pixel varies.
    """
    folds, bins = len(maps), maps.shape[1]
    chosen = pixels(bins, around=around)
    if folds < 2 or not chosen.any():
        return Convergence(folds, None, None, None)
    # Each fold as its share of the mean map's ratio of observed to expected, so that the mean of these is that ratio.
    mean = maps.mean(axis=0)
    scale = np.divide(distance_normalised(mean, around=around), mean, out=np.zeros_like(mean), where=mean > 0)[chosen]
    values = np.array([one[chosen] * scale for one in maps])
    spread = float(values.mean(axis=0).std())
    if spread == 0:
        return Convergence(folds, None, None, None)
    random = np.random.Generator(np.random.Philox(key=[folds, _STREAM]))
    found = []
    for _ in range(SPLITS):
        order = random.permutation(folds)
        one, other = (values[order[k::2]].mean(axis=0) for k in (0, 1))
        if one.std() > 0 and other.std() > 0:
            found.append(float(np.corrcoef(one, other)[0, 1]))
    half = float(np.mean(found)) if found else None
    error = float(np.sqrt((values.var(axis=0, ddof=1) / folds).mean()))
    return Convergence(folds, half, None if half is None else 2 * half / (1 + half) if half > -1 else -1.0,
                       error / spread)


def is_enough(found: Convergence, threshold: float) -> bool:
    """Whether the reliability of the map has come to ``threshold``."""
    return found.reliability is not None and found.reliability >= threshold
