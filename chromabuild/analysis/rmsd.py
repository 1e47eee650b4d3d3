"""How far a structure has moved from another one."""

from collections.abc import Sequence

import numpy as np

from chromabuild.base.box_vectors import nearest_image


def superposed_rmsd(position: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Root-mean-square deviation (f,) after the best superposition of every frame, (f, n, 3), on (n, 3).

    Kabsch, Acta Cryst. A 34, 827 (1978): from the singular values of the covariance, without the rotation itself.
    """
    moved = position - position.mean(axis=1, keepdims=True)
    fixed = reference - reference.mean(axis=0)
    covariance = np.einsum("fni,nj->fij", moved, fixed)
    left, strength, right = np.linalg.svd(covariance)
    strength[:, 2] *= np.sign(np.linalg.det(left) * np.linalg.det(right))  # a rotation, no mirror
    square = (moved**2).sum(axis=(1, 2)) + (fixed**2).sum() - 2 * strength.sum(axis=1)
    return np.sqrt(np.maximum(square, 0.0) / len(reference))


def followed(frames: Sequence[np.ndarray], boxes: Sequence[np.ndarray | None], start: np.ndarray) -> np.ndarray:
    """Frames (n, 3) of atoms that stand anywhere in periodic boxes, (3,), (3, 3) or none, as (f, n, 3) that moves
    without jumps.

    Every atom takes the image nearest to where it was in the frame before; in the first frame, to ``start`` (n, 3).
    """
    path = np.empty((len(frames), *start.shape))
    before = start
    for k, (frame, box) in enumerate(zip(frames, boxes, strict=True)):
        path[k] = frame if box is None else before + nearest_image(frame - before, box)
        before = path[k]
    return path
