"""Shards through the command line: made in parts, merged, exported; a disk that is full or must not be written."""

import json
import os
import shutil
import subprocess

import pytest
from support.command_line import chromabuild, command, environment
from support.solvated_example import SOLUTE

from chromabuild.base.errors import BadInputError
from chromabuild.shards import verify_shards
from chromabuild.shards.ranks import rank_and_size
from chromabuild.solvate import Part


def run(folder, *arguments, launcher=()):
    if not launcher:
        return chromabuild(*arguments, cwd=folder)
    return subprocess.run([*launcher, *command(*arguments)], cwd=folder, env=environment(), capture_output=True,
                          text=True, timeout=120)


def project(folder):
    """A settings file and a corrected solute: all that the stage needs."""
    (folder / "results").mkdir()
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    (folder / "locus.yaml").write_text("solvate: {brick_edge: 40.0, padding: 5.0}\n")
    return folder


def files_of(folder):
    return {path.name: path.read_bytes() for path in (folder / "results" / "shards").glob("brick*")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All shards in one go."""
    folder = project(tmp_path_factory.mktemp("whole"))
    result = run(folder, "solvate")
    assert result.returncode == 0, result.stderr
    return folder


def test_parts_make_the_same_set(whole, tmp_path):
    """The plan, then a list, then shares of the rest, each in a process of its own."""
    folder = project(tmp_path)
    shards = folder / "results" / "shards"
    assert run(folder, "shards", "--plan").returncode == 0
    assert {path.name for path in shards.iterdir()} == {"placed.h5", "plan.h5", "records"}
    assert run(folder, "shards", "--only", "1-2,0").returncode == 0
    assert {name[:11] for name in files_of(folder)} == {f"brick_0000{k}" for k in range(3)}
    assert not (shards / "manifest.json").exists()
    for part in ("0/2", "1/2"):
        result = run(folder, "shards", "--part", part)
        assert result.returncode == 0, result.stderr
    assert files_of(folder) == files_of(whole)
    assert (shards / "manifest.json").read_bytes() == (whole / "results/shards/manifest.json").read_bytes()


@pytest.mark.mpi
@pytest.mark.slow
def test_ranks_of_mpirun_share_the_shards(whole, tmp_path):
    """Four processes that start together from nothing: one plans, all write, the set is that of one process."""
    folder = project(tmp_path)
    result = run(folder, "shards", "--mpi", "--threads", "1",
                 launcher=("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"))
    assert result.returncode == 0, result.stderr
    assert files_of(folder) == files_of(whole)
    assert (folder / "results/shards/manifest.json").read_bytes() == (
        whole / "results/shards/manifest.json").read_bytes()


@pytest.mark.parametrize(("environment", "expected"), [
    ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
     (3, 4)),
    ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2)), ({"SLURM_PROCID": "7", "SLURM_STEP_NUM_TASKS": "8"}, (7, 8))])
def test_launchers_are_known(environment, expected):
    assert rank_and_size(environment) == expected


@pytest.mark.parametrize("environment", [
    {}, {"PMI_RANK": "1"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, {"PMI_RANK": "2", "PMI_SIZE": "2"}])
def test_without_a_launcher_nothing_is_shared(environment):
    """A batch script under Slurm knows how many tasks it may start, and is itself one process."""
    with pytest.raises(BadInputError, match="start it with mpirun or srun"):
        rank_and_size(environment)


def test_shares_of_a_share_are_the_share():
    for part in (Part(0, 1), Part(2, 7), Part(6, 7)):
        for size in (1, 2, 4, 64):
            bricks = [k for rank in range(size) for k in part.share(rank, size).bricks(100)]
            assert bricks == list(part.bricks(100))


@pytest.mark.parametrize("arguments", [
    [], ["--only", "1", "--plan"], ["--only", "x"], ["--only", "3-"], ["--part", "2/2"], ["--part", "1"]])
def test_wrong_use(whole, arguments):
    result = run(whole, "shards", *arguments)
    assert result.returncode == 2 and "Traceback" not in result.stderr


def test_missing_shard_is_bad_input(whole):
    result = run(whole, "shards", "--only", "99")
    assert result.returncode == 3 and "brick 99 does not exist: the box has bricks 0 to" in result.stderr


def test_merge_bag_and_verify(whole, tmp_path):
    result = run(whole, "shards", "merge", "-o", str(tmp_path / "ions.pdb"), "--select", "ions", "--json")
    counts = json.loads((whole / "results/shards/manifest.json").read_text())["counts"]
    n_ions = counts["sodium"] + counts["chloride"]
    assert json.loads(result.stdout) == {"file": str(tmp_path / "ions.pdb"), "atoms": n_ions}
    assert (tmp_path / "ions.pdb").read_text().count("HETATM") == n_ions
    assert run(whole, "shards", "bag", "-o", str(tmp_path / "bag")).returncode == 0
    assert run(whole, "shards", "verify", str(tmp_path / "bag" / "data")).returncode == 0
    result = run(whole, "shards", "merge", "-o", str(tmp_path / "x.pdb"), "--select", "wter")
    assert result.returncode == 3 and "'wter'" in result.stderr and not (tmp_path / "x.pdb").exists()


def mounted(folder, options):
    """A small file system of its own, or a skipped test."""
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
                                           capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    return folder


@pytest.mark.parametrize("megabytes", [0.4, 1.2])
def test_full_disk_is_exit_6_and_the_last_good_state_stays(whole, tmp_path, megabytes):
    """The disk is full while another, larger set replaces a finished one: refused while the old one is untouched."""
    disk = mounted(tmp_path / "disk", "size=8m")
    try:
        folder = project(disk)
        assert run(folder, "solvate").returncode == 0
        before = files_of(folder)
        free = shutil.disk_usage(disk).free
        (disk / "filler").write_bytes(bytes(int(free - megabytes * 1e6)))
        result = run(folder, "solvate", "--set", "solvate.padding=20")
        assert result.returncode == 6 and "Traceback" not in result.stderr
        assert "free space" in result.stderr or "No space left" in result.stderr
        assert files_of(folder) == before and not list(folder.rglob("*.part"))
        verify_shards(folder / "results" / "shards")
        (disk / "filler").unlink()
        assert run(folder, "solvate", "--set", "solvate.padding=8").returncode == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_unwritable_folder_is_exit_6(tmp_path):
    disk = mounted(tmp_path / "disk", "size=8m")
    try:
        folder = project(disk)
        assert run(folder, "solvate").returncode == 0
        before = files_of(folder)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        result = run(folder, "solvate", "--set", "solvate.salt=0.3")
        assert result.returncode == 6 and "Traceback" not in result.stderr
        assert files_of(folder) == before
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_forbidden_folder_is_exit_6(whole, tmp_path):
    """As anybody whom permissions stop: root gives its exemption up."""
    obedient = ()
    if os.geteuid() == 0:
        obedient = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        if shutil.which("setpriv") is None or subprocess.run([*obedient, "true"], capture_output=True).returncode:
            pytest.skip("root cannot give up its exemption here")
    folder = project(tmp_path)
    shards = folder / "results" / "shards"
    shutil.copytree(whole / "results" / "shards", shards)
    before = files_of(folder)
    for place in (shards / "records", shards):
        place.chmod(0o555)
    result = run(folder, "solvate", "--set", "solvate.salt=0.3", launcher=obedient)
    assert result.returncode == 6 and "Traceback" not in result.stderr
    assert files_of(folder) == before
    verify_shards(shards)
    for place in (shards, shards / "records"):
        place.chmod(0o755)
