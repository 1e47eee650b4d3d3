"""The head of the engine's restart files (docs/reference/file-formats.md), and the box that it tells."""

from pathlib import Path

import numpy as np

MAGIC = b"CMDRST02"
WORDS, _ENSEMBLE = 16, 48
HEAD = len(MAGIC) + 8 * (WORDS + _ENSEMBLE)
"""Bytes before the atoms, or before what version ``LEANING`` has there."""
LEANING = 3
"""Version of the files that tell b_x/b_y, c_x/c_z and c_y/c_z behind the ensemble."""


def box_of_rank(path: Path) -> np.ndarray | None:
    """(3,) edges or (3, 3) vectors, angstrom, that the file of a rank tells; None where there is no such file."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD + 24)
    except OSError:
        return None
    if not head.startswith(MAGIC) or len(head) < HEAD + 24:
        return None
    words = np.frombuffer(head, "<i8", WORDS, len(MAGIC))
    return box_in(words, head[HEAD:] if words[0] == LEANING else b"")


def box_in(words: np.ndarray, lean: bytes) -> np.ndarray:
    """The box of the words of a head and of the bytes behind it that tell how edges lean, if any."""
    box = words[11:14].view("<f8").copy()
    if not lean:
        return box
    vectors = np.diag(box)
    vectors[[1, 2, 2], [0, 0, 1]] = np.frombuffer(lean, "<f8") * box[[1, 2, 2]]
    return vectors
