"""Base pairs along any smooth curve: straight, circular, or through given points, open or closed."""

import numpy as np
from scipy.interpolate import CubicSpline

from chromabuild.base.errors import BadInputError
from chromabuild.dna.linking import writhe
from chromabuild.dna.steps import rotation_about_z

RISE, TWIST = 3.4, 34.286  # angstrom and degree a base pair: B-DNA of 10.5 base pairs a turn
TIGHTEST_RADIUS = 30.0  # angstrom: a nucleosome's is 42
LARGEST_STRETCH = 0.03
LARGEST_OVERTWIST = 6.0  # degree a base pair
SAMPLES = 20  # of the curve between two base pairs, to measure its length


def circular_path(n: int, linking_number: int | None = None, rise: float = RISE) -> tuple[np.ndarray, np.ndarray]:
    """Origins (n, 3) and frames (n, 3, 3) of a closed circle of n base pairs in the xy plane.

    ``linking_number`` is the number of turns of one strand about the other; default: the nearest to relaxed B-DNA.
    Raises BadInputError for a circle too tight or too far from its relaxed twist.
    """
    angle = 2 * np.pi * np.arange(n) / n
    points = n * rise / (2 * np.pi) * np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    return follow_curve(points, n=n, closed=True, linking_number=linking_number, rise=rise)


def relaxed_linking_number(n: int) -> int:
    """The linking number of n base pairs that is nearest to that of relaxed B-DNA."""
    return round(n * TWIST / 360.0)


def follow_curve(
    points: np.ndarray, n: int | None = None, closed: bool = False, linking_number: int | None = None,
    rise: float = RISE,
) -> tuple[np.ndarray, np.ndarray]:
    """Base pairs at even distances along the smooth curve (cubic spline) through points.

    Args:
        points: (m, 3) angstrom, at least 4 (closed: 3), no two neighbours equal.
        n: number of base pairs; default what fits at ``rise``.
        closed: whether the curve returns to its first point (which is not repeated).
        linking_number: of a closed curve; default the nearest to relaxed B-DNA.
        rise: angstrom a base pair.

    Returns:
        Origins (n, 3) and frames (n, 3, 3). Frames do not turn about the curve but for an even twist: that of B-DNA, or
        of a closed curve what its linking number asks for.

    Raises:
        BadInputError: points that make no curve, a length that n base pairs cannot span, a bend tighter than 30
            angstrom, or a linking number that twists DNA by more than 6 degrees a base pair away from rest.
    """
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4 - closed or not np.isfinite(points).all():
        raise BadInputError(f"a path needs at least {4 - closed} points of three finite coordinates: give more points")
    if closed:
        points = np.concatenate([points, points[:1]])
    chord = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if chord.min() == 0:
        raise BadInputError(f"points {int(np.argmin(chord))} and the next of the path are the same: remove one")
    knots = np.concatenate([[0.0], np.cumsum(chord)])
    spline = CubicSpline(knots, points, bc_type="periodic" if closed else "not-a-knot")
    fine = np.linspace(0.0, knots[-1], max(int(SAMPLES * knots[-1] / rise), 100) + 1)
    speed = np.linalg.norm(spline(fine, 1), axis=1)
    length = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(fine))])
    n = round(length[-1] / rise) + (not closed) if n is None else n
    steps = n - (not closed)
    stretch = length[-1] / (max(steps, 1) * rise) - 1.0
    if steps < 1 or abs(stretch) > LARGEST_STRETCH:
        raise BadInputError(f"{n} base pairs cannot span a path of {length[-1]:.1f} angstrom (stretch "
                            f"{100 * stretch:.1f} %): take {round(length[-1] / rise) + (not closed)}")
    at = np.interp(np.linspace(0.0, length[-1], steps + 1), length, fine)[:n]
    velocity, bend = spline(at, 1), spline(at, 2)
    curvature = np.linalg.norm(np.cross(velocity, bend), axis=1) / np.linalg.norm(velocity, axis=1) ** 3
    if curvature.max() * TIGHTEST_RADIUS > 1.0:
        tight = int(np.argmax(curvature))
        raise BadInputError(f"the path bends with a radius of {1 / curvature.max():.1f} angstrom at base pair {tight}, "
                            f"tighter than {TIGHTEST_RADIUS:.0f}: smooth it or make it longer")
    origin, tangent = spline(at), velocity / np.linalg.norm(velocity, axis=1)[:, None]
    frame = _carried_frames(origin, tangent)
    index = np.arange(n)
    if not closed:
        return origin, frame @ rotation_about_z(np.radians(TWIST) * index)
    coiled = writhe(origin, closed=True)
    relaxed = n * TWIST / 360.0 + coiled
    linking_number = round(relaxed) if linking_number is None else linking_number
    over = 360.0 * (linking_number - relaxed) / n
    if abs(over) > LARGEST_OVERTWIST:
        raise BadInputError(f"linking number {linking_number} twists {n} base pairs by {over:+.1f} degrees each beyond "
                            f"rest: take one near {round(relaxed)} (locus.linking_number)")
    turn = 2 * np.pi * (linking_number - coiled) / n  # carried frames themselves do not twist
    return origin, frame @ rotation_about_z(turn * index)


def _carried_frames(origin: np.ndarray, tangent: np.ndarray) -> np.ndarray:
    """(n, 3, 3) frames with z along the tangents that turn about them as little as possible.

    Double reflection: Wang, Juettler, Zheng & Liu, ACM Trans. Graph. 27:2 (2008).
    """
    frame = np.empty((len(origin), 3, 3))
    side = np.cross(tangent[0], np.eye(3)[np.argmin(np.abs(tangent[0]))])
    side /= np.linalg.norm(side)
    for k in range(len(origin)):
        if k:
            step = origin[k] - origin[k - 1]
            square = step @ step
            side = side - 2.0 / square * (step @ side) * step
            mirrored = tangent[k - 1] - 2.0 / square * (step @ tangent[k - 1]) * step
            rest = tangent[k] - mirrored
            side = side - 2.0 / (rest @ rest) * (rest @ side) * rest
            side -= (side @ tangent[k]) * tangent[k]
            side /= np.linalg.norm(side)
        frame[k] = np.stack([side, np.cross(tangent[k], side), tangent[k]], axis=1)
    return frame
