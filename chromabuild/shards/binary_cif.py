"""Columns of BinaryCIF (version 0.3).

Encodings as in Sehnal et al., PLoS Comput. Biol. 16 (2020) e1008247: every column is a chain of encodings that a
reader undoes from last to first; the outermost is always a plain little-endian array.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgpack
import numpy as np

_ARRAY_TYPE = {"int8": 1, "int16": 2, "int32": 3, "uint8": 4, "uint16": 5, "uint32": 6, "float32": 32, "float64": 33}
_INT32 = 3


def file_bytes(header: str, categories: Iterable[tuple[str, int, list[dict]]]) -> bytes:
    """A file of one data block: name, number of rows and columns of each category."""
    blocks = [{"header": header, "categories": [{"name": name, "rowCount": rows, "columns": columns}
                                                for name, rows, columns in categories]}]
    return msgpack.packb({"version": "0.3.0", "encoder": "chromabuild", "dataBlocks": blocks})


def _encoded(data: np.ndarray, outer: list[dict]) -> dict:
    """Data and encodings of an integer or float array: the smallest array type that holds it, bytes last."""
    if data.dtype.kind == "f":
        return {"encoding": [*outer, {"kind": "ByteArray", "type": _ARRAY_TYPE[data.dtype.name]}],
                "data": data.astype(data.dtype.newbyteorder("<")).tobytes()}
    smallest, largest = (int(data.min()), int(data.max())) if len(data) else (0, 0)
    width = best_width(len(data), smallest, largest, lambda width: int(width.beyond(data)[1].sum()))
    return {"encoding": [*outer, *width.encodings(len(data))], "data": width.pack(data).tobytes()}


class Width(NamedTuple):
    """Integers of one, two or four bytes.

    A value beyond the limit of one or two bytes is written as that limit as often as it fits, then the remainder.
    """

    size: int
    is_signed: bool

    @property
    def _limits(self) -> tuple[int, int]:
        bits = 8 * self.size - self.is_signed
        return (1 << bits) - 1, -(1 << bits) if self.is_signed else 0

    def holds(self, smallest: int, largest: int) -> bool:
        """Whether no value is beyond the limits."""
        highest, lowest = self._limits
        return self.size == 4 or (largest < highest and (not self.is_signed or smallest > lowest))

    def beyond(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places (k,) of values beyond the limits, and how often each repeats its limit."""
        highest, lowest = self._limits
        places = np.flatnonzero((data >= highest) | ((data <= lowest) & self.is_signed))
        return places, np.where(data[places] >= 0, data[places] // highest, data[places] // (lowest or -1))

    def pack(self, data: np.ndarray) -> np.ndarray:
        """The values in so many bytes, little-endian."""
        kind = f"<{'i' if self.is_signed else 'u'}{self.size}"
        if self.size == 4 or not len(data) or self.holds(int(data.min()), int(data.max())):
            return data.astype(kind)
        highest, lowest = self._limits
        places, times = self.beyond(data)
        limit = np.where(data[places] >= 0, highest, lowest)
        remainder = data.copy()
        remainder[places] -= times * limit
        return np.insert(remainder.astype(kind), np.repeat(places, times), np.repeat(limit, times))

    def encodings(self, n: int) -> list[dict]:
        """What a reader undoes to have ``n`` values."""
        kind = f"{'' if self.is_signed else 'u'}int{8 * self.size}"
        packing = [] if self.size == 4 else [{"kind": "IntegerPacking", "byteCount": self.size,
                                              "isUnsigned": not self.is_signed, "srcSize": n}]
        return [*packing, {"kind": "ByteArray", "type": _ARRAY_TYPE[kind]}]


def best_width(n: int, smallest: int, largest: int, repeats: Callable[[Width], int]) -> Width:
    """With which ``n`` values take the fewest bytes; ``repeats``: how many repeats of limits a width takes."""
    def size(width: Width) -> int:
        return width.size * (n + (0 if width.holds(smallest, largest) else repeats(width)))

    return min(Width(4, True), Width(1, smallest < 0), Width(2, smallest < 0), key=size)


def delta_encoding(origin: int) -> dict:
    """Differences of neighbours; the first value is the origin."""
    return {"kind": "Delta", "origin": origin, "srcType": _INT32}


def run_encoding(n: int) -> dict:
    """``n`` values as pairs of value and count."""
    return {"kind": "RunLength", "srcType": _INT32, "srcSize": n}


def fixed_point(factor: int) -> dict:
    """Floats as whole numbers of 1 / factor."""
    return {"kind": "FixedPoint", "factor": factor, "srcType": _ARRAY_TYPE["float64"]}


def _delta(data: np.ndarray) -> tuple[np.ndarray, dict]:
    origin = int(data[0]) if len(data) else 0
    return np.diff(data, prepend=origin), delta_encoding(origin)


def _runs(data: np.ndarray) -> tuple[np.ndarray, dict]:
    return pairs_of_runs(data).ravel(), run_encoding(len(data))


def pairs_of_runs(data: np.ndarray) -> np.ndarray:
    """(k, 2) int64 values and how often each is repeated."""
    starts = np.flatnonzero(np.concatenate([[True], data[1:] != data[:-1]])) if len(data) else np.empty(0, np.int64)
    return np.stack([data[starts].astype(np.int64), np.diff(starts, append=len(data))], axis=1)


def _integer_data(values: np.ndarray, delta: bool = False, run_length: bool = False) -> dict:
    outer = []
    if delta:
        values, encoding = _delta(values)
        outer.append(encoding)
    if delta or run_length:
        values, encoding = _runs(values)
        outer.append(encoding)
    return _encoded(values, outer)


def _column(name: str, data: dict, mask: np.ndarray | None = None) -> dict:
    return {"name": name, "data": data, "mask": None if mask is None else _integer_data(mask, run_length=True)}


def integers(name: str, values: np.ndarray, delta: bool = False, run_length: bool = False,
              mask: np.ndarray | None = None) -> dict:
    return _column(name, _integer_data(values, delta, run_length), mask)


def floats(name: str, values: list[float]) -> dict:
    return _column(name, _encoded(np.array(values, dtype=np.float64), []))


def constant(name: str, value: int, n: int, integer: bool = False) -> dict:
    """A column of numbers, floats or integers, that are all the same whole number."""
    return _column(name, _repeated(value, n, [] if integer else [fixed_point(1)]))


def _repeated(value: int, n: int, outer: Sequence[dict] = ()) -> dict:
    """``n`` times a number: one run."""
    run = np.array([value, n] if n else [], dtype=np.int64)
    return _encoded(run, [*outer, run_encoding(n)])


def thousandths(name: str, values: np.ndarray) -> dict:
    """Coordinates in units of 0.001, as differences."""
    differences, delta = _delta(values)
    return _column(name, _encoded(differences, [fixed_point(1000), delta]))


def texts(name: str, distinct: list[str], index: np.ndarray) -> dict:
    """A string column: all distinct strings in one, where each begins, and which one each row holds."""
    plain, runs = _integer_data(index), _integer_data(index, run_length=True)
    return _column(name, string_data(distinct, min(plain, runs, key=lambda column: len(column["data"]))))


def string_data(distinct: Sequence[str], indices: dict) -> dict:
    """Strings and the encoded places of rows among them."""
    offsets = _integer_data(np.cumsum([0, *map(len, distinct)]))
    encoding = {"kind": "StringArray", "dataEncoding": indices["encoding"], "stringData": "".join(distinct),
                "offsetEncoding": offsets["encoding"], "offsets": offsets["data"]}
    return {"encoding": [encoding], "data": indices["data"]}


def absent(name: str, mark: str, n: int) -> dict:
    """A column without values: inapplicable (`.`) or unknown (`?`), which its mask tells; readers want empty data."""
    return {"name": name, "data": string_data([""], _repeated(0, n)), "mask": _repeated({".": 1, "?": 2}[mark], n)}
