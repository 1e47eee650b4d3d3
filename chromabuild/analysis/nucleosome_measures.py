"""What a nucleosome does: unwrapping, sliding, gaping, splitting, contacts and tails, each of one frame.

Positions are seen from the octamer, superposed on 1KX5 by its folds: dyad along x, superhelix axis along z. ``Site``
k of 147 is base pair k of 1KX5's path; the dyad is site 73.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.analysis.histones import HistoneChain, Octamer, reference_fold
from chromabuild.analysis.secondary_structure import assigned, backbone_rows
from chromabuild.analysis.whole_nucleosomes import DYAD, SITES
from chromabuild.dna.steps import fit_frames
from chromabuild.molecule.histone_tails import TAILS

DETACHED = 7.0
"""A base pair farther from the path of 1KX5 is detached, angstrom: four times the 1.8 angstrom (rms) by which that
path itself departs from a smooth superhelix, and a quarter of the gap between its two turns."""
AROUND = 150.0
"""Angstrom from the middle of a core within which its own DNA is looked for."""
CENTRAL = 30
"""Sites on either side of the dyad that tell how far DNA has slid: inner turn, which stays wrapped longest."""
CONTACT = 4.5
"""Heavy atoms of a residue and of DNA in contact, angstrom."""
BRIDGE = 4.0
"""Charged atoms in contact: N of arginine or lysine, O of a phosphate or of an acid, angstrom."""
_TWIST = 34.6
"""Mean twist of 1KX5, degree."""
_HALF = slice(5, 61)
"""Sites beyond the dyad whose turn about the hinge is the gaping."""
PATCH = {"H2A": (56, 61, 64, 90, 91, 92), "H2B": (102, 110)}
"""The acidic patch in the count of 1KX5: glutamates 56, 61, 64, 91, 92 and aspartate 90 of H2A, glutamates of H2B."""
PATCH_ATOMS = ("OD1", "OD2", "OE1", "OE2")
CATIONS = ("NZ", "NH1", "NH2", "NE")


@dataclass(frozen=True)
class Wrapping:
    """How DNA lies on an octamer."""

    detached: np.ndarray
    """(147,) whether the base pair of each site is detached; one that is missing is not."""
    unwrapped: tuple[int, int]
    """Base pairs in a row that are detached, from either end of the path."""
    slid: float
    """Base pairs by which DNA has moved forward: which base pair stands at the dyad, less which one did at first."""
    turned: float
    """Degree by which base pairs are turned about the path, against 1KX5."""


def wrapping(origin: np.ndarray, across: np.ndarray, sites: np.ndarray, closed: bool = False) -> Wrapping:
    """Wrapping of DNA whose base pairs stand at ``origin`` (n, 3), with their x axes along ``across`` (n, 3), as seen
    from the core.

    ``sites`` (147,) are the base pairs that were at the sites of the path at first, -1 where there is none.
    """
    fold = reference_fold()
    there = np.flatnonzero(sites >= 0)
    apart = distance_from_path(origin[sites[there]], fold.path)
    detached = np.zeros(SITES, dtype=bool)
    detached[there] = apart > DETACHED
    inner = detached[there]
    ends = (int(np.cumprod(inner).sum()), int(np.cumprod(inner[::-1]).sum()))
    central = there[np.abs(there - DYAD) <= CENTRAL]
    nearest = _nearest_pairs(origin, fold.path[central])
    n = len(origin)
    before, after = (nearest - 1) % n, (nearest + 1) % n
    if not closed:
        before, after = np.maximum(nearest - 1, 0), np.minimum(nearest + 1, n - 1)
    along = origin[after] - origin[before]
    spacing = np.sum(along**2, axis=1) / np.maximum((after - before) % n, 1)
    fraction = np.clip(np.sum((fold.path[central] - origin[nearest]) * along, axis=1) / spacing, -1, 1)
    moved = nearest - sites[central]
    if closed:
        moved = (moved + n // 2) % n - n // 2
    x, site = across[nearest], fold.frame[central]
    angle = np.arctan2(np.sum(x * site[:, :, 1], axis=1), np.sum(x * site[:, :, 0], axis=1))
    angle += fraction * np.radians(_TWIST)
    turned = np.degrees(np.arctan2(np.sin(angle).sum(), np.cos(angle).sum()))
    return Wrapping(detached, ends, float(np.mean(moved + fraction)) if len(central) else float("nan"), float(turned))


def _nearest_pairs(origin: np.ndarray, path: np.ndarray) -> np.ndarray:
    """(k,) which of base pairs (n, 3) is nearest to each place (k, 3) of a path about 0: of those around the core, and
    of all where these do not tell."""
    near = np.flatnonzero((origin**2).sum(axis=1) < AROUND**2)
    if len(near):
        apart, nearest = cKDTree(origin[near]).query(path)
        if (apart + np.linalg.norm(path, axis=1) < AROUND).all():  # what is left out is farther from each place
            return near[nearest]
    return cKDTree(origin).query(path)[1]


def distance_from_path(points: np.ndarray, path: np.ndarray) -> np.ndarray:
    """(n,) distances of points from the polygon through a path, by its two segments at the nearest corner."""
    _, nearest = cKDTree(path).query(points)
    best = np.full(len(points), np.inf)
    for first in (np.maximum(nearest - 1, 0), np.minimum(nearest, len(path) - 2)):
        start, along = path[first], path[first + 1] - path[first]
        t = np.clip(np.sum((points - start) * along, axis=1) / np.sum(along**2, axis=1), 0, 1)
        best = np.minimum(best, np.linalg.norm(points - start - t[:, None] * along, axis=1))
    return best


def hinge(origin: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """(3,) degree by which the second half of the DNA is turned against the first, from how they stand in 1KX5.

    About the dyad axis (x), the axis across it (y) and the superhelix axis (z). About y the particle opens like a shell
    whose hinge is at the dyad: the gaping, positive where the gyres part. NaN where a half has fewer than ten pairs.
    """
    path, turns = reference_fold().path, []
    for half in (DYAD - np.arange(_HALF.start, _HALF.stop), DYAD + np.arange(_HALF.start, _HALF.stop)):
        here = half[sites[half] >= 0]
        if len(here) < 10:
            return np.full(3, np.nan)
        turns.append(fit_frames(origin[sites[here]], path[here])[1])
    rotation = turns[1] @ turns[0].T
    axis = 0.5 * np.array([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0],
                           rotation[1, 0] - rotation[0, 1]])
    sine = np.linalg.norm(axis)
    angle = np.arctan2(sine, 0.5 * (np.trace(rotation) - 1))
    return np.degrees(axis * (angle / sine if sine > 1e-12 else 1.0))


def dimer_shifts(octamer: Octamer, alpha: dict[int, np.ndarray]) -> np.ndarray:
    """(2,) angstrom by which the folds of each H2A-H2B dimer are farther from the tetramer's than in 1KX5; NaN where
    the dimer is missing.

    ``alpha``: C-alpha atoms by ``id`` of the chain.
    """
    fold = reference_fold()

    def centres(places: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
        here, there = [], []
        for place in places:
            chain = octamer.chains[place]
            if chain is None:
                return None
            here.append(alpha[id(chain)][chain.core])
            there.append(fold.alpha[place][chain.crystal[chain.core] - 1])
        return np.concatenate(here).mean(axis=0), np.concatenate(there).mean(axis=0)

    tetramer = centres((0, 1, 4, 5))
    found = []
    for places in ((2, 3), (6, 7)):
        dimer = centres(places)
        found.append(np.nan if dimer is None or tetramer is None else
                     np.linalg.norm(dimer[0] - tetramer[0]) - np.linalg.norm(dimer[1] - tetramer[1]))
    return np.array(found)


@dataclass(frozen=True)
class Tail:
    """A tail of a histone chain."""

    chain: HistoneChain
    name: str
    """Such as ``H2A C``: the end where a chain has two."""
    residues: np.ndarray
    """Places in the chain."""
    atoms: np.ndarray
    """Places in the chain's heavy atoms."""


def tails_of(octamer: Octamer) -> list[Tail]:
    """Tails of at least three residues, by place."""
    found = []
    for _, chain in octamer.present:
        for low, high in TAILS[chain.name]:
            residues = np.flatnonzero((chain.number >= low) & (chain.number <= high))
            if low <= 1:
                residues = np.flatnonzero(chain.number <= high)  # tips of other species are longer
            if len(residues) >= 3:
                name = f"{chain.name} {'N' if low <= 1 else 'C'}"
                found.append(Tail(chain, name, residues, np.flatnonzero(np.isin(chain.heavy_residue, residues))))
    return found


def tail_shape(tail: Tail, alpha: np.ndarray, heavy: np.ndarray) -> tuple[float, float]:
    """End-to-end distance of C-alpha atoms and radius of gyration of heavy atoms, angstrom."""
    atoms = heavy[tail.atoms]
    spread = np.sqrt(((atoms - atoms.mean(axis=0)) ** 2).sum(axis=1).mean())
    return float(np.linalg.norm(alpha[tail.residues[-1]] - alpha[tail.residues[0]])), float(spread)


class ChainStructure:
    """Helices and strands of the histones of a universe, chain by chain."""

    def __init__(self, chains: list[HistoneChain], names: np.ndarray, residue_names: np.ndarray) -> None:
        """``names`` of all atoms and ``residue_names`` of all residues of the universe."""
        rows = [backbone_rows(chain.heavy_residue, names[chain.heavy].astype(str), len(chain.residues))
                for chain in chains]
        self._chains = [(chain, own) for chain, own in zip(chains, rows, strict=True) if own is not None]
        length = [len(chain.residues) for chain in chains]
        self._known = np.repeat([own is not None for own in rows], length)
        whose = np.repeat(np.arange(len(chains)), length)
        proline = np.concatenate([residue_names[chain.residues].astype(str) == "PRO" for chain in chains])
        self._whose, self._proline = whose[self._known], proline[self._known]

    def __call__(self, heavy: dict[int, np.ndarray]) -> np.ndarray:
        """(c,) kind of each residue of the chains in a row; -1 in a chain whose backbone is not all there.

        ``heavy``: atoms but hydrogens by ``id`` of the chain, angstrom.
        """
        found = np.full(len(self._known), -1)
        if self._chains:
            backbone = np.concatenate([heavy[id(chain)][rows] for chain, rows in self._chains])
            found[self._known] = assigned(backbone, self._proline, self._whose)
        return found


def residues_near(chain: HistoneChain, heavy: np.ndarray, dna: cKDTree) -> np.ndarray:
    """(k,) whether a residue of a chain has a heavy atom within ``CONTACT`` of DNA."""
    distance, _ = dna.query(heavy, distance_upper_bound=CONTACT)
    near = np.zeros(len(chain.residues), dtype=bool)
    near[chain.heavy_residue[np.isfinite(distance)]] = True
    return near


def phosphates_held(oxygens: np.ndarray, nitrogens: cKDTree) -> np.ndarray:
    """(...,) whether a phosphate has OP1 or OP2 (..., 2, 3) within ``BRIDGE`` of a histone's nitrogen."""
    known = np.isfinite(oxygens)
    distance, _ = nitrogens.query(np.where(known, oxygens, 1e6), distance_upper_bound=BRIDGE)
    return np.isfinite(distance).any(axis=-1)
