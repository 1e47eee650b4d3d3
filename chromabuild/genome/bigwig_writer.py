"""Write a signal along one chromosome as a bigWig file (Kent et al., Bioinformatics 26:2204, 2010, supplement).

Values stand in deflated fixed-step blocks; both trees have one node. Summaries for views from afar are left out:
readers compute them.
"""

import struct
import zlib
from pathlib import Path

import numpy as np

from chromabuild.base.files import atomic_path
from chromabuild.genome.bigwig import FILE_MAGIC, FIXED_STEP, NAMES_MAGIC, RANGES_MAGIC

_VERSION = 4
_HEADER, _SUMMARY = 64, 40
_BLOCK = 4096
"""Values in a block; a node counts its blocks in 16 bits, so that 268 million base pairs fit."""


def write_signal(path: Path, chromosome: str, start: int, values: np.ndarray) -> None:
    """Write (n,) values of the base pairs from ``start`` on (0-based) by atomic rename, rounded to 32 bits."""
    values = np.asarray(values, dtype="<f4")
    end = start + len(values)
    name = chromosome.encode()
    names = struct.pack("<4I2Q", NAMES_MAGIC, 1, len(name), 8, 1, 0) + struct.pack(
        f"<BBH{len(name)}s2I", 1, 0, 1, name, 0, end)
    data_at = _HEADER + _SUMMARY + len(names)
    blocks, leaves, offset = [], [], data_at + 8
    for first in range(0, len(values), _BLOCK):
        part = values[first:first + _BLOCK]
        span = start + first, start + first + len(part)
        block = zlib.compress(struct.pack("<5IBBH", 0, *span, 1, 1, FIXED_STEP, 0, len(part)) + part.tobytes())
        leaves.append(struct.pack("<4I2Q", 0, span[0], 0, span[1], offset, len(block)))
        blocks.append(block)
        offset += len(block)
    ranges = struct.pack("<2IQ4IQ2I", RANGES_MAGIC, max(256, len(blocks)), len(blocks), 0, start, 0, end, offset, 1, 0)
    ranges += struct.pack("<BBH", 1, 0, len(blocks)) + b"".join(leaves)
    header = struct.pack("<I2H3Q2H2QIQ", FILE_MAGIC, _VERSION, 0, _HEADER + _SUMMARY, data_at, offset, 0, 0, 0, _HEADER,
                         24 + 4 * _BLOCK, 0)
    exact = values.astype(float)
    summary = struct.pack("<Q4d", len(values), exact.min(), exact.max(), exact.sum(), np.square(exact).sum())
    with atomic_path(path) as part_path:
        part_path.write_bytes(header + summary + names + struct.pack("<Q", len(blocks)) + b"".join(blocks) + ranges
                              + struct.pack("<I", FILE_MAGIC))
