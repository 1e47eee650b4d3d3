"""Columns of BinaryCIF (version 0.3).

Encodings as in Sehnal et al., PLoS Comput. Biol. 16 (2020) e1008247: every column is a chain of encodings that a
reader undoes from last to first; the outermost is always a plain little-endian array.
"""

from collections.abc import Iterable

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
    packed, packing = _pack(data)
    array_type = _ARRAY_TYPE[packed.dtype.name]
    return {"encoding": [*outer, *packing, {"kind": "ByteArray", "type": array_type}],
            "data": packed.astype(packed.dtype.newbyteorder("<")).tobytes()}


def _pack(data: np.ndarray) -> tuple[np.ndarray, list[dict]]:
    """IntegerPacking into one or two bytes where that saves space.

    A value beyond the narrow type's limit is written as that limit as often as it fits, then the remainder.
    """
    smallest, largest = (int(data.min()), int(data.max())) if len(data) else (0, 0)
    unsigned = smallest >= 0
    best_size, best = 4 * len(data), None
    for width in (1, 2):
        bits = 8 * width - (0 if unsigned else 1)
        highest, lowest = (1 << bits) - 1, 0 if unsigned else -(1 << bits)
        beyond, repeats = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        if largest >= highest or (smallest <= lowest and not unsigned):
            beyond = np.flatnonzero((data >= highest) | ((data <= lowest) & (not unsigned)))
            repeats = np.where(data[beyond] >= 0, data[beyond] // highest, data[beyond] // (lowest or -1))
        size = width * (len(data) + int(repeats.sum()))
        if size < best_size:
            best_size, best = size, (width, highest, lowest, beyond, repeats)
    if best is None:
        return data.astype(np.int32), []
    width, highest, lowest, beyond, repeats = best
    limit = np.where(data[beyond] >= 0, highest, lowest)
    remainder = data.copy()
    remainder[beyond] -= repeats * limit
    packed = remainder.astype(f"{'u' if unsigned else ''}int{8 * width}")
    packed = np.insert(packed, np.repeat(beyond, repeats), np.repeat(limit, repeats))
    return packed, [{"kind": "IntegerPacking", "byteCount": width, "isUnsigned": unsigned, "srcSize": len(data)}]


def _delta(data: np.ndarray) -> tuple[np.ndarray, dict]:
    """Differences of neighbours; the first value is kept as the origin."""
    origin = int(data[0]) if len(data) else 0
    return np.diff(data, prepend=origin), {"kind": "Delta", "origin": origin, "srcType": _INT32}


def _runs(data: np.ndarray) -> tuple[np.ndarray, dict]:
    """Pairs of value and count."""
    starts = np.flatnonzero(np.concatenate([[True], data[1:] != data[:-1]])) if len(data) else np.empty(0, np.int64)
    pairs = np.stack([data[starts].astype(np.int64), np.diff(starts, append=len(data))], axis=1).ravel()
    return pairs, {"kind": "RunLength", "srcType": _INT32, "srcSize": len(data)}


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


def constant(name: str, value: int, n: int) -> dict:
    """A column of floats that are all the same whole number."""
    runs, encoding = _runs(np.full(n, value, dtype=np.int32))
    fixed = {"kind": "FixedPoint", "factor": 1, "srcType": _ARRAY_TYPE["float64"]}
    return _column(name, _encoded(runs, [fixed, encoding]))


def thousandths(name: str, values: np.ndarray) -> dict:
    """Coordinates in units of 0.001, as differences."""
    differences, delta = _delta(values)
    fixed = {"kind": "FixedPoint", "factor": 1000, "srcType": _ARRAY_TYPE["float64"]}
    return _column(name, _encoded(differences, [fixed, delta]))


def texts(name: str, distinct: list[str], index: np.ndarray) -> dict:
    """A string column: all distinct strings in one, where each begins, and which one each row holds."""
    plain, runs = _integer_data(index), _integer_data(index, run_length=True)
    return _column(name, _string_data(distinct, min(plain, runs, key=lambda column: len(column["data"]))))


def _string_data(distinct: list[str], indices: dict) -> dict:
    offsets = _integer_data(np.cumsum([0, *map(len, distinct)]))
    encoding = {"kind": "StringArray", "dataEncoding": indices["encoding"], "stringData": "".join(distinct),
                "offsetEncoding": offsets["encoding"], "offsets": offsets["data"]}
    return {"encoding": [encoding], "data": indices["data"]}


def absent(name: str, mark: str, n: int) -> dict:
    """A column without values: inapplicable (`.`) or unknown (`?`), which its mask tells; readers want empty data."""
    data = _string_data([""], _integer_data(np.zeros(n, dtype=np.int8), run_length=True))
    return _column(name, data, np.full(n, {".": 1, "?": 2}[mark], dtype=np.int8))
