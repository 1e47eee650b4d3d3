"""Vectors of all atoms in files without names, so that systems of any size take no memory."""

import tempfile
from pathlib import Path

import numpy as np

from chromabuild.base.errors import ResourceError


class StoredVectors:
    """(n, 3) float64 of all atoms on disk, 24 bytes an atom: slices of them are read, the rest takes no memory."""

    _kind = "<f8"

    def __init__(self, n: int, folder: Path) -> None:
        """Room for ``n`` atoms, in ``folder`` where that can be written."""
        self._folder = str(folder)
        try:
            self._file = tempfile.TemporaryFile(dir=folder)
        except OSError:
            self._folder = tempfile.gettempdir()
            self._file = tempfile.TemporaryFile()
        self.shape = (n, 3)
        self._width = 3 * np.dtype(self._kind).itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def put(self, first: int, values: np.ndarray) -> None:
        """Vectors (k, 3) of atoms from ``first`` on."""
        try:
            self._file.seek(self._width * first)
            self._file.write(np.ascontiguousarray(values, dtype=self._kind).tobytes())
        except OSError as error:
            raise ResourceError(f"cannot keep positions of {len(self):,} atoms in {self._folder} for a while "
                                f"({error.strerror}): free {self._width * len(self) / 1e6:.1f} MB there") from None

    def scatter(self, atoms: np.ndarray, values: np.ndarray) -> None:
        """Vectors (k, 3) of ``atoms`` (k,), in any order."""
        order = np.argsort(atoms, kind="stable")
        atoms, values = atoms[order], values[order]
        for rows in runs_of(atoms):
            self.put(int(atoms[rows.start]), values[rows])

    def __getitem__(self, rows: slice) -> np.ndarray:
        """(k, 3) float64 of a slice without steps."""
        first, end, _ = rows.indices(len(self))
        self._file.seek(self._width * first)
        content = self._file.read(self._width * max(end - first, 0))
        return np.frombuffer(content, dtype=self._kind).reshape(-1, 3).astype(float)

    def take(self, atoms: np.ndarray) -> np.ndarray:
        """(k, 3) float64 of ``atoms`` (k,), ascending."""
        return np.concatenate([np.zeros((0, 3)), *(self[int(atoms[rows.start]):int(atoms[rows.stop - 1]) + 1]
                                                   for rows in runs_of(atoms))])

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        """All of them in memory."""
        return self[:]


class StoredPositions(StoredVectors):
    """(n, 3) positions, angstrom, that are whole numbers of 0.001 angstrom, 12 bytes an atom; these are put."""

    _kind = "<i4"

    def __getitem__(self, rows: slice) -> np.ndarray:
        """(k, 3) float64 angstrom of a slice without steps."""
        return super().__getitem__(rows) / 1000


def runs_of(ids: np.ndarray) -> list[slice]:
    """Rows of ``ids`` (k,), ascending, that hold consecutive numbers."""
    starts = np.flatnonzero(np.diff(ids, prepend=-2) != 1)
    return [slice(a, b) for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(ids)], strict=True)] \
        if len(ids) else []


def vectors_of(values: np.ndarray | StoredVectors, atoms: np.ndarray) -> np.ndarray:
    """(k, 3) of ``atoms`` (k,), ascending, whether values are in memory or on disk."""
    return values.take(atoms) if isinstance(values, StoredVectors) else values[atoms]
