"""What a conformation looks like in numbers."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mesoscale.fibre import Fibre

Array = NDArray[np.float64]
CONTACT_DISTANCE = 25.0  # nm between core centres; the published contact analysis uses the same
MONONUCLEOSOME_S20W = 11.1  # svedberg, and hydrodynamic radius in nm: Arya, Zhang & Schlick, Biophys. J. 91:133, 2006
MONONUCLEOSOME_RADIUS = 5.46
FINEST_MAP, MOST_BINS = 50, 1000  # of the contact map: base pairs a bin, and bins
NEAR = 12.0  # nm between the centres of two cores that may touch: a diameter and a little
LONGEST_PATTERN = 10
AXIS_WINDOW = 11  # core centres averaged to a point of the fibre's axis: about one turn of a 30 nm fibre and a half


def radius_of_gyration(points: Array) -> float:
    """Root mean square distance (nm) of points (n, 3) from their mean."""
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))


def end_to_end(points: Array) -> float:
    """Distance (nm) of the last of points (n, 3) from the first."""
    return float(np.linalg.norm(points[-1] - points[0]))


def contact_count(cores: Array, distance: float = CONTACT_DISTANCE) -> int:
    """Pairs of core centres (m, 3) nearer than `distance` (nm), neighbours along the fibre left out."""
    pairs = cKDTree(cores).query_pairs(distance, output_type="ndarray")
    return int(np.count_nonzero(np.abs(pairs[:, 0] - pairs[:, 1]) >= 2))


def sedimentation_coefficient(cores: Array) -> float:
    """S20,w (svedberg) of core centres (m, 3) by Kirkwood's formula as used for chromatin (Arya et al. 2006)."""
    m = len(cores)
    d = np.linalg.norm(cores[:, None] - cores[None], axis=2)
    inverse = (1.0 / d[np.triu_indices(m, 1)]).sum()
    return float(MONONUCLEOSOME_S20W * (1.0 + 2.0 * MONONUCLEOSOME_RADIUS / m * inverse))


def packing_ratio(cores: Array) -> float | None:
    """Nucleosomes for each 11 nm of the fibre's axis, the running mean of AXIS_WINDOW core centres (m, 3).

    None for a fibre shorter than two windows.
    """
    if len(cores) < 2 * AXIS_WINDOW:
        return None
    sums = np.cumsum(np.concatenate([np.zeros((1, 3)), cores]), axis=0)
    axis = (sums[AXIS_WINDOW:] - sums[:-AXIS_WINDOW]) / AXIS_WINDOW
    length = np.linalg.norm(np.diff(axis, axis=0), axis=1).sum()
    return float(11.0 * (len(axis) - 1) / length)


def triplet_angles(cores: Array) -> Array:
    """Angle (degree, (m - 2,)) at each core centre between the centres before and behind it."""
    before, behind = cores[:-2] - cores[1:-1], cores[2:] - cores[1:-1]
    cosine = (before * behind).sum(axis=1) / np.linalg.norm(before, axis=1) / np.linalg.norm(behind, axis=1)
    return np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))


def contact_pattern(cores: Array) -> list[float]:
    """Share of the pairs k apart along the fibre, k = 1 to 10, whose core centres (m, 3) are within NEAR nm.

    A zigzag has its second largest share at k = 2, a solenoid at 5 to 7.
    """
    return [
        float((np.linalg.norm(cores[k:] - cores[:-k], axis=1) < NEAR).mean())
        for k in range(1, min(LONGEST_PATTERN, len(cores) - 1) + 1)
    ]


def map_of(fibre: Fibre, bp: Array, snapshots: list[Array]) -> tuple[NDArray[np.int64], int]:
    """The contact map of a fibre, and base pairs a bin; bins begin at whole multiples on the chromosome.

    `bp` (n,) is the base pair of each particle, `snapshots` hold positions (n, 3), nm.
    """
    return map_along(len(fibre.sequence), fibre.start, fibre.turn, bp, snapshots)


def map_resolution(length: int) -> int:
    """Base pairs a bin of the map of a locus."""
    return max(FINEST_MAP, 10 * -(-length // (10 * MOST_BINS)))


def map_along(length: int, start: int, turn: int, bp: Array, snapshots: list[Array]) -> tuple[NDArray[np.int64], int]:
    """As `map_of`, of `length` base pairs from `start` on; those of a circle are counted `turn` after that."""
    resolution = map_resolution(length)
    offset = start % resolution
    bins = -(-(offset + length) // resolution)
    place = (bp + turn) % length if turn else bp
    return contact_map(place + offset, snapshots, bins, resolution), resolution


def contact_map(bp: Array, snapshots: list[Array], bins: int, resolution: int) -> NDArray[np.int64]:
    """Symmetric map (bins, bins) of how often particles came nearer than CONTACT_DISTANCE, summed over snapshots.

    `bp` (n,) is the base pair of each particle, counted from the first bin; `snapshots` hold positions (n, 3), nm;
    `resolution` is base pairs a bin.
    """
    bin_of = np.minimum((np.asarray(bp) // resolution).astype(np.int64), bins - 1)
    counts = np.zeros(bins * bins, np.int64)
    for position in snapshots:
        pairs = cKDTree(position).query_pairs(CONTACT_DISTANCE, output_type="ndarray")
        one, other = np.sort(bin_of[pairs], axis=1).T
        counts += np.bincount(one * bins + other, minlength=bins * bins)
    upper = counts.reshape(bins, bins)
    return upper + np.triu(upper, 1).T


def energy_drift(total: Array) -> tuple[float, float]:
    """Change of the mean from the third to the last quarter of a series, and the standard deviation within the two.

    The series is at rest when the first is smaller, in absolute value, than the second.
    """
    quarter = max(1, len(total) // 4)
    last, before = total[-quarter:], total[-2 * quarter : -quarter]
    if len(before) == 0:
        return 0.0, 0.0
    return float(last.mean() - before.mean()), float(np.sqrt((last.var() + before.var()) / 2))


def fibre_observables(points: Array, cores: Array) -> dict[str, float | int | list[float]]:
    """The numbers a report shows: lengths in nm over all particles (n, 3), the rest over core centres (m, 3)."""
    found: dict[str, float | int | list[float]] = {
        "radius_of_gyration": radius_of_gyration(points),
        "end_to_end": end_to_end(points),
        "contacts": contact_count(cores),
    }
    if len(cores) > 1:
        found["sedimentation_coefficient"] = sedimentation_coefficient(cores)
        found["contact_pattern"] = contact_pattern(cores)
    if len(cores) > 2:
        found["triplet_angle"] = float(triplet_angles(cores).mean())
    packing = packing_ratio(cores)
    if packing is not None:
        found["packing_ratio"] = packing
    return found
