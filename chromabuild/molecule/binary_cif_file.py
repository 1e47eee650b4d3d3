"""Columns of BinaryCIF files (Sehnal et al., PLoS Comput. Biol. 16:e1008247, 2020), of our writer or any other."""

import numpy as np

_TYPES = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<u1", 5: "<u2", 6: "<u4", 32: "<f4", 33: "<f8"}
HARMED = (KeyError, IndexError, TypeError, ValueError, OverflowError, MemoryError, AttributeError)
"""What a damaged file raises here."""


def read_categories(content: bytes, names: tuple[str, ...]) -> dict[str, dict[str, np.ndarray]]:
    """Columns, by their names, of some categories (``_atom_site``) of the first block that has the first of them.

    Numbers stay numbers; what a mask marks as absent is an empty text. Raises one of ``HARMED`` for damaged files.
    """
    import msgpack

    try:
        blocks = msgpack.unpackb(content)["dataBlocks"]
    except (msgpack.UnpackException, msgpack.exceptions.ExtraData) as error:
        raise ValueError(f"it is no BinaryCIF: {error}") from None
    for block in blocks:
        found = {category["name"]: category for category in block["categories"] if category["name"] in names}
        if names[0] in found:
            return {name: {column["name"]: _column(column, category["rowCount"]) for column in category["columns"]}
                    for name, category in found.items()}
    return {}


def _column(column: dict, rows: int) -> np.ndarray:
    values = _decoded(column["data"])
    if len(values) != rows:
        raise ValueError(f"column {column['name']} has {len(values)} of {rows} rows")
    if column.get("mask"):
        absent = _decoded(column["mask"]) != 0
        if len(absent) != rows:
            raise ValueError(f"the mask of {column['name']} has {len(absent)} of {rows} rows")
        if absent.any():
            values = np.where(absent, "", values.astype(str))
    return values


def _decoded(data: dict) -> np.ndarray:
    """Undo the encodings, the outermost last."""
    values = data["data"]
    for encoding in reversed(data["encoding"]):
        values = _STEPS[encoding["kind"]](values, encoding)
    return values


def _packed(values: np.ndarray, encoding: dict) -> np.ndarray:
    """Values beyond the narrow type's limits stand as those limits, as often as they fit, and what is left."""
    bits = 8 * encoding["byteCount"]
    limits = (2**bits - 1,) if encoding["isUnsigned"] else (2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
    ends = np.flatnonzero(~np.isin(values, limits))
    total = np.cumsum(values.astype(np.int64))
    return np.diff(total[ends], prepend=0) if len(ends) else np.zeros(0, dtype=np.int64)


def _repeated(values: np.ndarray, encoding: dict) -> np.ndarray:
    pairs = values.reshape(-1, 2)
    counts = pairs[:, 1].astype(np.int64)
    if (counts < 0).any() or counts.sum() != encoding["srcSize"]:
        raise ValueError("runs do not add up")
    return np.repeat(pairs[:, 0], counts)


def _strings(values: bytes, encoding: dict) -> np.ndarray:
    index = _decoded({"data": values, "encoding": encoding["dataEncoding"]})
    offsets = _decoded({"data": encoding["offsets"], "encoding": encoding["offsetEncoding"]}).tolist()
    text = encoding["stringData"]
    known = np.array([*(text[a:b] for a, b in zip(offsets, offsets[1:], strict=False)), ""])
    if len(index) and not -1 <= index.min() <= index.max() < len(known) - 1:
        raise ValueError("a text is missing")
    return known[index]


_STEPS = {
    "ByteArray": lambda values, encoding: np.frombuffer(values, _TYPES[encoding["type"]]),
    "IntegerPacking": _packed,
    "RunLength": _repeated,
    "Delta": lambda values, encoding: np.cumsum(values.astype(np.int64)) + encoding["origin"],
    "FixedPoint": lambda values, encoding: values / float(encoding["factor"]),
    "IntervalQuantization": lambda values, encoding: encoding["min"] + values * (
        (encoding["max"] - encoding["min"]) / (encoding["numSteps"] - 1)),
    "StringArray": _strings,
}
