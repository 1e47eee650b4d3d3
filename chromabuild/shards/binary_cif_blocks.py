"""BinaryCIF files of any length: columns come in blocks and wait on disk, one at a time, until they are written.

The bytes are those that ``binary_cif`` makes of the same columns in memory.
"""

import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgpack
import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.shards import binary_cif

LARGEST = (1 << 32) - 1
"""Bytes of the data of a column, which msgpack counts in four bytes."""
_AT_ONCE = 1 << 18
_MOST_ROWS = (1 << 31) - 1
"""Integers of the format have four bytes."""
Blocks = Callable[[], Iterable[np.ndarray]]
"""Gives the same integers (k,) whenever it is called, some at a time."""


@dataclass(frozen=True)
class BlockColumn:
    """A column of integers in blocks."""

    name: str
    blocks: Blocks
    """Values; with ``distinct``, their places there."""
    as_differences: bool = False
    as_runs: bool = False
    """Without ``distinct``, whose places are written as runs where that is shorter."""
    factor: int = 0
    """What the values are divided by to be floats; 0: they are integers."""
    distinct: Sequence[str] | None = None
    mask: Blocks | None = None


class _Spool:
    """Integers in a file without a name: how many there are, their least and their greatest."""

    def __init__(self, blocks: Iterable[np.ndarray], folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)
        self.n, self.smallest, self.largest = 0, 0, 0
        for block in blocks:
            if len(block):
                self.smallest = min(int(block.min()), self.smallest if self.n else int(block.min()))
                self.largest = max(int(block.max()), self.largest if self.n else int(block.max()))
                self.n += len(block)
                self._file.write(np.asarray(block, dtype="<i4").tobytes())

    def __iter__(self) -> Iterator[np.ndarray]:
        self._file.seek(0)
        while content := self._file.read(4 * _AT_ONCE):
            yield np.frombuffer(content, dtype="<i4").astype(np.int64)


class _Packed:
    """A spool in the width that takes the fewest bytes."""

    def __init__(self, spool: _Spool) -> None:
        repeats: dict[binary_cif.Width, int] = {}

        def count(width: binary_cif.Width) -> int:
            repeats[width] = sum(int(width.beyond(block)[1].sum()) for block in spool)
            return repeats[width]

        self._spool = spool
        self._width = binary_cif.best_width(spool.n, spool.smallest, spool.largest, count)
        self.size = self._width.size * (spool.n + repeats.get(self._width, 0))
        self.encodings = self._width.encodings(spool.n)

    def __iter__(self) -> Iterator[bytes]:
        return (self._width.pack(block).tobytes() for block in self._spool)


def write_file(path: Path, header: str, categories: Sequence[tuple[str, int, Sequence[dict | BlockColumn]]]) -> None:
    """Write a file of one data block: name, number of rows and columns of each category.

    Values of one column at a time wait beside ``path``, 4 bytes a row. Raises BadInputError for columns that are too
    long for the format.
    """
    longest = max(rows for _, rows, _ in categories)
    if longest > _MOST_ROWS:
        raise BadInputError(f"{path} would have {longest:,} rows, and a BinaryCIF file holds {_MOST_ROWS:,}: write "
                            ".cif, or use the shards")
    blocks = [{"header": header, "categories": [{"name": name, "rowCount": rows, "columns": columns}
                                                for name, rows, columns in categories]}]
    with open(path, "wb") as file:
        _write(file, {"version": "0.3.0", "encoder": "chromabuild", "dataBlocks": blocks}, path)


def _write(file: BinaryIO, value: object, path: Path) -> None:
    packer = msgpack.Packer()
    if isinstance(value, BlockColumn):
        _write(file, _encoded(value, path.parent), path)
    elif isinstance(value, dict):
        file.write(packer.pack_map_header(len(value)))
        for key, one in value.items():
            file.write(packer.pack(key))
            _write(file, one, path)
    elif isinstance(value, list | tuple):
        file.write(packer.pack_array_header(len(value)))
        for one in value:
            _write(file, one, path)
    elif isinstance(value, _Packed):
        if value.size > LARGEST:
            raise BadInputError(f"{path} would have a column of {value.size / 1e9:.1f} GB, and one of BinaryCIF holds "
                                "4.3: write .cif, less water, or use the shards")
        file.write(_bytes_header(value.size))
        for piece in value:
            file.write(piece)
    else:
        file.write(packer.pack(value))


def _bytes_header(size: int) -> bytes:
    """As msgpack begins bytes."""
    if size < 1 << 8:
        return struct.pack(">BB", 0xC4, size)
    return struct.pack(">BH", 0xC5, size) if size < 1 << 16 else struct.pack(">BI", 0xC6, size)


def _encoded(column: BlockColumn, folder: Path) -> dict:
    """The column as ``binary_cif`` has it, with data on disk."""
    if column.distinct is not None:
        ways = [_integers(column.blocks(), folder, as_runs=as_runs) for as_runs in (False, True)]
        data = binary_cif.string_data(column.distinct, min(ways, key=lambda way: way["data"].size))
    else:
        outer = [binary_cif.fixed_point(column.factor)] if column.factor else []
        blocks = column.blocks()
        if column.as_differences:
            origin = next((int(block[0]) for block in column.blocks() if len(block)), 0)
            outer.append(binary_cif.delta_encoding(origin))
            blocks = _differences(blocks, origin)
        data = _integers(blocks, folder, outer, column.as_runs)
    mask = None if column.mask is None else _integers(column.mask(), folder, as_runs=True)
    return {"name": column.name, "data": data, "mask": mask}


def _integers(blocks: Iterable[np.ndarray], folder: Path, outer: Sequence[dict] = (), as_runs: bool = False) -> dict:
    counted = _Counted(blocks)
    packed = _Packed(_Spool(_runs(counted) if as_runs else counted, folder))
    runs = [binary_cif.run_encoding(counted.n)] if as_runs else []
    return {"encoding": [*outer, *runs, *packed.encodings], "data": packed}


class _Counted:
    """Blocks, and how many values they had once they are used up."""

    def __init__(self, blocks: Iterable[np.ndarray]) -> None:
        self._blocks, self.n = blocks, 0

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self._blocks:
            self.n += len(block)
            yield block


def _differences(blocks: Iterable[np.ndarray], before: int) -> Iterator[np.ndarray]:
    for block in blocks:
        yield np.diff(block, prepend=before)
        before = int(block[-1]) if len(block) else before


def _runs(blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Pairs of value and count; a run may go on in the next block."""
    last = np.empty((0, 2), dtype=np.int64)
    for block in blocks:
        pairs = binary_cif.pairs_of_runs(block)
        if len(last) and len(pairs) and last[0, 0] == pairs[0, 0]:
            pairs[0, 1] += last[0, 1]
        else:
            pairs = np.concatenate([last, pairs])
        yield pairs[:-1].ravel()
        last = pairs[-1:]
    yield last.ravel()
