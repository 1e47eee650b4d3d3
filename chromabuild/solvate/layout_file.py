"""plan.h5: what every slot of the box holds, stored so that a brick reads the tiles that it touches and no others.

Dataset ``occupant`` (tiles, slots of a tile) u1: the contents of a slot as an index into ``CONTENTS``; ``before``
(tiles, contents - 1) i8: how many residues of each of them, from water on, are in earlier tiles.
"""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from chromabuild.base.checked_json import checked_text
from chromabuild.base.files import atomic_path
from chromabuild.base.force_fields import WaterName
from chromabuild.shards.manifest import RECORD_FOLDER, file_entry, file_error
from chromabuild.solvate.ions import SPECIES
from chromabuild.solvate.layout import SolventLayout
from chromabuild.solvate.water import tiling_of

FORMAT = "chromabuild-solvation-plan"
VERSION = 3
LAYOUT_NAME = "plan.h5"
LAYOUT_RECORD = "plan.json"

CONTENTS = ("nothing", "water", *SPECIES)

_TILES_A_CHUNK = 32
_TILES_A_BATCH = 64 * _TILES_A_CHUNK


@dataclass(frozen=True)
class LayoutPart:
    """What a layout says of some tiles."""

    tiles: np.ndarray
    """(t,) int64 numbers, ascending."""
    occupant: np.ndarray
    """(t, m) uint8 contents of every slot, an index into ``CONTENTS``."""
    before: np.ndarray
    """(t, contents - 1) int64 residues of each kind in earlier tiles of the box."""


class StoredLayout:
    """An open plan.h5, known to be sound."""

    def __init__(self, path: Path, box: np.ndarray, water: WaterName) -> None:
        """Open the file for reading."""
        self._file = h5py.File(path, "r", locking=False)  # cluster file systems may know no locks
        self.tiling = tiling_of(box, water)
        self.counts: dict[str, int] = dict(zip(CONTENTS[1:], self._file.attrs["counts"].tolist()))  # noqa: B905 - without calcium
        """Residues of water and of each ion, in global order."""

    def part(self, tiles: np.ndarray) -> LayoutPart:
        """What the layout says of ``tiles`` (t,), ascending."""
        occupant, before = self._file["occupant"], self._file["before"]
        runs = [slice(int(run[0]), int(run[-1]) + 1)
                for run in np.split(tiles, np.flatnonzero(np.diff(tiles) != 1) + 1) if len(run)]
        return LayoutPart(tiles, np.concatenate([occupant[:0], *(occupant[run] for run in runs)]),
                        np.concatenate([before[:0], *(before[run] for run in runs)]))


def parts_of(layout: SolventLayout) -> Iterator[LayoutPart]:
    """The whole layout, some tiles at a time."""
    n = layout.tiling.tile.n_molecules
    width = 1 + len(layout.ions)
    before = np.zeros(width, dtype=np.int64)
    for first in range(0, layout.tiling.n_tiles, _TILES_A_BATCH):
        tiles = np.arange(first, min(first + _TILES_A_BATCH, layout.tiling.n_tiles))
        occupant = layout.has_water(tiles).view(np.uint8)
        for content, slots in enumerate(layout.ions.values(), start=2):
            here = slots[slice(*np.searchsorted(slots, [first * n, (tiles[-1] + 1) * n]))] - first * n
            occupant.reshape(-1)[here] = content
        count = np.stack([(occupant == content).sum(1) for content in range(1, width + 1)], axis=1)
        until = before + np.cumsum(count, axis=0)
        yield LayoutPart(tiles, occupant, until - count)
        before = until[-1]


def write_layout(layout: SolventLayout, folder: Path, inputs: dict[str, str]) -> None:
    """Write plan.h5, then its record; both by atomic rename."""
    shape = layout.tiling.n_tiles, layout.tiling.tile.n_molecules
    image = io.BytesIO()  # a full disk then fails in one plain write, not inside HDF5
    with h5py.File(image, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["version"] = VERSION
        file.attrs["provenance"] = json.dumps(inputs, sort_keys=True)
        file.attrs["counts"] = list(layout.counts.values())
        packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        chunk = min(_TILES_A_CHUNK, shape[0])
        occupant = file.create_dataset("occupant", shape, np.uint8, chunks=(chunk, shape[1]), **packed)
        width = 1 + len(layout.ions)
        before = file.create_dataset("before", (shape[0], width), np.int64, chunks=(chunk, width), **packed)
        for part in parts_of(layout):
            rows = slice(int(part.tiles[0]), int(part.tiles[-1]) + 1)
            occupant[rows], before[rows] = part.occupant, part.before
    with atomic_path(folder / LAYOUT_NAME) as part:
        part.write_bytes(image.getbuffer())
    with atomic_path(folder / RECORD_FOLDER / LAYOUT_RECORD) as part:
        part.write_text(checked_text({"inputs": inputs, "file": file_entry(image.getbuffer())}))


def read_layout(folder: Path, box: np.ndarray, inputs: dict[str, str], water: WaterName) -> StoredLayout | None:
    """The stored layout, or None when there is none for these inputs or it is damaged."""
    path = folder / LAYOUT_NAME
    try:
        record = json.loads((folder / RECORD_FOLDER / LAYOUT_RECORD).read_bytes())
        # A damaged HDF5 file can do anything to its reader, so its hash is checked before it is opened.
        if record["inputs"] != inputs or file_error(path, record["file"]):
            return None
        return StoredLayout(path, box, water)
    except (OSError, KeyError, ValueError, TypeError):
        return None
