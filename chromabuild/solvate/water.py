"""The water tile, and boxes filled with copies of it.

All coordinates are whole numbers of 0.001 angstrom, the unit of shard files: adding a tile's corner to a molecule is
exact, so a water has the same coordinates whoever computes it.

A *slot* is one molecule of one tile copy. Tile (i, j, k) of nx x ny x nz copies and its molecule m have the slot
number m + M (i + nx (j + ny k)), M molecules in a tile. It depends on the box alone, never on bricks.

Tiles fill the upright block of the diagonal of a box, which its vectors repeat through all space. Where edges lean,
what leaves the block through one face comes in through the other one displaced.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.box_vectors import box_of, folded, lattice_steps, tilt_of, vectors_of, with_images
from chromabuild.base.files import template_path
from chromabuild.base.force_fields import WaterName
from chromabuild.molecule.water_models import WATER_MODELS

FILL_DEPTH = 3000
"""Slots up to this far beyond the upper faces (0.001 angstrom) are tried in the gaps that cutting the tiles leaves."""

OXYGEN_OXYGEN, OXYGEN_HYDROGEN, HYDROGEN_HYDROGEN = 2300, 1500, 1300
"""Waters on the two sides of a face may not come closer than this (0.001 angstrom).

With these and FILL_DEPTH a pair of faces lacks the water of a layer of GAP_AT_FACES: 0.5 % of a box of 170 angstrom.
"""

GAP_AT_FACES = 0.3
"""Angstrom along each axis that hold no water because of it."""

_REACH = 3500  # two waters with oxygens farther apart than this cannot overlap: 1300 + 2 x 957, rounded up

_PAIRS_A_BATCH = 1 << 15
_WATERS_A_SLAB = 1 << 16


@dataclass(frozen=True)
class WaterTile:
    """A periodic cube of water."""

    position: np.ndarray
    """(m, 3 or 4, 3) int32: molecule, site (O, H1, H2, charge without mass), axis; oxygens in [0, edge)."""
    edge: int
    model: WaterName = "tip3p"

    @property
    def n_molecules(self) -> int:
        """Molecules in the tile."""
        return len(self.position)


@cache
def water_tile(model: WaterName = "tip3p") -> WaterTile:
    """The bundled TIP3P tile (templates/tools/make_water.py), or another model with the same oxygens."""
    with np.load(template_path("water_tip3p.npz")) as file:
        position, edge = file["position"].astype(np.int32), int(file["edge"])
    return WaterTile(position if model == "tip3p" else WATER_MODELS[model].shaped(position), edge, model)


@dataclass(frozen=True)
class Tiling:
    """A box filled with tiles from its origin corner; wrapped positions lie in the upright block of its diagonal."""

    box: tuple[int, int, int]
    """The diagonal of its vectors, 0.001 angstrom."""
    tile: WaterTile
    tilt: tuple[int, int, int] = (0, 0, 0)
    """b_x, c_x and c_y, 0.001 angstrom."""

    @cached_property
    def vectors(self) -> np.ndarray:
        """(3,) int64 edges, or (3, 3) vectors where they lean."""
        return box_of(np.array(self.box, dtype=np.int64), np.array(self.tilt))

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Copies of the tile along each axis; they reach FILL_DEPTH beyond the upper faces."""
        return tuple(-(-(edge + FILL_DEPTH) // self.tile.edge) for edge in self.box)

    @property
    def n_tiles(self) -> int:
        """Number of tile copies."""
        return int(np.prod(self.counts))

    def corners(self, tiles: np.ndarray) -> np.ndarray:
        """(t, 3) int32 lower corners of tiles given by number."""
        nx, ny, _ = self.counts
        index = np.stack([tiles % nx, tiles // nx % ny, tiles // (nx * ny)], axis=1)
        return (index * self.tile.edge).astype(np.int32)

    def unwrapped_oxygens(self, tiles: np.ndarray) -> np.ndarray:
        """(t, m, 3) int32 oxygens of all slots of the tiles, not wrapped into the box."""
        return self.corners(tiles)[:, None] + self.tile.position[None, :, 0]

    def is_whole(self, tiles: np.ndarray) -> np.ndarray:
        """(t,) bool: tiles whose oxygens are all in the box."""
        return (self.corners(tiles) + self.tile.edge <= np.array(self.box)).all(1)

    def unwrapped_molecules(self, slots: np.ndarray) -> np.ndarray:
        """(s, 3 or 4, 3) int32 sites of slots, not wrapped into the box."""
        tiles, members = np.divmod(slots, self.tile.n_molecules)
        return self.corners(tiles)[:, None] + self.tile.position[members]

    def molecules(self, slots: np.ndarray) -> np.ndarray:
        """(s, 3 or 4, 3) int32 sites of slots, each molecule whole, its oxygen wrapped into the box."""
        molecule = self.unwrapped_molecules(slots)
        return molecule + (folded(molecule[:, 0], self.vectors) - molecule[:, 0])[:, None]

    def oxygens(self, slots: np.ndarray) -> np.ndarray:
        """(s, 3) int32 oxygens of slots, wrapped into the box."""
        tiles, members = np.divmod(slots, self.tile.n_molecules)
        return folded(self.corners(tiles) + self.tile.position[members, 0], self.vectors)

    def tiles_touching(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Sorted numbers of the tiles that may have slots with wrapped oxygens in [lower, upper), straight."""
        edge, vectors = self.tile.edge, vectors_of(self.vectors)
        share = np.array([lower, upper]) / np.array(self.box)
        corner = np.stack(np.meshgrid(*share.T, indexing="ij"), axis=-1).reshape(-1, 3) @ vectors
        slack = 1 if any(self.tilt) else 0  # a leaning brick has rounded corners
        low, high = np.rint(corner.min(axis=0)) - slack, np.rint(corner.max(axis=0)) + slack
        nx, ny, _ = self.counts
        found = []
        for step in np.concatenate([np.zeros((1, 3)), lattice_steps(vectors), -lattice_steps(vectors)]):
            first = np.maximum(low + step, 0).astype(np.int64)
            last = np.minimum(high + step, np.array(self.box) + FILL_DEPTH).astype(np.int64) - 1
            if (first <= last).all():
                x, y, z = (np.arange(a, b + 1) for a, b in zip(first // edge, last // edge, strict=True))
                found.append((x[None, None, :] + nx * (y[None, :, None] + ny * z[:, None, None])).ravel())
        return np.unique(np.concatenate(found))


def tiling_of(box: np.ndarray, water: WaterName) -> Tiling:
    """Tiles of a water in a box, (3,) edges or (3, 3) vectors, 0.001 angstrom."""
    vectors = vectors_of(box).astype(np.int64)
    tilt = tilt_of(vectors).astype(np.int64)
    return Tiling(tuple(np.diag(vectors).tolist()), water_tile(water), tuple(tilt.tolist()))


def seam_changes(tiling: Tiling, among: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What the box faces change, the tiles being cut there: (slots to drop, slots to add), both sorted.

    The starting point is every slot with its oxygen in the box. Along x, then y, then z: a water below the upper face
    that overlaps one above the lower face is dropped; then slots up to FILL_DEPTH beyond the upper face, wrapped, are
    added where they overlap nothing. Memory: 21 bytes a water within 0.7 nm of a face.
    ``among``: look at slots of these tiles only; right for those with all within 9 x 0.35 nm around them among these.
    """
    box = np.array(tiling.box, dtype=np.int64)
    slots, wrapped, beyond = _slots_near_faces(tiling, among)
    inside = beyond == 0
    present = inside.copy()
    for axis in range(3):
        height = wrapped[:, axis]
        lower = np.flatnonzero(present & (height < _REACH))
        upper = np.flatnonzero(present & (height >= box[axis] - _REACH))
        _, b = _overlapping(tiling, slots[lower], slots[upper], axis)
        present[upper[b]] = False

        added = np.flatnonzero(beyond == 1 << axis)
        near = np.flatnonzero(present & ((height < FILL_DEPTH + _REACH) | (height >= box[axis] - _REACH)))
        _, b = _overlapping(tiling, slots[near], slots[added], axis)
        added = np.delete(added, np.unique(b))
        a, b = _overlapping(tiling, slots[added], slots[added], axis)
        place = tiling.unwrapped_molecules(slots[added])[:, 0]
        through_a_face = (np.abs(place[a].astype(np.int64) - place[b]) > _REACH).any(1)
        added = np.delete(added, np.unique(np.maximum(a, b)[through_a_face]))
        present[added] = True
    return slots[inside & ~present], slots[~inside & present]


def _slots_near_faces(tiling: Tiling, among: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted slots within reach of a face (inside, or up to FILL_DEPTH beyond an upper one).

    With their wrapped oxygens (s, 3) int32, and (s,) uint8 with bit k set where they are beyond the box along axis k.
    """
    box = np.array(tiling.box, dtype=np.int32)
    depth = FILL_DEPTH + _REACH
    n, edge = tiling.tile.n_molecules, tiling.tile.edge
    index = [np.arange(count) for count in tiling.counts]
    at_face = [(i * edge < depth) | ((i + 1) * edge > length - depth)
               for i, length in zip(index, box.tolist(), strict=True)]
    tiles = np.flatnonzero((at_face[2][:, None, None] | at_face[1][None, :, None] | at_face[0][None, None, :]).ravel())
    if among is not None:
        tiles = np.intersect1d(tiles, among)
    slots, wrapped, beyond = [], [], []
    for part in np.array_split(tiles, -(-max(len(tiles), 1) // 1024)):
        oxygen = tiling.unwrapped_oxygens(part).reshape(-1, 3)
        chosen = np.flatnonzero((oxygen < box + FILL_DEPTH).all(1)
                                & ((oxygen < depth) | (oxygen >= box - depth)).any(1))
        oxygen = oxygen[chosen]
        outside = oxygen >= box
        slots.append(part[chosen // n] * n + chosen % n)
        wrapped.append(folded(oxygen, tiling.vectors))
        beyond.append((outside * np.array([1, 2, 4], dtype=np.uint8)).sum(1, dtype=np.uint8))
    return np.concatenate(slots), np.concatenate(wrapped), np.concatenate(beyond)


def _overlapping(tiling: Tiling, first: np.ndarray, second: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Index pairs of overlapping molecules of two sets of slots near the faces of ``axis``, periodic.

    Works through slabs of the longer of the other two axes, so that only a slab's molecules are in memory.
    """
    across = max((k for k in range(3) if k != axis), key=lambda k: tiling.box[k])
    steps = lattice_steps(tiling.vectors)[:, across].astype(np.int64)
    steps = np.unique(np.concatenate([[0], steps, -steps]))
    found = [np.empty((0, 2), dtype=np.int64)]
    places = [_along(tiling, slots, across) for slots in (first, second)]
    orders = [np.argsort(place, kind="stable") for place in places]
    heights = [place[order] for place, order in zip(places, orders, strict=True)]
    for start in range(0, len(second), _WATERS_A_SLAB):
        slab = orders[1][start:start + _WATERS_A_SLAB]
        low, high = heights[1][[start, start + len(slab) - 1]].astype(np.int64) + [-_REACH, _REACH]
        near = np.unique(np.concatenate([
            orders[0][np.searchsorted(heights[0], low - step):np.searchsorted(heights[0], high - step, side="right")]
            for step in steps.tolist()]))
        molecules = tiling.molecules(first[near])
        image, source = with_images(molecules[:, 0], tiling.vectors, _REACH)
        inside = np.flatnonzero((image[:, across] >= low) & (image[:, across] <= high))
        image, source = image[inside], source[inside]
        molecules = molecules[source] + (image - molecules[source, 0])[:, None]
        a, b = _overlapping_molecules(molecules, tiling.molecules(second[slab]))
        found.append(np.stack([near[source[a]], slab[b]], axis=1))
    a, b = np.concatenate(found).T
    return a, b


def _along(tiling: Tiling, slots: np.ndarray, axis: int) -> np.ndarray:
    """(s,) wrapped oxygens along one axis."""
    parts = np.array_split(slots, -(-max(len(slots), 1) // _WATERS_A_SLAB))
    return np.concatenate([tiling.oxygens(part)[:, axis] for part in parts])


def _overlapping_molecules(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index pairs of overlapping molecules of two sets of (n, 3 or 4, 3) sites."""
    first, second = first[:, :3], second[:, :3]  # a charge without mass lies within its oxygen
    if len(first) == 0 or len(second) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    trees = [cKDTree(molecules[:, 0].astype(float)) for molecules in (first, second)]
    pairs = trees[0].sparse_distance_matrix(trees[1], _REACH, output_type="ndarray")
    closest = np.full((3, 3), HYDROGEN_HYDROGEN)
    closest[0, :] = closest[:, 0] = OXYGEN_HYDROGEN
    closest[0, 0] = OXYGEN_OXYGEN
    found = [np.empty((0, 2), dtype=np.int64)]
    for start in range(0, len(pairs), _PAIRS_A_BATCH):
        a, b = pairs["i"][start:start + _PAIRS_A_BATCH], pairs["j"][start:start + _PAIRS_A_BATCH]
        difference = first[a][:, :, None].astype(np.int64) - second[b][:, None]
        overlap = ((difference**2).sum(-1) < closest**2).any((1, 2))
        found.append(np.stack([a[overlap], b[overlap]], axis=1))
    a, b = np.concatenate(found).T
    return a, b
