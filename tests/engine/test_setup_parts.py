"""Domains set up in parts by processes of their own, with the files of the ranks in a tree of folders."""

import numpy as np
import pytest
from support import systems
from support.chain_in_water import ENERGY, make_system
from support.systems import sentence

from chromabuild.simulate.restart_file import read_restart

GRID = (3, 2, 2)
N = 12
INPUT = {"topologyfile": "t.h5", "shardfile": "bricks.txt"}


def set_up(folder, target, part=None, ranks=1, **sections):
    """chromamd setup of 12 domains, or of the part ``part`` (text) of them; ``sections`` in place of the usual ones."""
    usual = {"INPUT": INPUT, "OUTPUT": {"rstfile": target} | ({"setup_domains": part} if part else {}),
             "ENERGY": ENERGY, "BOUNDARY": dict(zip(("domain_x", "domain_y", "domain_z"), GRID, strict=True))}
    inp = systems.control(folder / f"setup{part}.inp", **usual | sections)
    return systems.run("setup", inp, ranks, folder=folder)


def file_of(folder, domain):
    """In folders of five."""
    return folder / "tree" / str(domain // 5) / f"start_{domain}.rst"


TREE = "tree/(by5)/start_().rst"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A system, and the files of all its domains as one process makes them."""
    folder = tmp_path_factory.mktemp("whole")
    make_system(folder)
    assert set_up(folder, "start_().rst").returncode == 0
    return folder, [(folder / f"start_{k}.rst").read_bytes() for k in range(N)]


@pytest.fixture
def system(whole, tmp_path):
    """The same system in a folder of its own."""
    for path in (whole[0] / "t.h5", *whole[0].glob("*.txt"), *whole[0].glob("*.cbb")):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "tree").mkdir()
    return tmp_path


@pytest.mark.mpi
def test_parts_give_the_files_of_the_whole(system, whole):
    """In any order, on any number of ranks; the part that is all domains finds that nothing is missing."""
    for part, ranks in (("7-11", 2), ("0-3", 1), ("4-6", 1)):
        done = set_up(system, TREE, part, ranks)
        assert done.returncode == 0, done.stderr
        first, last = map(int, part.split("-"))
        assert f"in domains {first} to {last} of 3 x 2 x 2 domains; 0 files were there" in done.stdout
    assert [file_of(system, k).read_bytes() for k in range(N)] == whole[1]
    assert sorted(path.name for path in (system / "tree").iterdir()) == ["0", "1", "2", "start_setup.txt"]
    done = set_up(system, TREE, "0-11")
    n = sum(int(np.frombuffer(data, "<i8", 1, 8 + 6 * 8)[0]) for data in whole[1])
    assert f"setup: {n} of {n} atoms in domains 0 to 11 of 3 x 2 x 2 domains; 12 files were there" in done.stdout
    tree, flat = (read_restart(pattern, n, N) for pattern in (system / TREE, whole[0] / "start_().rst"))
    assert np.array_equal(tree.position, flat.position) and np.array_equal(tree.velocity, flat.velocity)


def test_a_part_keeps_what_is_whole_and_makes_the_rest(system, whole):
    """After an interruption a file is missing, one is cut short, one has a flipped bit and one is another domain's."""
    assert set_up(system, TREE, "0-11").returncode == 0
    kept = {k: file_of(system, k).stat().st_mtime_ns for k in range(N)}
    file_of(system, 1).unlink()
    file_of(system, 4).write_bytes(whole[1][4][:-100])
    damaged = bytearray(whole[1][6])
    damaged[-40] ^= 1
    file_of(system, 6).write_bytes(damaged)
    file_of(system, 9).write_bytes(whole[1][8])
    done = set_up(system, TREE, "0-11")
    assert done.returncode == 0, done.stderr
    assert "8 files were there" in done.stdout
    assert [file_of(system, k).read_bytes() for k in range(N)] == whole[1]
    assert all(file_of(system, k).stat().st_mtime_ns == kept[k] for k in set(range(N)) - {1, 4, 6, 9})


@pytest.mark.mpi
def test_a_run_reads_and_writes_a_tree(system):
    """Energies from a tree are those from files in one folder; checkpoints lie in the tree, their mark beside it."""
    (system / "end").mkdir()
    energies = []
    for source in ("tree/(by1)/start_().rst", "start_().rst"):
        boundary = {"domain_x": 2, "domain_y": 1, "domain_z": 1}
        assert set_up(system, source, BOUNDARY=boundary).returncode == 0
        inp = systems.control(system / "energy.inp", INPUT={"topologyfile": "t.h5", "rstfile": source}, ENERGY=ENERGY)
        energies.append(systems.read_energies(systems.run("energy", inp, 2, folder=system).stdout))
    assert energies[0] == energies[1]
    inp = systems.control(
        system / "run.inp", INPUT={"topologyfile": "t.h5", "rstfile": "tree/(by1)/start_().rst"},
        OUTPUT={"rstfile": "end/(by1)/end_().rst", "checkpoint": "end/(by1)/check_().rst",
                "checkpoint_interval": 1e-6},
        ENERGY=ENERGY, MINIMIZE={"nsteps": 3})
    done = systems.run("run", inp, 2, folder=system)
    assert done.returncode == 0, done.stderr
    assert (system / "end" / "check_whole.txt").is_file()
    for rank in (0, 1):
        names = sorted(path.name.split(".")[0] for path in (system / "end" / str(rank)).iterdir())
        assert names == [f"check_{rank}", f"end_{rank}"]


@pytest.mark.parametrize("output, says", [
    ({"setup_domains": "3"}, "must be a range of domains, counted from 0, such as 0-1023"),
    ({"setup_domains": "5-2"}, "must be a range of domains"),
    ({"setup_domains": "0-12"}, "goes beyond the 12 domains of [BOUNDARY]; the last is 11"),
])
def test_parts_that_cannot_be(system, output, says):
    done = set_up(system, TREE, OUTPUT={"rstfile": TREE} | output)
    assert done.returncode == 3 and says in sentence(done)


def test_a_part_without_the_number_of_domains(system):
    done = set_up(system, TREE, "0-3", BOUNDARY={"domain_x": 3})
    assert done.returncode == 3 and "give domain_x, domain_y and domain_z" in sentence(done)


def test_parts_of_two_set_ups_do_not_mix(system):
    """Other velocities: the files that are there are of another set-up."""
    assert set_up(system, TREE, "0-3").returncode == 0
    done = set_up(system, TREE, "4-7", DYNAMICS={"iseed": 7})
    assert done.returncode == 3 and "tree/start_setup.txt: the restart files beside it are of another" in sentence(done)
    assert not file_of(system, 4).exists()
