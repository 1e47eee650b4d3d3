"""The deterministic mode: the same bits on any number of ranks and threads.

Everything that moves atoms takes part: pairs, exclusions, bonded terms, PME, SETTLE and SHAKE, restraints, thermostats
and barostats. Positions and velocities of the restart files are compared bit for bit.
"""

from pathlib import Path

import numpy as np
import pytest
import systems
from test_frame_dynamics import BOX, make_system

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
    """Restart files for so many ranks; returns their pattern."""
    pattern = str(folder / f"{name}_().rst")
    inp = systems.control(folder / "setup.inp", INPUT={"topologyfile": folder / "t.h5", **source},
                          OUTPUT={"rstfile": pattern}, ENERGY=ENERGY)
    done = systems.run("setup", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr
    return pattern


def trajectory(folder: Path, ranks: int, threads: int, program: str, ensemble: str, steps: int = 40,
               **energy: object) -> tuple[systems.Restart, dict[str, np.ndarray]]:
    """State after some steps of 2 fs, and the energy table."""
    start = set_up(folder, {"rstfile": folder / "start_().rst"}, ranks, f"start{ranks}")
    end = str(folder / "end_().rst")
    inp = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start}, OUTPUT={"rstfile": end},
        ENERGY=ENERGY | energy, CONSTRAINTS={"rigid_bond": "YES"},
        ENSEMBLE={"temperature": 300, "gamma_t": 5, "tau_t": 0.1, "tau_p": 1, **ENSEMBLES[ensemble]},
        DYNAMICS={"nsteps": steps, "eneout_period": 20, "timestep": 0.002, "iseed": 5, "stoptr_period": 10})
    done = systems.run("run", inp, ranks, program, threads)
    assert done.returncode == 0, done.stderr
    return systems.read_restarts(end, ranks), systems.read_table(done.stdout)


@pytest.mark.parametrize(("program", "ensemble"), [("chromamd", "bussi"), ("chromamd", "langevin-mtk"),
                                                   ("chromamd-double", "langevin-mtk")])
def test_bits_do_not_depend_on_ranks_and_threads(folder, program, ensemble, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # more threads than cores
    one, one_table = trajectory(folder, 1, 1, program, ensemble)
    for ranks, threads in LAYOUTS:
        other, table = trajectory(folder, ranks, threads, program, ensemble)
        assert np.array_equal(other.box, one.box), (ranks, threads)
        assert np.array_equal(other.position, one.position), (ranks, threads)
        assert np.array_equal(other.velocity, one.velocity), (ranks, threads)
        for column, values in one_table.items():
            assert np.array_equal(values, table[column]), (ranks, threads, column)
    assert not np.array_equal(one.box, BOX) or ensemble == "bussi"


@pytest.mark.parametrize(("ranks", "comm"), [(3, {"fft": "SLAB", "pattern": "STAGED"}), (4, {"fft": "1D"}),
                                             (4, {"fft": "PENCIL", "pattern": "FULL"}), (6, {"fft": "COLUMNS"})])
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
