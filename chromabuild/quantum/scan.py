"""Ways to move a part of a cluster: a piece along a contact, or what is on one side of a bond about it."""

import re
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.geometry import measure_torsion
from chromabuild.quantum.cluster import Cluster

OFFSETS = (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Angstrom from the distance as built, where a contact is scanned unless told."""
TURN = 30.0
"""Degree between the points of a torsion unless told."""
LEAST_DISTANCE = 1.0
"""Angstrom between the atoms of a contact; nearer, no potential is made for it."""
MOST_POINTS = 60


@dataclass(frozen=True)
class Scan:
    """Geometries of a cluster, the one as built among them."""

    coordinate: str
    """``distance`` in angstrom or ``torsion`` in degree."""
    value: np.ndarray
    """(p,) ascending."""
    position: np.ndarray
    """(p, n + c, 3) angstrom."""
    as_built: int
    """Which point that is."""
    moving: np.ndarray
    """(n + c,) bool."""


def read_values(text: str) -> np.ndarray:
    """``1.8,2.1,2.4`` or ``0:330:30`` (first, last, step) as ascending numbers. Raises BadInputError."""
    complaint = f"--scan {text} is neither numbers with commas between (1.8,2.0,2.4) nor first:last:step (1.8:3.0:0.2)"
    try:
        if re.search(":", text):
            first, last, step = (float(word) for word in text.split(":"))
            if not (step > 0 and last >= first):
                raise BadInputError(complaint)
            values = first + step * np.arange(min(int((last - first) / step + 1e-9) + 1, MOST_POINTS + 1))
        else:
            values = np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise BadInputError(complaint) from None
    if len(values) > MOST_POINTS:
        raise BadInputError(f"--scan {text} has more than {MOST_POINTS} points, each a computation of its own: ask for "
                            "fewer")
    if not np.isfinite(values).all():
        raise BadInputError(complaint)
    return np.unique(values)


def scan_contact(cluster: Cluster, pair: tuple[int, int], values: np.ndarray | None) -> Scan:
    """The piece with the first of two rows of a cluster moves along the line through both, and with it the pieces that
    are nearer to this atom than to the other, such as the waters of an ion.

    ``values``: distances, angstrom; None: ``OFFSETS`` from the one as built. Raises BadInputError where the atoms are
    of one piece or a distance is too short.
    """
    a, b = pair
    if cluster.piece[a] == cluster.piece[b]:
        raise BadInputError(f"{cluster.label[a]} and {cluster.label[b]} are of one piece, which cannot be pulled "
                            "apart: choose atoms of different molecules or groups, or --torsion")
    along = cluster.position[a] - cluster.position[b]
    built = float(np.linalg.norm(along))
    values = built + np.array(OFFSETS) if values is None else values
    values = np.unique(np.append(values[np.abs(values - built) > 1e-6], built))
    if values[0] < LEAST_DISTANCE:
        raise BadInputError(f"a contact of {values[0]:g} angstrom is too short to scan: begin at {LEAST_DISTANCE:g} or "
                            "more")
    moving = _nearer(cluster, a, b)
    shift = (values - built)[:, None] * along / built
    position = cluster.position + np.where(moving[:, None], 1.0, 0.0) * shift[:, None]
    return Scan("distance", values, position, int(np.flatnonzero(values == built)[0]), moving)


def _nearer(cluster: Cluster, a: int, b: int) -> np.ndarray:
    """(n + c,) whether a piece goes with row a."""
    to_a, to_b = (np.linalg.norm(cluster.position - cluster.position[row], axis=1) for row in (a, b))
    nearest = np.full((2, len(cluster.piece_charge)), np.inf)
    np.minimum.at(nearest[0], cluster.piece, to_a)
    np.minimum.at(nearest[1], cluster.piece, to_b)
    return (nearest[0] < nearest[1])[cluster.piece]


def scan_torsion(cluster: Cluster, four: tuple[int, int, int, int], values: np.ndarray | None) -> Scan:
    """What hangs on the third of four rows turns about the bond between the second and the third.

    ``values``: degree; None: every ``TURN`` from 0. Raises BadInputError where there is no such bond, or in a ring.
    """
    _, b, c, _ = four
    names = " - ".join(cluster.label[k] for k in (b, c))
    is_axis = (np.sort(cluster.bonds, axis=1) == sorted((b, c))).all(axis=1)
    if not is_axis.any():
        raise BadInputError(f"{names} is no bond of the cluster: the second and third atom of --torsion are its axis")
    rest = cluster.bonds[~is_axis]
    graph = coo_array((np.ones(len(rest)), (rest[:, 0], rest[:, 1])), shape=(len(cluster.element),) * 2)
    side = connected_components(graph, directed=False)[1]
    if side[b] == side[c]:
        raise BadInputError(f"{names} is in a ring and cannot turn: choose another --torsion")
    moving = side == side[c]
    if moving[four[0]] or not moving[four[3]]:
        raise BadInputError(f"the atoms of --torsion do not follow each other along bonds: {names} has both ends on "
                            "one side")
    built = float(np.degrees(measure_torsion(*cluster.position[list(four)])))
    values = np.arange(0.0, 360.0, TURN) if values is None else values
    apart = np.abs((values - built + 180.0) % 360.0 - 180.0)
    nearest = values[apart.argmin()] if apart.size else built
    as_built = built + 360.0 * np.round((nearest - built) / 360.0)
    values = np.unique(np.append(values[apart > 1e-6], as_built))
    axis = cluster.position[c] - cluster.position[b]
    axis /= np.linalg.norm(axis)
    position = np.repeat(cluster.position[None], len(values), axis=0)
    for k, value in enumerate(values):
        turn = Rotation.from_rotvec(np.radians(value - built) * axis)
        position[k, moving] = turn.apply(cluster.position[moving] - cluster.position[c]) + cluster.position[c]
    return Scan("torsion", values, position, int(np.flatnonzero(values == as_built)[0]), moving)


def along_axes(scan: Scan) -> np.ndarray:
    """(p, n + c, 3) the positions turned so that the box around all of them is small: along their principal axes."""
    flat = scan.position.reshape(-1, 3)
    centred = flat - flat.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1]
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    turned = centred @ axes
    return (turned - 0.5 * (turned.min(axis=0) + turned.max(axis=0))).reshape(scan.position.shape)
