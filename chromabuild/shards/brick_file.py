"""The binary form of a brick, `.cbb`: what the engine reads (docs/formats.md, section 4)."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.errors import IntegrityError
from chromabuild.shards.brick import Brick

MAGIC = b"CBBRICK1"
_HEADER = struct.Struct("<8sq9d")


@dataclass(frozen=True)
class BrickFile:
    """Contents of a `.cbb` file; lengths in angstrom, positions in 0.001 angstrom."""

    box: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    global_id: np.ndarray
    """(n,) int64, ascending."""
    position: np.ndarray
    """(n, 3) int32, 0.001 angstrom."""


def brick_bytes(brick: Brick) -> bytes:
    """The whole file."""
    header = _HEADER.pack(MAGIC, brick.n_atoms, *(brick.box / 1000), *(brick.lower / 1000), *(brick.upper / 1000))
    return b"".join((header, brick.global_id.astype("<i8").tobytes(), brick.position.astype("<i4").tobytes()))


def read_brick(path: str | Path) -> BrickFile:
    """Read a `.cbb` file. Raises IntegrityError when it is not one or its length is wrong."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise IntegrityError(f"cannot read {path} ({error.strerror}): run chromabuild solvate again") from None
    if len(content) < _HEADER.size or content[:8] != MAGIC:
        raise IntegrityError(f"{path} is not a brick file: run chromabuild solvate again")
    _, n, *numbers = _HEADER.unpack_from(content)
    if n < 0 or len(content) != _HEADER.size + 20 * n:
        raise IntegrityError(f"{path} has {len(content)} bytes, {n} atoms need {_HEADER.size + 20 * n}: "
                             "run chromabuild solvate again")
    box, lower, upper = np.array(numbers).reshape(3, 3)
    global_id = np.frombuffer(content, dtype="<i8", count=n, offset=_HEADER.size)
    position = np.frombuffer(content, dtype="<i4", count=3 * n, offset=_HEADER.size + 8 * n).reshape(n, 3)
    return BrickFile(box, lower, upper, global_id, position)
