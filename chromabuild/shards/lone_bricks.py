"""Bricks of a solute without water, for the engine alone."""

from pathlib import Path

import numpy as np

from chromabuild.base.files import atomic_path
from chromabuild.shards.brick_file import BrickFile, packed
from chromabuild.shards.manifest import BRICKS_NAME, Manifest, Shard

EDGE = 200.0
"""Angstrom, target edge of a brick."""
MARGIN = 10
"""Thousandths of an angstrom between the atoms and the faces of the box."""


def write_lone_bricks(position: np.ndarray, first: np.ndarray, folder: Path) -> tuple[Path, np.ndarray]:
    """Write bricks.txt and the bricks of the smallest upright box around a solute, each residue in one brick.

    ``position``: (n, 3) angstrom; ``first``: (r + 1,) first atoms of the residues. Gives the path of bricks.txt and the
    corner of the box in the solute's coordinates, (3,) angstrom.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lower = np.floor(np.min(position, axis=0).astype(float) * 1000).astype(np.int64) - MARGIN
    box = np.ceil(np.max(position, axis=0).astype(float) * 1000).astype(np.int64) + MARGIN - lower
    grid = np.maximum(1, np.rint(box / (1000 * EDGE))).astype(np.int64)
    edges = [np.arange(n + 1) * edge // n for n, edge in zip(grid.tolist(), box.tolist(), strict=True)]
    start = np.rint(position[first[:-1]].astype(float) * 1000).astype(np.int64) - lower
    cell = [np.searchsorted(inner[1:-1], start[:, axis], side="right") for axis, inner in enumerate(edges)]
    brick = cell[0] + grid[0] * (cell[1] + grid[1] * cell[2])
    order = np.argsort(brick, kind="stable")
    ends = np.searchsorted(brick[order], np.arange(grid.prod() + 1))
    shards = []
    for number in range(int(grid.prod())):
        residues = order[ends[number]:ends[number + 1]]
        size = first[residues + 1] - first[residues]
        ids = np.repeat(first[residues] - np.cumsum(size) + size, size) + np.arange(size.sum())
        inside = (np.rint(position[ids].astype(float) * 1000).astype(np.int64) - lower).astype(np.int32)
        place = (number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1]))
        corners = [np.array([edges[axis][place[axis] + step] for axis in range(3)]) / 1000 for step in (0, 1)]
        shard = Shard(f"brick_{number:05d}", len(ids), 0, tuple(corners[0].tolist()), tuple(corners[1].tolist()), {})
        with atomic_path(folder / f"{shard.name}.cbb") as part:
            part.write_bytes(packed(BrickFile(box / 1000, *corners, ids, inside)))
        shards.append(shard)
    manifest = Manifest(tuple((box / 1000).tolist()), tuple(grid.tolist()), len(position), {}, 0, {}, shards=shards)
    with atomic_path(folder / BRICKS_NAME) as part:
        part.write_text(manifest.bricks_text())
    return folder / BRICKS_NAME, lower / 1000
