"""A brick from its neighbourhood alone: its waters and ions are decided again without looking at the rest of the box.

What a brick cannot know of itself is taken from the full run: how many residues of each kind come before the rows of
tiles that it touches (the ids of its atoms), and the random number of the last ion of each kind. With these and the
solute around it the brick must come out as in the full run, byte by byte.
"""

from types import SimpleNamespace

import numpy as np

from chromabuild.shards.brick_file import brick_bytes
from chromabuild.solvate.bricks import SolvatedSystem, make_brick
from chromabuild.solvate.ions import choose_slots, slot_priorities
from chromabuild.solvate.layout import SoluteLayer, unpacked, without_solute
from chromabuild.solvate.layout_file import CONTENTS, LayoutPart
from chromabuild.solvate.water import Tiling, water_tile

REACH = 60_000
"""What is looked at around a brick (0.001 angstrom). The border of that is wrong 32 A deep where box faces are; beyond,
a mistake goes on by chains of ions that bar one another, 5 A and one in ten a link (a slot in a hundred is tried)."""


def starts_of_rows(tiles):
    """Places in ``tiles`` at which a row of neighbours along x begins."""
    return np.flatnonzero(np.diff(tiles, prepend=-2) != 1)


def tiles_near(tiling, lower, upper):
    """Numbers of the tiles within REACH of a brick, through the faces too, ascending."""
    along = []
    for axis in range(3):
        bottom = np.arange(tiling.counts[axis]) * tiling.tile.edge
        near = [(bottom + image < upper[axis] + REACH) & (bottom + tiling.tile.edge + image > lower[axis] - REACH)
                for image in (-tiling.box[axis], 0, tiling.box[axis])]
        along.append(np.flatnonzero(np.any(near, axis=0)))
    nx, ny, _ = tiling.counts
    return (along[0] + nx * (along[1][:, None] + ny * along[2][:, None, None])).ravel()


def occupants_near(placed, tiling, seed, tiles, last_ion):
    """(t, m) uint8 contents of the slots of ``tiles``, decided from these tiles and the solute near them."""
    n = tiling.tile.n_molecules
    water = unpacked(without_solute(tiling, tiles)[tiles], tiling)
    far = water.copy()
    layer_of = tiles // (tiling.counts[0] * tiling.counts[1])
    for z in np.unique(layer_of):
        layer = SoluteLayer(placed, tiling, int(z))
        rows = np.flatnonzero(layer_of == z)
        row, member = np.nonzero(water[rows])
        status = layer.classify(tiles[rows][row] * n + member, 1)
        water[rows[row], member], far[rows[row], member] = status > 0, status > 1
    number = np.array([slot_priorities(seed, tile * n, n) for tile in tiles.tolist()])
    row, member = np.nonzero(far & (number <= last_ion[-1]))
    number = number[row, member]
    chosen = choose_slots(number, tiling.oxygens(tiles[row] * n + member), np.array(tiling.box), len(row))
    occupant = water.view(np.uint8)
    occupant[row[chosen], member[chosen]] = 2 + np.searchsorted(last_ion, number[chosen])
    return occupant


def record(layout, grid, seed, bricks):
    """What ``lone_brick`` needs of a full run: the last ions' random numbers, ``before`` at each brick's rows."""
    n = layout.tiling.tile.n_molecules
    last = np.zeros(len(CONTENTS) - 2, dtype=np.uint64)
    for first in range(0, layout.tiling.n_tiles, 2048):
        tiles = np.arange(first, min(first + 2048, layout.tiling.n_tiles))
        occupant = layout.part(tiles).occupant.ravel()
        number = slot_priorities(seed, first * n, len(occupant))
        for species in range(len(last)):
            last[species] = max(last[species], number[occupant == species + 2].max(initial=0))
    rows = {}
    for k in bricks:
        part = layout.part(layout.tiling.tiles_touching(*grid.bounds(k)))
        rows[k] = part.before[starts_of_rows(part.tiles)].tolist()
    return np.maximum.accumulate(last).tolist(), rows


def lone_brick(placed, grid, seed, counts, last_ion, k, before_rows):
    """The bytes of brick ``k`` as .cbb, from its neighbourhood and what ``record`` gave."""
    tiling = Tiling(tuple(grid.box.tolist()), water_tile())
    lower, upper = grid.bounds(k)
    near = tiles_near(tiling, lower, upper)
    tiles = tiling.tiles_touching(lower, upper)
    occupant = occupants_near(placed, tiling, seed, near, np.array(last_ion, dtype=np.uint64))
    occupant = occupant[np.searchsorted(near, tiles)]
    # A system without calcium counts none.
    contents = range(1, 1 + len(before_rows[0]))
    count = np.stack([(occupant == content).sum(1) for content in contents], axis=1)
    earlier = np.cumsum(count, axis=0) - count
    starts = starts_of_rows(tiles)
    row = np.searchsorted(starts, np.arange(len(tiles)), side="right") - 1
    part = LayoutPart(tiles, occupant, np.array(before_rows)[row] + earlier - earlier[starts][row])
    layout = SimpleNamespace(tiling=tiling, counts=counts, part=lambda wanted: part)
    return brick_bytes(make_brick(SolvatedSystem(placed, layout, grid, True, {}), k))
