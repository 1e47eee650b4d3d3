"""NetCDF files in the classic format with 64-bit offsets, written as they come: variables need not be in memory.

Format: "NetCDF Classic Format Specification" (Unidata). Numbers are big endian, everything begins at a multiple of four
bytes.
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_KINDS = {"S1": (2, 1), ">f8": (6, 8)}
"""Number of a type, and its bytes."""


@dataclass(frozen=True)
class Variable:
    """A variable of dimensions by name, and its values in blocks."""

    name: str
    dimensions: Sequence[str]
    kind: str
    """``S1`` or ``>f8``."""
    values: Iterable[np.ndarray]
    attributes: Mapping[str, bytes | float] = field(default_factory=dict)


def write_netcdf(file: BinaryIO, dimensions: Mapping[str, int], attributes: Mapping[str, bytes | float],
                 variables: Sequence[Variable]) -> None:
    """Write a file without records."""
    number = {name: k for k, name in enumerate(dimensions)}
    sizes = [_KINDS[one.kind][1] * math.prod(dimensions[name] for name in one.dimensions) for one in variables]
    padded = [size + -size % 4 for size in sizes]

    def header(begin: Sequence[int]) -> bytes:
        parts = [b"CDF\x02", _int(0), _int(_DIMENSION), _int(len(dimensions)),
                 *(_name(name) + _int(size) for name, size in dimensions.items()), _attributes(attributes),
                 _int(_VARIABLE), _int(len(variables))]
        for one, size, start in zip(variables, padded, begin, strict=True):
            parts += [_name(one.name), _int(len(one.dimensions)), *(_int(number[name]) for name in one.dimensions),
                      _attributes(one.attributes), _int(_KINDS[one.kind][0]), _int(size), struct.pack(">q", start)]
        return b"".join(parts)

    first = len(header([0] * len(variables)))
    file.write(header([first + sum(padded[:k]) for k in range(len(variables))]))
    for one, size in zip(variables, sizes, strict=True):
        for block in one.values:
            file.write(np.asarray(block, dtype=one.kind).tobytes())
        file.write(bytes(-size % 4))


def _int(value: int) -> bytes:
    return struct.pack(">I", value)


def _name(text: str) -> bytes:
    return _bytes(text.encode("ascii"))


def _bytes(content: bytes) -> bytes:
    return _int(len(content)) + content + bytes(-len(content) % 4)


def _attributes(values: Mapping[str, bytes | float]) -> bytes:
    if not values:
        return bytes(8)
    parts = [_int(_ATTRIBUTE), _int(len(values))]
    for name, value in values.items():
        parts.append(_name(name) + (_int(2) + _bytes(value) if isinstance(value, bytes)
                                    else _int(6) + _int(1) + struct.pack(">d", value)))
    return b"".join(parts)
