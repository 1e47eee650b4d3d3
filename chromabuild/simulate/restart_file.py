"""Positions in the restart files of chromamd (docs/reference/file-formats.md)."""

from pathlib import Path

import numpy as np

from chromabuild.base.errors import IntegrityError

MAGIC = b"CMDRST02"
_WORDS, _ENSEMBLE = 16, 48


def read_positions(pattern: str | Path, ranks: int, n_atoms: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) float64 positions of all atoms and the (3,) edges of the box, angstrom; ``()`` stands for the rank.

    One file at a time is in memory. Raises IntegrityError when files are missing, cut short or of another system.
    """
    found = np.full((n_atoms, 3), np.nan)
    box = np.zeros(3)
    for rank in range(ranks):
        path = Path(str(pattern).replace("()", str(rank)))
        try:
            data = path.read_bytes()
        except OSError as error:
            raise IntegrityError(f"cannot read {path} ({error.strerror}): run the simulation again") from None
        words = np.frombuffer(data, "<i8", _WORDS, len(MAGIC)) if len(data) > 8 * (_WORDS + 1) else np.zeros(_WORDS)
        n = int(words[6])
        start = len(MAGIC) + 8 * (_WORDS + _ENSEMBLE)
        if not data.startswith(MAGIC) or words[7] != n_atoms or len(data) != start + 56 * n + 8:
            raise IntegrityError(f"{path} is not a whole restart file of {n_atoms} atoms: run the simulation again")
        box = words[11:14].view("<f8").copy()
        found[np.frombuffer(data, "<i8", n, start)] = np.frombuffer(data, "<f8", 3 * n, start + 8 * n).reshape(n, 3)
    if np.isnan(found).any():
        raise IntegrityError(f"{pattern} does not hold all {n_atoms} atoms: run the simulation again")
    return found, box
