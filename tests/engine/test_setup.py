"""Setting up domains: by any number of ranks, from bricks or from another grid, with ids beyond 2^31."""

import re
import subprocess
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from support import systems
from support.build_products import newest
from support.chain_in_water import ENERGY, make_system
from support.systems import sentence

from chromabuild.shards.brick_file import BrickFile, packed, read_brick

FAR = 3_000_000_000
"""Atoms said to come before those that are there."""


def set_up(folder, source, target, grid, ranks=1):
    """chromamd setup for a grid of domains, from "bricks.txt" or a pattern of restart files."""
    inputs = {"topologyfile": folder / "t.h5", "rstfile" if "()" in str(source) else "shardfile": source}
    inp = systems.control(folder / "setup.inp", INPUT=inputs, OUTPUT={"rstfile": target}, ENERGY=ENERGY,
                          BOUNDARY=dict(zip(("domain_x", "domain_y", "domain_z"), grid, strict=True)))
    return systems.run("setup", inp, ranks)


def contents(pattern, n):
    return [Path(str(pattern).replace("()", str(rank))).read_bytes() for rank in range(n)]


@pytest.mark.mpi
def test_any_number_of_ranks_writes_the_same_files(tmp_path):
    make_system(tmp_path)
    for ranks in (1, 2, 3):
        done = set_up(tmp_path, tmp_path / "bricks.txt", tmp_path / f"by{ranks}_().rst", (2, 1, 2), ranks)
        assert done.returncode == 0, done.stderr
        assert re.search(r"in 2 x 1 x 2 domains", done.stdout)
    assert len(set(contents(tmp_path / "by1_().rst", 4))) == 4
    assert contents(tmp_path / "by1_().rst", 4) == contents(tmp_path / "by2_().rst", 4)
    assert contents(tmp_path / "by1_().rst", 4) == contents(tmp_path / "by3_().rst", 4)


@pytest.mark.mpi
def test_a_restart_set_goes_to_another_grid_and_back(tmp_path):
    """Atoms, velocities, step and time stay to the last bit, and so do the energies up to the order of sums."""
    make_system(tmp_path, neutral=False)
    start = tmp_path / "start().rst"
    assert set_up(tmp_path, tmp_path / "bricks.txt", start, (1, 1, 2)).returncode == 0
    moved = tmp_path / "moved().rst"
    inp = systems.control(tmp_path / "run.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
                          OUTPUT={"rstfile": moved}, ENERGY=ENERGY,
                          MINIMIZE={"nsteps": 20, "force_scale_max": 5e-4})
    done = systems.run("run", inp, 2)
    assert done.returncode == 0, done.stderr
    first = systems.read_restarts(str(moved), 2)
    source = moved
    for k, grid in enumerate([(2, 1, 1), (1, 1, 1), (2, 2, 1), (1, 1, 2)]):
        target = tmp_path / f"grid{k}_().rst"
        done = set_up(tmp_path, source, target, grid, ranks=1 + k % 2)
        assert done.returncode == 0, done.stderr
        state = systems.read_restarts(str(target), int(np.prod(grid)))
        assert (state.step, state.time) == (first.step, first.time) and state.step == 20
        assert np.array_equal(state.velocity, first.velocity)
        shift = (state.position - first.position) / first.box
        assert np.abs(shift - np.round(shift)).max() < 1e-13
        source = target
    energies = []
    for pattern, ranks in ((moved, 2), (tmp_path / "grid1_().rst", 1)):
        inp = systems.control(tmp_path / "energy.inp", ENERGY=ENERGY,
                              INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": pattern})
        done = systems.run("energy", inp, ranks)
        assert done.returncode == 0, done.stderr
        energies.append(systems.read_energies(done.stdout)["POTENTIAL_ENE"])
    assert energies[0] == pytest.approx(energies[1], rel=1e-10)


def test_bad_sets_are_refused(tmp_path):
    make_system(tmp_path)
    start, target = tmp_path / "start().rst", tmp_path / "next().rst"
    assert set_up(tmp_path, tmp_path / "bricks.txt", start, (2, 1, 1)).returncode == 0
    done = set_up(tmp_path, start, start, (1, 1, 1))
    assert done.returncode == 3 and "another name" in sentence(done)
    done = set_up(tmp_path, tmp_path / "none().rst", target, (1, 1, 1))
    assert done.returncode == 3 and "none0.rst" in sentence(done)
    second = tmp_path / "start1.rst"
    content = bytearray(second.read_bytes())
    content[-200] ^= 1
    second.write_bytes(content)
    done = set_up(tmp_path, start, target, (1, 1, 1))
    assert done.returncode == 5 and "start1.rst" in sentence(done)
    second.unlink()
    done = set_up(tmp_path, start, target, (1, 1, 1))
    assert done.returncode == 3 and "start1.rst" in sentence(done)
    assert not list(tmp_path.glob("next*.rst"))


def test_only_bricks_that_touch_a_domain_are_read(tmp_path):
    """Twelve slabs of 10 angstrom, four domains of 30: a residue reaches 25 angstrom beyond its brick."""
    rng = np.random.default_rng(3)
    box, n = np.array([120.0, 30.0, 30.0]), 60
    water = systems.water()
    position = (rng.random((n, 1, 3)) * box + np.array([[0, 0, 0], [0.957, 0, 0], [-0.24, 0.927, 0]])).reshape(-1, 3)
    systems.write_topology(tmp_path / "t.h5", [(water, n)])
    systems.write_bricks(tmp_path, [(water, n)], position, box, (12, 1, 1))
    done = set_up(tmp_path, tmp_path / "bricks.txt", tmp_path / "r().rst", (4, 1, 1))
    assert done.returncode == 0, done.stderr
    expected = sum(any(10 * b + image < 30 * (d + 1) + 25 and 10 * (b + 1) + image > 30 * d - 25
                       for image in (-120, 0, 120)) for d in range(4) for b in range(12))
    assert expected < 40
    assert f"setup: {expected} bricks read" in done.stdout


@pytest.fixture(scope="module")
def driver():
    """The set-up of one domain without the rest of the engine."""
    built = newest("setup_driver")
    if built is None:
        pytest.skip("setup_driver is not built: cmake -DCHROMAMD_BUILD_TESTS=ON")
    return built


def far_system(folder):
    """The system of the other tests behind 3e9 ions that lie in a brick outside the box, which nobody reads."""
    runs = make_system(folder)
    ion = systems.Molecule("ION", [22.99], [1.0], [2], rigid_water=False)
    systems.write_topology(folder / "far.h5", [(ion, FAR), *runs])
    first, box, grid, _, *bricks = (folder / "bricks.txt").read_text().splitlines()
    n = 0
    lines = []
    for line in bricks:
        name, count, *bounds = line.split()
        content = read_brick(folder / name)
        moved = BrickFile(content.box, content.lower, content.upper, content.global_id + FAR, content.position)
        (folder / f"far_{name}").write_bytes(packed(moved))
        lines.append(" ".join([f"far_{name}", count, *bounds]))
        n += int(count)
    nx, ny, nz = map(int, grid.split()[1:])
    lines.append(f"absent.cbb {FAR} 1e5 1e5 1e5 2e5 2e5 2e5")
    lines += ["absent.cbb 0 1e5 1e5 1e5 2e5 2e5 2e5"] * (nx * ny * (nz + 1) - len(lines))
    (folder / "far.txt").write_text("\n".join([first, box, f"grid {nx} {ny} {nz + 1}", f"atoms {n + FAR}", *lines])
                                    + "\n")
    return n


def test_ids_beyond_32_bits(tmp_path, driver):
    """The same domains with ids moved by 3e9; velocities belong to ids, so they differ and are sound."""
    n = far_system(tmp_path)
    seen = []
    for domain in range(4):
        for name, topology, bricks in (("near", "t.h5", "bricks.txt"), ("far", "far.h5", "far.txt")):
            done = subprocess.run([driver, tmp_path / topology, tmp_path / bricks, "2", "1", "2", str(domain),
                                   str(tmp_path / f"{name}().rst")], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
        near, far = ((tmp_path / f"{name}{domain}.rst").read_bytes() for name in ("near", "far"))
        assert len(near) == len(far)
        header = [np.frombuffer(data, "<i8", 16, 8) for data in (near, far)]
        count = int(header[0][6])
        assert header[1][6] == count and header[0][7] == n and header[1][7] == n + FAR
        ids = [np.frombuffer(data, "<i8", count, systems.RESTART_HEADER) for data in (near, far)]
        assert np.array_equal(ids[0] + FAR, ids[1])
        vectors = [np.frombuffer(data, "<f8", 6 * count, systems.RESTART_HEADER + 8 * count).reshape(2, count, 3)
                   for data in (near, far)]
        assert np.array_equal(vectors[0][0], vectors[1][0])
        assert not (vectors[0][1] == vectors[1][1]).any() and np.abs(vectors[1][1]).max() < 100
        seen += ids[1].tolist()
    assert sorted(seen) == list(range(FAR, FAR + n))


def test_merge_of_ids_beyond_32_bits(tmp_path):
    """Frames of three ranks with ids from 3e9 on, merged by the engine, read by MDAnalysis."""
    n = far_system(tmp_path)
    rng = np.random.default_rng(8)
    frames = rng.random((3, n, 3)).astype("<f4") * 30
    parts = np.array_split(rng.permutation(n), 3)
    for rank, part in enumerate(parts):
        content = b"CMDTRAJ1"
        for k, frame in enumerate(frames):
            content += np.array([10 * (k + 1), len(part)], "<i8").tobytes()
            content += np.array([0.1 * k, 31, 30, 32], "<f8").tobytes()
            content += (part + FAR).astype("<i8").tobytes() + frame[part].tobytes()
        (tmp_path / f"d{rank}.traj").write_bytes(content)
    first, last = 5, n - 3
    inp = systems.control(tmp_path / "merge.inp",
                          INPUT={"topologyfile": tmp_path / "far.h5", "dcdfile": tmp_path / "d().traj"},
                          OUTPUT={"dcdfile": tmp_path / "part.dcd", "dcd_atoms": f"{FAR + first + 1}-{FAR + last}"})
    done = systems.run("merge", inp)
    assert done.returncode == 0, done.stderr
    universe = MDAnalysis.Universe.empty(last - first, trajectory=True)
    universe.load_new(str(tmp_path / "part.dcd"))
    assert len(universe.trajectory) == 3
    for step, frame in zip(universe.trajectory, frames, strict=True):
        assert np.array_equal(step.positions, frame[first:last])
