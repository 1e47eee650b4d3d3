"""Which folds of an ensemble resemble each other, by the distances between places along them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

Array = NDArray[np.float64]
MOST_PLACES = 200
"""Places along a fold whose distances are compared."""
MOST_CLUSTERS = 8


@dataclass(frozen=True)
class Clusters:
    """Folds in groups; folds are counted from 0 here."""

    difference: Array
    """(f, f) root mean square difference of distances, nm."""
    tree: Array
    """(f - 1, 4) as SciPy's ``linkage`` gives it, average linkage."""
    cluster: NDArray[np.int64]
    """(f,) number of each fold's cluster; 0 is the largest."""
    medoids: tuple[int, ...]
    """Of each cluster the fold that differs least from the others in it."""
    typical: int
    """The fold that differs least from all others."""
    silhouette: float | None
    """Mean silhouette (Rousseeuw 1987) of the grouping, -1 to 1; None where there is one cluster."""


def places(length: int) -> NDArray[np.int64]:
    """Base pairs, evenly along ``length``, whose distances stand for a fold."""
    return np.unique(np.linspace(0, length - 1, min(MOST_PLACES, length)).round().astype(np.int64))


def differences(paths: np.ndarray) -> Array:
    """Root mean square difference (f, f) of all distances within folds: points (f, p, 3), which may be turned, moved or
    mirrored, in the units of the points.

    >>> line = np.arange(12.0).reshape(4, 3)
    >>> differences(np.array([line, -line, 2 * line])).round(3)[0, :2]
    array([0., 0.])
    """
    distances = np.array([pdist(path) for path in paths])
    return squareform(pdist(distances)) / np.sqrt(distances.shape[1])


def cluster_folds(difference: np.ndarray, count: int | None = None) -> Clusters:
    """Group folds by their differences (f, f).

    ``count`` clusters, or as many as have the largest mean silhouette, up to MOST_CLUSTERS.
    """
    folds = len(difference)
    # A symmetric matrix to its last bit: `linkage` takes the upper part, means of rows take both.
    difference = (difference + difference.T) / 2
    tree = linkage(squareform(difference, checks=False), "average") if folds > 1 else np.zeros((0, 4))
    options = [count] if count is not None else range(2, min(MOST_CLUSTERS, folds - 1) + 1)
    best, best_score = np.zeros(folds, int), None
    for number in options:
        labels = fcluster(tree, number, "maxclust") - 1 if folds > 1 else np.zeros(folds, int)
        score = silhouette(difference, labels)
        if count is not None or (score is not None and (best_score is None or score > best_score)):
            best, best_score = labels, score
    sizes = np.bincount(best)
    order = sorted(range(len(sizes)), key=lambda one: (-sizes[one], int(np.flatnonzero(best == one)[0])))
    cluster = np.array([order.index(one) for one in best])
    members = [np.flatnonzero(cluster == one) for one in range(len(order))]
    medoids = tuple(int(which[difference[np.ix_(which, which)].mean(axis=1).argmin()]) for which in members)
    return Clusters(difference, tree, cluster, medoids, int(difference.mean(axis=1).argmin()), best_score)


def silhouette(difference: np.ndarray, labels: np.ndarray) -> float | None:
    """Mean silhouette of folds: how much nearer each is to its own cluster than to the next; 0 for a fold alone."""
    kinds = np.unique(labels)
    if len(kinds) < 2:
        return None
    values = []
    for k, own in enumerate(labels):
        same = labels == own
        if same.sum() == 1:
            values.append(0.0)
            continue
        inner = difference[k, same].sum() / (same.sum() - 1)
        outer = min(difference[k, labels == other].mean() for other in kinds if other != own)
        values.append((outer - inner) / max(inner, outer, 1e-300))
    return float(np.mean(values))
