"""Determinants of torus knots and of the figure eight, whose values are known, from any side."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from chromabuild.dna.knot import knot_determinant

ANGLE = np.linspace(0, 2 * np.pi, 160, endpoint=False)


def torus_knot(p, q):
    radius = 2 + np.cos(q * ANGLE)
    return np.stack([radius * np.cos(p * ANGLE), radius * np.sin(p * ANGLE), -np.sin(q * ANGLE)], axis=1)


def figure_eight():
    radius = 2 + np.cos(2 * ANGLE)
    return np.stack([radius * np.cos(3 * ANGLE), radius * np.sin(3 * ANGLE), np.sin(4 * ANGLE)], axis=1)


# |p| for torus knots (2, p), 3 for (3, 4) and 1 for (3, 5): Rolfsen, Knots and Links, 1976.
@pytest.mark.parametrize(("path", "determinant"), [
    (torus_knot(2, 1), 1), (torus_knot(2, 3), 3), (torus_knot(2, 5), 5), (torus_knot(2, 7), 7), (torus_knot(3, 4), 3),
    (torus_knot(3, 5), 1), (figure_eight(), 5)])
def test_known_knots(path, determinant):
    rng = np.random.default_rng(7)
    for rotation in Rotation.random(5, random_state=7).as_matrix():
        shaken = path + rng.normal(0, 0.005, path.shape)  # strands are 1 apart and more
        assert knot_determinant(10 * shaken @ rotation.T + 3.0) == determinant
    assert knot_determinant(path[::-1]) == determinant
