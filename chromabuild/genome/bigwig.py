"""Values of a signal along a chromosome, from a bigWig file (Kent et al., Bioinformatics 26:2204, 2010, supplement).

A B+ tree leads from the chromosome's name to its number, an R tree from a range to the blocks of data that meet it. A
block holds intervals with a value each, as bedGraph, variable-step or fixed-step records, mostly deflated. Only what a
range needs is read; the zoomed summaries are not.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.genome.chromosomes import spelled

SUFFIXES = (".bw", ".bigwig")
FILE_MAGIC, NAMES_MAGIC, RANGES_MAGIC = 0x888FFC26, 0x78CA8C91, 0x2468ACE0
BEDGRAPH, VARIABLE_STEP, FIXED_STEP = 1, 2, 3


def read_signal(path: str | Path, chromosome: str, start: int, end: int) -> np.ndarray:
    """(end - start,) float64 values of base pairs ``start`` .. ``end`` - 1 (0-based); NaN where the file has none.

    Raises BadInputError for a file that is missing, damaged or no bigWig, or does not know the chromosome.
    """
    try:
        with open(path, "rb") as handle:
            return _read(handle, path, chromosome, start, end)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}): give a bigWig file") from None
    except (struct.error, zlib.error, ValueError, OverflowError, MemoryError) as error:
        raise BadInputError(f"{path} is damaged or no bigWig file ({error}): make it again") from None


def _read(handle: BinaryIO, path: str | Path, chromosome: str, start: int, end: int) -> np.ndarray:
    first = handle.read(4)
    order = next((mark for mark in "<>" if first == struct.pack(f"{mark}I", FILE_MAGIC)), None)
    if order is None:
        raise ValueError("it does not begin as one")
    _, _, names_at, _, ranges_at, _, _, _, _, inflated_size = struct.unpack(f"{order}HHQQQHHQQI", handle.read(52))
    names = dict(_names(handle, order, names_at))
    name = spelled(chromosome, [known.decode(errors="replace") for known in names])
    if name is None:
        known = ", ".join(sorted(name.decode(errors="replace") for name in names)[:5])
        raise BadInputError(f"{path} has no chromosome {chromosome} (it has {known}): check the names")
    number = names[name.encode()]
    values = np.full(end - start, np.nan)
    for offset, size in _blocks(handle, order, ranges_at, number, start, end):
        handle.seek(offset)
        data = _taken(handle, size)
        block_number, begins, ends, block_values = _records(zlib.decompress(data) if inflated_size else data, order)
        if block_number != number:
            continue
        for a, b, value in zip(np.clip(begins - start, 0, end - start), np.clip(ends - start, 0, end - start),
                               block_values, strict=True):
            values[a:b] = value
    return values


def _taken(handle: BinaryIO, size: int) -> bytes:
    """So many bytes; what a damaged file says of its sizes is not believed."""
    if size > os.fstat(handle.fileno()).st_size - handle.tell():
        raise ValueError("it ends early")
    return handle.read(size)


def _visited(handle: BinaryIO, order: str, nodes: list[int], kind: str) -> Iterator[tuple[int, int]]:
    """Whether it is a leaf, and how many items follow in the file, of each node of a tree; ``nodes`` holds the offsets
    of those to come, to which the caller adds the children."""
    seen = set()
    while nodes:
        node = nodes.pop()
        if node in seen:
            raise ValueError(f"its tree of {kind} runs in circles")
        seen.add(node)
        handle.seek(node)
        leaf, _, count = struct.unpack(f"{order}BBH", handle.read(4))
        yield leaf, count


def _names(handle: BinaryIO, order: str, at: int) -> Iterator[tuple[bytes, int]]:
    """Name and number of every chromosome."""
    handle.seek(at)
    magic, _, key_size, value_size = struct.unpack(f"{order}4I", handle.read(16))
    if magic != NAMES_MAGIC or value_size != 8:
        raise ValueError("its tree of chromosomes is none")
    nodes = [at + 32]
    for leaf, count in _visited(handle, order, nodes, "chromosomes"):
        for _ in range(count):
            key, value = struct.unpack(f"{order}{key_size}s8s", _taken(handle, key_size + 8))
            if leaf:
                yield key.rstrip(b"\0"), struct.unpack(f"{order}II", value)[0]
            else:
                nodes.append(struct.unpack(f"{order}Q", value)[0])


def _blocks(handle: BinaryIO, order: str, at: int, number: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Offset and size of the data blocks that meet a range."""
    handle.seek(at)
    if struct.unpack(f"{order}I", handle.read(4))[0] != RANGES_MAGIC:
        raise ValueError("its tree of ranges is none")
    nodes = [at + 48]
    for leaf, count in _visited(handle, order, nodes, "ranges"):
        for _ in range(count):
            *span, offset = struct.unpack(f"{order}4IQ", handle.read(24))
            size = struct.unpack(f"{order}Q", handle.read(8))[0] if leaf else 0
            if (span[0], span[1]) < (number, end) and (number, start) < (span[2], span[3]):
                if leaf:
                    here = handle.tell()
                    yield offset, size
                    handle.seek(here)
                else:
                    nodes.append(offset)


def _records(data: bytes, order: str) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Chromosome number, begins, ends and values of a block."""
    number, begin, _, step, span, kind, _, count = struct.unpack(f"{order}5IBBH", data[:24])
    if kind == BEDGRAPH:
        table = np.frombuffer(data, f"{order}u4", 3 * count, 24).reshape(-1, 3)
        return number, table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2].copy().view(f"{order}f4")
    if kind == VARIABLE_STEP:
        table = np.frombuffer(data, f"{order}u4", 2 * count, 24).reshape(-1, 2)
        begins, values = table[:, 0].astype(int), table[:, 1].copy().view(f"{order}f4")
    elif kind == FIXED_STEP:
        begins, values = begin + step * np.arange(count), np.frombuffer(data, f"{order}f4", count, 24)
    else:
        raise ValueError(f"a block is of the unknown kind {kind}")
    return number, begins, begins + span, values
