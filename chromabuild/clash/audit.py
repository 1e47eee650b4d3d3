"""What else makes a simulation blow up: pierced rings, wrong chirality, cis peptides, strained DNA backbones."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild.clash import reference
from chromabuild.clash.atoms import Atoms, BondGraph
from chromabuild.clash.detect import CellList
from chromabuild.residues import residue_library

# Centre, then three neighbours with a positive (right-handed) triple product in the natural form.
PROTEIN_CENTRES = {"CA": ("N", "C", "CB")}
SIDE_CHAIN_CENTRES = {"ILE": ("CB", ("CA", "CG1", "CG2")), "THR": ("CB", ("CA", "OG1", "CG2"))}
NUCLEOTIDE_CENTRES = {"C1'": ("O4'", "C2'", "N"), "C3'": ("C4'", "C2'", "O3'"), "C4'": ("O4'", "C5'", "C3'")}

RING_SEARCH = 2.8  # angstrom between the centre of a ring and the middle of a bond that pierces it
CIS_BELOW, TRANS_ABOVE = 30.0, 150.0  # degree of |omega|


@dataclass(frozen=True)
class Piercing:
    """A bond that runs through a ring."""

    ring: tuple[int, ...]
    bond: tuple[int, int]


@dataclass(frozen=True)
class Audit:
    """Everything found; atoms by number."""

    piercings: list[Piercing]
    chirality_errors: list[int]
    """Centres of wrong or flat chirality."""
    cis_peptides: list[int]
    """N atoms of non-proline peptides with |omega| < 30 degrees."""
    twisted_peptides: list[int]
    """N atoms of peptides with |omega| between 30 and 150 degrees."""
    bonds: np.ndarray
    """(b, 2) DNA backbone bonds, each with its length and z score."""
    bond_length: np.ndarray
    bond_z: np.ndarray
    angles: np.ndarray
    angle_value: np.ndarray
    angle_z: np.ndarray
    link_length: np.ndarray
    """Every O3'-P bond, angstrom."""


def audit(atoms: Atoms, threads: int = 1) -> Audit:
    """All audits of a structure."""
    place = NamePlaces(atoms)
    cis, twisted = peptides(atoms, place)
    bonds, length, bond_z, angle_atoms, angle, angle_z = backbone_geometry(atoms, place)
    links = place.links
    return Audit(
        piercings=ring_piercings(atoms, threads),
        chirality_errors=chirality_errors(atoms, place),
        cis_peptides=cis, twisted_peptides=twisted,
        bonds=bonds, bond_length=length, bond_z=bond_z,
        angles=angle_atoms, angle_value=angle, angle_z=angle_z,
        link_length=np.linalg.norm(atoms.position[links[:, 0]].astype(np.float64)
                                   - atoms.position[links[:, 1]].astype(np.float64), axis=1),
    )


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
            places = np.full(len(self.atoms.residue_name), -1, dtype=np.int64)
            here = np.flatnonzero(self.atoms.name == name)
            places[self.atoms.residue[here]] = here
            self.found[name] = places
        return self.found[name]

    def _crossing(self, tail: str, head: str) -> np.ndarray:
        """(b, 2) bonds between residues from an atom named ``tail`` to one named ``head``."""
        name = self.atoms.name
        pairs = np.concatenate([self.crossing, self.crossing[:, ::-1]])
        pairs = pairs[(name[pairs[:, 0]] == tail) & (name[pairs[:, 1]] == head)]
        return pairs[np.argsort(pairs[:, 0])]


@cache
def ring_names(residue: str) -> tuple[tuple[str, ...], ...]:
    """Rings of five and six atoms of a library residue, by atom names in ring order."""
    template = residue_library()[residue]
    graph = BondGraph(len(template.atoms), template.bonds)
    return tuple(tuple(template.atoms[k] for k in ring) for ring in small_rings(graph, range(len(template.atoms))))


def small_rings(graph: BondGraph, members: range) -> list[tuple[int, ...]]:
    """Rings of five and six bonded atoms, each once, from its lowest atom; not the ring around two fused ones."""
    inside = set(members)
    rings = []
    for start in members:
        stack = [(start,)]
        while stack:
            path = stack.pop()
            for other in graph.neighbours(path[-1]).tolist():
                if other == start and len(path) in (5, 6) and path[1] < path[-1]:
                    rings.append(path)
                elif other > start and other in inside and other not in path and len(path) < 6:
                    stack.append((*path, other))
    return sorted(rings)


def find_rings(atoms: Atoms) -> list[tuple[int, ...]]:
    """Every ring of five or six atoms."""
    library = residue_library()
    first = np.searchsorted(atoms.residue, np.arange(len(atoms.residue_name) + 1))
    rings = []
    for residue, name in enumerate(atoms.residue_name):
        begin, end = int(first[residue]), int(first[residue + 1])
        if name not in library:
            rings += small_rings(atoms.graph, range(begin, end))
            continue
        names = ring_names(name)
        if not names:
            continue
        if end - begin == len(library[name].atoms):
            index = library[name].index
            rings += [tuple(begin + index[a] for a in ring) for ring in names]
        else:
            here = {a: begin + k for k, a in enumerate(atoms.name[begin:end])}
            rings += [tuple(here[a] for a in ring) for ring in names if all(a in here for a in ring)]
    return rings


def ring_piercings(atoms: Atoms, threads: int = 1) -> list[Piercing]:
    """Bonds that run through rings of five or six atoms.

    The ring is covered by triangles from its centre to its edges; a bond pierces it where it crosses one of them.
    """
    bonds = atoms.graph.bonds
    position = np.asarray(atoms.position, dtype=np.float64)
    rings = find_rings(atoms)
    if not rings or not len(bonds):
        return []
    cells = CellList(position[bonds].mean(axis=1), RING_SEARCH, threads)
    found = []
    for size in (5, 6):
        members = np.array([ring for ring in rings if len(ring) == size], dtype=np.int64).reshape(-1, size)
        ring, bond = cells.in_spheres(position[members].mean(axis=1), RING_SEARCH)
        own = (members[ring][:, :, None] == bonds[bond][:, None, :]).any(axis=(1, 2))
        ring, bond = ring[~own], bond[~own]
        corners = position[members[ring]]
        hit = np.zeros(len(ring), dtype=bool)
        start, end = position[bonds[bond, 0]], position[bonds[bond, 1]]
        for k in range(size):
            hit |= crosses(start, end, corners.mean(axis=1), corners[:, k], corners[:, (k + 1) % size])
        found += [Piercing(tuple(members[r].tolist()), tuple(bonds[b].tolist()))
                  for r, b in zip(ring[hit], bond[hit], strict=True)]
    return sorted(found, key=lambda p: (p.ring, p.bond))


def crosses(start: np.ndarray, end: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Whether segments start-end cross triangles a-b-c: (m,) bool for (m, 3) arrays (Moeller and Trumbore 1997)."""
    along = end - start
    u, v = b - a, c - a
    p = np.cross(along, v)
    det = (u * p).sum(axis=1)
    safe = np.where(np.abs(det) > 1e-12, det, 1.0)
    to_start = start - a
    s = (to_start * p).sum(axis=1) / safe
    q = np.cross(to_start, u)
    t = (along * q).sum(axis=1) / safe
    depth = (v * q).sum(axis=1) / safe
    return (np.abs(det) > 1e-12) & (s >= 0) & (t >= 0) & (s + t <= 1) & (depth >= 0) & (depth <= 1)


def stereocentres(atoms: Atoms, place: NamePlaces) -> np.ndarray:
    """(c, 4): centre and three neighbours, ordered so that the natural form has a positive triple product."""
    rows = []
    residue_name = np.array([library_pdb_name(name) for name in atoms.residue_name])

    def add(centre: str, neighbours: list[np.ndarray], where: np.ndarray | None = None) -> None:
        quad = np.stack([place(centre), *neighbours], axis=1)
        keep = (quad >= 0).all(axis=1)
        rows.append(quad[keep if where is None else keep & where])

    for centre, neighbours in PROTEIN_CENTRES.items():
        add(centre, [place(n) for n in neighbours])
    for residue, (centre, neighbours) in SIDE_CHAIN_CENTRES.items():
        add(centre, [place(n) for n in neighbours], residue_name == residue)
    # The base is attached through N9 in purines, which also have an N1 elsewhere.
    glycosidic = np.where(place("N9") >= 0, place("N9"), place("N1"))
    for centre, neighbours in NUCLEOTIDE_CENTRES.items():
        add(centre, [glycosidic if n == "N" else place(n) for n in neighbours])
    return np.concatenate(rows)


@cache
def library_pdb_name(name: str) -> str:
    """PDB name of a residue, by its library name or as it is."""
    template = residue_library().get(name)
    return template.pdb_name if template else name


def chirality_errors(atoms: Atoms, place: NamePlaces | None = None) -> list[int]:
    """Centres of CA, Ile and Thr CB, C1', C3', C4' that are mirrored or flat (triple product below 0.5 angstrom^3)."""
    quads = stereocentres(atoms, place or NamePlaces(atoms))
    position = np.asarray(atoms.position, dtype=np.float64) if len(quads) else np.zeros((1, 3))
    a, b, c = (position[quads[:, k]] - position[quads[:, 0]] for k in (1, 2, 3))
    return sorted(quads[(np.cross(a, b) * c).sum(axis=1) < 0.5, 0].tolist())


def peptides(atoms: Atoms, place: NamePlaces) -> tuple[list[int], list[int]]:
    """N atoms of cis non-proline peptides and of twisted peptides."""
    c, n = place.peptide_bonds.T
    quads = np.stack([place("CA")[atoms.residue[c]], c, n, place("CA")[atoms.residue[n]]], axis=1)
    quads = quads[(quads >= 0).all(axis=1)]
    omega = np.abs(reference.dihedrals(np.asarray(atoms.position, dtype=np.float64), quads))
    residues = atoms.residue[quads[:, 3]]
    proline = np.array([library_pdb_name(atoms.residue_name[r]) == "PRO" for r in residues], dtype=bool)
    cis = (omega < CIS_BELOW) & ~proline
    twisted = (omega >= CIS_BELOW) & (omega <= TRANS_ABOVE)
    return quads[cis, 2].tolist(), quads[twisted, 2].tolist()


def backbone_geometry(atoms: Atoms, place: NamePlaces) -> tuple[np.ndarray, ...]:
    """DNA backbone bonds and angles with values and z scores."""
    position = np.asarray(atoms.position, dtype=np.float64)
    left = np.full(len(atoms.residue_name), -1)
    right = left.copy()
    o3, p = place.links.T
    left[atoms.residue[p]] = o3
    right[atoms.residue[o3]] = p
    sugar = place("C4'") >= 0

    def columns(names: tuple[str, ...]) -> np.ndarray:
        """Atoms of these names in each nucleotide; O3' beside P is the one of the residue before."""
        found = []
        for name in names:
            if name == "O3'" and "P" in names and "C3'" not in names:
                found.append(left)
            elif name == "P" and "O3'" in names and "C3'" in names:
                found.append(right)
            else:
                found.append(place(name))
        rows = np.stack(found, axis=1)
        return rows[(rows >= 0).all(axis=1) & sugar]

    def gather(table: dict[str, tuple[float, float]], value_of: object) -> tuple[np.ndarray, ...]:
        rows, values, z = [], [], []
        for names, (mean, deviation) in table.items():
            items = columns(tuple(names.split()))
            value = value_of(items)
            rows.append(items)
            values.append(value)
            z.append((value - mean) / deviation)
        return np.concatenate(rows), np.concatenate(values), np.concatenate(z)

    bonds = gather(reference.BACKBONE_BONDS, lambda k: np.linalg.norm(position[k[:, 0]] - position[k[:, 1]], axis=1))
    angles = gather(reference.BACKBONE_ANGLES, lambda k: reference.angles(position, k))
    return *bonds, *angles
