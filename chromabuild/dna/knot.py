"""Knots of closed paths, by the determinant of their Alexander polynomial."""

import numpy as np

_VIEW = np.array([[0.8016, 0.3471, -0.4867], [-0.5353, 0.7716, -0.3436], [0.2563, 0.5331, 0.8063]])
"""Rows are the axes of a projection, the third towards the eye; no symmetric path lies along them."""


def knot_determinant(points: np.ndarray) -> int:
    """The Alexander polynomial at -1, without its sign, of the closed polygon through points (n, 3).

    1 for a circle, 3 for a trefoil, 5 for a figure eight (Alexander 1928; Vologodskii et al. 1974). Other knots may
    have the same number. Time grows with the square of n and the cube of the crossings seen.
    """
    over, under = _crossings(np.asarray(points, dtype=float) @ _VIEW.T)
    m = len(under)
    if m < 3:
        return 1
    # An arc runs from one undercrossing to the next, along the path.
    order = np.argsort(under)
    ends = under[order]
    above = np.searchsorted(ends, over[order]) % m
    rows = np.arange(m)
    matrix = np.zeros((m, m))
    np.add.at(matrix, (rows, above), 2.0)
    np.add.at(matrix, (rows, rows), -1.0)
    np.add.at(matrix, (rows, (rows + 1) % m), -1.0)
    sign, logarithm = np.linalg.slogdet(matrix[1:, 1:])
    return 0 if sign == 0 else round(float(np.exp(logarithm)))


def _crossings(place: np.ndarray, block: int = 512) -> tuple[np.ndarray, np.ndarray]:
    """Places along the path (k,), in segments and parts of them, of the upper and the lower strand of each crossing."""
    n = len(place)
    along = np.roll(place, -1, axis=0) - place
    over, under = [], []
    for begin in range(0, n, block):
        i, j = np.meshgrid(np.arange(begin, min(begin + block, n)), np.arange(n), indexing="ij")
        i, j = i[i < j], j[i < j]
        apart = place[j] - place[i]
        turn = along[i, 0] * along[j, 1] - along[i, 1] * along[j, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            first = (apart[:, 0] * along[j, 1] - apart[:, 1] * along[j, 0]) / turn
            second = (apart[:, 0] * along[i, 1] - apart[:, 1] * along[i, 0]) / turn
        meet = (first >= 0) & (first < 1) & (second >= 0) & (second < 1) & (j - i > 1) & ((i > 0) | (j < n - 1))
        i, j, first, second = i[meet], j[meet], first[meet], second[meet]
        higher = place[i, 2] + first * along[i, 2] > place[j, 2] + second * along[j, 2]
        over.append(np.where(higher, i + first, j + second))
        under.append(np.where(higher, j + second, i + first))
    return np.concatenate(over), np.concatenate(under)
