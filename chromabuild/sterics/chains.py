"""Chains as curves: molecules that lie in each other, duplexes, and what passes between the strands of one.

A minimiser mends neither: a chain that runs through another one, or between the two strands of a duplex, can only come
free by breaking bonds.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from chromabuild.molecule.geometry import cross
from chromabuild.sterics.atoms import DNA_BACKBONE, HYDROGEN, PROTEIN_BACKBONE, Atoms
from chromabuild.sterics.cell_list import CellList

MERGED_DISTANCE = 1.5  # angstrom between heavy atoms that cannot both be there
MERGED_PAIRS, MERGED_SHARE = 5, 0.05  # pairs, and share of the smaller molecule's heavy atoms
PAIRED = 3.6  # angstrom between N1 of a purine and N3 of a pyrimidine
FACING, LONGEST_GAP = 13.0, 5  # angstrom between C1' of an open pair; pairs in a row
STEP_REACH = 7.5  # angstrom from the middle of a base-pair step to the middle of a bond within its outline


@dataclass(frozen=True)
class Piercing:
    """A bond that runs through a ring."""

    ring: tuple[int, ...]
    bond: tuple[int, int]


@dataclass(frozen=True)
class MergedMolecules:
    """Two molecules that lie in each other."""

    first: int
    """Lowest atom of each."""
    second: int
    pairs: int
    """Heavy atoms closer than 1.5 angstrom."""


@dataclass(frozen=True)
class Duplex:
    """A run of base pairs between two strands."""

    first: np.ndarray
    """(n,) residues of the one strand, 5' to 3'."""
    second: np.ndarray
    """(n,) their partners."""
    crossings: int
    """Sum of the signed crossings of the two strands (both 5' to 3' of the first) in projection along z: twice the
    linking number that the strands would have if their ends were joined far above."""

    @property
    def turns(self) -> float:
        """How often the strands wind about each other."""
        return self.crossings / 2


class NamePlaces:
    """Where each residue has the atom of a given name."""

    def __init__(self, atoms: Atoms) -> None:
        """Nothing is looked up before it is asked for."""
        self.atoms = atoms
        self.found: dict[str, np.ndarray] = {}
        a, b = atoms.graph.bonds.T
        across = atoms.residue[a] != atoms.residue[b]
        self.crossing = atoms.graph.bonds[across]
        self.links = self._crossing("O3'", "P")
        self.peptide_bonds = self._crossing("C", "N")

    def __call__(self, name: str) -> np.ndarray:
        """(r,) atom of this name in each residue, -1 where there is none."""
        if name not in self.found:
            places = np.full(len(self.atoms.residue_name), -1, dtype=np.int32)
            here = self.atoms.named(name)
            places[self.atoms.residue[here]] = here
            self.found[name] = places
        return self.found[name]

    def _crossing(self, tail: str, head: str) -> np.ndarray:
        """(b, 2) bonds between residues from an atom named ``tail`` to one named ``head``."""
        code, names = self.atoms.name_code, self.atoms.names
        pairs = np.concatenate([self.crossing, self.crossing[:, ::-1]])
        pairs = pairs[(names[code[pairs[:, 0]]] == tail) & (names[code[pairs[:, 1]]] == head)]
        return pairs[np.argsort(pairs[:, 0])]


def molecules(atoms: Atoms) -> np.ndarray:
    """(n,) molecule of every atom: what bonds hold together, numbered by lowest atom."""
    a, b = atoms.graph.bonds.T
    graph = coo_array((np.ones(len(a), dtype=np.int8), (a, b)), shape=(atoms.n_atoms, atoms.n_atoms))
    return connected_components(graph, directed=False)[1]


def merged_molecules(atoms: Atoms, near: tuple[np.ndarray, np.ndarray]) -> list[MergedMolecules]:
    """Molecules with at least 5 heavy-atom pairs below 1.5 angstrom that are 5 % of the smaller one's heavy atoms."""
    pairs, distance = near
    pairs = pairs[distance < MERGED_DISTANCE]
    heavy = atoms.element != HYDROGEN
    pairs = pairs[heavy[pairs].all(axis=1)]
    if len(pairs) < MERGED_PAIRS:
        return []
    molecule = molecules(atoms)
    ends = np.sort(molecule[pairs], axis=1)
    ends, count = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0, return_counts=True)
    size = np.bincount(molecule, heavy)
    found = (count >= MERGED_PAIRS) & (count >= MERGED_SHARE * size[ends].min(axis=1))
    lowest = np.full(molecule.max() + 1, atoms.n_atoms)
    np.minimum.at(lowest, molecule, np.arange(atoms.n_atoms))
    return [MergedMolecules(*sorted((int(lowest[a]), int(lowest[b]))), int(n))
            for (a, b), n in zip(ends[found], count[found], strict=True)]


def base_pairs(atoms: Atoms, place: NamePlaces) -> np.ndarray:
    """(r,) residue paired with each nucleotide by the N1-N3 distance of Watson and Crick; -1 where there is none."""
    partner = np.full(len(atoms.residue_name), -1)
    sugar = place("C1'") >= 0
    purine = np.flatnonzero(sugar & (place("N9") >= 0) & (place("N1") >= 0))
    pyrimidine = np.flatnonzero(sugar & (place("N9") < 0) & (place("N3") >= 0))
    if not len(purine) or not len(pyrimidine):
        return partner
    distance, nearest = cKDTree(atoms.position[place("N3")[pyrimidine]]).query(
        atoms.position[place("N1")[purine]], distance_upper_bound=PAIRED)
    order = np.argsort(distance, kind="stable")
    order = order[np.isfinite(distance[order])]
    once = np.sort(np.unique(nearest[order], return_index=True)[1])
    a, b = purine[order[once]], pyrimidine[nearest[order[once]]]
    partner[a], partner[b] = b, a
    return bridged(atoms, place, partner)


def bridged(atoms: Atoms, place: NamePlaces, partner: np.ndarray) -> np.ndarray:
    """Pairs that are open or distorted, between pairs of the same duplex: both strands go on, and C1' face each other.
    """
    following = np.full(len(partner), -1)
    following[atoms.residue[place.links[:, 0]]] = atoms.residue[place.links[:, 1]]
    preceding = np.full(len(partner), -1)
    preceding[following[following >= 0]] = np.flatnonzero(following >= 0)
    centre = place("C1'")
    for _ in range(LONGEST_GAP):
        here = np.flatnonzero((partner < 0) & (preceding >= 0) & (centre >= 0))
        before = partner[preceding[here]]
        here, before = here[before >= 0], before[before >= 0]
        opposite = preceding[before]
        free = (opposite >= 0) & (partner[opposite] < 0) & (opposite > here)
        here, opposite = here[free], opposite[free]
        gap = np.linalg.norm(atoms.position[centre[here]] - atoms.position[centre[opposite]], axis=1)
        here, opposite = here[gap < FACING], opposite[gap < FACING]
        if not len(here):
            break
        partner[here], partner[opposite] = opposite, here
    return partner


def find_duplexes(atoms: Atoms, place: NamePlaces) -> list[Duplex]:
    """Runs of at least two pairs (i, j), (i+1, j-1) .. of linked nucleotides."""
    partner = base_pairs(atoms, place)
    following = np.full(len(partner), -1)
    following[atoms.residue[place.links[:, 0]]] = atoms.residue[place.links[:, 1]]
    here = np.flatnonzero((partner >= 0) & (following >= 0))
    step = here[(partner[following[here]] >= 0)]
    step = step[following[partner[following[step]]] == partner[step]]
    continues = np.zeros(len(partner), dtype=bool)
    continues[step] = True
    entered = np.zeros(len(partner), dtype=bool)
    entered[following[step]] = True
    duplexes = []
    for start in np.flatnonzero(continues & ~entered):
        run = [int(start)]
        while continues[run[-1]]:
            run.append(int(following[run[-1]]))
        first = np.array(run)
        second = partner[first]
        if first[0] < second[-1]:  # each duplex is met from both strands
            centre = place("C1'")
            duplexes.append(Duplex(first, second, signed_crossings(
                atoms.position[centre[first]], atoms.position[centre[second]])))
    return duplexes


def signed_crossings(one: np.ndarray, other: np.ndarray) -> int:
    """Sum of the signs of the crossings of two open polygons, (n, 3) and (m, 3), seen along z.

    It changes only when the one is pulled through the other (or an end passes), by two.
    """
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    step_a, step_b = np.diff(one, axis=0), np.diff(other, axis=0)
    middle_a, middle_b = (one[:-1] + one[1:])[:, :2] / 2, (other[:-1] + other[1:])[:, :2] / 2
    reach = (np.linalg.norm(step_a[:, :2], axis=1).max() + np.linalg.norm(step_b[:, :2], axis=1).max()) / 2
    flat = [np.concatenate([m, np.zeros((len(m), 1))], axis=1) for m in (middle_b, middle_a)]
    i, j = CellList(flat[0], reach).in_spheres(flat[1], reach + 1e-6)
    r = other[j] - one[i]
    u, v = step_a[i], step_b[j]
    det = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    safe = np.where(det == 0, 1.0, det)
    s = (r[:, 0] * v[:, 1] - r[:, 1] * v[:, 0]) / safe
    t = (r[:, 0] * u[:, 1] - r[:, 1] * u[:, 0]) / safe
    cross = (det != 0) & (s >= 0) & (s < 1) & (t >= 0) & (t < 1)
    height = (one[i, 2] + s * u[:, 2]) - (other[j, 2] + t * v[:, 2])
    return int(np.sign(det[cross] * height[cross]).sum())


def threaded_strands(atoms: Atoms, place: NamePlaces, duplexes: list[Duplex], threads: int = 1) -> list[Piercing]:
    """Backbone bonds (protein or DNA) that run between the strands of a duplex: through the outline of a base-pair
    step, the four C1' of which bound it."""
    if not duplexes:
        return []
    backbone = np.isin(atoms.part, (DNA_BACKBONE, PROTEIN_BACKBONE)) & (atoms.element != HYDROGEN)
    a, b = atoms.graph.bonds.T
    return bonds_through_steps(atoms, step_corners(place, duplexes), atoms.graph.bonds[backbone[a] & backbone[b]],
                               threads)


def step_corners(place: NamePlaces, duplexes: list[Duplex]) -> np.ndarray:
    """(s, 4) the C1' around every base-pair step."""
    corner = [np.stack([d.first[:-1], d.first[1:], d.second[1:], d.second[:-1]], axis=1) for d in duplexes]
    return place("C1'")[np.concatenate(corner or [np.zeros((0, 4), dtype=np.int64)])]


def bonds_through_steps(atoms: Atoms, quads: np.ndarray, bonds: np.ndarray, threads: int = 1) -> list[Piercing]:
    """Those of the (b, 2) bonds that run through the outline of a step, (s, 4) C1', of other residues."""
    if not len(bonds) or not len(quads):
        return []
    corner = atoms.residue[quads]
    position = np.asarray(atoms.position[quads], dtype=np.float64)
    middle = (atoms.position[bonds[:, 0]] + atoms.position[bonds[:, 1]]) / 2
    step, bond = CellList(middle, STEP_REACH, threads).in_spheres(position.mean(axis=1), STEP_REACH)
    own = np.zeros(len(step), dtype=bool)
    ends = [atoms.residue[bonds[:, k]][bond] for k in (0, 1)]
    for k in range(4):  # column by column: short rows are slow
        residue = corner[:, k][step]
        own |= (residue == ends[0]) | (residue == ends[1])
    step, bond = step[~own], bond[~own]
    start, end = (np.asarray(atoms.position[bonds[bond, k]], dtype=np.float64) for k in (0, 1))
    p = position[step]
    hit = np.zeros(len(step), dtype=bool)
    for k in range(4):  # the outline is twisted: it is covered from its middle, as rings are
        hit |= crosses(start, end, p.mean(axis=1), p[:, k], p[:, (k + 1) % 4])
    found = {(tuple(quads[s].tolist()), tuple(sorted(bonds[b].tolist())))
             for s, b in zip(step[hit], bond[hit], strict=True)}
    return [Piercing(quad, bond) for quad, bond in sorted(found)]


def crosses(start: np.ndarray, end: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Whether segments start-end cross triangles a-b-c: (m,) bool for (m, 3) arrays (Moeller and Trumbore 1997)."""
    along = end - start
    u, v = b - a, c - a
    p = cross(along, v)
    det = dot(u, p)
    safe = np.where(np.abs(det) > 1e-12, det, 1.0)
    to_start = start - a
    s = dot(to_start, p) / safe
    q = cross(to_start, u)
    t = dot(along, q) / safe
    depth = dot(v, q) / safe
    return (np.abs(det) > 1e-12) & (s >= 0) & (t >= 0) & (s + t <= 1) & (depth >= 0) & (depth <= 1)


def dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(m,) scalar products of (m, 3) arrays."""
    return np.einsum("ij,ij->i", u, v)
