"""Pairs of atoms that are too close.

Distances are computed in float64 from the positions as given. Pairs that one, two or three bonds join are left out.
The search is a cell list whose memory follows the number of atoms (fortran/kernels/chromabuild/cell_list.f90).
"""

from dataclasses import dataclass

import numpy as np

from chromabuild.base.box_vectors import folded, vectors_of, with_images
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.solute import Solute
from chromabuild.sterics.atoms import (
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
)
from chromabuild.sterics.bond_graph import BondGraph
from chromabuild.sterics.cell_list import CellList

OVERLAP = 0.4  # angstrom: a MolProbity clash (Word et al. 1999; Chen et al. 2010)
BAD_OVERLAP = 0.9
POLAR = (POLAR_NITROGEN, POLAR_OXYGEN, POLAR_SULFUR)


def close_pairs(position: np.ndarray, threshold: float, exclusions: BondGraph | None = None,
                box: np.ndarray | None = None, threads: int = 1, kind: np.ndarray | None = None,
                limit: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of atoms closer than a threshold.

    ``position`` is (n, 3) in angstrom; with ``exclusions`` the pairs joined by up to three bonds are left out; ``box``
    gives three edges, or vectors (3, 3), of a periodic box; with ``kind``, (n,) int8, and ``limit``, (k, k) angstrom
    and symmetric, a pair must also be closer than the limit of its two kinds. Returns (m, 2) int32 pairs i < j in
    ascending order and (m,) float64 distances. The result does not depend on ``threads``. Raises BadInputError for a
    box smaller than twice the threshold.
    """
    if box is None:
        return CellList(position, threshold, threads).pairs(threshold, exclusions, kind, limit)
    shortest = np.diag(vectors_of(box)).min()
    if shortest < 2 * threshold:
        raise BadInputError(f"a box edge of {shortest:g} A is smaller than twice the threshold {threshold}: give a "
                            "larger box")
    wrapped = folded(np.asarray(position, dtype=np.float64), box)
    every, origin = with_images(wrapped, np.asarray(box, dtype=np.float64), threshold)
    source = origin.astype(np.int32)
    pairs, distance = CellList(every, threshold, threads).pairs(
        threshold, None, None if kind is None else np.asarray(kind)[source], limit)
    real = pairs < len(wrapped)
    # A pair across a face appears twice, once for each atom's image: keep it where the lower atom is the real one.
    own, image = source[pairs[:, 0]], source[pairs[:, 1]]
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
