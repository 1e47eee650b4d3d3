"""Arrays inside a page: one run of bytes in base64 with a table of what lies where.

Numbers are little endian, as typed arrays of browsers are on every machine they run on; each array begins at a multiple
of its own size. Coordinates are whole numbers of a stated step, so that a round trip is right within half a step.
"""

import base64
import math
from collections.abc import Mapping

import numpy as np

LARGEST = 32_767
"""Of a signed number of 16 bits."""


def packed(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, dict], str]:
    """Table {name: {type, shape, at}} and bytes in base64 of some arrays; ``at`` counts bytes."""
    table, parts, at = {}, [], 0
    for name, array in arrays.items():
        gap = -at % array.itemsize
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        table[name] = {"type": array.dtype.name, "shape": list(array.shape), "at": at + gap}
        parts += [bytes(gap), content]
        at += gap + len(content)
    return table, base64.b64encode(b"".join(parts)).decode("ascii")


def unpacked(table: Mapping[str, dict], text: str) -> dict[str, np.ndarray]:
    """The arrays that ``packed`` was given."""
    content = base64.b64decode(text)
    return {name: np.frombuffer(content, np.dtype(entry["type"]).newbyteorder("<"), math.prod(entry["shape"]),
                                entry["at"]).reshape(entry["shape"]) for name, entry in table.items()}


def finest_step(extent: float, resolution: float = 0.001) -> float:
    """The smallest multiple of ``resolution`` (angstrom) in which ``extent`` around its middle fits into 16 bits."""
    return max(math.ceil(extent / (2 * LARGEST * resolution)), 1) * resolution


def quantised(position: np.ndarray, centre: np.ndarray, step: float) -> np.ndarray:
    """Positions (..., 3), angstrom, as whole steps from ``centre`` (3,); int16."""
    return np.round((position - centre) / step).astype(np.int16)


def quaternions(frame: np.ndarray) -> np.ndarray:
    """Rotations (..., 3, 3), columns are axes, as quaternions (..., 4) x, y, z, w in units of 1/32,767; int16."""
    from scipy.spatial.transform import Rotation

    turns = Rotation.from_matrix(frame.reshape(-1, 3, 3)).as_quat(canonical=True)
    return np.round(turns * LARGEST).astype(np.int16).reshape(*frame.shape[:-2], 4)
