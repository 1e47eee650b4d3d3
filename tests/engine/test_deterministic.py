"""The deterministic mode: the same bits on any number of ranks and threads.

Everything that moves atoms takes part: pairs, exclusions, bonded terms, PME, SETTLE and SHAKE, restraints, thermostats,
barostats and minimisers. Positions and velocities of the restart files are compared bit for bit.
"""

from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, make_system

pytestmark = pytest.mark.mpi

ENERGY = {"cutoffdist": 8, "switchdist": 7, "pairlistdist": 9, "deterministic": "YES"}
LAYOUTS = [(1, 2), (2, 2), (3, 1), (8, 1)]
ENSEMBLES = {
    "bussi": {"ensemble": "NVT", "tpcontrol": "BUSSI"},
    "langevin-mtk": {"ensemble": "NPT", "tpcontrol": "LANGEVIN", "barostat": "MTK", "isotropy": "ANISO"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A charged chain among 100 waters, relaxed a little, as restart files of one rank."""
    folder = tmp_path_factory.mktemp("deterministic")
    make_system(folder, 100, neutral=False)
    set_up(folder, {"shardfile": folder / "bricks.txt"}, 1, "raw")
    inp = systems.control(
        folder / "relax.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "raw_().rst"},
        OUTPUT={"rstfile": folder / "start_().rst"}, ENERGY=ENERGY | {"deterministic": "NO"},
        MINIMIZE={"nsteps": 150, "force_scale_max": 5e-4})
    done = systems.run("run", inp, program="chromamd")
    assert done.returncode == 0, done.stderr
    return folder


def set_up(folder: Path, source: dict, ranks: int, name: str) -> str:
    """Restart files for so many ranks, made once; returns their pattern."""
    pattern = str(folder / f"{name}_().rst")
    if (folder / f"{name}_0.rst").exists():
        return pattern
    inp = systems.control(folder / "setup.inp", INPUT={"topologyfile": folder / "t.h5", **source},
                          OUTPUT={"rstfile": pattern}, ENERGY=ENERGY)
    done = systems.run("setup", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr
    return pattern


def trajectory(folder: Path, ranks: int, threads: int, program: str, ensemble: str, steps: int = 40,
               comm: dict | None = None, **energy: object) -> tuple[systems.Restart, dict[str, np.ndarray]]:
    """State after some steps of 2 fs, and the energy table."""
    domains = ranks - (comm or {}).get("pme_ranks", 0)
    start = set_up(folder, {"rstfile": folder / "start_().rst"}, domains, f"start{domains}")
    end = str(folder / "end_().rst")
    inp = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start}, OUTPUT={"rstfile": end},
        ENERGY=ENERGY | energy, CONSTRAINTS={"rigid_bond": "YES"},
        ENSEMBLE={"temperature": 300, "gamma_t": 5, "tau_t": 0.1, "tau_p": 1, **ENSEMBLES[ensemble]},
        DYNAMICS={"nsteps": steps, "eneout_period": 10, "timestep": 0.002, "iseed": 5, "stoptr_period": 10},
        COMM=comm or {})
    done = systems.run("run", inp, ranks, program, threads)
    assert done.returncode == 0, done.stderr
    return systems.read_restarts(end, domains), systems.read_table(done.stdout)


@pytest.mark.parametrize("ranks", [1, 2])
def test_saving_memory_changes_no_bit(folder, ranks):
    whole, _ = trajectory(folder, 1, 1, "chromamd", "bussi", 10)
    frugal, _ = trajectory(folder, ranks, 1, "chromamd", "bussi", 10, save_memory="YES")
    for field in ("position", "velocity"):
        np.testing.assert_array_equal(getattr(frugal, field), getattr(whole, field))


@pytest.mark.parametrize(("program", "ensemble"), [
    ("chromamd", "langevin-mtk"), *(pytest.param(*case, marks=pytest.mark.release) for case in [
        ("chromamd", "bussi"), ("chromamd-double", "langevin-mtk")])])
def test_bits_do_not_depend_on_ranks_and_threads(folder, program, ensemble):
    one, one_table = trajectory(folder, 1, 1, program, ensemble)
    for ranks, threads in LAYOUTS:
        assert_same(trajectory(folder, ranks, threads, program, ensemble), (one, one_table))
    assert not np.array_equal(one.box, BOX) or ensemble == "bussi"


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "threads"), [(4, 1), (3, 2), (8, 2), (16, 1)])
def test_bits_do_not_depend_on_many_ranks(folder, one_short, ranks, threads):
    """With 16 ranks domains are 8 angstrom wide, less than the halo of 9: each has neighbours two domains away."""
    assert_same(trajectory(folder, ranks, threads, "chromamd", "langevin-mtk", 10), one_short)


def test_tables_change_no_bit_with_the_ranks(folder):
    """Screening beyond the polynomials of the kernels, for which tables stand in."""
    energy = {"pme_alpha": 0.6, "pme_max_spacing": 1.0}
    one = trajectory(folder, 1, 1, "chromamd", "bussi", 10, **energy)
    assert_same(trajectory(folder, 3, 2, "chromamd", "bussi", 10, **energy), one)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["SD", "LBFGS"])
def test_minimisation_goes_the_same_way(folder, method):
    """From the raw coordinates, with forces large enough for steps to be undone and small enough in the end for the
    history to be used: every energy and every bit of the last positions."""

    def minimised(ranks: int, threads: int) -> tuple[systems.Restart, dict[str, np.ndarray]]:
        start = set_up(folder, {"rstfile": folder / "raw_().rst"}, ranks, f"raw{ranks}")
        end = str(folder / "low_().rst")
        inp = systems.control(folder / "low.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
                              OUTPUT={"rstfile": end}, ENERGY=ENERGY,
                              MINIMIZE={"method": method, "nsteps": 60, "eneout_period": 5})
        done = systems.run("run", inp, ranks, "chromamd", threads)
        assert done.returncode == 0, done.stderr
        return systems.read_restarts(end, ranks), systems.read_table(done.stdout)

    one = minimised(1, 1)
    assert one[1]["POTENTIAL_ENE"][-1] < one[1]["POTENTIAL_ENE"][0] - 100.0
    for ranks, threads in LAYOUTS:
        assert_same(minimised(ranks, threads), one)


@pytest.mark.parametrize(("ranks", "threads"), [
    (1, 2), (2, 1), (3, 2),
    *(pytest.param(*case, marks=pytest.mark.release) for case in [(2, 2), (3, 1), (8, 1), (8, 2)])])
def test_overlap_changes_no_bit(folder, one_short, ranks, threads):
    """Work that goes on while messages travel: pairs and terms without ghosts, real space beside reciprocal space."""
    assert_same(trajectory(folder, ranks, threads, "chromamd", "langevin-mtk", 10, comm={"overlap": "YES"}), one_short)


@pytest.mark.parametrize(("ranks", "pme_ranks", "comm"), [(2, 1, {}), (3, 1, {"overlap": "YES"}),
                                                          (5, 2, {"fft": "COLUMNS", "fft_subset": "COMPRESSED"}),
                                                          (5, 2, {"overlap": "YES", "fft": "SLAB"})])
def test_ranks_for_reciprocal_space_change_no_bit(folder, one_short, ranks, pme_ranks, comm):
    assert_same(trajectory(folder, ranks, 1, "chromamd", "langevin-mtk", 10, comm=comm | {"pme_ranks": pme_ranks}),
                one_short)


@pytest.mark.parametrize(("ranks", "comm", "energy", "told"), [
    (3, {"pme_ranks": 2}, {}, "pme_ranks = 2 must be at most half of the 3 ranks"),
    (2, {"pme_ranks": 1}, {"vdw": "PME", "deterministic": "NO"}, "pme_ranks = 1 does not go with vdw = PME"),
    (2, {"pme_ranks": 1}, {"forcefield": "LJ"}, "pme_ranks = 1 needs forcefield = TOPOLOGY"),
    (2, {"pme_ranks": 1}, {"pme_nspline": 10, "pme_ngrid_x": 8}, "pme_nspline 10 does not go with a grid"),
    (2, {"fft_subset": "EXPANDED"}, {}, "fft_subset = EXPANDED needs fft = 1D, QCDOC or COLUMNS"),
    (2, {"fft_by_node": "YES", "overlap": "YES"}, {}, "fft_by_node = YES does not go with overlap = YES"),
    (4, {"torus": "3"}, {}, "torus = 3 has 3 nodes, and 4 ranks cannot be dealt to them evenly"),
    (4, {"torus": "2 by 2"}, {}, "torus = 2 by 2 must be numbers of nodes"),
    (2, {"pme_ranks": 1, "torus": "2"}, {}, "does not go with pme_ranks"),
])
def test_ranks_that_cannot_be_are_refused(folder, ranks, comm, energy, told):
    domains = ranks - comm.get("pme_ranks", 0)
    start = set_up(folder, {"rstfile": folder / "start_().rst"}, domains, f"start{domains}")
    inp = systems.control(folder / "refused.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
                          ENERGY={key: value for key, value in ENERGY.items() if "vdw" not in energy or
                                  key != "switchdist"} | energy, COMM=comm, DYNAMICS={"nsteps": 1})
    done = systems.run("run", inp, ranks, "chromamd")
    assert done.returncode == 3, done.stderr
    assert told in done.stderr


@pytest.mark.release
@pytest.mark.parametrize("torus", ["4x2", "2x2"])
def test_place_on_a_torus_changes_no_bit(folder, one_short, torus):
    assert_same(trajectory(folder, 8, 1, "chromamd", "langevin-mtk", 10, comm={"torus": torus}), one_short)


def assert_same(run: tuple, other: tuple) -> None:
    """Bits of two trajectories."""
    for array in ("box", "position", "velocity"):
        assert np.array_equal(getattr(run[0], array), getattr(other[0], array)), array
    for column, values in other[1].items():
        assert np.array_equal(values, run[1][column]), column


@pytest.fixture(scope="module")
def one_short(folder):
    """A short run on one rank."""
    return trajectory(folder, 1, 1, "chromamd", "langevin-mtk", 10)


@pytest.mark.parametrize(("ranks", "comm"), [(3, {"fft": "SLAB", "pattern": "STAGED"}),
                                             (4, {"fft": "1D", "fft_subset": "EXPANDED", "fft_chunks": 2}),
                                             (4, {"fft": "2D", "fft_by_node": "YES"}),
                                             (4, {"fft": "PENCIL", "pattern": "FULL"}), (3, {"fft": "TIME"}),
                                             (6, {"fft": "COLUMNS", "fft_subset": "COMPRESSED"}),
                                             (4, {"overlap": "YES", "fft": "QCDOC", "fft_chunks": 3}),
                                             (8, {"overlap": "YES", "pattern": "STAGED", "fft": "2D"}),
                                             (4, {"overlap": "YES", "pattern": "FULL", "transport": "NEIGHBOURHOOD"}),
                                             (3, {"overlap": "YES", "pattern": "STAGED", "transport": "ONE_SIDED"}),
                                             (2, {"overlap": "YES", "pattern": "HALF", "transport": "SHARED"})])
def test_forces_do_not_depend_on_how_data_travel(folder, ranks, comm):
    """All schemes of the FFT and all patterns of the halo give the bits of one rank."""

    def forces(ranks: int, comm: dict) -> tuple[np.ndarray, dict[str, float]]:
        start = set_up(folder, {"rstfile": folder / "start_().rst"}, ranks, f"start{ranks}")
        inp = systems.control(folder / "energy.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
                              ENERGY=ENERGY, OUTPUT={"forcefile": folder / "force.bin"}, COMM=comm)
        done = systems.run("energy", inp, ranks, "chromamd")
        assert done.returncode == 0, done.stderr
        return systems.read_forces(folder / "force.bin"), systems.read_energies(done.stdout)

    one_force, one_energy = forces(1, {})
    force, energy = forces(ranks, comm)
    assert np.array_equal(force, one_force)
    assert energy == one_energy
