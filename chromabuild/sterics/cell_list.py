"""Points ordered by cell, for searches of neighbours whose memory follows the number of points.

The kernel is fortran/kernels/chromabuild/cell_list.f90.
"""

import numpy as np

from chromabuild import _kernels
from chromabuild.base.errors import BadInputError
from chromabuild.sterics.bond_graph import BondGraph
from mesoscale.handle import Handle

PREFERRED_EDGE = 5.0  # angstrom: a dozen atoms a cell in condensed matter, and few spheres of 0.9 A cross a face
PARTS = 64  # of the search, shared out among the threads


class CellList:
    """Atoms ordered by cell. Built once, asked many times; positions must not change in between."""

    def __init__(self, position: np.ndarray, radius: float, threads: int = 1) -> None:
        """Cells for searches of about ``radius`` (angstrom) among (n, 3) positions."""
        self.position = np.ascontiguousarray(position, dtype=np.float64)
        self.threads = threads
        n = len(self.position)
        self.origin, highest = corners(self.position)
        extent = highest - self.origin
        if not np.isfinite(extent).all():
            raise BadInputError("positions hold values that are not numbers: rebuild the structure")
        # In units other than angstrom the preferred edge would put everything into one cell: bound it by the spacing.
        spacing = (np.prod(np.maximum(extent, radius)) / max(n, 1)) ** (1 / 3)
        largest = float(extent.max())
        margin = 1e-6 * largest + 1e-9
        self.edge = float(max(1.01 * radius + margin, min(PREFERRED_EDGE, 2.5 * spacing), largest / 1e9))
        self.cells = (extent / self.edge).astype(np.int32) + 1
        self.fold = folded_table(self.cells, max(n, 64))
        if n:
            number = _kernels.cell_list.create_cells(
                self.position.T, self.origin, self.edge, self.cells, self.fold, threads)
            self.handle = Handle(number, _kernels.cell_list.free_cells, "cell list")

    @property
    def nbytes(self) -> int:
        """Memory of the cells, without the positions."""
        return _kernels.cell_list.held_bytes(self.handle.number)

    def pairs(self, threshold: float, graph: BondGraph | None = None, kind: np.ndarray | None = None,
              limit: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Sorted (m, 2) int32 pairs i < j below ``threshold`` and, with kinds, below ``limit[kind_i, kind_j]``."""
        n = len(self.position)
        found = np.zeros(PARTS, dtype=np.int64)
        # What does not fit is searched for again: below 2 A a quarter of the atoms have a pair, at 3 A fewer than all.
        room = (n if threshold > 2.0 else n // 4) // PARTS + 64
        kind = np.zeros(1, dtype=np.int8) if kind is None else np.asarray(kind, dtype=np.int8)
        limit = np.full((1, 1), threshold) if limit is None else np.asarray(limit, dtype=np.float64)
        none = np.zeros(1, dtype=np.int32)
        while n > 1:
            pairs = np.empty((PARTS, room, 2), dtype=np.int32)
            distance = np.empty((PARTS, room))
            _kernels.cell_list.find_close_pairs(
                self.handle.number, self.position.T, threshold, kind, limit.T,
                none if graph is None else graph.first, none if graph is None else graph.neighbour, self.threads,
                found, pairs.T, distance.T)
            if found.max() <= room:
                break
            room = int(found.max())
        if found.sum() == 0:
            return np.empty((0, 2), dtype=np.int32), np.empty(0)
        filled = np.arange(room) < found[:, None]
        pairs, distance = pairs[filled], distance[filled]
        order = np.argsort(pairs[:, 0].astype(np.int64) * n + pairs[:, 1])
        return pairs[order], distance[order]

    def in_spheres(self, centre: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
        """Atoms closer than ``radius`` to each of the (m, 3) centres: (k,) centre numbers and (k,) atoms."""
        centre = np.ascontiguousarray(np.atleast_2d(centre), dtype=np.float64)
        found = np.zeros(len(centre), dtype=np.int64)
        if len(self.position) == 0 or len(centre) == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        arguments = (self.handle.number, self.position.T, centre.T, radius, self.threads, found)
        _kernels.cell_list.count_in_spheres(*arguments)
        atom = np.empty(int(found.sum()), dtype=np.int32)
        if len(atom):
            _kernels.cell_list.fill_in_spheres(*arguments, atom)
        return np.repeat(np.arange(len(centre)), found), atom


def corners(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest coordinate along each axis of (n, 3) positions; NaN where a position is not a number."""
    if len(position) == 0:
        return np.zeros(3), np.ones(3)
    # Rows of 64 atoms first: numpy reduces long rows fast and rows of three slowly.
    whole = len(position) // 64 * 64
    rows = position[:whole].reshape(-1, 192)
    rest = position[whole:]
    return tuple(reduce(np.concatenate([reduce(rows, axis=0).reshape(64, 3), rest] if whole else [rest]), axis=0)
                 for reduce in (np.min, np.max))


def folded_table(cells: np.ndarray, limit: int) -> np.ndarray:
    """Buckets along each axis: the cells themselves when they are at most ``limit``, else a folded table of about that.

    An axis is folded to no fewer than 3, so that the cells touched by one sphere fall into different buckets.
    """
    fold = cells.astype(np.float64)
    while np.prod(fold) > limit and (fold > 3).any():
        wide = fold > 3
        excess = (np.prod(fold) / limit) ** (1 / wide.sum())
        fold[wide] = np.maximum(np.floor(fold[wide] / max(excess, 1.001)), 3)
    return fold.astype(np.int32)
