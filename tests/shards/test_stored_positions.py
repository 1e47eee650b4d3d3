"""Positions of a shard set on disk: what `read_shards` reads, and the same faults found."""

import shutil

import numpy as np
import pytest

from chromabuild.base.errors import IntegrityError
from chromabuild.shards import read_shards, store_shards
from chromabuild.shards.brick_file import read_brick
from chromabuild.shards.manifest import BRICKS_NAME


def test_slices_are_those_of_all_positions(shards):
    folder, _, box, position = shards
    found_box, stored = store_shards(folder)
    assert np.array_equal(found_box, box) and len(stored) == len(position)
    assert np.array_equal(np.asarray(stored), position)
    for part in (slice(0, 1), slice(7, 5000), slice(len(position) - 3, None), slice(5, 5)):
        assert np.array_equal(stored[part], position[part])


def test_atoms_that_are_missing_or_there_twice(shards, tmp_path):
    """A list of bricks with one left out, and with one named twice."""
    folder = shards[0]
    for path in [*folder.glob("*.cbb"), folder / BRICKS_NAME]:
        shutil.copy(path, tmp_path)
    lines = (tmp_path / BRICKS_NAME).read_text().splitlines(keepends=True)
    first, least = next((read_brick(tmp_path / line.split()[0]).global_id, k) for k, line in enumerate(lines[4:], 4)
                        if len(read_brick(tmp_path / line.split()[0]).global_id))
    for changed in (lines[:least] + lines[least + 1:], [*lines, lines[least]]):
        (tmp_path / BRICKS_NAME).write_text("".join(changed))
        for reader in (store_shards, read_shards):
            with pytest.raises(IntegrityError, match="run chromabuild solvate again"):
                reader(tmp_path)
    assert len(first)
