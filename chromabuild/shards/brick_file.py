"""The binary form of a brick, `.cbb`: what the engine reads (docs/reference/file-formats.md).

Atoms stand in *runs*: consecutive ids within a cube of 65.535 angstrom, so that an atom costs the six bytes of its
offset from the run's origin. Waters of one tile follow each other in space as in id, so runs are long.
"""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.errors import IntegrityError
from chromabuild.shards.brick import Brick

MAGIC = b"CBBRICK2"
_HEADER = struct.Struct("<8s2q9d")
_RUN = np.dtype([("first_id", "<i8"), ("count", "<i4"), ("origin", "<i4", 3)])
_CHECK = struct.Struct("<I")
_OFFSET_LIMIT = 65535


@dataclass(frozen=True)
class BrickFile:
    """Contents of a `.cbb` file."""

    box: np.ndarray
    """(3,) float64, angstrom."""
    lower: np.ndarray
    """(3,) float64, angstrom."""
    upper: np.ndarray
    """(3,) float64, angstrom."""
    global_id: np.ndarray
    """(n,) int64, ascending."""
    position: np.ndarray
    """(n, 3) int32, 0.001 angstrom."""


def brick_bytes(brick: Brick) -> bytes:
    """The whole file of a brick, whose corners become angstrom here."""
    return packed(BrickFile(brick.box / 1000, brick.lower / 1000, brick.upper / 1000, brick.global_id, brick.position))


def packed(content: BrickFile) -> bytes:
    """The whole file."""
    ids, position = content.global_id, content.position
    start = np.concatenate([[0], np.flatnonzero(np.diff(ids) != 1) + 1]) if len(ids) else np.empty(0, dtype=np.int64)
    while len(start):
        origin, highest = np.minimum.reduceat(position, start), np.maximum.reduceat(position, start)
        count = np.diff(start, append=len(ids))
        wide = ((highest.astype(np.int64) - origin) > _OFFSET_LIMIT).any(axis=1)
        if not wide.any():
            break
        start = np.sort(np.concatenate([start, start[wide] + count[wide] // 2]))
    runs = np.empty(len(start), dtype=_RUN)
    offset = np.empty((len(ids), 3), dtype="<u2")
    if len(start):
        runs["first_id"], runs["count"], runs["origin"] = ids[start], count, origin
        offset[:] = position - np.repeat(origin, count, axis=0)
    header = _HEADER.pack(MAGIC, len(ids), len(runs), *content.box, *content.lower, *content.upper)
    body = b"".join((header, runs.tobytes(), offset.tobytes()))
    return body + _CHECK.pack(zlib.crc32(body))


def read_brick(path: str | Path) -> BrickFile:
    """Read a `.cbb` file. Raises IntegrityError when it is not one, was cut short or changed."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise IntegrityError(f"cannot read {path} ({error.strerror}): run chromabuild solvate again") from None
    if len(content) < _HEADER.size or content[:8] != MAGIC:
        raise IntegrityError(f"{path} is not a brick file: run chromabuild solvate again")
    _, n, n_runs, *numbers = _HEADER.unpack_from(content)
    expected = _HEADER.size + _RUN.itemsize * n_runs + 6 * n + _CHECK.size
    if min(n, n_runs) < 0 or len(content) != expected:
        raise IntegrityError(f"{path} has {len(content)} bytes, {n} atoms in {n_runs} runs need {expected}: "
                             "run chromabuild solvate again")
    if zlib.crc32(memoryview(content)[:-_CHECK.size]) != _CHECK.unpack_from(content, expected - _CHECK.size)[0]:
        raise IntegrityError(f"{path} was changed after it was written (its checksum differs): "
                             "run chromabuild solvate again")
    runs = np.frombuffer(content, dtype=_RUN, count=n_runs, offset=_HEADER.size)
    if (runs["count"] < 1).any() or runs["count"].sum(dtype=np.int64) != n:
        raise IntegrityError(f"{path}: its runs do not hold {n} atoms: run chromabuild solvate again")
    offset = np.frombuffer(content, dtype="<u2", count=3 * n, offset=_HEADER.size + _RUN.itemsize * n_runs)
    first = np.cumsum(runs["count"], dtype=np.int64) - runs["count"]
    global_id = np.repeat(runs["first_id"] - first, runs["count"]) + np.arange(n)
    position = np.repeat(runs["origin"], runs["count"], axis=0) + offset.reshape(n, 3)
    box, lower, upper = np.array(numbers).reshape(3, 3)
    return BrickFile(box, lower, upper, global_id, position.astype(np.int32, copy=False))
