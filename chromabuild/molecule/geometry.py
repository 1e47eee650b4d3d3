"""Vectors and angles of points in space."""

import numpy as np


def cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vector product along the last axis of two (..., 3) arrays: what numpy's gives, several times as fast on few."""
    product = np.empty(np.broadcast_shapes(u.shape, v.shape), dtype=np.result_type(u, v))
    for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        product[..., k] = u[..., i] * v[..., j] - u[..., j] * v[..., i]
    return product


def measure_torsion(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Torsion a-b-c-d in radian, IUPAC sign; all (..., 3)."""
    middle = c - b
    first, second = cross(b - a, middle), cross(middle, d - c)
    sine = np.sum(cross(first, second) * middle, axis=-1) / np.linalg.norm(middle, axis=-1)
    return np.arctan2(sine, np.sum(first * second, axis=-1))
