"""Periodic boxes by their vectors: a = (a_x, 0, 0), b = (b_x, b_y, 0), c = (c_x, c_y, c_z), the rows of a matrix, as
GROMACS, OpenMM, AMBER and PDB files orient them. A rectangular box is often just its edges."""

from collections.abc import Sequence

import numpy as np

from chromabuild.base.errors import BadInputError

SHAPES = {"dodecahedron": np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.5, np.sqrt(0.5)]]),
          "octahedron": np.array([[1, 0, 0], [1 / 3, np.sqrt(8) / 3, 0], [-1 / 3, np.sqrt(2) / 3, np.sqrt(6) / 3]])}
"""Vectors of the rhombic dodecahedron, its square in the xy plane, and of the truncated octahedron, of images that are
1 apart: their volumes are 0.7071 and 0.7698 of the cube's."""
RECTANGULAR = "rectangular"

_HALF = 0.5 + 1e-9
"""Of a translation: what is on the face of a Wigner-Seitz cell stays, on whichever side rounding puts it."""


def vectors_of(box: np.ndarray) -> np.ndarray:
    """(3, 3) vectors as rows, of the edges (3,) of a rectangular box or of vectors; the unit stays."""
    box = np.asarray(box, dtype=float)
    return np.diag(box) if box.ndim == 1 else box


def shape_of(box: np.ndarray) -> str:
    """``RECTANGULAR``, a name of ``SHAPES``, or ``triclinic``."""
    vectors = vectors_of(box)
    if not tilt_of(vectors).any():
        return RECTANGULAR
    found = (name for name, unit in SHAPES.items() if np.abs(vectors / vectors[0, 0] - unit).max() < 1e-3)
    return next(found, "triclinic")


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


def box_from_angles(edges: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """(3,) edges where the angles are right, else (3, 3) vectors, as of ``vectors_from_angles``."""
    return edges if np.allclose(angles, 90.0, atol=1e-3) else vectors_from_angles(edges, angles)


def edges_and_angles(box: np.ndarray) -> np.ndarray:
    """(6,) of a box, (3,) edges or (3, 3) vectors: lengths, and alpha (b, c), beta (a, c), gamma (a, b) in degree."""
    vectors = vectors_of(box)
    length = np.linalg.norm(vectors, axis=1)
    cosine = (vectors[[1, 0, 0]] * vectors[[2, 2, 1]]).sum(axis=1) / (length[[1, 0, 0]] * length[[2, 2, 1]])
    return np.concatenate([length, np.degrees(np.arccos(np.clip(cosine, -1, 1)))])


def reduced(vectors: np.ndarray) -> np.ndarray:
    """Vectors of the same lattice and orientation of which none leans by more than half of those before it; those that
    lean by half lean forward, whatever the rounding of a file."""
    a, b, c = np.array(vectors, dtype=float)

    def whole(share: float) -> float:
        return np.ceil(share - 0.5 - 1e-5)

    c = c - b * whole(c[1] / b[1])
    c = c - a * whole(c[0] / a[0])
    return np.array([a, b - a * whole(b[0] / a[0]), c])


def box_of_frame(cell: np.ndarray) -> np.ndarray | None:
    """The box of a frame of a DCD file, (3,) edges or (3, 3) vectors where they lean; None where there is none.

    ``cell``: (6,) A, gamma, B, beta, alpha and C as CHARMM orders them, angles in degree or as cosines.
    """
    cell = np.asarray(cell, dtype=float)
    edges, angles = cell[[0, 2, 5]], cell[[4, 3, 1]]
    if not (edges > 0).all():
        return None
    if (np.abs(angles) <= 1).all():
        angles = np.degrees(np.arccos(angles))
    return box_from_angles(edges, angles)


def lattice_steps(box: np.ndarray) -> np.ndarray:
    """(13, 3) translations to neighbouring images, of two that are opposite one."""
    steps = np.stack(np.meshgrid(*[np.arange(-1, 2)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    return steps[len(steps) // 2 + 1:] @ vectors_of(box)


def shortest_translation(box: np.ndarray) -> float:
    """Distance of a point from its nearest image."""
    return float(np.linalg.norm(lattice_steps(box), axis=1).min())


def box_of(diagonal: np.ndarray, tilt: np.ndarray) -> np.ndarray:
    """Edges (3,) of a rectangular box, or vectors (3, 3) of one with a tilt, (3,) as ``tilt_of`` gives it; whole
    numbers stay whole."""
    if not np.any(tilt):
        return np.asarray(diagonal)
    vectors = np.diag(diagonal)
    vectors[[1, 2, 2], [0, 0, 1]] = tilt
    return vectors


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


def folded(position: np.ndarray, box: np.ndarray, axes: Sequence[int] = (2, 1, 0)) -> np.ndarray:
    """Positions, (n, 3), brought into the upright block of the diagonal, which the vectors repeat through all space as
    they do the box itself. Whole numbers stay whole, and exact. ``axes``: those along which they are brought into it.
    """
    position = np.array(position)
    vectors = np.diag(box) if np.ndim(box) == 1 else np.asarray(box)
    for axis in axes:
        image = np.floor_divide(position[:, axis], vectors[axis, axis])
        for along in np.flatnonzero(vectors[axis]).tolist():
            position[:, along] -= (image * vectors[axis, along]).astype(position.dtype)
    return position


def with_images(position: np.ndarray, box: np.ndarray, reach: float, axes: Sequence[int] = (2, 1, 0)
                ) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) of the upright block, then their images that lie within ``reach`` of it, and (m,) whose they
    are; along an axis one image on each side at most. ``axes`` as of ``folded``.
    """
    vectors = np.diag(box) if np.ndim(box) == 1 else np.asarray(box)
    source = np.arange(len(position))
    for axis in axes:  # images of images: edges and corners come by themselves
        edge, below = vectors[axis, axis], [k for k in axes if k < axis]
        low, high = position[:, axis] < min(reach, edge), position[:, axis] >= edge - min(reach, edge)
        step = vectors[axis].astype(position.dtype)
        images = [position[low] + step, position[high] - step]
        if np.count_nonzero(step) > 1:
            images = [folded(image, vectors, below) for image in images]
        position = np.concatenate([position, *images])
        source = np.concatenate([source, source[low], source[high]])
    return position, source


def nearest_to(middle: np.ndarray, position: np.ndarray, box: np.ndarray) -> np.ndarray:
    """(n, 3) translations, sums of vectors, that take positions (n, 3) to their images nearest to a point: into its
    Wigner-Seitz cell, which gives shapes of boxes their names. Whole numbers stay exact."""
    steps = lattice_steps(box)
    square = (steps**2).sum(axis=1)
    moved = np.zeros((len(position), 3))
    rows = np.arange(len(position))
    while len(rows):
        share = (position[rows] + moved[rows] - middle) @ steps.T / square
        best = np.argmax(np.abs(share), axis=1)
        share = share[np.arange(len(rows)), best]
        beyond = np.abs(share) > _HALF
        rows = rows[beyond]
        moved[rows] -= np.round(share[beyond])[:, None] * steps[best[beyond]]
    return moved


def nearest_image(apart: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Differences, (..., 3), of which those shorter than half of each edge of the diagonal are the nearest images: c is
    taken off first, then b, then a."""
    apart = np.array(apart, dtype=float)
    vectors = vectors_of(box)
    for axis in (2, 1, 0):
        apart -= np.round(apart[..., axis:axis + 1] / vectors[axis, axis]) * vectors[axis]
    return apart


def cell_of(box: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Corners (n, 3) of the Wigner-Seitz cell around half of the sum of the vectors, and pairs of them that edges
    join."""
    from scipy.spatial import ConvexHull, HalfspaceIntersection

    steps = lattice_steps(box)
    steps = np.concatenate([steps, -steps])
    length = np.linalg.norm(steps, axis=1)
    planes = np.column_stack([steps / length[:, None], -length / 2])
    corners = np.unique(np.round(HalfspaceIntersection(planes, np.zeros(3)).intersections, 3), axis=0)
    corners = corners[ConvexHull(corners).vertices]
    on_plane = np.abs(corners @ planes[:, :3].T + planes[:, 3]) < 0.01 * length.min()
    # Two corners of one edge share two faces of three corners and more.
    on_plane = on_plane[:, on_plane.sum(axis=0) > 2]
    edges = [(i, j) for i in range(len(corners)) for j in range(i + 1, len(corners))
             if (on_plane[i] & on_plane[j]).sum() > 1]
    return corners + vectors_of(box).sum(axis=0) / 2, edges
