"""How well one contact map agrees with another: correlations with the mean at each distance divided out, and what the
noise of the counts allows."""

import numpy as np
from numpy.typing import NDArray

from chromabuild.analysis import agreement, contact_statistics
from chromabuild.analysis.contact_statistics import by_distance, distance_normalised

Array = NDArray[np.float64]
NEAREST = 2  # bins apart: pairs of neighbours are left out


def slope(values: Array, first: int, last: int) -> float:
    """Exponent of the mean of a map (n, n) against distance, from `first` to `last` bins."""
    return contact_statistics.slope(by_distance(values), 1, first, last)


def pearson(one: Array, other: Array, scored: NDArray[np.bool_]) -> float:
    """Pearson's correlation of two distance-normalised maps over scored pairs (n, n) at least NEAREST bins apart."""
    upper = np.triu(scored, NEAREST)
    a, b = distance_normalised(one)[upper], distance_normalised(other)[upper]
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 1e-9 and b.std() > 1e-9 else 0.0


def stratum_adjusted(one: Array, other: Array, scored: NDArray[np.bool_]) -> float:
    """HiCRep's correlation of two maps over scored pairs (n, n) at least NEAREST bins apart, with the means at each
    distance divided out; 0 where no distance tells anything."""
    found = agreement.stratum_adjusted(one, other, np.triu(scored, NEAREST))
    return 0.0 if found is None else found


def ceilings(count: Array, visible: Array, scored: NDArray[np.bool_], draws: int, seed: int) -> dict[str, float]:
    """What the true map would score against counts (n, n) of reads drawn from it: halves of the reads are compared, and
    the correlation r of two halves makes sqrt(2 r/(1 + r)) of truth and whole (Spearman and Brown)."""
    random = np.random.default_rng(seed)
    found: dict[str, list[float]] = {"Pearson": [], "SCC": [], "Pearson, balanced": [], "SCC, balanced": []}
    weight = np.outer(visible, visible)
    for _ in range(draws):
        half = np.triu(random.binomial(np.triu(count).astype(int), 0.5).astype(float))
        half = half + np.triu(half, 1).T
        for name, scale in (("", 1.0), (", balanced", weight)):
            pair = half / scale, (count - half) / scale
            found[f"Pearson{name}"].append(pearson(*pair, scored))
            found[f"SCC{name}"].append(stratum_adjusted(*pair, scored))
    means = {name: max(0.0, float(np.mean(values))) for name, values in found.items()}
    return {name: float(np.sqrt(2 * r / (1 + r))) for name, r in means.items()}
