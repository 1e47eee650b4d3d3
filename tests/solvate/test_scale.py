"""A million and ten million atoms through processes, in constant memory, and single bricks of the larger box."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3
from support import lone_bricks
from support.solvated_example import SOLUTE
from support.spread_nucleosomes import write_spread

from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.shards import verify_shards
from chromabuild.shards.brick_file import read_brick
from chromabuild.solvate import brick_grid, solvate
from chromabuild.solvate.placement import place_solute

BILLION = Path(__file__).parent / "data" / "billion.json"

SCRIPT = """
import re, resource, sys
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import solvate
if __name__ == "__main__":
    edge = float(sys.argv[1])
    solvate(Solute.open(sys.argv[2]), SolvateSection(box=(edge, edge, edge)), 1, int(sys.argv[3]), sys.argv[4])
    # Not ru_maxrss of RUSAGE_SELF: exec passes on the peak of the program that was there before, the caller's.
    own = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
    print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""


def made(edge, solute, processes, folder):
    """Largest resident set of any process, bytes."""
    script = folder.with_suffix(".py")
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script), str(edge), str(solute), str(processes), str(folder)],
                          capture_output=True, text=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.returncode == 0, done.stderr
    return int(done.stdout) * 1024


@pytest.mark.slow
def test_memory_does_not_grow_with_the_system(tmp_path):
    """The largest process of 1e7 atoms is hardly larger than that of 1e6 (a bit a water in the layout: 0.4 MB)."""
    small = made(217.0, SOLUTE, 1, tmp_path / "6")
    large = made(467.0, SOLUTE, 2, tmp_path / "7")
    manifests = [verify_shards(tmp_path / name, threads=2) for name in ("6", "7")]
    assert manifests[0].atoms > 0.99e6 and manifests[1].atoms > 9.9e6
    assert large < small + 60e6 < 300e6
    section = SolvateSection(box=(467.0,) * 3)
    alone = solvate(Solute.read(SOLUTE), section, 1, 1, tmp_path / "alone", only=[0, 62, 124])
    full = {shard.name: shard for shard in manifests[1].shards}
    assert [shard.name for shard in alone.shards] == ["brick_00000", "brick_00062", "brick_00124"]
    assert all(shard == full[shard.name] for shard in alone.shards)
    ids = np.concatenate([read_brick(tmp_path / "7" / f"{name}.cbb").global_id for name in full])
    assert len(ids) == manifests[1].atoms and np.array_equal(np.sort(ids), np.arange(len(ids)))


@pytest.mark.slow
def test_bricks_of_a_billion_atoms(tmp_path):
    """Five bricks made alone are those of the full run, whose hashes stand in data/billion.json.

    Each from its neighbourhood: no pass over the box, only numbers of residues before it are taken from the record.
    """
    full = json.loads(BILLION.read_text())
    box, seed = full["box"], full["seed"]
    write_spread(tmp_path / "solute.h5", box, full["nucleosomes"])
    section = SolvateSection(box=box)
    placed, digest = place_solute(Solute.open(tmp_path / "solute.h5"), section, tmp_path / "shards")
    assert digest == full["solute"]
    grid = brick_grid(placed.box, section)
    counts = {kind: count for kind, count in full["counts"].items() if kind != "solute"}
    for k, brick in full["bricks"].items():
        content = lone_bricks.lone_brick(placed, grid, seed, counts, full["last_ion"], int(k), brick["before"])
        assert blake3(content).hexdigest() == brick["cbb"], f"brick {k}"


def test_bricks_follow_from_their_neighbourhood(system, shards):
    """Every brick of a small box, of which the neighbourhood is all, and whose seams are everywhere."""
    last_ion, before = lone_bricks.record(system.layout, system.grid, 1, range(system.grid.n_bricks))
    for k, shard in enumerate(shards[1].shards):
        content = lone_bricks.lone_brick(system.placed, system.grid, 1, system.layout.counts, last_ion, k, before[k])
        assert content == (shards[0] / f"{shard.name}.cbb").read_bytes()
