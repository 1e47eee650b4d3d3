"""What a move must not do: put a bond through a ring, or a backbone between the two strands of a duplex.

No other move mends that, and a minimiser does not either. Only the neighbourhood of what moved is looked at, with the
audit's own searches.
"""

from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.sterics.atoms import DNA_BACKBONE, HYDROGEN, PROTEIN_BACKBONE
from chromabuild.sterics.audit import RING_SEARCH, bonds_near_rings, bonds_through_rings, expand, find_rings
from chromabuild.sterics.cell_list import CellList
from chromabuild.sterics.chains import (
    STEP_REACH,
    NamePlaces,
    Piercing,
    bonds_through_steps,
    find_duplexes,
    step_corners,
)
from chromabuild.sterics.scene import Scene

BACKBONES = (DNA_BACKBONE, PROTEIN_BACKBONE)
GIVE = 2.0  # angstrom: no re-adjustment takes a C1' as far from where it was at the start


class Passages:
    """Bonds through rings and between strands, around groups of atoms of a scene."""

    def __init__(self, scene: Scene) -> None:
        """Base-pair steps are known after ``find_steps``."""
        self.scene = scene
        self.steps = np.zeros((0, 4), dtype=np.int64)
        """(s, 4) the C1' around every base-pair step."""
        self.step_tree: cKDTree | None = None

    @cached_property
    def place(self) -> NamePlaces:
        """Where each residue has its atoms."""
        return NamePlaces(self.scene.atoms)

    def find_steps(self) -> None:
        """Look for every base-pair step, once; bases never move, so pairs stay pairs."""
        self.steps = step_corners(self.place, find_duplexes(self.scene.atoms, self.place))
        self.step_tree = cKDTree(self.scene.start[self.steps].mean(axis=1))

    def opened(self, moved: np.ndarray, position: np.ndarray) -> bool:
        """Whether a bond would run through a ring or between strands, which does not do so now, with the ascending
        atoms ``moved`` at ``position`` (m, 3), rounded to float32 as ``commit`` does."""
        scene = self.scene
        old, count = scene.position[moved], len(scene.moved_since)
        scene.position[moved] = position.astype(np.float32)
        scene.note_moved(moved)
        after = self.near(moved)
        scene.position[moved] = old
        del scene.moved_since[count:]
        return bool(after) and not after <= self.near(moved)

    def near(self, moved: np.ndarray) -> set[Piercing]:
        """Bonds that run through rings or between strands now, where they can depend on the given atoms."""
        return set(self.through_rings(moved)) | set(self.through_steps(moved))

    def through_rings(self, moved: np.ndarray) -> list[Piercing]:
        """Bonds through rings, the one or the other with an atom in the residues of those moved."""
        scene, atoms = self.scene, self.scene.atoms
        group = [np.arange(atoms.residue_first[r], atoms.residue_first[r + 1]) for r in np.unique(atoms.residue[moved])]
        group = np.union1d(np.concatenate(group), self.neighbours(moved)[1])
        low, high = scene.position[group].min(axis=0), scene.position[group].max(axis=0)
        around = scene.around((low + high) / 2, float(np.linalg.norm(high - low)) / 2 + RING_SEARCH)
        local = np.union1d(around, group)
        local = local[((scene.position[local] > low - RING_SEARCH)
                       & (scene.position[local] < high + RING_SEARCH)).all(axis=1)]
        pairs = local[CellList(scene.position[local], RING_SEARCH).pairs(RING_SEARCH)[0]]
        scene.mark[group] = True
        pairs = pairs[scene.mark[pairs].any(axis=1)]
        scene.mark[group] = False
        pairs = pairs[~scene.graph.bonded(pairs)]
        if not len(pairs):
            return []
        rings = find_rings(atoms, np.unique(atoms.residue[pairs]))
        if not len(rings):
            return []
        return bonds_through_rings(scene.position, None, rings, bonds_near_rings(scene.graph, rings, pairs))

    def through_steps(self, moved: np.ndarray) -> list[Piercing]:
        """Backbone bonds of the moved atoms between strands; every one near a step of which a C1' has moved."""
        scene, atoms = self.scene, self.scene.atoms
        own = self.backbone_bonds(moved)
        corners = moved[atoms.name_code[moved] == self.corner_code]
        if not len(self.steps) or not (len(own) or len(corners)):
            return []
        points = scene.position[np.concatenate([own.ravel(), corners])]
        low, high = points.min(axis=0), points.max(axis=0)
        reach = float(np.linalg.norm(high - low)) / 2 + STEP_REACH + GIVE
        near = self.step_tree.query_ball_point((low + high) / 2, reach, return_sorted=True)
        quads = self.steps[np.array(near, dtype=np.int64)]
        found = bonds_through_steps(atoms.at(scene.position), quads, own)
        bent = quads[np.isin(quads, corners).any(axis=1)]
        if len(bent):
            beside = [scene.around(scene.position[quad].mean(axis=0), STEP_REACH + GIVE) for quad in bent]
            bonds = self.backbone_bonds(np.unique(np.concatenate(beside)))
            found += bonds_through_steps(atoms.at(scene.position), bent, bonds)
        return found

    @cached_property
    def corner_code(self) -> int:
        """Place of C1' among the atom names; -1 where no atom has that name."""
        code = np.flatnonzero(self.scene.atoms.names == "C1'")
        return int(code[0]) if len(code) else -1

    def neighbours(self, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each bond that starts in a group: its first and its second atom."""
        first = self.scene.graph.first
        place, row = expand(first[group], first[group + 1] - first[group])
        return group[row], self.scene.graph.neighbour[place].astype(np.int64)

    def backbone_bonds(self, group: np.ndarray) -> np.ndarray:
        """(b, 2) bonds between heavy backbone atoms with an end in a group, each once."""
        atoms = self.scene.atoms
        bonds = np.sort(np.stack(self.neighbours(group), axis=1), axis=1)
        keep = (np.isin(atoms.part[bonds], BACKBONES) & (atoms.element[bonds] != HYDROGEN)).all(axis=1)
        return np.unique(bonds[keep], axis=0)
