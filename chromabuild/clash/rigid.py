"""Where parts that no torsion moves lie in each other: ordered backbones of histones, and the bases of DNA.

Small overlaps of backbones give way to a re-adjustment of a few residues. Others cannot be solved here: the scaffold
that put the two parts there has to change. They are listed as what they are, and every pair left beside is counted.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from chromabuild.sterics.atoms import BASE, HYDROGEN, PROTEIN_BACKBONE, Atoms

REACH = 12.0  # angstrom: pairs this near to two rigid atoms that overlap are there because of them
APART = 2  # residues of a chain this near to each other belong to one rigid part
REASON = "parts that no torsion moves lie in each other here: cores or DNA paths overlap"
REMEDY = ("change the scaffold: another --seed, more room (scaffold.confinement_radius, scaffold.container) or longer "
          "linkers (locus.minimum_linker)")


@dataclass(frozen=True)
class RigidOverlap:
    """One place where two rigid parts overlap."""

    pair: tuple[int, int]
    """Its closest two rigid atoms."""
    distance: float
    """Between them, angstrom."""
    rigid_pairs: int
    """Severe pairs of rigid atoms."""
    left: np.ndarray
    """Places, among the pairs that are left, of those that belong to it: one at least."""


def rigid_overlaps(atoms: Atoms, molecule: np.ndarray, flexible: set[int], pairs: np.ndarray, distance: np.ndarray,
                   left: np.ndarray) -> list[RigidOverlap]:
    """Places where rigid parts overlapped from the start and pairs are left, the deepest first.

    ``atoms`` and their (m, 2) severe ``pairs`` with distances are those before correction; ``left`` (k, 3) are the
    middles of the pairs that are left. ``molecule`` is that of each residue; ``flexible`` are residues of tails. Rigid
    are heavy atoms of bases and of the backbones of ordered protein.
    """
    if len(pairs) == 0 or len(left) == 0:
        return []
    tail = np.zeros(len(atoms.residue_name), dtype=bool)
    tail[list(flexible)] = True
    residue = atoms.residue[pairs]
    part = atoms.part[pairs]
    fixed = (part == BASE) | ((part == PROTEIN_BACKBONE) & ~tail[residue])
    fixed &= atoms.element[pairs] != HYDROGEN
    same = molecule[residue[:, 0]] == molecule[residue[:, 1]]
    apart = ~same | (np.abs(residue[:, 0] - residue[:, 1]) > APART)
    rigid = np.flatnonzero(fixed.all(axis=1) & apart)
    if len(rigid) == 0:
        return []
    tree = cKDTree(atoms.position[pairs[rigid]].astype(np.float64).mean(axis=1))
    near = tree.query_pairs(REACH, output_type="ndarray")
    place = connected_components(coo_array((np.ones(len(near), dtype=np.int8), tuple(near.T)),
                                           shape=(len(rigid), len(rigid))), directed=False)[1]
    gap, nearest = tree.query(left, distance_upper_bound=REACH)
    owner = np.where(np.isfinite(gap), place[np.minimum(nearest, len(rigid) - 1)], -1)
    found = []
    for k in np.unique(owner[owner >= 0]).tolist():
        own = rigid[place == k]
        closest = own[np.argmin(distance[own])]
        found.append(RigidOverlap(tuple(pairs[closest].tolist()), float(distance[closest]), len(own),
                                  np.flatnonzero(owner == k)))
    return sorted(found, key=lambda overlap: (overlap.distance, overlap.pair))
