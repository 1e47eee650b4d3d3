"""Histone tails: grown again from the root outward, around everything that is in the way.

A tail taken from a crystal and placed rigidly runs through neighbouring nucleosomes and linkers. Residue by residue
from the root, (phi, psi) and the side chain are tried first as they are, then drawn from the allowed regions of the
Ramachandran map; the first choice that hits nothing is taken. A dead end goes back a few residues and draws again.
Random numbers are keyed by seed, the residue's label and attempt: neither the order of work nor what else is in the
structure matters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b

import numpy as np

from chromabuild.molecule.histone_tails import TAILS
from chromabuild.nucleosome.peptide import GLYCINE_REGIONS, REGIONS
from chromabuild.sterics import reference
from chromabuild.sterics.passages import Passages
from chromabuild.sterics.scene import Rotation, Scene, Score, bodies, rotation_of
from chromabuild.sterics.sidechain import Proposal
from chromabuild.sterics.torsions import STAGGERED, Torsion

TRIALS = 48
BACK = 4  # residues to go back from a dead end
ATTEMPTS_PER_RESIDUE = 5
ATTEMPTS_PER_TAIL = 4
COMFORT = 0.5  # angstrom^2 of soft overlap that is not worth avoiding


@dataclass(frozen=True)
class Tail:
    """A terminal stretch of a protein chain."""

    molecule: int
    residues: tuple[int, ...]
    """From the root outward."""
    outward: int
    """-1 for an N-terminal tail, +1 for a C-terminal one."""


def find_tails(scene: Scene, molecule_name: list[str], molecule_first_residue: np.ndarray,
               residue_number: np.ndarray, links: Sequence[tuple[int, int]] = ()) -> list[Tail]:
    """Every histone tail; a tail is kept only as far as it reaches the end of its chain.

    Where a residue is bonded to another chain (``links``), the tail is what lies beyond.
    """
    tails, linked = [], {residue for pair in links for residue in pair}
    for molecule, name in enumerate(molecule_name):
        first, last = int(molecule_first_residue[molecule]), int(molecule_first_residue[molecule + 1]) - 1
        for low, high in TAILS.get(name, []):
            inside = [r for r in range(first, last + 1) if low <= residue_number[r] <= high]
            if not inside or len(inside) == last - first + 1 or scene.atom(first, "CA") is None:
                continue
            outward = -1 if inside[0] == first else 1 if inside[-1] == last else 0
            ordered = inside[::outward or 1]
            held = max((k for k, r in enumerate(ordered) if r in linked), default=-1)
            if outward and ordered[held + 1:]:
                tails.append(Tail(molecule, tuple(ordered[held + 1:]), outward))
    return tails


@dataclass(frozen=True)
class GrowthUnit:
    """One residue of a tail: its backbone torsions in the order in which they act, its side chain, what to score."""

    residue: int
    torsions: tuple[Torsion, ...]
    kinds: tuple[str, ...]
    """``phi``, ``psi`` or ``chi`` of each torsion."""
    scored: np.ndarray

    @cached_property
    def quads(self) -> np.ndarray:
        """(t, 4) atoms of the torsions."""
        return np.array([t.quad for t in self.torsions])

    @cached_property
    def rotation(self) -> Rotation:
        """How the torsions move the scored atoms."""
        return rotation_of(list(self.torsions), self.scored)

    @cached_property
    def body(self) -> np.ndarray:
        """(m,) rigid body of each scored atom."""
        return bodies(list(self.torsions), self.scored)

    @cached_property
    def mobile(self) -> np.ndarray:
        """Ascending atoms that any of the torsions moves."""
        return np.unique(np.concatenate([t.turned_atoms for t in self.torsions])).astype(np.int64)


def growth_unit(scene: Scene, tail: Tail, residue: int, chi: list[Torsion]) -> GrowthUnit:
    """Torsions and scored atoms of one residue."""
    atom, graph, after = scene.atom, scene.graph, tail.outward
    n, ca, c = atom(residue, "N"), atom(residue, "CA"), atom(residue, "C")
    neighbour = residue + after
    has_neighbour = neighbour in tail.residues
    own = range(int(scene.residue_first[residue]), int(scene.residue_first[residue + 1]))
    tip = tail.residues[-1]
    first, last = (tip, residue) if after < 0 else (residue + 1, tip + 1)
    outward = range(int(scene.residue_first[first]), int(scene.residue_first[last]))
    torsions, kinds = [], []

    def add(kind: str, start: int | None, inner: int, outer: int, end: int | None) -> None:
        beyond = graph.beyond(inner, outer, own)
        if beyond is None or not (beyond or outward) or start is None or end is None:
            return
        torsions.append(Torsion((start, inner, outer, end), tuple(sorted([*beyond, *outward])), False, 360.0))
        kinds.append(kind)

    if after < 0:
        add("psi", atom(residue + 1, "N"), c, ca, n)
        end = atom(neighbour, "C") if has_neighbour else atom(residue, "H1") or atom(residue, "H2")
        add("phi", c, ca, n, end)
        shared = {c, atom(residue, "O"), ca}
        beyond = [atom(neighbour, name) for name in ("C", "O", "CA")] if has_neighbour else []
    else:
        add("phi", atom(residue - 1, "C"), n, ca, c)
        add("psi", n, ca, c, atom(neighbour, "N") if has_neighbour else atom(residue, "O"))
        shared = {n, atom(residue, "H"), ca}
        beyond = [atom(neighbour, name) for name in ("N", "H", "CA")] if has_neighbour else []
    turned = {a for t in torsions for a in t.turned}
    scored = sorted(({a for a in own if a not in shared} | {a for a in beyond if a is not None}) & turned)
    return GrowthUnit(residue, tuple(torsions) + tuple(chi), tuple(kinds) + ("chi",) * len(chi), np.array(scored))


class Growth:
    """A tail and the torsions of its residues, each made when it is first asked for."""

    def __init__(self, scene: Scene, tail: Tail, side_chain: Callable[[int], list[Torsion]]) -> None:
        """``side_chain`` gives the chi torsions of a residue."""
        self.scene, self.tail, self.side_chain = scene, tail, side_chain
        self.units: dict[int, GrowthUnit] = {}

    def unit(self, place: int) -> GrowthUnit:
        """That of the ``place``-th residue from the root."""
        if place not in self.units:
            residue = self.tail.residues[place]
            self.units[place] = growth_unit(self.scene, self.tail, residue, self.side_chain(residue))
        return self.units[place]


@cache
def regions_of(glycine: bool) -> np.ndarray:
    """(r, 4) share, phi, psi and half width of the allowed regions of the Ramachandran map."""
    return np.array(GLYCINE_REGIONS if glycine else REGIONS)


def unit_angles(scene: Scene, unit: GrowthUnit, seed: int, attempt: int) -> np.ndarray:
    """(s, t) angles in radian to turn by; the first trial keeps the residue as it is."""
    regions = regions_of(scene.atoms.residue_name[unit.residue].endswith("GLY"))
    label = blake2b(scene.atoms.residue_label[unit.residue].encode(), digest_size=8).digest()
    random = np.random.Generator(np.random.Philox(
        key=np.array([seed, int.from_bytes(label, "little")], dtype=np.uint64), counter=[0, 0, 0, attempt]))
    region = regions[random.choice(len(regions), TRIALS, p=regions[:, 0] / regions[:, 0].sum())]
    wobble = random.uniform(-1.0, 1.0, (TRIALS, len(unit.torsions)))
    pick = random.random((TRIALS, len(unit.torsions)))
    now = reference.dihedrals(scene.position, unit.quads)
    goal = np.empty((TRIALS, len(unit.torsions)))
    for k, (torsion, kind) in enumerate(zip(unit.torsions, unit.kinds, strict=True)):
        if kind != "chi":
            goal[:, k] = region[:, 1 if kind == "phi" else 2] + wobble[:, k] * region[:, 3]
        elif torsion.planar:
            goal[:, k] = 360.0 * pick[:, k]
        else:
            goal[:, k] = np.array(STAGGERED)[(3 * pick[:, k]).astype(int)] + 10.0 * wobble[:, k]
    change = np.radians((goal - now + 180.0) % 360.0 - 180.0)
    # Some trials keep the side chain or the backbone: less is changed where less is needed.
    chi = np.array([kind == "chi" for kind in unit.kinds])
    change[: TRIALS // 4, ~chi] = 0.0
    change[TRIALS // 4: TRIALS // 2, chi] = 0.0
    return np.concatenate([np.zeros((1, len(unit.torsions))), change])


def grow(scene: Scene, growth: Growth, start: int, seed: int, attempt: int) -> np.ndarray:
    """Grow a tail again from its ``start``-th residue on, in place; the atoms moved."""
    units = [growth.unit(place) for place in range(start, len(growth.tail.residues))]
    mobile = units[0].mobile
    absent = np.zeros(scene.atoms.n_atoms, dtype=bool)
    absent[mobile] = True
    history = [scene.position[mobile].copy()]
    tries = [0] * len(units)
    scored_so_far = [np.zeros(0, dtype=np.int64)]
    k = 0
    while k < len(units):
        unit = units[k]
        if not len(unit.scored):
            history.append(scene.position[mobile].copy())
            scored_so_far.append(scored_so_far[k])
            k += 1
            continue
        pivot = scene.position[unit.torsions[0].quad[2]]
        reach = min(9.0, sum_of_reach(scene, unit))
        surroundings = scene.surroundings(unit.scored, pivot, reach, unit.body, absent, scored_so_far[k])
        angle = np.zeros((1, len(unit.torsions)))
        if attempt + tries[k] == 0:
            fatal, severe, energy = scene.score_rotations(unit.rotation, angle, surroundings)
        if attempt + tries[k] > 0 or severe[0] > 0 or energy[0] > COMFORT:
            angle = unit_angles(scene, unit, seed, attempt * ATTEMPTS_PER_RESIDUE + tries[k])
            if attempt + tries[k] > 0:
                angle = angle[1:]
            fatal, severe, energy = scene.score_rotations(unit.rotation, angle, surroundings)
        best = int(np.lexsort((np.maximum(energy, COMFORT), severe, fatal))[0])
        if severe[best] > 0 and tries[k] + 1 < ATTEMPTS_PER_RESIDUE:
            tries[k] += 1
            back = max(0, k - BACK)
            if tries[k] % 2 == 0:  # every other time, the way that led here is tried again as well
                for j in range(back, k):
                    tries[j] = min(tries[j] + 1, ATTEMPTS_PER_RESIDUE - 1)
                k = back
                scene.position[mobile] = history[k]
                del history[k + 1:], scored_so_far[k + 1:]
            continue
        for torsion, value in zip(unit.torsions, angle[best], strict=True):
            if value != 0:
                scene.turn(scene.position, torsion, float(value))
        history.append(scene.position[mobile].copy())
        scored_so_far.append(np.concatenate([scored_so_far[k], unit.scored]))
        k += 1
    return mobile


def sum_of_reach(scene: Scene, unit: GrowthUnit) -> float:
    """How far from the residue's CA its scored atoms can come."""
    chi = [t for t, kind in zip(unit.torsions, unit.kinds, strict=True) if kind == "chi"]
    pivot = scene.position[unit.torsions[0].quad[2]]
    far = np.linalg.norm(scene.position[unit.scored] - pivot, axis=1).max()
    return float(far + 1.0 * len(chi) + 1.6)


def propose_tail(passages: Passages, growth: Growth, hit: list[int], seed: int, number: int = 1) -> Proposal | None:
    """Grow a tail from two residues inward of its innermost hit, then from its root.

    Each ``number`` draws other tails. The first clean one that stays inside the structure's bounding box is taken,
    since every angstrom beyond it is paid for in water; else the one with fewest severe pairs, among equals the one
    that sticks out least. None is taken that puts a bond through a ring or a backbone between strands.
    """
    scene, tail = growth.scene, growth.tail
    places = [tail.residues.index(r) for r in hit if r in tail.residues]
    if not places:
        return None
    best, best_rank = None, None
    for start in sorted({max(0, min(places) - 2), max(0, min(places) - 8), 0}, reverse=True):
        if "psi" not in growth.unit(start).kinds and "phi" not in growth.unit(start).kinds:
            start = max(0, start - 1)
            if "psi" not in growth.unit(start).kinds and "phi" not in growth.unit(start).kinds:
                continue
        mobile = growth.unit(start).mobile
        old, count = scene.position[mobile], len(scene.moved_since)
        before = scene.count_severe(mobile)
        for attempt in range((number - 1) * ATTEMPTS_PER_TAIL, number * ATTEMPTS_PER_TAIL):
            moved = grow(scene, growth, start, seed, attempt)
            # Queries find moved atoms where they are only when they are listed as stale.
            scene.note_moved(moved)
            after = scene.count_severe(moved)
            new = scene.position[moved].copy()
            scene.position[moved] = old
            del scene.moved_since[count:]
            excess = float(np.maximum(scene.lowest - new, new - scene.highest).clip(0).max())
            rank = (*gain(before, after), excess)
            if not after.better_than(before) or (best is not None and rank >= best_rank) \
                    or passages.opened(moved, new):
                continue
            best = Proposal("tail", moved, new, before, after,
                            {"from_residue": int(tail.residues[start]), "attempt": attempt})
            best_rank = rank
            if after.clean and excess == 0:
                return best
    return best


def gain(before: Score, after: Score) -> tuple[int, int]:
    """Change of fatal and severe pairs."""
    return after.fatal - before.fatal, after.severe - before.severe
