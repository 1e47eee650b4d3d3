"""Chemical elements of atoms, which a topology knows by their masses."""

from typing import NamedTuple

import numpy as np


class Element(NamedTuple):
    """What other programs ask of an element."""

    symbol: str
    number: int
    mass: float
    """Atomic mass units."""
    radius: float
    """Bondi's radius, angstrom."""
    screening: float
    """Of generalised Born models."""


ELEMENTS = (
    Element("H", 1, 1.008, 1.2, 0.85), Element("C", 6, 12.011, 1.7, 0.72), Element("N", 7, 14.007, 1.55, 0.79),
    Element("O", 8, 15.999, 1.5, 0.85), Element("Na", 11, 22.99, 1.5, 0.8), Element("Mg", 12, 24.305, 1.18, 0.8),
    Element("P", 15, 30.974, 1.85, 0.86), Element("S", 16, 32.06, 1.8, 0.96), Element("Cl", 17, 35.45, 1.7, 0.8),
    Element("K", 19, 39.098, 1.5, 0.8), Element("Ca", 20, 40.08, 1.5, 0.8))


def nearest_element(mass: np.ndarray) -> np.ndarray:
    """(n,) row of ``ELEMENTS`` whose mass is nearest to each of (n,) masses."""
    known = np.array([element.mass for element in ELEMENTS])
    distinct, which = np.unique(mass, return_inverse=True)
    return np.abs(distinct[:, None] - known).argmin(axis=1)[which]
