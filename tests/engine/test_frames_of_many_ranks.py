"""Frames that several ranks write to one file, and frames of many atoms that are merged.

`frames_driver` writes frames of atoms whose positions follow from their numbers. A rank gets slices of 262,144 atoms.
"""

import os
import subprocess
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from support import systems
from support.build_products import newest

pytestmark = [pytest.mark.mpi, pytest.mark.release]

ATOMS, CHOSEN = 600_000, "11-290000, 300001-599998"
BOX = np.array([200.0, 180.0, 160.0])
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", OMPI_MCA_mpi_yield_when_idle="1",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_hwloc_base_binding_policy="none",
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


@pytest.fixture(scope="module")
def driver() -> Path:
    built = newest("frames_driver")
    if built is None:
        pytest.skip("frames_driver is not built: cmake -DCHROMAMD_BUILD_TESTS=ON")
    return built


def write(command: list[object], ranks: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mpirun", "--oversubscribe", "-n", str(ranks), *map(str, command)], env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=120)


def members(ranges: str, atoms: int) -> np.ndarray:
    """Numbers of the atoms of ranges, counted from 0."""
    if ranges == "all":
        return np.arange(atoms)
    ends = [[int(number) for number in part.split("-")] for part in ranges.split(",")]
    return np.concatenate([np.arange(first - 1, last) for first, last in ends])


def positions(atoms: np.ndarray, frame: int) -> np.ndarray:
    """(n, 3) float32, of a frame counted from 1: as the driver makes them."""
    return ((atoms[:, None] % [1009, 769, 509] + frame) / 8).astype("<f4")


def record(content: bytes) -> bytes:
    mark = len(content).to_bytes(4, "little")
    return mark + content + mark


def dcd(atoms: np.ndarray, frames: int, period: int = 10, timestep: float = 0.002) -> bytes:
    """The file that these frames make, byte by byte."""
    control = np.zeros(20, "<i4")
    control[[0, 1, 2, 10, 19]] = frames, period, period, 1, 24
    control[9] = np.array(timestep / 0.04888821, "<f4").view("<i4")
    title = np.array([1], "<i4").tobytes() + b"CREATED BY CHROMAMD".ljust(80)
    cell = np.array([BOX[0], 0, BOX[1], 0, 0, BOX[2]], "<f8").tobytes()
    text = record(b"CORD" + control.tobytes()) + record(title) + record(np.array([len(atoms)], "<i4").tobytes())
    for frame in range(1, frames + 1):
        axes = positions(atoms, frame).T
        text += record(cell) + b"".join(record(np.ascontiguousarray(axis).tobytes()) for axis in axes)
    return text


@pytest.mark.parametrize(("ranks", "chosen"), [(1, CHOSEN), (2, "all"), (2, CHOSEN), (4, CHOSEN), (3, "7-9")])
def test_a_dcd_has_the_same_bytes_for_any_number_of_ranks(driver, tmp_path, ranks, chosen):
    """One to three slices in one to three rounds, on ranks that are not next to each other."""
    done = write([driver, tmp_path / "run.dcd", ATOMS, chosen, 2, 0, 0], ranks)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.dcd").read_bytes() == dcd(members(chosen, ATOMS), 2)


def test_a_dcd_goes_on_after_the_frames_that_are_kept(driver, tmp_path):
    path = tmp_path / "run.dcd"
    kept = dcd(members("all", ATOMS), 1)
    path.write_bytes(kept + b"a frame that was not finished")
    done = write([driver, path, ATOMS, "all", 3, 1, len(kept)], 2)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == dcd(members("all", ATOMS), 3)


def test_a_rank_whose_disk_is_full_ends_all_and_the_frame_does_not_count(driver, tmp_path):
    """The second rank may write a file of 8 MB, in which its slices of the second frame do not lie."""
    path = tmp_path / "run.dcd"
    words = " ".join(map(str, [driver, path, ATOMS, "all", 2, 0, 0]))
    limited = f"ulimit -f {8 << 20 >> 9}; exec {words}"
    done = subprocess.run(["mpirun", "--oversubscribe", "-n", "1", *words.split(), ":", "-n", "1", "sh", "-c", limited],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert f"{path}: cannot be written; check free space" in done.stderr
    whole = dcd(members("all", ATOMS), 1)
    assert path.read_bytes()[:len(whole)] == whole


def test_an_xtc_is_that_of_one_rank(driver, tmp_path):
    for ranks in (1, 2):
        done = write([driver, tmp_path / f"{ranks}.xtc", ATOMS, CHOSEN, 2, 0, 0], ranks)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "1.xtc").read_bytes() == (tmp_path / "2.xtc").read_bytes()
    frames = MDAnalysis.coordinates.XTC.XTCReader(str(tmp_path / "2.xtc"))
    assert frames.n_frames == 2
    for number, frame in enumerate(frames, start=1):
        assert np.abs(frame.positions - positions(members(CHOSEN, ATOMS), number)).max() < 0.00502


def test_many_atoms_are_merged_in_the_order_of_their_places(driver, tmp_path):
    """More than wait in memory, from two files; what the same frames in one file are."""
    n = 2_400_000
    done = write([driver, tmp_path / "part().trj", n, "all", 2, 0, 0], 2)
    assert done.returncode == 0, done.stderr
    systems.write_topology(tmp_path / "t.h5", [(systems.water(), n // 3)])
    inp = systems.control(tmp_path / "merge.inp", DYNAMICS={"timestep": 0.002},
                          INPUT={"topologyfile": tmp_path / "t.h5", "dcdfile": tmp_path / "part().trj"},
                          OUTPUT={"dcdfile": tmp_path / "merged.dcd", "dcd_atoms": f"5-{n - 7}"})
    done = systems.run("merge", inp, program="chromamd")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "merged.dcd").read_bytes() == dcd(members(f"5-{n - 7}", n), 2)
    assert not list(tmp_path.glob("*.part"))
    # An atom that one file has twice, and another that it lacks.
    path = tmp_path / "part1.trj"
    content = bytearray(path.read_bytes())
    content[8 + 48:8 + 56] = content[8 + 56:8 + 64]
    path.write_bytes(content)
    done = systems.run("merge", inp, program="chromamd")
    assert done.returncode == 5 and "a file of a rank is missing or damaged" in systems.sentence(done)
