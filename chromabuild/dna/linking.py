"""Twist, writhe and linking number of a double helix (Calugareanu 1961; White 1969; Fuller 1971)."""

import numpy as np

from chromabuild import _kernels
from chromabuild.dna.steps import analyse


def writhe(points: np.ndarray, closed: bool = False, threads: int = 1) -> float:
    """Writhe of the polygon through points (n, 3), in turns; time grows with the square of n.

    Of an open path it is Gauss' integral as for a closed one: it depends on how the ends lie.
    """
    if len(points) < 3:
        return 0.0
    return float(_kernels.gauss_integral.polygon_writhe(np.asarray(points, dtype=float).T, int(closed), threads))


def twist(origin: np.ndarray, frame: np.ndarray, closed: bool = False, every: int = 1) -> float:
    """Turns of the base pairs about the polygon through their origins.

    Args:
        origin: (n, 3) of the base pairs, angstrom.
        frame: (n, 3, 3); y points along the pair.
        closed: whether the last base pair is followed by the first.
        every: the polygon goes through every so many base pairs (of an open path); whole turns between them are
            counted with the twist of the steps.

    From one segment to the next y is carried without turning (parallel transport), so that with ``writhe`` of the same
    origins the sum of a closed double helix is an integer, its linking number.
    """
    if every > 1:
        steps = np.radians(analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])[:, 5])
        turned = np.concatenate([[0.0], np.cumsum(steps)])[::every]
        origin, frame = origin[::every], frame[::every]
        turned = np.diff(turned)[: max(len(origin) - 2, 0)]
    if closed:
        origin = np.concatenate([origin, origin[:2]])
        frame = np.concatenate([frame, frame[:1]])
    segment = np.diff(origin, axis=0)
    tangent = segment / np.linalg.norm(segment, axis=1)[:, None]
    along = frame[: len(tangent), :, 1]
    along = along - tangent * np.sum(along * tangent, axis=1)[:, None]
    along /= np.linalg.norm(along, axis=1)[:, None]
    before, after = tangent[:-1], tangent[1:]
    # The smallest rotation that takes one tangent to the next, applied to the first y.
    axis, cosine = np.cross(before, after), np.sum(before * after, axis=1)[:, None]
    carried = along[:-1]
    carried = (carried * cosine + np.cross(axis, carried)
               + axis * np.sum(axis * carried, axis=1)[:, None] / (1.0 + cosine))  # fmt: skip
    sine = np.sum(np.cross(carried, along[1:]) * after, axis=1)
    turn = np.arctan2(sine, np.sum(carried * along[1:], axis=1))
    if every > 1:
        turn += 2 * np.pi * np.round((turned - turn) / (2 * np.pi))
    return float(np.sum(turn) / (2 * np.pi))
