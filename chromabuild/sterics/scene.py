"""The scene of a correction: positions that change, and how good or bad a group of atoms sits in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from chromabuild import _kernels
from chromabuild.molecule.residues import residue_library
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import Atoms, Widened
from chromabuild.sterics.cell_list import CellList, corners
from chromabuild.sterics.torsions import Torsion


@dataclass(frozen=True, order=True)
class Score:
    """Ordered by fatal pairs (below the threshold), then severe pairs, then soft overlap energy."""

    fatal: int
    severe: int
    energy: float

    @property
    def clean(self) -> bool:
        """No fatal and no severe pair."""
        return self.fatal == 0 and self.severe == 0

    def better_than(self, other: "Score") -> bool:
        """Fewer fatal pairs, or as many and fewer severe ones; the energy alone never justifies a move."""
        return (self.fatal, self.severe) < (other.fatal, other.severe)


@dataclass(frozen=True)
class Surroundings:
    """What a group of moved atoms can meet."""

    around: np.ndarray
    """(e,) atoms that stand still."""
    around_position: np.ndarray
    contact: np.ndarray
    """(e, m) comfortable distances, 0 for bonded pairs."""
    severe: np.ndarray
    inner: np.ndarray
    """(p, 2) places in the moved group whose distance can change."""
    inner_contact: np.ndarray
    inner_severe: np.ndarray


@dataclass(frozen=True)
class Rotation:
    """Consecutive torsions and the atoms that they move, as the kernels want them."""

    local: np.ndarray
    """(n,) ascending atoms: the moved ones and those of the axes."""
    axis: np.ndarray
    """(t, 2) int32 places in ``local`` of each axis, inner end first."""
    turned: np.ndarray
    """(t, n) int32, 1 where a torsion turns an atom."""
    place: np.ndarray
    """(m,) int32 places in ``local`` of the moved atoms."""


def rotation_of(torsions: list[Torsion], moved: np.ndarray) -> Rotation:
    """The rotation that turns about ``torsions`` and moves the ascending atoms ``moved``."""
    local = np.array(sorted({a for t in torsions for a in t.quad[1:3]} | set(moved.tolist())))
    turned = np.array([t.turns(local) for t in torsions], dtype=np.int32)
    axis = np.searchsorted(local, [t.quad[1:3] for t in torsions]).astype(np.int32)
    return Rotation(local, axis, turned, np.searchsorted(local, moved).astype(np.int32))


def bodies(torsions: list[Torsion], moved: np.ndarray) -> np.ndarray:
    """(m,) int32: equal for atoms that the same of up to 31 torsions turn, which so keep their distance."""
    body = np.zeros(len(moved), dtype=np.int32)
    for k, torsion in enumerate(torsions):
        body |= torsion.turns(moved).astype(np.int32) << k
    return body


class Scene:
    """Current positions (always representable in float32) and neighbour queries on them."""

    def __init__(self, atoms: Atoms, threshold: float, threads: int) -> None:
        """``threshold`` (angstrom) defines fatal pairs."""
        self.atoms = atoms
        self.threshold = threshold
        self.threads = threads
        self.graph = atoms.graph
        self.start = Widened(np.asarray(atoms.position, dtype=np.float32))
        self.position = np.array(atoms.position, dtype=np.float64)
        self.lowest, self.highest = corners(self.position)
        severe = np.maximum(reference.severe_distance(), threshold)
        self.severe_table, self.contact_table = severe, np.maximum(reference.contact_distance(), severe)
        self.kind = atoms.kind
        self.residue_first = atoms.residue_first
        self.undone: list[tuple[np.ndarray, np.ndarray]] | None = None
        self.mark = np.zeros(atoms.n_atoms, dtype=bool)  # of atoms for the moment; false everywhere in between
        self.rebuild()

    def close(self) -> np.ndarray:
        """(n, 3) float32 present positions, kept from now on; the large arrays are given back, nothing can move."""
        self.position = Widened(self.position.astype(np.float32))
        del self.cells
        return self.position.array

    def atom(self, residue: int, name: str) -> int | None:
        """An atom of a residue by name."""
        k = residue_library()[self.atoms.residue_name[residue]].index.get(name)
        return None if k is None else int(self.residue_first[residue] + k)

    def rebuild(self) -> None:
        """Sort the atoms into cells again, where they are now."""
        self.cells = CellList(self.position, reference.LARGEST_CONTACT, self.threads)
        self.moved_since: list[np.ndarray] = []
        self.moved_within = np.empty((64, 4))

    def note_moved(self, moved: np.ndarray) -> None:
        """Remember that some atoms, now in their new places, are no longer in the cells that they were sorted into."""
        count = len(self.moved_since)
        if count == len(self.moved_within):
            self.moved_within = np.concatenate([self.moved_within, np.empty_like(self.moved_within)])
        centre = self.position[moved].mean(axis=0)
        self.moved_within[count, :3] = centre
        self.moved_within[count, 3] = np.linalg.norm(self.position[moved] - centre, axis=1).max()
        self.moved_since.append(moved)

    def around(self, centre: np.ndarray, radius: float) -> np.ndarray:
        """Sorted atoms now within ``radius`` of a point."""
        found = self.cells.in_spheres(centre, radius)[1]
        if self.moved_since:
            spheres = self.moved_within[:len(self.moved_since)]
            touched = np.flatnonzero(np.linalg.norm(spheres[:, :3] - centre, axis=1) < radius + spheres[:, 3] + 1e-6)
            found = np.unique(np.concatenate([found, *(self.moved_since[k] for k in touched)]))
            found = found[((self.position[found] - centre) ** 2).sum(axis=1) < radius**2]
        return np.sort(found).astype(np.int64)

    def contact_distances(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Comfortable and severe distances of atoms a and b (broadcast), before bonds are looked at."""
        a, b = self.kind[a], self.kind[b]
        return self.contact_table[a, b], self.severe_table[a, b]

    def severe_among(self, pairs: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of the given pairs and distances that are below their severe distance or the threshold."""
        near = distance < self.contact_distances(pairs[:, 0], pairs[:, 1])[1]
        return pairs[near], distance[near]

    def fatal_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Sorted pairs below the fatal threshold and their distances."""
        cells = self.cells if not self.moved_since else CellList(self.position, self.threshold, self.threads)
        return cells.pairs(self.threshold, self.graph)

    def is_severe(self, a: int, b: int) -> bool:
        """Whether two atoms are closer than their severe distance now."""
        return bool(np.linalg.norm(self.position[a] - self.position[b]) < self.contact_distances(a, b)[1])

    def surroundings(self, moved: np.ndarray, centre: np.ndarray, reach: float, body: np.ndarray,
                     absent: np.ndarray | None = None, placed: np.ndarray | None = None) -> Surroundings:
        """Everything that ``moved`` atoms, which stay within ``reach`` of ``centre``, can meet.

        ``body`` (m,) int32 differs between moved atoms whose distance can change. Atoms in ``absent`` (bool mask) are
        ignored unless they are among those ``placed``.
        """
        radius = reach + reference.LARGEST_CONTACT
        around = self.around(centre, radius)
        if absent is not None:
            around = around[~absent[around]]
        if placed is not None:
            near = placed[((self.position[placed] - centre) ** 2).sum(axis=1) < radius**2]
            around = np.sort(np.concatenate([around, near]))  # disjoint: what is placed is absent too
        self.mark[moved] = True
        around = around[~self.mark[around]]
        self.mark[moved] = False
        shape, pairs = (len(moved), len(around)), max(len(moved) * (len(moved) - 1) // 2, 1)
        contact, severe = np.empty(shape), np.empty(shape)
        inner, inner_contact, inner_severe = np.zeros((pairs, 2), dtype=np.int32), np.zeros(pairs), np.zeros(pairs)
        found = _kernels.bond_graph.contact_limits(
            self.contact_table, self.severe_table, self.kind, self.graph.first, self.graph.neighbour,
            around.astype(np.int32), np.asarray(moved, dtype=np.int32), body, contact.T, severe.T, inner.T,
            inner_contact, inner_severe)
        # The kernel takes no empty arrays: one pair that is never in contact stands for none.
        count = max(found, 1)
        return Surroundings(around, self.position[around], contact.T, severe.T, inner[:count], inner_contact[:count],
                            inner_severe[:count])

    def rotation_scores(self, torsions: list[Torsion], angle: np.ndarray, surroundings: Surroundings | None = None,
                        moved: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fatal pairs, severe pairs and energy of each trial: (s,) arrays for (s, t) angles in radian."""
        if moved is None:
            moved = np.array(sorted({a for t in torsions for a in t.turned}))
        if surroundings is None:
            surroundings = self.rotation_surroundings(torsions, moved)
        return self.score_rotations(rotation_of(torsions, moved), angle, surroundings)

    def score_rotations(self, rotation: "Rotation", angle: np.ndarray,
                        surroundings: Surroundings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``rotation_scores`` with what stays the same between calls made before."""
        return self._score(self._rotated(rotation, angle), surroundings)

    def rotated_states(self, torsions: list[Torsion], angle: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """(s, m, 3) positions of the moved atoms in each trial."""
        return self._rotated(rotation_of(torsions, moved), angle)

    def _rotated(self, rotation: "Rotation", angle: np.ndarray) -> np.ndarray:
        state = np.zeros((len(angle), len(rotation.place), 3))
        _kernels.torsion_moves.rotated_states(
            np.asfortranarray(self.position[rotation.local].T), rotation.axis.T, rotation.turned.T,
            np.asfortranarray(angle.T), rotation.place, self.threads, state.transpose(2, 1, 0))
        return state

    def rotation_surroundings(self, torsions: list[Torsion], moved: np.ndarray,
                              absent: np.ndarray | None = None) -> Surroundings:
        """What the atoms turned by consecutive torsions can meet."""
        pivots = self.position[[t.quad[2] for t in torsions]]
        last = np.zeros(len(moved), dtype=np.int64)
        for k, torsion in enumerate(torsions):
            last[torsion.turns(moved)] = k
        reach = (np.linalg.norm(np.diff(pivots, axis=0), axis=1).sum()
                 + np.linalg.norm(self.position[moved] - pivots[last], axis=1).max())
        return self.surroundings(moved, pivots[0], reach, bodies(torsions, moved), absent)

    def group_surroundings(self, moved: np.ndarray, reach: float) -> Surroundings:
        """What a group can meet whose atoms each move by up to ``reach``."""
        centre = self.position[moved].mean(axis=0)
        extent = np.linalg.norm(self.position[moved] - centre, axis=1).max()
        return self.surroundings(moved, centre, extent + reach, np.arange(len(moved), dtype=np.int32))

    def group_score(self, position: np.ndarray, surroundings: Surroundings) -> Score:
        """Score of a moved group at (m, 3) trial positions."""
        fatal, severe, energy = self._score(np.asarray(position, dtype=np.float64)[None], surroundings)
        return Score(int(fatal[0]), int(severe[0]), float(energy[0]))

    def _score(self, state: np.ndarray, s: Surroundings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        trials = len(state)
        fatal, severe = np.zeros(trials, dtype=np.int32), np.zeros(trials, dtype=np.int32)
        energy = np.zeros(trials)
        _kernels.torsion_moves.score_states(
            np.asfortranarray(state.transpose(2, 1, 0)), np.asfortranarray(s.around_position.T),
            np.asfortranarray(s.contact), np.asfortranarray(s.severe), np.asfortranarray(s.inner.T), s.inner_contact,
            s.inner_severe, self.threshold, self.threads, fatal, severe, energy)
        return fatal, severe, energy

    def turn(self, position: np.ndarray, torsion: Torsion, angle: float) -> None:
        """Turn global ``position`` in place about one torsion (radian)."""
        _kernels.torsion_moves.turn_in_place(
            position.T, *torsion.quad[1:3], torsion.turned_atoms, angle)

    def count_severe(self, moved: np.ndarray) -> Score:
        """Fatal and severe pairs of a large group where it is now, against everything and within itself."""
        low, high = self.position[moved].min(axis=0), self.position[moved].max(axis=0)
        centre = (low + high) / 2
        nearby = self.around(centre, float(np.linalg.norm(high - low) / 2 + self.severe_table.max() + 1e-3))
        local = np.union1d(nearby, moved)
        reach = self.severe_table.max()
        pairs, distance = CellList(self.position[local], reach).pairs(reach, None, self.kind[local], self.severe_table)
        pairs = local[pairs]
        keep = np.isin(pairs, moved).any(axis=1)
        pairs, distance = pairs[keep], distance[keep]
        free = ~self.graph.bonded(pairs)
        return Score(int((distance[free] < self.threshold).sum()), int(free.sum()), 0.0)

    def commit(self, moved: np.ndarray, position: np.ndarray) -> None:
        """Accept new positions of some atoms, rounded to float32."""
        if self.undone is not None:
            self.undone.append((moved, self.position[moved]))
        self.position[moved] = position.astype(np.float32)
        self.note_moved(moved)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Whatever is committed inside is taken back at the end."""
        count, self.undone = len(self.moved_since), []
        try:
            yield
        finally:
            for moved, position in reversed(self.undone):
                self.position[moved] = position
            del self.moved_since[count:]
            self.undone = None

    def update_severe(self, pairs: np.ndarray, distance: np.ndarray,
                        moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The severe pairs now, from those before some atoms moved and cells were rebuilt."""
        changed = np.zeros(self.atoms.n_atoms, dtype=bool)
        changed[moved] = True
        kept = ~changed[pairs].any(axis=1)
        which, other = self.cells.in_spheres(self.position[moved], float(self.severe_table.max()))
        new = np.stack([moved[which], other], axis=1)
        new = new[new[:, 0] != new[:, 1]]
        new = np.unique(np.sort(new, axis=1), axis=0).astype(np.int32)
        far = np.sqrt(((self.position[new[:, 0]] - self.position[new[:, 1]]) ** 2).sum(axis=1))
        near = far < self.contact_distances(new[:, 0], new[:, 1])[1]
        new, far = new[near], far[near]
        free = ~self.graph.bonded(new)
        pairs, distance = np.concatenate([pairs[kept], new[free]]), np.concatenate([distance[kept], far[free]])
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return pairs[order], distance[order]
