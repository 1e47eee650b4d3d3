"""A cluster around some atoms of a large system, cut so that quantum chemistry can take it.

Whole molecules are taken where they are small. DNA and protein are cut at single bonds between tetrahedral carbons,
between CA and C of a peptide, and between sugar and base, and each cut is closed by a hydrogen along the bond. So a
phosphate becomes dimethyl phosphate, a base stands alone, and a side chain keeps its functional group with one carbon.
"""

from dataclasses import dataclass, replace

import numpy as np
from openmm import app, unit
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from chromabuild.base.box_vectors import nearest_image, vectors_of
from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.topology_file import Topology

REACH = 14.0
"""Angstrom around the centre within which bonds are looked at: what is not cut there is too large."""
CAP_LENGTH = {"C": 1.09, "N": 1.01}
"""Angstrom, bonds of the closing hydrogens: of alkanes and of amides."""
LARGEST_ODD_CHARGE = 0.4
"""Beyond so many e from a whole number, the charge of a piece cannot be told from its partial charges."""
MOST_ATOMS = 100
"""Beyond which a plane-wave computation is no check any more but a project."""
NEAREST = 0.4
"""Angstrom between atoms, nearer than any bond: they would stand in one place."""


@dataclass(frozen=True)
class Cluster:
    """``n`` atoms and then ``c`` closing hydrogens, in ``f`` pieces that no bond joins."""

    atom: np.ndarray
    """(n,) int64, of the system, from 0."""
    label: tuple[str, ...]
    """(n + c,) ``segid:resname:resid:name``; of a hydrogen that of the atom it stands on."""
    element: tuple[str, ...]
    """(n + c,) symbols; empty for a charge without an atom, which some water models have."""
    position: np.ndarray
    """(n + c, 3) angstrom, the centre at the origin."""
    piece: np.ndarray
    """(n + c,) int64."""
    bonds: np.ndarray
    """(b, 2) int64, rows of the cluster."""
    charge: np.ndarray
    """(n + c,) partial charges of the force field, e; hydrogens make the charge of their piece whole."""
    piece_charge: np.ndarray
    """(f,) int64, e."""

    @property
    def n_atoms(self) -> int:
        """Atoms without closing hydrogens."""
        return len(self.atom)

    @property
    def total_charge(self) -> int:
        """Of all pieces, e."""
        return int(self.piece_charge.sum())

    def row(self, atom: int) -> int:
        """Where an atom of the system stands."""
        return int(np.flatnonzero(self.atom == atom)[0])

    def moved(self, position: np.ndarray) -> "Cluster":
        """The same atoms elsewhere."""
        return replace(self, position=position)


def cut_cluster(topology: Topology, position: np.ndarray, box: np.ndarray, centres: np.ndarray, radius: float,
                label: np.ndarray) -> Cluster:
    """What lies within ``radius`` (angstrom) of the atoms ``centres``, with the pieces that these belong to.

    ``position`` (n, 3) and ``box``, (3,) or (3, 3), in angstrom; molecules may lie across its faces. ``label``: (n,)
    of the atoms. Raises BadInputError where a piece is too large, or its charge is not near a whole number.
    """
    middle = position[centres[0]]
    centre = middle + nearest_image(position[centres] - middle, box).mean(axis=0)
    from_centre = nearest_image(position - centre, box)
    near = np.flatnonzero((from_centre**2).sum(axis=1) < min(REACH, 0.5 * np.diag(vectors_of(box)).min()) ** 2)
    bonds = topology.term("bond")["atoms"]
    degree = np.bincount(bonds.ravel(), minlength=len(position))
    is_near = np.zeros(len(position), dtype=bool)
    is_near[near] = True
    bonds = bonds[is_near[bonds].any(axis=1)]
    mass, name = topology.masses(), topology.per_atom("atom_name").astype("U4")
    symbol = {atom: _symbol(mass[atom]) for atom in np.union1d(near, bonds.ravel()).tolist()}
    is_cut = np.array([_may_cut([(name[k], symbol[k], degree[k]) for k in bond]) for bond in bonds.tolist()], bool)

    groups = _groups(np.union1d(near, bonds.ravel()), bonds[~is_cut])
    tree = cKDTree(from_centre[near])
    begin = {groups[near[k]] for found in tree.query_ball_point(from_centre[centres], radius) for k in found}
    chosen = _without_shared_caps({*begin, *(groups[c] for c in centres)}, bonds, groups)
    atom = np.array(sorted(k for k in near.tolist() if groups[k] in chosen), dtype=np.int64)
    if len(atom) > MOST_ATOMS:
        raise BadInputError(f"{len(atom)} atoms lie within {radius:g} angstrom of the contact, more than plane waves "
                            f"are for here ({MOST_ATOMS}): give a smaller --radius")
    cluster = _closed(topology, from_centre, atom, bonds, is_cut, symbol, label, radius)
    refuse_overlaps(cluster, cluster.position)
    return cluster


def refuse_overlaps(cluster: Cluster, position: np.ndarray, where: str = "") -> None:
    """Raise BadInputError where two atoms at positions (n + c, 3) are nearer than any bond; ``where`` is said then."""
    atoms = np.flatnonzero([element != "" for element in cluster.element])
    pairs = cKDTree(position[atoms]).query_pairs(NEAREST, output_type="ndarray")
    if len(pairs):
        a, b = atoms[min(pairs.tolist())]
        apart = np.linalg.norm(position[a] - position[b])
        raise BadInputError(f"{cluster.label[a]} and {cluster.label[b]} are {apart:.2f} angstrom apart{where}: move or "
                            "remove one in the structure, or change --scan")


def _symbol(mass: float) -> str:
    return "" if mass == 0 else app.Element.getByMass(mass * unit.dalton).symbol


def _may_cut(ends: list[tuple[str, str, int]]) -> bool:
    """Whether a bond may be cut, from name, element and number of neighbours of both ends."""
    (name_a, a, degree_a), (name_b, b, degree_b) = ends
    if a == b == "C":
        return degree_a == degree_b == 4 or {name_a, name_b} == {"CA", "C"}
    return {a, b} == {"C", "N"} and "C1'" in (name_a, name_b)


def _groups(atoms: np.ndarray, bonds: np.ndarray) -> dict[int, int]:
    """The group of each of some atoms (ascending), which the bonds that are not cut make."""
    row = np.searchsorted(atoms, bonds)
    graph = coo_array((np.ones(len(row)), (row[:, 0], row[:, 1])), shape=(len(atoms),) * 2)
    return dict(zip(atoms.tolist(), connected_components(graph, directed=False)[1].tolist(), strict=True))


def _without_shared_caps(chosen: set[int], bonds: np.ndarray, groups: dict[int, int]) -> set[int]:
    """The groups, with those between two of them too: hydrogens from both sides would stand in one place."""
    while True:
        met: dict[int, int] = {}
        for a, b in bonds.tolist():
            for inside, outside in ((a, b), (b, a)):
                if groups[inside] in chosen and groups[outside] not in chosen:
                    met[outside] = met.get(outside, 0) + 1
        shared = {groups[atom] for atom, times in met.items() if times > 1}
        if not shared:
            return chosen
        chosen = chosen | shared


def _closed(topology: Topology, position: np.ndarray, atom: np.ndarray, bonds: np.ndarray, is_cut: np.ndarray,
            symbol: dict[int, str], label: np.ndarray, radius: float) -> Cluster:
    """Close the cuts, and make charges whole."""
    inside = np.isin(bonds, atom)
    leaves = inside.sum(axis=1) == 1
    torn = bonds[leaves & ~is_cut]
    if len(torn):
        raise BadInputError(f"the piece with {label[torn[0][np.isin(torn[0], atom)][0]]} has no bond that may be cut "
                            f"within {REACH:g} angstrom of the contact: it is too large for a check")
    kept = np.searchsorted(atom, bonds[inside.all(axis=1)])
    across = bonds[leaves & is_cut]
    ends = np.where(np.isin(across, atom)[:, :1], across, across[:, ::-1]).reshape(-1, 2)
    stands_on = np.searchsorted(atom, ends[:, 0])
    along = position[ends[:, 1]] - position[ends[:, 0]]
    length = np.array([CAP_LENGTH[symbol[a]] for a in ends[:, 0].tolist()])
    caps = position[ends[:, 0]] + along / np.linalg.norm(along, axis=1, keepdims=True) * length[:, None]

    n = len(atom)
    cap_bonds = np.column_stack([stands_on, n + np.arange(len(ends))])
    graph_bonds = np.vstack([kept.reshape(-1, 2), cap_bonds]).astype(np.int64)
    sites = _site_bonds(atom, topology)
    joined = np.vstack([graph_bonds, sites])
    graph = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(n + len(ends),) * 2)
    n_pieces, piece = connected_components(graph, directed=False)

    charge = np.append(topology.charges()[atom], np.zeros(len(ends)))
    labels = (*label[atom].tolist(), *(f"{label[a]}~H" for a in ends[:, 0].tolist()))
    sums = np.bincount(piece, weights=charge, minlength=n_pieces)
    whole = np.round(sums).astype(np.int64)
    n_caps = np.bincount(piece[n:], minlength=n_pieces)
    odd = np.flatnonzero((np.abs(sums - whole) > LARGEST_ODD_CHARGE) | ((np.abs(sums - whole) > 1e-3) & (n_caps == 0)))
    if len(odd):
        first = labels[int(np.flatnonzero(piece == odd[0])[0])]
        raise BadInputError(f"the piece with {first} has a charge of {sums[odd[0]]:+.2f} e in the force field, near no "
                            f"whole number: choose another --radius than {radius:g}, so that it is cut elsewhere")
    charge[n:] = ((whole - sums) / np.maximum(n_caps, 1))[piece[n:]]
    return Cluster(atom, labels, (*(symbol[a] for a in atom.tolist()), *("H" for _ in ends)),
                   np.vstack([position[atom], caps]), piece.astype(np.int64), graph_bonds, charge, whole)


def _site_bonds(atom: np.ndarray, topology: Topology) -> np.ndarray:
    """(s, 2) rows of charges without an atom, and of the first atom that each goes by."""
    atoms = topology.term("virtual_site")["atoms"].reshape(-1, 4)[:, :2]
    return np.searchsorted(atom, atoms[np.isin(atoms, atom).all(axis=1)]).reshape(-1, 2)
