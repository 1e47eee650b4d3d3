"""Control files, restart files, trajectories and exit codes of the engine."""

from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from support import systems
from support.chain_in_water import ENERGY, dynamics, make_system, minimised, setup
from support.systems import sentence


@pytest.mark.parametrize(("text", "words"), [
    ("[ENERGY]\ncutofdist = 9\n", ["line 2", "cutofdist", "cutoffdist"]),
    ("[ENREGY]\n", ["line 1", "ENREGY", "ENERGY"]),
    ("[ENERGY]\ncutoffdist = nine\n", ["line 2", "nine", "not a number"]),
    ("[ENERGY]\ncutoffdist = 9 9\n", ["line 2", "9 9", "not a number"]),
    ("[ENERGY]\n\n# note\ncutoffdist = 9\ncutoffdist = 8\n", ["line 5", "line 4"]),
    ("[DYNAMICS]\nnsteps = 1.5\n", ["line 2", "whole number"]),
    ("[DYNAMICS]\nnsteps = -1\n", ["line 2", "at least 0"]),
    ("[ENERGY]\nvdw = PME\nswitchdist = 9\n", ["line 3", "switchdist", "vdw = PME"]),
    ("[ENERGY]\nvdw = PME\ndispersion_corr = ENERGY\n", ["line 2", "vdw", "dispersion_corr"]),
    ("[ENERGY]\nswitchdist = 13\n", ["line 2", "switchdist", "cutoffdist"]),
    ("[ENERGY]\npairlistdist = 11\n", ["line 2", "pairlistdist"]),
    ("[MINIMIZE]\n[DYNAMICS]\n", ["[MINIMIZE] and [DYNAMICS]"]),
    ("[ENSEMBLE]\nensemble = NVTT\n", ["line 2", "NVTT", "NVT"]),
    ("[ENSEMBLE]\nensemble = NVT\n", ["tpcontrol", "NVT", "BUSSI"]),
    ("[ENSEMBLE]\ntpcontrol = BUSSI\n", ["line 2", "tpcontrol", "NVE"]),
    ("[ENSEMBLE]\nensemble = NVT\ntpcontrol = NHC\nnhchain = 9\n", ["line 4", "at most 8"]),
    ("nsteps = 1\n", ["line 1", "before any"]),
    ("[INPUT]\ntopologyfile = \n", ["line 2", "no value"]),
    ("[INPUT]\njunk\n", ["line 2", "key = value"]),
    ("", ["neither [MINIMIZE] nor [DYNAMICS]"]),
    ("[DYNAMICS]\n", ["topologyfile", "missing"]),
    ("[INPUT]\ntopologyfile = none.h5\nrstfile = ().rst\n[DYNAMICS]\n", ["none.h5", "cannot be opened"]),
])
def test_bad_control_files_are_refused_in_one_sentence(tmp_path, text, words):
    path = tmp_path / "bad.inp"
    path.write_text(text)
    done = systems.run("run", path, ranks=2, folder=tmp_path)
    assert done.returncode == 3, done.stderr
    for word in words:
        assert word in sentence(done)


def test_crlf_tabs_and_comments_are_read(tmp_path):
    path = tmp_path / "ok.inp"
    path.write_bytes(b"# comment\r\n[Input]\r\n\ttopologyfile\t=\tnone.h5 # where\r\nrstfile = ().rst\r\n"
                     b"[dynamics]\r\nNSTEPS = 1\r\n")
    done = systems.run("run", path, folder=tmp_path)
    assert "none.h5: this file cannot be opened" in sentence(done)


def test_help_lists_a_section_and_names_the_nearest(tmp_path):
    done = systems.run("help", "ENERGY")
    assert done.returncode == 0
    assert "cutoffdist" in done.stdout and "12.0" in done.stdout and "[DYNAMICS]" not in done.stdout
    done = systems.run("help", "ENERGI")
    assert done.returncode == 2
    assert "[ENERGY]" in done.stderr


def test_help_shows_defaults_and_units():
    lines = systems.run("help", "RESTRAINTS").stdout.splitlines()
    constant = next(line for line in lines if "constant1" in line)
    assert constant.split("=")[1].split()[0] == "0.0"
    assert constant.endswith("[kcal/mol/angstrom^2]")


def test_help_is_a_valid_control_file(tmp_path):
    """The template, with one of the two kinds of run taken out, is accepted up to the missing files."""
    text = systems.run("help", "").stdout
    before, rest = text.split("[MINIMIZE]")
    path = tmp_path / "template.inp"
    path.write_text(before + "[DYNAMICS]" + rest.split("[DYNAMICS]")[1])
    assert "'topologyfile' is missing" in sentence(systems.run("run", path))


@pytest.mark.mpi
def test_damaged_restarts_are_found(tmp_path):
    make_system(tmp_path)
    start = setup(tmp_path, 2)
    inp = systems.control(tmp_path / "run.inp", ENERGY=ENERGY,
                          INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start}, MINIMIZE={"nsteps": 1})
    victim = Path(start.replace("()", "1"))
    good = victim.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [good[:-1], good[: len(good) // 2], b"", good + b"x"]
    for place in [0, 9, 137, len(good) - 3, *rng.integers(0, len(good), 4)]:
        flipped = bytearray(good)
        flipped[place] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(flipped))
    for content in damaged:
        victim.write_bytes(content)
        done = systems.run("run", inp, ranks=2)
        # A flipped bit in the rank count reads as a file for another count: refused as well, with code 3.
        assert done.returncode in (3, 5), done.stderr
        assert str(victim) in sentence(done)
    victim.write_bytes(good)
    assert systems.run("run", inp, ranks=2).returncode == 0


@pytest.mark.mpi
def test_other_rank_count_is_refused(tmp_path):
    make_system(tmp_path)
    start = setup(tmp_path, 2)
    inp = systems.control(tmp_path / "run.inp", ENERGY=ENERGY,
                          INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start}, DYNAMICS={"nsteps": 1})
    done = systems.run("run", inp, ranks=1)
    assert done.returncode == 3
    assert "2 ranks" in sentence(done)


def test_damaged_bricks_and_topologies_are_found(tmp_path):
    make_system(tmp_path)
    inp = systems.control(tmp_path / "s.inp", OUTPUT={"rstfile": tmp_path / "r().rst"}, ENERGY=ENERGY,
                          INPUT={"topologyfile": tmp_path / "t.h5", "shardfile": tmp_path / "bricks.txt"})
    brick = tmp_path / "brick_00001.cbb"
    good = brick.read_bytes()
    brick.write_bytes(good[:-4])
    done = systems.run("setup", inp)
    assert done.returncode == 5 and "brick_00001.cbb" in sentence(done)
    brick.unlink()
    done = systems.run("setup", inp)
    assert done.returncode == 3 and "brick_00001.cbb" in sentence(done)
    brick.write_bytes(good)
    topology = tmp_path / "t.h5"
    whole = topology.read_bytes()
    topology.write_bytes(whole[: len(whole) // 3])
    done = systems.run("setup", inp)
    assert done.returncode == 5 and "t.h5" in sentence(done)
    systems.write_topology(topology, [(systems.water(), 3)])
    done = systems.run("setup", inp)
    assert done.returncode == 3 and "same build" in sentence(done)


def test_unwritable_outputs_are_resources(tmp_path):
    make_system(tmp_path)
    inp = systems.control(tmp_path / "s.inp", OUTPUT={"rstfile": tmp_path / "nowhere" / "r().rst"}, ENERGY=ENERGY,
                          INPUT={"topologyfile": tmp_path / "t.h5", "shardfile": tmp_path / "bricks.txt"})
    done = systems.run("setup", inp)
    assert done.returncode == 6 and "nowhere" in sentence(done)


def test_domains_that_the_ranks_cannot_make_up(tmp_path):
    make_system(tmp_path)
    inp = systems.control(tmp_path / "e.inp", ENERGY=ENERGY, BOUNDARY={"domain_x": 3},
                          INPUT={"topologyfile": tmp_path / "t.h5", "shardfile": tmp_path / "bricks.txt"})
    done = systems.run("energy", inp, ranks=2)
    assert done.returncode == 3 and "domain_x, domain_y, domain_z = 3 0 0" in sentence(done)
    assert "2 ranks" in sentence(done)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_trajectories(tmp_path, ranks):
    """A whole-system DCD, the domain files, and what merge makes of them hold the same frames."""
    runs = make_system(tmp_path)
    n = sum(m.n * c for m, c in runs)
    start = minimised(tmp_path, ranks)
    ends = str(tmp_path / "end().rst")
    dynamics(tmp_path, start, ends, 20, ranks, crdout_period=5, output={"dcdfile": tmp_path / "all.dcd"})
    dynamics(tmp_path, start, ends, 20, ranks, crdout_period=5, output={"dcdfile": tmp_path / "part().trj"})
    first, last = 3, runs[0][0].n
    inp = systems.control(tmp_path / "merge.inp",
                          INPUT={"topologyfile": tmp_path / "t.h5", "dcdfile": tmp_path / "part().trj"},
                          OUTPUT={"dcdfile": tmp_path / "some.dcd", "dcd_atoms": f"{first}-{last}"})
    done = systems.run("merge", inp)
    assert done.returncode == 0, done.stderr
    whole = MDAnalysis.coordinates.DCD.DCDReader(str(tmp_path / "all.dcd"))
    some = MDAnalysis.coordinates.DCD.DCDReader(str(tmp_path / "some.dcd"))
    assert whole.n_atoms == n and some.n_atoms == last - first + 1
    assert whole.n_frames == some.n_frames == 4
    end = systems.read_restarts(ends, ranks)
    for frame_whole, frame_some in zip(whole, some, strict=True):
        assert np.array_equal(frame_whole.positions[first - 1:last], frame_some.positions)
        assert np.allclose(frame_whole.dimensions, [*end.box, 90, 90, 90])
    assert np.array_equal(frame_whole.positions, end.position.astype(np.float32))
    assert whole.dt == pytest.approx(0.005, rel=1e-5)
    # XTC: the same frames, rounded to 0.001 nm (and its 32-bit representation); runs of close atoms and single ones.
    inp = systems.control(tmp_path / "merge.inp",
                          INPUT={"topologyfile": tmp_path / "t.h5", "dcdfile": tmp_path / "part().trj"},
                          OUTPUT={"dcdfile": tmp_path / "some.xtc", "dcd_atoms": f"{first}-{last}"})
    assert systems.run("merge", inp).returncode == 0
    dynamics(tmp_path, start, ends, 20, ranks, crdout_period=5, output={"dcdfile": tmp_path / "all.xtc"})
    packed = MDAnalysis.coordinates.XTC.XTCReader(str(tmp_path / "all.xtc"))
    some_packed = MDAnalysis.coordinates.XTC.XTCReader(str(tmp_path / "some.xtc"))
    assert packed.n_frames == some_packed.n_frames == 4 and packed.n_atoms == n
    for frame_whole, frame_packed, frame_some in zip(whole, packed, some_packed, strict=True):
        assert np.abs(frame_packed.positions - frame_whole.positions).max() < 0.00502
        assert np.array_equal(frame_packed.positions[first - 1:last], frame_some.positions)
        assert np.allclose(frame_packed.dimensions, frame_whole.dimensions, atol=1e-5)
    assert [frame.data["step"] for frame in packed] == [5, 10, 15, 20]
    assert packed.dt == pytest.approx(0.005, rel=1e-5)
    assert (tmp_path / "all.xtc").stat().st_size < 0.5 * (tmp_path / "all.dcd").stat().st_size
    # Atoms by an expression, from the third on; an expression that is not there.
    inp = systems.control(tmp_path / "merge.inp",
                          INPUT={"topologyfile": tmp_path / "t.h5", "dcdfile": tmp_path / "part().trj"},
                          OUTPUT={"dcdfile": tmp_path / "group.dcd", "dcd_atoms": f"{first}-{n}", "dcd_group": 2},
                          SELECTION={"group1": "all", "group2": f"heavy and not ai:{n - 1}-{n}"})
    done = systems.run("merge", inp)
    assert done.returncode == 0, done.stderr
    chosen = np.concatenate([np.tile(np.array(m.mass) > 4.2, c) for m, c in runs])
    chosen[:first - 1] = chosen[n - 2:] = False
    group = MDAnalysis.coordinates.DCD.DCDReader(str(tmp_path / "group.dcd"))
    assert group.n_frames == 4 and group.n_atoms == chosen.sum() < n / 2
    for frame_whole, frame_group in zip(whole, group, strict=True):
        assert np.array_equal(frame_whole.positions[chosen], frame_group.positions)
    Path(inp).write_text(Path(inp).read_text().replace("group2", "group3"))
    done = systems.run("merge", inp)
    assert done.returncode == 3 and "group2" in sentence(done) and "missing" in sentence(done)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.release), 2])
def test_several_ranges_of_atoms(tmp_path, ranks):
    """In one file, and in files of domains that hold no more than these atoms and are merged."""
    n = sum(m.n * c for m, c in make_system(tmp_path))
    start, ends = minimised(tmp_path, ranks), str(tmp_path / "end().rst")
    ranges, kept = f"3-7, {n - 3}-{n}", [*range(2, 7), *range(n - 4, n)]
    for name in ("some.dcd", "part().trj"):
        dynamics(tmp_path, start, ends, 10, ranks, crdout_period=5,
                 output={"dcdfile": tmp_path / name, "dcd_atoms": ranges})
    inp = systems.control(tmp_path / "merge.inp",
                          INPUT={"topologyfile": tmp_path / "t.h5", "dcdfile": tmp_path / "part().trj"},
                          OUTPUT={"dcdfile": tmp_path / "merged.dcd", "dcd_atoms": ranges})
    done = systems.run("merge", inp)
    assert done.returncode == 0, done.stderr
    size = sum((tmp_path / f"part{rank}.trj").stat().st_size for rank in range(ranks))
    assert size == 8 * ranks + 2 * (48 * ranks + 20 * len(kept))
    end = systems.read_restarts(ends, ranks)
    for name in ("some.dcd", "merged.dcd"):
        frames = MDAnalysis.coordinates.DCD.DCDReader(str(tmp_path / name))
        assert frames.n_frames == 2 and frames.n_atoms == len(kept)
        assert np.array_equal(frames[1].positions, end.position[kept].astype(np.float32))


@pytest.mark.parametrize("ranges, problem", [
    ("5-3", "has '5-3'"), ("1-4,4-9", "has '4-9', which must lie behind"), ("1-x", "has '1-x', which is no atom"),
    (",", "names no atom"), ("1-99999999", "reaches beyond the")])
def test_ranges_that_are_refused(tmp_path, ranges, problem):
    make_system(tmp_path)
    inp = systems.control(tmp_path / "merge.inp",
                          INPUT={"topologyfile": tmp_path / "t.h5", "dcdfile": tmp_path / "part().trj"},
                          OUTPUT={"dcdfile": tmp_path / "merged.dcd", "dcd_atoms": ranges})
    done = systems.run("merge", inp)
    assert done.returncode == 3 and "dcd_atoms" in sentence(done) and problem in sentence(done)


@pytest.mark.mpi
def test_energy_from_restarts_is_that_of_the_shards(tmp_path):
    make_system(tmp_path)
    start = setup(tmp_path, 2)
    results = []
    for source in ({"shardfile": tmp_path / "bricks.txt"}, {"rstfile": start}):
        inp = systems.control(tmp_path / "e.inp", INPUT={"topologyfile": tmp_path / "t.h5", **source}, ENERGY=ENERGY)
        done = systems.run("energy", inp, ranks=2)
        assert done.returncode == 0, done.stderr
        results.append(systems.read_energies(done.stdout))
    assert results[0]["POTENTIAL_ENE"] == results[1]["POTENTIAL_ENE"]
