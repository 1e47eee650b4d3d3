"""The scene of a correction: positions that change, and how good or bad a group of atoms sits in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from chromabuild import _kernels
from chromabuild.clash import reference
from chromabuild.clash.atoms import Atoms, Widened
from chromabuild.clash.detect import CellList, corners
from chromabuild.clash.torsions import Torsion
from chromabuild.residues import residue_library


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

    def triggers(self, heavy: bool) -> tuple[np.ndarray, np.ndarray]:
        """Pairs below the fatal threshold and, with ``heavy``, also below their severe distance; sorted."""
        limit = self.severe_table if heavy else np.full_like(self.severe_table, self.threshold)
        cells = self.cells if not self.moved_since else CellList(self.position, limit.max(), self.threads)
        return cells.pairs(limit.max(), self.graph, self.kind, limit)

    def is_severe(self, a: int, b: int) -> bool:
        """Whether two atoms are closer than their severe distance now."""
        return bool(np.linalg.norm(self.position[a] - self.position[b]) < self.contact_distances(a, b)[1])

    def surroundings(self, moved: np.ndarray, centre: np.ndarray, reach: float, signature: np.ndarray,
                     absent: np.ndarray | None = None, placed: np.ndarray | None = None) -> Surroundings:
        """Everything that ``moved`` atoms, which stay within ``reach`` of ``centre``, can meet.

        ``signature`` (m, k) differs between moved atoms whose distance can change. Atoms in ``absent`` (bool mask) are
        ignored unless they are in ``placed``.
        """
        radius = reach + reference.LARGEST_CONTACT
        around = self.around(centre, radius)
        if absent is not None:
            around = around[~absent[around]]
        if placed is not None:
            near = placed[((self.position[placed] - centre) ** 2).sum(axis=1) < radius**2]
            around = np.union1d(around, near)
        around = around[~np.isin(around, moved)]
        contact, severe = self.contact_distances(around[:, None], moved[None])
        # Three bonds never reach past the next residue.
        residues = self.atoms.residue[moved]
        near = np.flatnonzero((self.atoms.residue[around] >= residues.min() - 1)
                              & (self.atoms.residue[around] <= residues.max() + 1))
        if len(near):
            pairs = np.stack(np.broadcast_arrays(around[near][:, None], moved[None]), axis=-1).reshape(-1, 2)
            bonded = self.graph.bonded(pairs).reshape(len(near), len(moved))
            contact[near] = np.where(bonded, 0.0, contact[near])
            severe[near] = np.where(bonded, 0.0, severe[near])
        p, q = np.triu_indices(len(moved), 1)
        change = (signature[p] != signature[q]).any(axis=1)
        p, q = p[change], q[change]
        free = ~self.graph.bonded(np.stack([moved[p], moved[q]], axis=1))
        p, q = p[free], q[free]
        inner_contact, inner_severe = self.contact_distances(moved[p], moved[q])
        if len(p) == 0:  # the kernel takes no empty arrays: a pair that is never in contact
            p, q, inner_contact, inner_severe = np.zeros(1, int), np.zeros(1, int), np.zeros(1), np.zeros(1)
        return Surroundings(around, self.position[around], contact, severe, np.stack([p, q], axis=1).astype(np.int32),
                            inner_contact, inner_severe)

    def rotation_scores(self, torsions: list[Torsion], angle: np.ndarray, surroundings: Surroundings | None = None,
                        moved: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fatal pairs, severe pairs and energy of each trial: (s,) arrays for (s, t) angles in radian."""
        if moved is None:
            moved = np.array(sorted({a for t in torsions for a in t.turned}))
        if surroundings is None:
            surroundings = self.rotation_surroundings(torsions, moved)
        return self._score(*self._rotation(torsions, angle, moved), surroundings)

    def rotated_states(self, torsions: list[Torsion], angle: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """(s, m, 3) positions of the moved atoms in each trial."""
        local, axis, turned, angle, place = self._rotation(torsions, angle, moved)
        state = np.zeros((len(angle), len(moved), 3))
        _kernels.torsion_moves.rotated_states(np.asfortranarray(local.T), axis.T, turned.T, np.asfortranarray(angle.T),
                                              place, state.transpose(2, 1, 0))
        return state

    def _rotation(self, torsions: list[Torsion], angle: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, ...]:
        """Positions, axes, turned atoms, angles and places of the moved atoms as the kernels want them."""
        local = np.array(sorted({a for t in torsions for a in t.quad[1:3]} | set(moved.tolist())))
        place = {atom: k for k, atom in enumerate(local.tolist())}
        turned = np.zeros((len(torsions), len(local)), dtype=np.int32)
        for k, torsion in enumerate(torsions):
            turned[k, [place[a] for a in torsion.turned if a in place]] = 1
        axis = np.array([[place[t.quad[1]], place[t.quad[2]]] for t in torsions], dtype=np.int32)
        return self.position[local], axis, turned, angle, np.searchsorted(local, moved).astype(np.int32)

    def rotation_surroundings(self, torsions: list[Torsion], moved: np.ndarray,
                              absent: np.ndarray | None = None) -> Surroundings:
        """What the atoms turned by consecutive torsions can meet."""
        pivots = self.position[[t.quad[2] for t in torsions]]
        last = np.zeros(len(moved), dtype=np.int64)
        signature = np.zeros((len(moved), len(torsions)), dtype=bool)
        for k, torsion in enumerate(torsions):
            signature[:, k] = np.isin(moved, torsion.turned)
            last[signature[:, k]] = k
        reach = (np.linalg.norm(np.diff(pivots, axis=0), axis=1).sum()
                 + np.linalg.norm(self.position[moved] - pivots[last], axis=1).max())
        return self.surroundings(moved, pivots[0], reach, signature, absent)

    def group_surroundings(self, moved: np.ndarray, reach: float) -> Surroundings:
        """What a group can meet whose atoms each move by up to ``reach``."""
        centre = self.position[moved].mean(axis=0)
        extent = np.linalg.norm(self.position[moved] - centre, axis=1).max()
        return self.surroundings(moved, centre, extent + reach, np.arange(len(moved))[:, None])

    def group_score(self, position: np.ndarray, surroundings: Surroundings) -> Score:
        """Score of a moved group at (m, 3) trial positions."""
        fatal, severe, energy = self._score(
            position, np.zeros((1, 2), dtype=np.int32), np.zeros((1, len(position)), dtype=np.int32), np.zeros((1, 1)),
            np.arange(len(position), dtype=np.int32), surroundings)
        return Score(int(fatal[0]), int(severe[0]), float(energy[0]))

    def _score(self, local: np.ndarray, axis: np.ndarray, turned: np.ndarray, angle: np.ndarray, moved: np.ndarray,
               s: Surroundings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        trials = len(angle)
        fatal, severe = np.zeros(trials, dtype=np.int32), np.zeros(trials, dtype=np.int32)
        energy = np.zeros(trials)
        _kernels.torsion_moves.score_rotations(
            np.asfortranarray(local.T), axis.T, turned.T, np.asfortranarray(angle.T), moved,
            np.asfortranarray(s.around_position.T), np.asfortranarray(s.contact), np.asfortranarray(s.severe),
            np.asfortranarray(moved[s.inner].T), s.inner_contact, s.inner_severe, self.threshold, self.threads, fatal,
            severe, energy)
        return fatal, severe, energy

    def turn(self, position: np.ndarray, torsion: Torsion, angle: float) -> None:
        """Turn global ``position`` in place about one torsion (radian)."""
        local = np.array(torsion.quad[1:3] + torsion.turned)
        part = np.asfortranarray(position[local].T)
        turned = np.ones(len(local), dtype=np.int32)
        turned[:2] = 0
        _kernels.torsion_moves.apply_rotation(part, np.array([0, 1], dtype=np.int32), turned, angle)
        position[local[2:]] = part.T[2:]

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

    def update_triggers(self, pairs: np.ndarray, distance: np.ndarray,
                        moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What ``triggers(heavy=True)`` gives now, from what it gave before some atoms moved and cells were rebuilt."""
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
