"""Periodic boxes by their vectors: a = (a_x, 0, 0), b = (b_x, b_y, 0), c = (c_x, c_y, c_z), the rows of a matrix, as
GROMACS, OpenMM, AMBER and PDB files orient them. A rectangular box is often just its edges."""

import numpy as np

from chromabuild.base.errors import BadInputError


def vectors_of(box: np.ndarray) -> np.ndarray:
    """(3, 3) vectors as rows, of the edges (3,) of a rectangular box or of vectors; the unit stays."""
    box = np.asarray(box, dtype=float)
    return np.diag(box) if box.ndim == 1 else box


def vectors_from_angles(edges: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """(3, 3) vectors of a box with these edges and the angles alpha (b, c), beta (a, c), gamma (a, b) in degree.

    Raises BadInputError for angles that no three edges can have.
    """
    cos_alpha, cos_beta, cos_gamma = (0.0 if angle == 90 else np.cos(np.radians(angle)) for angle in angles)
    sin_gamma = np.sqrt(1 - cos_gamma**2)
    c_y = (cos_alpha - cos_beta * cos_gamma) / sin_gamma if sin_gamma > 0 else np.inf
    height2 = 1 - cos_beta**2 - c_y**2
    if not height2 > 1e-6:
        raise BadInputError("three edges with angles of " + ", ".join(f"{angle:g}" for angle in angles) +
                            " degrees between them enclose no box: check the box of the file")
    a, b, c = edges
    return np.array([[a, 0, 0], [b * cos_gamma, b * sin_gamma, 0], [c * cos_beta, c * c_y, c * np.sqrt(height2)]])


def reduced(vectors: np.ndarray) -> np.ndarray:
    """Vectors of the same lattice and orientation of which none leans by more than half of those before it; those that
    lean by half lean forward, whatever the rounding of a file."""
    a, b, c = np.array(vectors, dtype=float)

    def whole(share: float) -> float:
        return np.ceil(share - 0.5 - 1e-5)

    c = c - b * whole(c[1] / b[1])
    c = c - a * whole(c[0] / a[0])
    return np.array([a, b - a * whole(b[0] / a[0]), c])


def tilt_of(box: np.ndarray) -> np.ndarray:
    """(3,) b_x, c_x and c_y."""
    return vectors_of(box)[[1, 2, 2], [0, 0, 1]]


def straight(position: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Positions, (n, 3), by the shear that takes the vectors to the axes: over the diagonal they are fractions."""
    vectors = vectors_of(box)
    return position @ np.linalg.inv(vectors) * np.diag(vectors)


def wrapped(position: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Positions, (n, 3), brought into the box that the vectors span from the origin."""
    vectors = vectors_of(box)
    return position - np.floor(position @ np.linalg.inv(vectors)) @ vectors


def nearest_image(apart: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Differences, (..., 3), of which those shorter than half of each edge of the diagonal are the nearest images: c is
    taken off first, then b, then a."""
    apart = np.array(apart, dtype=float)
    vectors = vectors_of(box)
    for axis in (2, 1, 0):
        apart -= np.round(apart[..., axis:axis + 1] / vectors[axis, axis]) * vectors[axis]
    return apart
