"""What else makes a simulation blow up: pierced rings, wrong chirality, cis peptides, strained DNA backbones."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild.base.box_vectors import nearest_image
from chromabuild.molecule.geometry import cross
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import Atoms, Widened
from chromabuild.sterics.bond_graph import BondGraph
from chromabuild.sterics.cell_list import CellList
from chromabuild.sterics.chains import (
    Duplex,
    MergedMolecules,
    NamePlaces,
    Piercing,
    crosses,
    find_duplexes,
    merged_molecules,
    threaded_strands,
)
from chromabuild.sterics.detect import close_pairs

# Centre, then three neighbours with a positive (right-handed) triple product in the natural form.
PROTEIN_CENTRES = {"CA": ("N", "C", "CB")}
SIDE_CHAIN_CENTRES = {"ILE": ("CB", ("CA", "CG1", "CG2")), "THR": ("CB", ("CA", "OG1", "CG2"))}
NUCLEOTIDE_CENTRES = {"C1'": ("O4'", "C2'", "N"), "C3'": ("C4'", "C2'", "O3'"), "C4'": ("O4'", "C5'", "C3'")}

RING_SEARCH = 2.2  # angstrom between an atom of a ring and an end of a bond that pierces it
CIS_BELOW, TRANS_ABOVE = 30.0, 150.0  # degree of |omega|


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
    merged: list[MergedMolecules]
    duplexes: list[Duplex]
    threaded: list[Piercing]
    """Backbone bonds between the strands of a duplex; ``ring`` holds the four C1' around the hole."""


def audit(atoms: Atoms, threads: int = 1, near: tuple[np.ndarray, np.ndarray] | None = None) -> Audit:
    """All audits of a structure; ``near`` are its non-bonded pairs up to RING_SEARCH or more, when known already."""
    if near is None:
        near = near_pairs(atoms, threads)
    place = NamePlaces(atoms)
    links = place.links

    def strands() -> tuple[list[Duplex], list[Piercing]]:
        duplexes = find_duplexes(atoms, place)
        return duplexes, threaded_strands(atoms, place, duplexes)

    # Independent of each other, and mostly in numpy, which lets others run.
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(*call) for call in (
            (strands,), (ring_piercings, atoms, near), (backbone_geometry, atoms, place),
            (chirality_errors, atoms, place), (peptides, atoms, place), (merged_molecules, atoms, near))]
        (duplexes, threaded), piercings, geometry, chirality, (cis, twisted), merged = (p.result() for p in parts)
    bonds, length, bond_z, angle_atoms, angle, angle_z = geometry
    return Audit(
        piercings=piercings, chirality_errors=chirality, cis_peptides=cis, twisted_peptides=twisted,
        bonds=bonds, bond_length=length, bond_z=bond_z,
        angles=angle_atoms, angle_value=angle, angle_z=angle_z,
        link_length=np.linalg.norm(atoms.position[links[:, 0]].astype(np.float64)
                                   - atoms.position[links[:, 1]].astype(np.float64), axis=1),
        merged=merged, duplexes=duplexes, threaded=threaded,
    )


def near_pairs(atoms: Atoms, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Non-bonded pairs up to RING_SEARCH and their distances."""
    return close_pairs(atoms.position, RING_SEARCH, atoms.graph, atoms.box, threads)


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


def find_rings(atoms: Atoms, residues: np.ndarray | None = None) -> np.ndarray:
    """(k, 6) every ring of five or six atoms of the given residues (all by default); the sixth of a five-ring is -1."""
    names = residue_names()
    residues = np.arange(len(atoms.residue_name)) if residues is None else residues
    template, first = atoms.residue_template[residues], atoms.residue_first
    found = [np.zeros((0, 6), dtype=np.int64)]
    for kind in np.unique(template[template >= 0]):
        start = first[residues[template == kind]]
        index = residue_library()[names[kind]].index
        for ring in ring_names(names[kind]):
            row = np.array([index[name] for name in ring] + [0] * (6 - len(ring)))
            block = start[:, None] + row
            block[:, len(ring):] = -1
            found.append(block)
    for residue in residues[template < 0].tolist():
        begin, end = int(first[residue]), int(first[residue + 1])
        found += [np.array([(*ring, -1)[:6]]) for ring in small_rings(atoms.graph, range(begin, end))]
    table = np.concatenate(found)
    return table[np.argsort(table[:, 0], kind="stable")]


def ring_piercings(atoms: Atoms, near: tuple[np.ndarray, np.ndarray] | None = None, threads: int = 1) -> list[Piercing]:
    """Bonds that run through rings of five or six atoms.

    One end of a bond of up to 2.1 angstrom that crosses a ring is within RING_SEARCH of an atom of the ring: through
    the middle of a six-ring it is sqrt(1.4^2 + 1.05^2) = 1.75 angstrom away. So candidates come from the close pairs
    ``near``; longer, that is broken bonds are looked for around each ring. The ring is covered by triangles from its
    centre to its edges; a bond pierces it where it crosses one of them.
    """
    pairs, distance = near_pairs(atoms, threads) if near is None else near
    pairs = pairs[distance < RING_SEARCH]
    graph, position = atoms.graph, atoms.position
    lengths = bond_lengths(atoms)
    long = graph.bonds[lengths > 2.1]
    if len(long):
        rings = find_rings(atoms)
    else:
        rings = find_rings(atoms, np.unique(atoms.residue[pairs]))
    if not len(rings) or not len(graph.bonds):
        return []
    candidates = [bonds_near_rings(graph, rings, pairs)]
    if len(long):
        centre = np.where(rings[:, :, None] >= 0, position[rings], 0).sum(axis=1) / (rings >= 0).sum(axis=1)[:, None]
        middle = position[long].mean(axis=1)
        reach = float(lengths.max()) / 2 + 1.5
        ring, which = CellList(middle, reach, threads).in_spheres(centre, reach)
        candidates.append(np.concatenate([ring[:, None], np.sort(long[which], axis=1)], axis=1))
    return bonds_through_rings(position, atoms.box, rings, np.concatenate(candidates))


def bonds_near_rings(graph: BondGraph, rings: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(c, 3) candidates: a row of ``rings`` and two bonded atoms, for each close pair of an atom of both."""
    # Rings of each atom, as compressed rows over the atoms that are in a ring.
    member = rings.ravel()
    order = np.argsort(member, kind="stable")[np.count_nonzero(member < 0):]
    first = np.flatnonzero(np.diff(member[order], prepend=-1))
    in_ring, count = member[order[first]], np.diff(first, append=len(order))
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.isin(both[:, 0], in_ring)]
    place, other = np.searchsorted(in_ring, both[:, 0]), both[:, 1].astype(np.int64)
    ring, row = expand(first[place], count[place])
    ring, other = order[ring] // 6, other[row]
    neighbour, row = expand(graph.first[other], graph.first[other + 1] - graph.first[other])
    bond = np.sort(np.stack([other[row], graph.neighbour[neighbour]], axis=1), axis=1)
    return np.concatenate([ring[row][:, None], bond], axis=1)


def bonds_through_rings(position: np.ndarray, box: np.ndarray | None, rings: np.ndarray,
                        found: np.ndarray) -> list[Piercing]:
    """Those of the candidates ``found``, as ``bonds_near_rings`` gives them, that pierce their ring; each once."""
    found = found[np.lexsort(found.T[::-1])]
    found = found[np.append(True, (np.diff(found, axis=0) != 0).any(axis=1))[:len(found)]]
    own = np.zeros(len(found), dtype=bool)
    for k in range(6):
        member = rings[found[:, 0], k]
        own |= (member == found[:, 1]) | (member == found[:, 2])
    found = found[~own]
    members = rings[found[:, 0]]
    if not len(found):
        return []
    size = (members >= 0).sum(axis=1)
    origin = position[members[:, 0]].astype(np.float64)
    corners = separation(position[members], origin[:, None], box)
    centre = np.where(members[:, :, None] >= 0, corners, 0).sum(axis=1) / size[:, None]
    start = separation(position[found[:, 1]], origin, box)
    end = start + separation(position[found[:, 2]], position[found[:, 1]], box)
    pierced = np.zeros(len(found), dtype=bool)
    for k in range(6):
        following = np.where(k + 1 == size, 0, min(k + 1, 5))
        pierced |= (k < size) & crosses(start, end, centre, corners[:, k], corners[np.arange(len(found)), following])
    return [Piercing(tuple(a for a in ring if a >= 0), (first, second)) for ring, (_, first, second)
            in zip(members[pierced].tolist(), found[pierced].tolist(), strict=True)]


def bond_lengths(atoms: Atoms) -> np.ndarray:
    """(b,) float32 length of every bond, angstrom, to about 1e-4."""
    a, b = atoms.graph.bonds.T
    r = (atoms.position[a] - atoms.position[b]).astype(np.float32, copy=False)
    if atoms.box is not None:
        r = nearest_image(r, atoms.box).astype(np.float32)
    return np.sqrt(np.einsum("ij,ij->i", r, r))


def expand(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers first[k] .. first[k] + count[k] - 1 of every k, and the k of each."""
    row = np.repeat(np.arange(len(count)), count)
    start = np.cumsum(count) - count
    return np.arange(len(row)) - start[row] + first[row], row


def separation(a: np.ndarray, b: np.ndarray, box: np.ndarray | None) -> np.ndarray:
    """a - b in float64, to the nearest image when there is a box."""
    r = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return r if box is None else nearest_image(r, box)


def stereocentres(atoms: Atoms, place: NamePlaces) -> np.ndarray:
    """(c, 4): centre and three neighbours, ordered so that the natural form has a positive triple product."""
    rows = []
    residue_name = parent_names(atoms)

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


def pdb_names(atoms: Atoms) -> np.ndarray:
    """(r,) PDB name of every residue, by its library name or as it is."""
    library = residue_library()
    names = np.asarray(atoms.residue_name, dtype=object)
    known = {name: library[name].pdb_name if name in library else name for name in set(names.tolist())}
    return np.array(list(map(known.get, names.tolist())), dtype=object)


def parent_names(atoms: Atoms) -> np.ndarray:
    """(r,) PDB name of every residue without its modification, by its library name or as it is."""
    library = residue_library()
    names = np.asarray(atoms.residue_name, dtype=object)
    known = {name: library[library[name].parent].pdb_name if name in library and library[name].modification
             else library[name].pdb_name if name in library else name for name in set(names.tolist())}
    return np.array(list(map(known.get, names.tolist())), dtype=object)


def chirality_errors(atoms: Atoms, place: NamePlaces | None = None) -> list[int]:
    """Centres of CA, Ile and Thr CB, C1', C3', C4' that are mirrored or flat (triple product below 0.5 angstrom^3)."""
    quads = stereocentres(atoms, place or NamePlaces(atoms))
    position = Widened(atoms.position)
    a, b, c = (position[quads[:, k]] - position[quads[:, 0]] for k in (1, 2, 3))
    return sorted(quads[(cross(a, b) * c).sum(axis=1) < 0.5, 0].tolist())


def peptides(atoms: Atoms, place: NamePlaces) -> tuple[list[int], list[int]]:
    """N atoms of cis non-proline peptides and of twisted peptides."""
    c, n = place.peptide_bonds.T
    quads = np.stack([place("CA")[atoms.residue[c]], c, n, place("CA")[atoms.residue[n]]], axis=1)
    quads = quads[(quads >= 0).all(axis=1)]
    omega = np.abs(reference.dihedrals(Widened(atoms.position), quads))
    residues = atoms.residue[quads[:, 3]]
    proline = pdb_names(atoms)[residues] == "PRO"
    cis = (omega < CIS_BELOW) & ~proline
    twisted = (omega >= CIS_BELOW) & (omega <= TRANS_ABOVE)
    return quads[cis, 2].tolist(), quads[twisted, 2].tolist()


def backbone_geometry(atoms: Atoms, place: NamePlaces, residues: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """DNA backbone bonds and angles with values and z scores; with a (r,) bool mask of these residues only."""
    o3, p = place.links.T
    left = np.full(len(atoms.residue_name), -1)
    right = left.copy()
    left[atoms.residue[p]] = o3
    right[atoms.residue[o3]] = p
    sugar = place("C4'") >= 0
    if residues is not None:
        sugar = sugar & residues
    nucleotides = np.flatnonzero(sugar)
    known: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def column(which: str, name: str) -> tuple[np.ndarray, np.ndarray]:
        """That atom of each nucleotide, and where it is."""
        if (which, name) not in known:
            where = (left if which == "left" else right if which == "right" else place(name))[nucleotides]
            known[which, name] = where, atoms.position[where].astype(np.float64)
        return known[which, name]

    def gather(table: dict[str, tuple[float, float]], value_of: Callable[..., np.ndarray]) -> tuple[np.ndarray, ...]:
        rows, values, z = [], [], []
        for key, (mean, deviation) in table.items():
            names = key.split()
            # O3' beside P is that of the nucleotide before, P beside C3'-O3' that of the one after.
            columns = [column("left", name) if name == "O3'" and "P" in names and "C3'" not in names else
                       column("right", name) if name == "P" and "O3'" in names and "C3'" in names else
                       column("own", name) for name in names]
            there = np.logical_and.reduce([where >= 0 for where, _ in columns])
            value = value_of(*(position[there] for _, position in columns))
            rows.append(np.stack([where[there] for where, _ in columns], axis=1))
            values.append(value)
            z.append((value - mean) / deviation)
        return np.concatenate(rows), np.concatenate(values), np.concatenate(z)

    return (*gather(reference.BACKBONE_BONDS, reference.length_between),
            *gather(reference.BACKBONE_ANGLES, reference.angle_between))
