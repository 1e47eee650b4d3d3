"""Hydrogens on heavy atoms, by geometry alone.

Where a hydrogen goes follows from how many neighbours its heavy atom has: four make a tetrahedron, three a plane, two
a bend. Rotors (hydroxyl, amine, methyl) are staggered. Bond lengths are the equilibrium values of the AMBER force
fields. Prochiral names follow IUPAC: H5' and H2' are pro-S, HB2 precedes HB3 clockwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.molecule.residues import ResidueTemplate, residue_library

BOND_LENGTH = {"C tetrahedral": 1.09, "C planar": 1.08, "N": 1.01, "O": 0.96, "S": 1.336}
TETRAHEDRAL = 109.5
BEND = {"O": 108.5, "S": 96.0}
STAGGERED = {1: (180.0,), 3: (180.0, 60.0, -60.0)}
ECLIPSED = (0.0, 120.0, -120.0)  # a methyl on a double bond, as in thymine: one hydrogen lies over C5=C6
BASE_METHYLS = ("C7", "C5A")  # of thymine and of 5-methylcytosine
# Planar NH2: the atom that the first hydrogen lies opposite to, as in the AMBER residues; the second lies beside it.
OPPOSITE = {
    "ASN": {"ND2": "CB"}, "GLN": {"NE2": "CG"}, "ARG": {"NH1": "NH2", "NH2": "NH1"},
    "DA": {"N6": "C5"}, "DC": {"N4": "C5"}, "DG": {"N2": "N3"},
}  # fmt: skip


@dataclass(frozen=True)
class Placement:
    """One or more hydrogens of one heavy atom; atoms are indices in the residue, -1 the linking atom before it."""

    kind: str
    """``cap`` (three heavy neighbours), ``bridge`` (two, two hydrogens), ``plane`` (two, one hydrogen), ``rotor``."""
    hydrogens: tuple[int, ...]
    centre: int
    neighbours: tuple[int, ...]
    length: float
    angle: float = 0.0
    """Degree, neighbour-centre-hydrogen of a rotor."""
    torsions: tuple[float, ...] = ()
    """Degree, of a rotor: reference-neighbour-centre-hydrogen; the reference is the second of ``neighbours``."""
    sign: float = 1.0
    """Of the first hydrogen of a bridge along neighbour 1 x neighbour 2."""


def _distance_from(template: ResidueTemplate, name: str, adjacency: list[list[int]]) -> dict[int, int]:
    """Bonds from an atom to every other; empty when the residue lacks it."""
    if name not in template.index:
        return {}
    distance, queue = {template.index[name]: 0}, [template.index[name]]
    for a in queue:
        for b in adjacency[a]:
            if b >= 0 and b not in distance:
                distance[b] = distance[a] + 1
                queue.append(b)
    return distance


@cache
def placements(name: str) -> tuple[Placement, ...]:
    """How the hydrogens of a residue of the library are placed."""
    template = residue_library()[name]
    adjacency: list[list[int]] = [[] for _ in template.atoms]
    for a, b in template.bonds:
        adjacency[a].append(int(b))
        adjacency[b].append(int(a))
    # Bonds to neighbouring residues of the chain: the atom before (C of an amide nitrogen, here -1) and after.
    starts_chain = template.kind == "amino acid" and (
        "H2" in template.index or "H3" in template.index or template.is_acylated)
    if template.kind == "amino acid" and not starts_chain:
        adjacency[template.index["N"]].insert(0, -1)
    order = _distance_from(template, "CA", adjacency)
    result = []
    for centre, element in enumerate(template.elements):
        hydrogens = tuple(a for a in adjacency[centre] if a >= 0 and template.elements[a] == "H")
        if element == "H" or not hydrogens:
            continue
        heavy = sorted((a for a in adjacency[centre] if a not in hydrogens), key=lambda a: (order.get(a, 0), a))
        # C and O3' also hold the next residue, but carry no hydrogen unless the chain ends there.
        neighbours = len(hydrogens) + len(heavy)
        shape = {3: "C planar", 4: "C tetrahedral"}[neighbours] if element == "C" else element
        length = BOND_LENGTH[shape]
        if len(heavy) == 3:
            result.append(Placement("cap", hydrogens, centre, tuple(heavy), length))
        elif len(heavy) == 2 and len(hydrogens) == 2:
            sign = 1.0 if template.kind == "nucleotide" else -1.0
            result.append(Placement("bridge", hydrogens, centre, tuple(heavy), length, sign=sign))
        elif len(heavy) == 2:
            result.append(Placement("plane", hydrogens, centre, tuple(heavy), length))
        else:
            joint = heavy[0]
            candidates = sorted((a for a in adjacency[joint] if a != centre and template.elements[a] != "H"),
                                key=lambda a: (order.get(a, 0), a))
            reference, angle, torsions = candidates[0], TETRAHEDRAL, STAGGERED.get(len(hydrogens), ())
            if neighbours == 3:
                reference = template.index[OPPOSITE[template.parent][template.atoms[centre]]]
                angle, torsions = 120.0, (180.0, 0.0)
            elif template.atoms[centre] == template.link:  # the link is trans to the joint's neighbour
                angle, torsions = 120.0, (0.0,)
            elif neighbours == 2:
                angle = BEND[element]
            elif template.kind == "nucleotide" and template.atoms[centre] in BASE_METHYLS:
                reference, torsions = template.index["C6"], ECLIPSED
            result.append(Placement("rotor", hydrogens, centre, (joint, reference), length, angle, torsions))
    return tuple(result)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector, axis=-1, keepdims=True)


def _rotor(reference: np.ndarray, joint: np.ndarray, centre: np.ndarray, placement: Placement) -> list[np.ndarray]:
    """Hydrogens (k, 3) at the placement's angle and torsions."""
    axis = _unit(centre - joint)
    side = reference - joint
    side = _unit(side - axis * np.sum(side * axis, axis=-1, keepdims=True))
    up = np.cross(axis, side)
    angle = np.radians(placement.angle)
    result = []
    for torsion in np.radians(placement.torsions):
        around = np.cos(torsion) * side + np.sin(torsion) * up
        result.append(centre + placement.length * (np.sin(angle) * around - np.cos(angle) * axis))
    return result


def settle_base_methyls(position: np.ndarray, residue_template: np.ndarray, first_atom: np.ndarray) -> None:
    """Turn the methyl of every thymine and 5-methylcytosine where it has most room beside the nucleotide before it.

    Args:
        position: (n, 3) of all atoms, hydrogens placed; the methyl hydrogens are changed.
        residue_template: (r,) library index of every residue.
        first_atom: (r + 1,) first atom of every residue.
    """
    library = list(residue_library().values())
    kinds = np.stack([residue_template[:-1], residue_template[1:]], axis=1)
    for before, kind in np.unique(kinds, axis=0):
        if library[kind].kind != "nucleotide" or library[before].kind != "nucleotide":
            continue
        rotor = next((p for p in placements(library[kind].name)
                      if library[kind].atoms[p.centre] in BASE_METHYLS and p.kind == "rotor"), None)
        if rotor is None:
            continue
        room = np.where(np.array(library[before].elements) == "H", 2.2, 2.7)  # angstrom, to hydrogen and to others
        all_pairs = np.flatnonzero((kinds[:, 0] == before) & (kinds[:, 1] == kind))
        for which in np.array_split(all_pairs, -(-len(all_pairs) // 1000)):
            start = first_atom[which + 1]
            joint, reference = (position[start + a] for a in rotor.neighbours)
            crowd = position[first_atom[which][:, None] + np.arange(len(library[before].atoms))]
            turns = [replace(rotor, torsions=tuple(torsion + phase for torsion in rotor.torsions))
                     for phase in range(0, 120, 15)]
            spots = np.stack([np.stack(_rotor(reference, joint, position[start + rotor.centre], turn), axis=1)
                              for turn in turns], axis=1)  # (k, turns, 3 hydrogens, 3)
            # As the square of a difference, multiplied out: small numbers, from the joint.
            a, b = spots.reshape(len(which), -1, 3) - joint[:, None], crowd - joint[:, None]
            square = (a**2).sum(-1)[:, :, None] + (b**2).sum(-1)[:, None] - 2.0 * a @ b.transpose(0, 2, 1)
            distance = np.sqrt(np.maximum(square, 0.0)).reshape(len(which), len(turns), 3, -1)
            clearance = (distance - room).min(axis=(2, 3))
            best = np.argmax(clearance, axis=1)
            position[start[:, None] + np.array(rotor.hydrogens)] = spots[np.arange(len(which)), best]


def settle_hydroxyls(position: np.ndarray, residue_template: np.ndarray, first_atom: np.ndarray) -> None:
    """Turn every hydroxyl to the best of its staggered (tyrosine: planar) torsions, one after the other.

    A torsion is good when its hydrogen points to an oxygen of another residue and away from everything else.

    Args:
        position: (n, 3) of all atoms, hydrogens placed; the hydroxyl hydrogens are changed.
        residue_template: (r,) library index of every residue.
        first_atom: (r + 1,) first atom of every residue.
    """
    library = list(residue_library().values())
    elements = np.concatenate([library[kind].elements for kind in residue_template])
    residue = np.repeat(np.arange(len(residue_template)), np.diff(first_atom))
    tree, reach = cKDTree(position), 2.6
    for k, kind in enumerate(residue_template):
        for placement in placements(library[kind].name):
            if library[kind].elements[placement.centre] != "O":
                continue
            joint, reference = (position[first_atom[k] + a][None] for a in placement.neighbours)
            centre = position[first_atom[k] + placement.centre][None]
            torsions = (180.0, 0.0) if library[kind].name.endswith("TYR") else (180.0, 60.0, -60.0)
            spots = np.concatenate(_rotor(reference, joint, centre, replace(placement, torsions=torsions)))
            penalty = []
            for spot in spots:
                near = np.array([a for a in tree.query_ball_point(spot, reach + 1.0) if residue[a] != k], dtype=int)
                distance = np.linalg.norm(position[near] - spot, axis=1)
                depth = np.clip(reach - distance, 0.0, None)
                bonded = (elements[near] == "O") & (distance > 1.6)
                penalty.append(np.sum(np.where(bonded, -depth, depth**2)))
            position[first_atom[k] + placement.hydrogens[0]] = spots[int(np.argmin(penalty))]


def place_hydrogens(position: np.ndarray, residue_template: np.ndarray, first_atom: np.ndarray,
                    links: Sequence[tuple[int, int]] = ()) -> None:
    """Fill in every hydrogen; heavy atoms stay.

    Args:
        position: (n, 3) of all atoms in residue and library order; hydrogens are overwritten.
        residue_template: (r,) library index of every residue; residue k follows residue k - 1 along its chain.
        first_atom: (r + 1,) first atom of every residue.
        links: pairs of residues that a bond of a side chain joins.
    """
    library = list(residue_library().values())
    carbonyl = np.array([template.index.get("C", 0) for template in library])
    for kind in np.unique(residue_template):
        which = np.flatnonzero(residue_template == kind)
        start = first_atom[which]
        for placement in placements(library[kind].name):
            centre = position[start + placement.centre]
            near = []
            for neighbour in placement.neighbours:
                if neighbour >= 0:
                    near.append(position[start + neighbour])
                else:
                    before = np.maximum(which - 1, 0)  # what begins no chain, but a fragment, has none
                    near.append(position[first_atom[before] + carbonyl[residue_template[before]]])
            if placement.kind == "rotor":
                found = _rotor(near[1], near[0], centre, placement)
            elif placement.kind == "bridge":
                first, second = _unit(near[0] - centre), _unit(near[1] - centre)
                half = np.radians(TETRAHEDRAL / 2)
                middle = -np.cos(half) * _unit(first + second)
                across = placement.sign * np.sin(half) * _unit(np.cross(first, second))
                found = [centre + placement.length * (middle + across), centre + placement.length * (middle - across)]
            else:
                away = -_unit(sum(_unit(point - centre) for point in near))
                found = [centre + placement.length * away]
            for hydrogen, point in zip(placement.hydrogens, found, strict=True):
                position[start + hydrogen] = point
    for link in links:
        for one, other in (link, link[::-1]):
            _place_on_link(position, library[residue_template[one]], int(first_atom[one]),
                           position[first_atom[other] + library[residue_template[other]].index[
                               library[residue_template[other]].link_atom]])


def _place_on_link(position: np.ndarray, template: ResidueTemplate, first: int, partner: np.ndarray) -> None:
    """Put the hydrogen of an amide nitrogen that links into the plane of what it is bonded to; ``partner``: (3,)."""
    rotor = next((p for p in placements(template.name) if template.atoms[p.centre] == template.link), None)
    if rotor is not None:
        centre, joint = position[first + rotor.centre], position[first + rotor.neighbours[0]]
        position[first + rotor.hydrogens[0]] = centre - rotor.length * _unit(_unit(joint - centre)
                                                                             + _unit(partner - centre))
