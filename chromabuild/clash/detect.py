"""Pairs of atoms that are too close.

Distances are computed in float64 from the positions as given. Pairs that one, two or three bonds join are left out.
The search is a cell list whose memory follows the number of atoms (fortran/kernels/cell_list.f90).
"""

from dataclasses import dataclass

import numpy as np

from chromabuild import _kernels
from chromabuild.clash.atoms import (
    APOLAR_HYDROGEN,
    CARBON_KIND,
    CARBONYL_CARBON,
    FLAT_HYDROGEN,
    KINDS,
    OTHER_KIND,
    PHOSPHORUS_KIND,
    POLAR_HYDROGEN,
    POLAR_NITROGEN,
    POLAR_OXYGEN,
    POLAR_SULFUR,
    Atoms,
    BondGraph,
)
from chromabuild.errors import BadInputError
from chromabuild.solute import Solute

PREFERRED_EDGE = 5.0  # angstrom: a dozen atoms a cell in condensed matter, and few spheres of 0.9 A cross a face
PARTS = 64  # of the search, shared out among the threads
OVERLAP = 0.4  # angstrom: a MolProbity clash (Word et al. 1999; Chen et al. 2010)
BAD_OVERLAP = 0.9
POLAR = (POLAR_NITROGEN, POLAR_OXYGEN, POLAR_SULFUR)


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
        n_buckets = int(np.prod(self.fold))
        self.first = np.empty(n_buckets + 1, dtype=np.int32)
        self.order = np.empty(n, dtype=np.int32)
        self.sorted = np.empty((n, 3), dtype=np.float32, order="F")
        if n:
            _kernels.cell_list.sort_into_cells(
                self.position.T, self.origin, self.edge, self.fold, threads, np.empty(n, dtype=np.int32),
                self.first, self.order, self.sorted)

    def pairs(self, threshold: float, graph: BondGraph | None = None, kind: np.ndarray | None = None,
              limit: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Sorted (m, 2) int32 pairs i < j below ``threshold`` and, with kinds, below ``limit[kind_i, kind_j]``."""
        n = len(self.position)
        found = np.zeros(PARTS, dtype=np.int64)
        # What does not fit is searched for again: below 2 A a quarter of the atoms have a pair, at 3 A fewer than all.
        room = (n if threshold > 2.0 else n // 4) // PARTS + 64
        kind = np.zeros(1, dtype=np.int8) if kind is None else np.asarray(kind, dtype=np.int8)[self.order]
        limit = np.full((1, 1), threshold) if limit is None else np.asarray(limit, dtype=np.float64)
        none = np.zeros(1, dtype=np.int32)
        while n > 1:
            pairs = np.empty((PARTS, room, 2), dtype=np.int32)
            distance = np.empty((PARTS, room))
            _kernels.cell_list.find_close_pairs(
                self.position.T, self.edge, self.cells, self.fold, self.first, self.order, self.sorted, threshold,
                kind, limit.T, none if graph is None else graph.first, none if graph is None else graph.neighbour,
                self.threads, found, pairs.T, distance.T)
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
        arguments = (self.position.T, self.origin, self.edge, self.cells, self.fold, self.first, self.order, centre.T,
                     radius, self.threads, found)
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


def close_pairs(position: np.ndarray, threshold: float, exclusions: BondGraph | None = None,
                box: np.ndarray | None = None, threads: int = 1, kind: np.ndarray | None = None,
                limit: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of atoms closer than a threshold.

    ``position`` is (n, 3) in angstrom; with ``exclusions`` the pairs joined by up to three bonds are left out; ``box``
    gives three edges of a periodic box; with ``kind``, (n,) int8, and ``limit``, (k, k) angstrom and symmetric, a pair
    must also be closer than the limit of its two kinds. Returns (m, 2) int32 pairs i < j in ascending order and (m,)
    float64 distances. The result does not depend on ``threads``. Raises BadInputError for a box smaller than twice the
    threshold.
    """
    if box is None:
        return CellList(position, threshold, threads).pairs(threshold, exclusions, kind, limit)
    box = np.asarray(box, dtype=np.float64)
    if (box < 2 * threshold).any():
        raise BadInputError(f"box {box.tolist()} is smaller than twice the threshold {threshold}: give a larger box")
    wrapped = np.mod(np.asarray(position, dtype=np.float64), box)
    source = np.arange(len(wrapped), dtype=np.int32)
    every, origin = wrapped, source
    for axis in range(3):  # images of images: edges and corners come by themselves
        low, high = every[:, axis] < threshold, every[:, axis] > box[axis] - threshold
        step = np.zeros(3)
        step[axis] = box[axis]
        every, origin = (np.concatenate([every, every[low] + step, every[high] - step]),
                         np.concatenate([origin, origin[low], origin[high]]))
    pairs, distance = CellList(every, threshold, threads).pairs(
        threshold, None, None if kind is None else np.asarray(kind)[origin], limit)
    real = pairs < len(wrapped)
    # A pair across a face appears twice, once for each atom's image: keep it where the lower atom is the real one.
    own, image = origin[pairs[:, 0]], origin[pairs[:, 1]]
    keep = real[:, 0] & (real[:, 1] | (own < image))
    pairs, distance = np.stack([own, image], axis=1)[keep], distance[keep]
    if exclusions is not None:
        free = ~exclusions.bonded(pairs)
        pairs, distance = pairs[free], distance[free]
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], distance[order]


def find_clashes(structure: Solute | Atoms, threshold: float, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Non-bonded pairs of a structure closer than a threshold (angstrom), as ``close_pairs`` returns them."""
    atoms = Atoms.from_solute(structure) if isinstance(structure, Solute) else structure
    return close_pairs(atoms.position, threshold, atoms.graph, atoms.box, threads)


@dataclass(frozen=True)
class Overlaps:
    """Overlaps of van der Waals spheres of 0.4 angstrom and more."""

    pairs: np.ndarray
    overlap: np.ndarray
    """angstrom, less what a hydrogen bond is allowed."""
    n_atoms: int
    has_hydrogens: bool

    @property
    def clashscore(self) -> float:
        """Overlaps of at least 0.4 angstrom per 1,000 atoms."""
        return 1000 * len(self.pairs) / max(self.n_atoms, 1)

    @property
    def n_bad(self) -> int:
        """Overlaps of more than 0.9 angstrom."""
        return int((self.overlap > BAD_OVERLAP).sum())


def _four_bonds_from_hydrogen(atoms: Atoms, pairs: np.ndarray) -> np.ndarray:
    """(m,) bool: pairs joined by four bonds one end of which is a hydrogen; Probe too leaves those out (its -4H)."""
    near = np.zeros(len(pairs), dtype=bool)
    for end in (0, 1):
        hydrogen = np.flatnonzero(atoms.kind[pairs[:, end]] <= POLAR_HYDROGEN)
        atom = pairs[hydrogen, end]
        hydrogen, atom = (x[atoms.graph.degree(atom) == 1] for x in (hydrogen, atom))
        carrier = atoms.graph.neighbour[atoms.graph.first[atom]]
        near[hydrogen] |= atoms.graph.bonded(np.stack([carrier, pairs[hydrogen, 1 - end]], axis=1))
    return near


def bonded_to(atoms: Atoms, elements: tuple[int, ...]) -> np.ndarray:
    """(n,) bool: atoms with a neighbour of one of the given elements."""
    mark = np.zeros(atoms.n_atoms, dtype=bool)
    a, b = atoms.graph.bonds.T
    wanted = np.isin(atoms.element, elements)
    mark[a[wanted[b]]] = True
    mark[b[wanted[a]]] = True
    return mark


def van_der_waals_sum() -> np.ndarray:
    """(k, k) distance at which atoms of two kinds touch, angstrom, less 0.6 where they can form a hydrogen bond.

    Radii for all-atom contacts of Word et al. 1999; those of hydrogens about their nuclei (Deis et al. 2013), 1.09 A
    from carbon, where force fields and this builder put them. A hydrogen bond joins a polar hydrogen to N, O or S, or
    (in files without hydrogens) two of those.
    """
    radius = np.zeros(len(KINDS))
    radius[[APOLAR_HYDROGEN, FLAT_HYDROGEN, POLAR_HYDROGEN]] = 1.17, 1.00, 1.00
    radius[[CARBON_KIND, CARBONYL_CARBON, OTHER_KIND]] = 1.70, 1.65, 1.70
    radius[[POLAR_NITROGEN, POLAR_OXYGEN, POLAR_SULFUR, PHOSPHORUS_KIND]] = 1.55, 1.40, 1.80, 1.80
    return radius[:, None] + radius[None] - 0.6 * hydrogen_bonds()


def hydrogen_bonds() -> np.ndarray:
    """(k, k) bool: whether atoms of two kinds can form a hydrogen bond, or be its two ends."""
    polar = np.isin(np.arange(len(KINDS)), POLAR)
    donor = np.arange(len(KINDS)) == POLAR_HYDROGEN
    return (donor[:, None] & polar[None]) | (polar[:, None] & donor[None]) | (polar[:, None] & polar[None])


def find_overlaps(atoms: Atoms, threads: int = 1) -> Overlaps:
    """MolProbity-style overlaps: at least 0.4 angstrom, where a hydrogen bond may overlap by 0.6 angstrom more."""
    limit = van_der_waals_sum() - OVERLAP
    return overlaps_among(atoms, *close_pairs(atoms.position, limit.max(), atoms.graph, atoms.box, threads,
                                              atoms.kind, limit))


def overlaps_among(atoms: Atoms, pairs: np.ndarray, distance: np.ndarray) -> Overlaps:
    """The overlaps among pairs that hold all of them."""
    overlap = van_der_waals_sum()[tuple(atoms.kind[pairs].T)] - distance
    keep = np.flatnonzero(overlap >= OVERLAP)
    keep = keep[~_four_bonds_from_hydrogen(atoms, pairs[keep])]
    return Overlaps(pairs[keep], overlap[keep], atoms.n_atoms, bool((atoms.kind <= POLAR_HYDROGEN).any()))
