"""Electrostatic potential of smeared charges in a periodic box, on a mesh, by fast Fourier transforms."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import fft
from scipy.ndimage import map_coordinates

if TYPE_CHECKING:
    from collections.abc import Iterator

SMEARING = 0.25
"""1/angstrom: a charge is a Gaussian exp(-(SMEARING r)^2), wide enough for a mesh of one angstrom."""
_SPACING = 1.0
_CORNERS = np.array(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")).reshape(3, 8).T


@dataclass(frozen=True)
class Potential:
    """A periodic potential on the mesh points of a cell."""

    value: np.ndarray
    """(nx, ny, nz) in the units of charge times the Coulomb constant, over angstrom."""
    inverse: np.ndarray
    """(3, 3): positions times it are fractions of the cell."""

    def at(self, points: np.ndarray) -> np.ndarray:
        """(p,) at points (p, 3) anywhere in space, by cubic interpolation."""
        place = points @ self.inverse % 1.0 * self.value.shape
        return map_coordinates(self.value, place.T, order=3, mode="grid-wrap")


class PotentialMesh:
    """Charges of one frame on a mesh of about one angstrom, and their potentials."""

    def __init__(self, position: np.ndarray, charge: np.ndarray, cell: np.ndarray) -> None:
        """From positions (n, 3), charges (n,) in e and the rows (3, 3) of the cell, angstrom."""
        self._cell, self._inverse = cell, np.linalg.inv(cell)
        lengths = np.linalg.norm(cell, axis=1)
        self._shape = tuple(fft.next_fast_len(max(8, int(np.ceil(length / _SPACING))), real=True) for length in lengths)
        self._charge = fft.rfftn(self._spread(position, charge))

    def _spread(self, position: np.ndarray, charge: np.ndarray) -> np.ndarray:
        """Each charge shared among the eight mesh points about it, by linear weights."""
        place = position @ self._inverse % 1.0 * self._shape
        low = np.floor(place).astype(np.int64)
        rest = place - low
        mesh = np.zeros(int(np.prod(self._shape)))
        for corner in _CORNERS:
            weight = np.prod(np.where(corner, rest, 1.0 - rest), axis=1)
            index = np.ravel_multi_index(tuple(((low + corner) % self._shape).T), self._shape)
            mesh += np.bincount(index, weights=weight * charge, minlength=mesh.size)
        return mesh.reshape(self._shape)

    def potential(self, coulomb_constant: float, dielectric: float = 1.0, screening: float = 0.0) -> Potential:
        """Of the smeared charges in a medium: with ``screening`` (1/angstrom) that of Debye and Hueckel.

        Each wave of the charge is multiplied with 4 pi exp(-k^2 / 4 SMEARING^2) / (k^2 + screening^2); the mean is
        zero without screening. What the linear weights take away is given back.
        """
        square, weight = self._waves()
        below = (square + screening**2) * weight
        factor = np.divide(4 * np.pi * np.exp(-square / (4 * SMEARING**2)), below, out=np.zeros_like(square),
                           where=below > 0)
        volume = abs(np.linalg.det(self._cell)) / np.prod(self._shape)
        wave = self._charge * factor * (coulomb_constant / (dielectric * volume))
        return Potential(fft.irfftn(wave, s=self._shape), self._inverse)

    def _waves(self) -> tuple[np.ndarray, np.ndarray]:
        """Squares of the wave vectors, and the transform of the linear weights, squared sinc along each axis."""
        numbers = list(self._numbers())
        vector = sum(number[..., None] * row for number, row in zip(numbers, self._inverse.T, strict=True))
        weight = np.ones(())
        for number, n in zip(numbers, self._shape, strict=True):
            weight = weight * np.sinc(number / n) ** 2
        return (2 * np.pi) ** 2 * (vector**2).sum(axis=-1), weight

    def _numbers(self) -> "Iterator[np.ndarray]":
        for axis, n in enumerate(self._shape):
            numbers = (fft.rfftfreq(n) if axis == 2 else fft.fftfreq(n)) * n
            yield numbers.reshape([-1 if axis == other else 1 for other in range(3)])
