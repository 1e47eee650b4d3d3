"""What a conformation looks like in numbers."""

import numpy as np
from numpy.typing import NDArray

CONTACT_DISTANCE = 25.0  # nm between core centres; the published contact analysis uses the same


def radius_of_gyration(points: NDArray[np.float64]) -> float:
    """Root mean square distance (nm) of points (n, 3) from their mean."""
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))


def end_to_end(points: NDArray[np.float64]) -> float:
    """Distance (nm) of the last of points (n, 3) from the first."""
    return float(np.linalg.norm(points[-1] - points[0]))


def contact_count(cores: NDArray[np.float64], distance: float = CONTACT_DISTANCE) -> int:
    """Pairs of core centres (m, 3) nearer than `distance` (nm), neighbours along the fibre left out."""
    d = np.linalg.norm(cores[:, None] - cores[None], axis=2)
    return int(np.count_nonzero(np.triu(d < distance, k=2)))


def fibre_observables(points: NDArray[np.float64], cores: NDArray[np.float64]) -> dict[str, float | int]:
    """The numbers a report shows: lengths in nm over all particles (n, 3), contacts over core centres (m, 3)."""
    return {
        "radius_of_gyration": radius_of_gyration(points),
        "end_to_end": end_to_end(points),
        "contacts": contact_count(cores),
    }
