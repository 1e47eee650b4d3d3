"""How a linker histone and the linker arms lie on their nucleosome, in one frame."""

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.analysis.histones import HistoneChain, superposition
from chromabuild.analysis.linker_histones import domain_on_nucleosome
from chromabuild.analysis.nucleosome_measures import DETACHED, distance_from_path
from chromabuild.dna.arms import linker_arms
from chromabuild.dna.helix import DYAD, crystal_path
from chromabuild.genome.wrapping import ARM

REACH = DYAD + ARM
"""Base pairs from the dyad to the end of an arm."""


def detached_arms(origin: np.ndarray, dyad: int, closed: bool = False) -> np.ndarray:
    """(2,) base pairs of the entering and of the leaving arm, at most ten, that are off the path of PDB 4QLC; NaN where
    the DNA ends with the core.

    ``origin`` (n, 3) of all base pairs of the duplex as seen from the core; ``dyad`` of these stood at the dyad at
    first.
    """
    arms, core, n, found = linker_arms()[0], crystal_path()[0], len(origin), []
    for path, site in ((np.concatenate([arms[:ARM], core[:1]]), dyad - REACH),
                       (np.concatenate([core[-1:], arms[ARM:]]), dyad + DYAD + 1)):
        pair = site + np.arange(ARM)
        there = pair % n if closed else pair[(pair >= 0) & (pair < n)]
        found.append(np.sum(distance_from_path(origin[there], path) > DETACHED) if len(there) else np.nan)
    return np.array(found, dtype=float)


def linker_histone_pose(chain: HistoneChain, alpha: np.ndarray) -> np.ndarray:
    """(3,) where the globular domain of a linker histone lies on its nucleosome: how far its centre is from the dyad
    axis, how far it has moved from its place in PDB 4QLC, angstrom, and by what angle it is turned from there, degree.

    ``alpha`` (k, 3): C-alpha atoms of the chain as seen from the octamer.
    """
    domain = np.flatnonzero(chain.crystal)
    here, there = alpha[domain], domain_on_nucleosome(chain.name)[chain.crystal[domain] - 1]
    centre = here.mean(axis=0)
    _, frame, _ = superposition(there - there.mean(axis=0), here - centre)
    turned = np.degrees(np.arccos(np.clip((np.trace(frame) - 1) / 2, -1, 1)))
    return np.array([np.hypot(centre[1], centre[2]), np.linalg.norm(centre - there.mean(axis=0)), turned])


def residues_at(heavy: np.ndarray, residue: np.ndarray, dna: np.ndarray, pair: np.ndarray, contact: float
                ) -> tuple[int, int, int]:
    """Residues of a linker histone within ``contact`` angstrom of the entering arm, of wrapped DNA and of the leaving
    arm.

    ``heavy`` (a, 3) are its atoms of ``residue`` (a,); ``dna`` (d, 3) atoms of base pairs ``pair`` (d,), counted from
    the dyad.
    """
    reach = np.abs(pair) <= REACH
    tree, place = cKDTree(dna[reach]), pair[reach]
    near = tree.query_ball_point(heavy, contact)
    sets: tuple[set, set, set] = (set(), set(), set())
    for own, atoms in zip(residue.tolist(), near, strict=True):
        for site in place[atoms].tolist():
            sets[0 if site < -DYAD else 2 if site > DYAD else 1].add(own)
    return tuple(map(len, sets))
