"""Bases as letters and numbers, and the two strands of a duplex."""

import numpy as np

from chromabuild.base.errors import BadInputError

BASES = ("A", "C", "G", "T")
_INDEX = np.full(256, -1, dtype=np.int32)
_INDEX[[ord(letter) for letter in BASES]] = np.arange(4)


def base_index(letters: np.ndarray | bytes | str) -> np.ndarray:
    """(n,) int32, 0..3 for A, C, G, T, from ASCII codes or text.

    Raises BadInputError naming the first position that holds another letter.
    """
    if isinstance(letters, str):
        letters = letters.encode("ascii", "replace")
    codes = np.frombuffer(letters, dtype=np.uint8) if isinstance(letters, bytes) else np.asarray(letters)
    index = _INDEX[codes]
    wrong = np.flatnonzero(index < 0)
    if len(wrong):
        raise BadInputError(
            f"base {wrong[0]} of the sequence is {chr(codes[wrong[0]])!r}: only A, C, G and T can be built; replace it"
        )
    return index


def both_strands(strand_i: np.ndarray) -> np.ndarray:
    """(2n,) bases of strand I, then of strand J, each 5' to 3', from those of strand I (n,)."""
    return np.concatenate([strand_i, 3 - strand_i[::-1]])  # A pairs with T and C with G: the indices add up to 3


def step_name(first: int, second: int) -> str:
    """The dinucleotide of two base indices, e.g. ``CA``."""
    return BASES[first] + BASES[second]
