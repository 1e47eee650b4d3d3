"""Moves of backbones: a phosphate turned and re-closed, and the small re-adjustment of any backbone.

A bare rotation of the phosphate group about O3'-C5' keeps bond lengths but leaves the allowed bond angles after about
14 degrees. So the turned phosphate is only a start: the sugar and phosphate atoms around it are then re-adjusted by
least squares against the reference bonds and angles while overlaps push them apart. Bases stay where they are; C1'
gives way only in the re-adjustment of several residues, when nothing else helps.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chromabuild import _kernels
from chromabuild.molecule.geometry import cross
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import DNA_BACKBONE, SUGAR
from chromabuild.sterics.audit import expand
from chromabuild.sterics.bond_graph import BondGraph
from chromabuild.sterics.scene import Scene, Score
from chromabuild.sterics.sidechain import Proposal
from chromabuild.sterics.torsions import Torsion

PHI_STARTS = (0.0, 15.0, -15.0, 30.0, -30.0, 50.0, -50.0, 80.0, -80.0)  # degree
LEFT_OF_LINK = "C5' H5' H5'' C4' H4' O4' C3' H3' C2' H2' H2'' O3' HO3'".split()
RIGHT_OF_LINK = "P OP1 OP2 O5' C5' H5' H5'' C4' H4' O4' C3' H3' C2' H2' H2''".split()
SUGAR_PHOSPHATE = sorted(set(LEFT_OF_LINK) | set(RIGHT_OF_LINK))

# Where a step is bent sharply, H2' or H2'' runs into the next base: no pucker parts them unless C1' gives way too.
SUGAR_AND_C1 = sorted({*SUGAR_PHOSPHATE, "C1'", "H1'"})

REACH = 3.0  # angstrom that a re-adjusted atom may go
CONTACT_WEIGHTS = (8.0, 3.0)  # 1/angstrom; a bond weighs about 80. The second where the first bends too much
PUSH = 1.2  # angstrom, by which two hit neighbourhoods are moved apart before they are re-adjusted
TETHER = 0.25  # 1/angstrom
PLANAR_WITHIN = 15.0  # degree; also what a planar dihedral may change by
PLANAR_DEVIATION = 0.15  # angstrom^3, of the volume of four atoms in a plane: about 5 degrees
CENTRE_DEVIATION = 0.3  # angstrom^3, of the volume at a stereocentre: about a tenth
MAX_ITERATIONS = 25
HOPELESS = 40  # severe pairs of one group: whole chains overlap, and no small re-adjustment parts them
# A little inside the limit, so that rounding to float32 cannot cross it.
Z_LIMIT = reference.MAX_Z - 0.1


@dataclass(frozen=True)
class LocalTopology:
    """Bonds, angles, planar dihedrals and stereocentres that touch a group, with reference values and deviations."""

    bonds: np.ndarray
    bond_reference: np.ndarray
    bond_deviation: np.ndarray
    triples: np.ndarray
    angle_reference: np.ndarray
    angle_deviation: np.ndarray
    planar: np.ndarray
    centres: np.ndarray
    """(c, 4): a four-valent atom and three of its neighbours."""


def bonded_paths(graph: BondGraph, atoms: np.ndarray, length: int) -> np.ndarray:
    """(m, length) ascending chains of 2, 3 or 4 bonded atoms that touch a group, each in one direction only."""
    mark = np.sort(atoms)
    ends, row = expand(graph.first[atoms], graph.degree(atoms))
    chains = one_way(np.stack([atoms[row], graph.neighbour[ends]], axis=1))
    for _ in range(length - 2):
        # Every longer chain that touches the group holds a shorter one that does, at one of its ends.
        both = np.concatenate([chains, chains[:, ::-1]])
        ends, row = expand(graph.first[both[:, -1]], graph.degree(both[:, -1]))
        longer = np.concatenate([both[row], graph.neighbour[ends][:, None]], axis=1)
        chains = one_way(longer[(longer[:, :-1] != longer[:, -1:]).all(axis=1)])
    place = np.minimum(np.searchsorted(mark, chains), len(mark) - 1)
    return chains[(mark[place] == chains).any(axis=1)]


def one_way(chains: np.ndarray) -> np.ndarray:
    """(m, l) chains from their lower end, in ascending order, each once."""
    chains = np.where((chains[:, 0] < chains[:, -1])[:, None], chains, chains[:, ::-1])
    chains = chains[np.lexsort(chains.T[::-1])]
    return chains[np.append(True, (chains[1:] != chains[:-1]).any(axis=1))[:len(chains)]]


def local_topology(scene: Scene, group: np.ndarray) -> LocalTopology:
    """Geometry to keep when a group is re-adjusted: tabulated for the DNA backbone, that of the start elsewhere.

    The start of the whole correction, not the present state: otherwise many small changes would add up.
    """
    atoms, graph, position = scene.atoms, scene.graph, scene.start
    bonds, triples, quads = (bonded_paths(graph, group, length) for length in (2, 3, 4))

    def nucleic(*members: int) -> bool:
        return all(atoms.part[a] in (DNA_BACKBONE, SUGAR) for a in members)

    length = np.linalg.norm(position[bonds[:, 0]] - position[bonds[:, 1]], axis=1)
    bond_deviation = np.full(len(bonds), reference.OTHER_BOND_DEVIATION)
    for k, (a, b) in enumerate(bonds):
        known = reference.backbone_bond(atoms.name_of(a), atoms.name_of(b)) if nucleic(a, b) else None
        if known:
            length[k], bond_deviation[k] = known
    angle = reference.angles(position, triples)
    angle_deviation = np.full(len(triples), reference.OTHER_ANGLE_DEVIATION)
    for k, (a, b, c) in enumerate(triples):
        known = reference.backbone_angle(*map(atoms.name_of, (a, b, c))) if nucleic(a, b, c) else None
        if known:
            angle[k], angle_deviation[k] = known
    flat = (graph.degree(quads[:, 1]) <= 3) & (graph.degree(quads[:, 2]) <= 3)
    quads = quads[flat]
    dihedral = np.abs(reference.dihedrals(scene.position, quads))
    quads = quads[np.minimum(dihedral, 180.0 - dihedral) < PLANAR_WITHIN]
    touching = np.unique(np.concatenate([group, bonds.ravel()])).tolist()
    centres = np.array([[a, *graph.neighbours(a)[:3]] for a in touching
                        if graph.first[a + 1] - graph.first[a] == 4]).reshape(-1, 4)
    return LocalTopology(bonds, length, bond_deviation, triples, angle, angle_deviation, quads, centres)


def volumes(position: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(c,) signed volumes of stereocentres, angstrom^3."""
    a, b, c = (position[centres[:, k]] - position[centres[:, 0]] for k in (1, 2, 3))
    return (cross(a, b) * c).sum(axis=1)


@dataclass(frozen=True)
class Strain:
    """How far the geometry of a group is from its reference."""

    z: np.ndarray
    """|z| of bonds, then of angles."""
    volume: np.ndarray
    planar: np.ndarray
    """degree"""


def strain(topology: LocalTopology, position: np.ndarray) -> Strain:
    """Measured at (n, 3) positions of all atoms."""
    length = np.linalg.norm(position[topology.bonds[:, 0]] - position[topology.bonds[:, 1]], axis=1)
    return Strain(
        np.abs(np.concatenate([
            (length - topology.bond_reference) / topology.bond_deviation,
            (reference.angles(position, topology.triples) - topology.angle_reference) / topology.angle_deviation])),
        volumes(position, topology.centres), reference.dihedrals(position, topology.planar))


def acceptable(before: Strain, after: Strain) -> bool:
    """Whether no bond or angle leaves 4 standard deviations (or gets worse beyond them), no stereocentre turns over
    and no planar group bends."""
    if (after.z > np.maximum(Z_LIMIT, before.z)).any():
        return False
    old, new = before.volume, after.volume
    if (old * new <= 0).any() or (np.abs(new) < 0.4 * np.abs(old)).any():
        return False
    bend = after.planar - before.planar
    return bool((np.abs((bend + 180.0) % 360.0 - 180.0) < PLANAR_WITHIN).all())


def propose_adjustment(scene: Scene, group: np.ndarray, starts: list[np.ndarray], kind: str,
                       details: list[dict]) -> Proposal | None:
    """The best acceptable re-adjustment of a group from several starting positions; None when none improves."""
    best = None
    for before, after, position, k in adjustments(scene, group, starts):
        if after.better_than(before) and (best is None or after < best.after):
            best = Proposal(kind, group, position, before, after, details[k])
        if best is not None and best.after.clean:
            break
    return best


def adjustments(scene: Scene, group: np.ndarray, starts: list[np.ndarray],
                ) -> Iterator[tuple[Score, Score, np.ndarray, int]]:
    """Acceptable re-adjustments of a group, one from each start at most: score now, score then, positions, start."""
    topology = local_topology(scene, group)
    surroundings = scene.group_surroundings(group, REACH)
    before = scene.group_score(scene.position[group], surroundings)
    if before.severe > HOPELESS:
        return
    bonded = np.unique(np.concatenate([topology.bonds.ravel(), topology.triples.ravel(), topology.planar.ravel(),
                                       topology.centres.ravel()]))
    local = np.concatenate([group, np.setdiff1d(np.union1d(surroundings.around, bonded), group)])
    order = np.argsort(local)
    ascending = local[order]

    def placed(items: np.ndarray) -> np.ndarray:
        return order[np.searchsorted(ascending, items)].astype(np.int32)

    length = {tuple(sorted(b)): d for b, d in zip(topology.bonds.tolist(), topology.bond_reference, strict=True)}

    def bond_length(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        now = np.linalg.norm(scene.position[a] - scene.position[b], axis=1)
        ends = zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True)
        return np.array([length.get(pair, d) for pair, d in zip(ends, now, strict=True)])

    left, right = (bond_length(topology.triples[:, k], topology.triples[:, 1]) for k in (0, 2))
    theta = np.radians(topology.angle_reference)
    across = np.sqrt(left**2 + right**2 - 2 * left * right * np.cos(theta))
    across_deviation = left * right * np.sin(theta) * np.radians(topology.angle_deviation) / across
    restraint = np.concatenate([placed(topology.bonds), placed(topology.triples[:, [0, 2]])])
    target = np.concatenate([topology.bond_reference, across])
    weight = 1 / np.concatenate([topology.bond_deviation, np.maximum(across_deviation, 1e-3)])
    volume = np.concatenate([placed(topology.planar), placed(topology.centres)])
    target_volume = np.concatenate([np.zeros(len(topology.planar)), volumes(scene.start, topology.centres)])
    volume_weight = 1 / np.concatenate([np.full(len(topology.planar), PLANAR_DEVIATION),
                                        np.full(len(topology.centres), CENTRE_DEVIATION)])

    e, m = np.nonzero(surroundings.contact > 0)
    near = np.linalg.norm(surroundings.around_position[e] - scene.position[group[m]], axis=1) < \
        surroundings.contact[e, m] + REACH
    e, m = e[near], m[near]
    contact = np.concatenate([placed(np.stack([group[m], surroundings.around[e]], axis=1)),
                              surroundings.inner.astype(np.int32)])
    comfortable = np.concatenate([surroundings.contact[e, m], surroundings.inner_contact])
    severe = np.concatenate([surroundings.severe[e, m], surroundings.inner_severe])
    # A little tighter than comfortable, so that good packing elsewhere is not pushed about.
    contact_distance = np.maximum(0.85 * comfortable, severe + 0.15)

    present, old = strain(topology, scene.position), scene.position[group]
    for number, start in enumerate(starts):
        position = np.asfortranarray(np.concatenate([start, scene.position[local[len(group):]]]).T)
        for contact_weight in CONTACT_WEIGHTS:
            _kernels.local_relaxation.relax_group(
                len(group), position, restraint.T, target, weight, volume.T, target_volume, volume_weight,
                contact.T, contact_distance, contact_weight, TETHER, MAX_ITERATIONS)
            trial = position.T[:len(group)].astype(np.float32).astype(np.float64)
            scene.position[group] = trial
            fits = acceptable(present, strain(topology, scene.position))
            scene.position[group] = old
            if fits and np.linalg.norm(trial - old, axis=1).max() < REACH:
                yield before, scene.group_score(trial, surroundings), trial, number
                break


def link_torsion(scene: Scene, left: int, right: int) -> Torsion | None:
    """The phosphate group between two consecutive nucleotides, turning about O3'-C5'."""
    axis = scene.atom(left, "O3'"), scene.atom(right, "C5'")
    turned = [scene.atom(right, name) for name in ("P", "OP1", "OP2", "O5'")]
    if None in axis or None in turned:
        return None
    return Torsion((turned[0], axis[0], axis[1], turned[-1]), tuple(turned), False, 360.0)


def link_starts(scene: Scene, left: int, right: int) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """The atoms around the phosphate between two nucleotides, and their positions with it turned by PHI_STARTS."""
    torsion = link_torsion(scene, left, right)
    if torsion is None:
        return None
    members = [scene.atom(left, name) for name in LEFT_OF_LINK] + [scene.atom(right, name) for name in RIGHT_OF_LINK]
    group = np.array(sorted(a for a in members if a is not None))
    turned = list(torsion.turned)
    old, starts = scene.position[turned], []
    for phi in PHI_STARTS:
        scene.turn(scene.position, torsion, float(np.radians(phi)))
        starts.append(scene.position[group])
        scene.position[turned] = old
    return group, starts


def propose_link(scene: Scene, left: int, right: int) -> Proposal | None:
    """Turn the phosphate between two nucleotides and re-close the backbone."""
    found = link_starts(scene, left, right)
    if found is None:
        return None
    return propose_adjustment(scene, *found, "phi", [{"phi_start": phi} for phi in PHI_STARTS])


def link_states(scene: Scene, left: int, right: int) -> tuple[np.ndarray, list[np.ndarray], list[float]] | None:
    """Every acceptable conformer of a phosphate, whatever it runs into: its atoms, positions, and the turn it began
    with."""
    found = link_starts(scene, left, right)
    if found is None:
        return None
    states = [(position, PHI_STARTS[k]) for _, _, position, k in adjustments(scene, *found)]
    return found[0], [position for position, _ in states], [phi for _, phi in states]


def adjustable_atoms(scene: Scene, residues: list[int], nucleotide: list[str] = SUGAR_PHOSPHATE) -> np.ndarray:
    """Atoms of residues that a re-adjustment may move: whole amino acids, these of nucleotides, never bases."""
    members = []
    for residue in residues:
        first, last = scene.residue_first[residue], scene.residue_first[residue + 1]
        if scene.atom(residue, "CA") is not None:
            members += range(first, last)
        else:
            members += [a for a in (scene.atom(residue, name) for name in nucleotide) if a is not None]
    return np.array(sorted(members), dtype=np.int64)


def propose_relaxation(scene: Scene, a: int, b: int, residues: tuple[list[int], list[int]],
                       nucleotide: list[str] = SUGAR_PHOSPHATE) -> Proposal | None:
    """Re-adjust the residues (of nucleotides, the named atoms) around two atoms that hit each other, where no torsion
    helps.

    It starts from where they are and from the two neighbourhoods pushed apart: along the line that joins the atoms (for
    atoms that have already passed each other, against it) and across it.
    """
    own = adjustable_atoms(scene, residues[0], nucleotide)
    other = np.setdiff1d(adjustable_atoms(scene, residues[1], nucleotide), own)
    group = np.union1d(own, other)
    if len(group) == 0:
        return None
    side = np.where(np.isin(group, own), 0.5, -0.5)
    # The hit residue moves fully, its neighbours by half.
    middle = np.isin(scene.atoms.residue[group], scene.atoms.residue[[a, b]])
    side *= np.where(middle, 1.0, 0.5)
    along = scene.position[a] - scene.position[b]
    along /= max(np.linalg.norm(along), 1e-6)
    # Across is taken from the atoms themselves, so that a turned structure is solved by the turned moves.
    inward = scene.position[group].mean(axis=0) - (scene.position[a] + scene.position[b]) / 2
    across = inward - (inward @ along) * along
    if np.linalg.norm(across) < 1e-3:
        across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    across /= max(np.linalg.norm(across), 1e-6)
    directions = [np.zeros(3)] + [sign * u for u in (along, across, np.cross(along, across)) for sign in (1.0, -1.0)]
    starts = [scene.position[group] + 2 * PUSH * side[:, None] * u for u in directions]
    return propose_adjustment(scene, group, starts, "relax", [{"start": k} for k in range(len(starts))])


def geometry_change(scene: Scene, moved: np.ndarray, position: np.ndarray) -> np.ndarray:
    """(2,) largest change of a bond (angstrom) and of an angle (degree) when some atoms go to (m, 3) positions."""
    old, triples = scene.position[moved], bonded_paths(scene.graph, moved, 3)

    def measured() -> tuple[np.ndarray, np.ndarray]:
        ends = np.concatenate([triples[:, :2], triples[:, 1:]])
        return (np.linalg.norm(scene.position[ends[:, 0]] - scene.position[ends[:, 1]], axis=1),
                reference.angles(scene.position, triples))

    before = measured()
    scene.position[moved] = position
    after = measured()
    scene.position[moved] = old
    return np.array([np.abs(b - a).max(initial=0.0) for a, b in zip(before, after, strict=True)])
