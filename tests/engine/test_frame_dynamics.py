"""Constraints, velocities, dynamics and minimisation of the engine."""

from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, ENERGY, KB, dynamics, make_system, minimised, setup


def residuals(runs: list, state: systems.Restart) -> tuple[np.ndarray, np.ndarray]:
    """Relative errors of constrained distances, and relative velocities along them (1/ps)."""
    errors, rates = [], []
    start = 0
    for molecule, count in runs:
        for _ in range(count):
            for (i, j), distance in molecule.constraints:
                r = state.position[start + i] - state.position[start + j]
                r -= state.box * np.round(r / state.box)
                errors.append(np.linalg.norm(r) / distance - 1)
                rates.append(r @ (state.velocity[start + i] - state.velocity[start + j]) / distance**2)
            start += molecule.n
    return np.abs(errors), np.abs(rates)


@pytest.mark.mpi
def test_maxwell_velocities_do_not_depend_on_the_domains(tmp_path):
    runs = make_system(tmp_path)
    one = systems.read_restarts(setup(tmp_path, 1, "one"), 1)
    eight = systems.read_restarts(setup(tmp_path, 4, "four"), 4)
    assert np.array_equal(one.velocity, eight.velocity)
    assert np.array_equal(one.position, eight.position)
    mass = np.concatenate([np.tile(m.mass, c) for m, c in runs])
    kinetic = 0.5 * (mass[:, None] * one.velocity**2).sum() / 418.4
    temperature = 2 * kinetic / (3 * len(mass) * KB)
    # Relative standard deviation of a sum of n squared normal numbers: sqrt(2/n).
    assert abs(temperature / 298.15 - 1) < 4 * np.sqrt(2 / (3 * len(mass)))
    other = systems.read_restarts(setup(tmp_path, 1, "other", iseed=5), 1)
    assert not np.array_equal(one.velocity, other.velocity)


@pytest.mark.parametrize("fast_water", ["YES", pytest.param("NO", marks=pytest.mark.release)])
def test_constraints_hold(tmp_path, fast_water):
    runs = make_system(tmp_path)
    start = minimised(tmp_path)
    inp = systems.control(
        tmp_path / "run.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
        OUTPUT={"rstfile": tmp_path / "end().rst"}, ENERGY=ENERGY, DYNAMICS={"nsteps": 50, "timestep": 0.002},
        CONSTRAINTS={"rigid_bond": "YES", "fast_water": fast_water})
    done = systems.run("run", inp)
    assert done.returncode == 0, done.stderr
    errors, rates = residuals(runs, systems.read_restarts(str(tmp_path / "end().rst"), 1))
    assert errors.max() < 1.01e-10  # shake_tolerance
    assert rates.max() * 0.002 < 1.01e-10


@pytest.mark.release
def test_settle_and_shake_follow_the_same_path(tmp_path):
    """SETTLE is exact, SHAKE converges to the same: after 50 steps the waters are where SHAKE puts them."""
    make_system(tmp_path)
    start = minimised(tmp_path)
    end = {}
    for fast_water in ("YES", "NO"):
        inp = systems.control(
            tmp_path / "run.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
            OUTPUT={"rstfile": tmp_path / f"{fast_water}().rst"}, ENERGY=ENERGY,
            DYNAMICS={"nsteps": 50, "timestep": 0.001},
            CONSTRAINTS={"rigid_bond": "YES", "fast_water": fast_water, "shake_tolerance": 1e-13})
        assert systems.run("run", inp).returncode == 0
        end[fast_water] = systems.read_restarts(str(tmp_path / f"{fast_water}().rst"), 1)
    assert np.abs(end["YES"].position - end["NO"].position).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("rigid", [True, False])
def test_energy_is_conserved(tmp_path, rigid):
    """Only bonded terms: the fluctuation of the total energy falls with the square of the time step."""
    make_system(tmp_path)
    start = minimised(tmp_path)
    spread = []
    for timestep in (0.0005, 0.00025):
        end = str(tmp_path / "end().rst")
        log = dynamics(tmp_path, start, end, int(0.1 / timestep), rigid=rigid, timestep=timestep)
        table = systems.read_table(log)
        total = table["TOTAL_ENE"]
        # Early steps after the fresh start belong to the same trajectory; the drift is a slope over all of them.
        slope = np.polyfit(table["TIME"], total, 1)[0]
        assert abs(slope) * 0.1 < 0.02 * np.ptp(table["KINETIC_ENE"])
        spread.append(np.std(total))
    assert 3.0 < spread[0] / spread[1] < 5.0  # second order: 4


@pytest.mark.mpi
@pytest.mark.release
def test_dynamics_on_eight_ranks_follows_one_rank(tmp_path):
    """Charges and Lennard-Jones on. The same start gives the same trajectory, up to rounding that grows with time."""
    make_system(tmp_path, n_waters=60, neutral=False)
    ends = {}
    for ranks in (1, 8 if (BOX / 2 >= 8 + 2 * 1.25 * 1.52).all() else 4):
        start = minimised(tmp_path, ranks)
        log = dynamics(tmp_path, start, str(tmp_path / "end().rst"), 60, ranks=ranks, nbupdate_period=7)
        ends[ranks] = systems.read_restarts(str(tmp_path / "end().rst"), ranks), systems.read_table(log)
    (one, table_one), (many, table_many) = ends.values()
    apart = one.position - many.position
    apart -= one.box * np.round(apart / one.box)
    assert np.abs(apart).max() < 1e-7
    assert np.abs(table_one["TOTAL_ENE"] - table_many["TOTAL_ENE"]).max() < 2e-4  # printed digits


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "threads"), [(1, 2), pytest.param(4, 1, marks=pytest.mark.slow)])
def test_continued_run_is_bitwise_the_same(tmp_path, ranks, threads):
    make_system(tmp_path, n_waters=60, neutral=False)
    start = minimised(tmp_path, ranks)
    whole, half, rest = (str(tmp_path / f"{name}().rst") for name in ("whole", "half", "rest"))
    # A period writes the restart of step 40 in the long run too, so its lists are new there.
    log_whole = dynamics(tmp_path, start, whole, 80, ranks, threads, rstout_period=40)
    dynamics(tmp_path, start, half, 40, ranks, threads)
    log_rest = dynamics(tmp_path, half, rest, 40, ranks, threads)
    for rank in range(ranks):
        assert Path(whole.replace("()", str(rank))).read_bytes() == Path(rest.replace("()", str(rank))).read_bytes()
    last = [[line for line in log.splitlines() if line.startswith("INFO:")][-1] for log in (log_whole, log_rest)]
    assert last[0] == last[1]


@pytest.mark.parametrize("method", ["SD", "LBFGS"])
def test_minimiser_survives_overlaps(tmp_path, method):
    """Atoms almost on top of each other: no energy exceeds the highest of the five taken before, and the end is low."""
    ion = systems.ion()
    ion.charge = [0.0]
    rng = np.random.default_rng(8)
    position = 10 + 1.5 * rng.random((30, 3))
    systems.write_topology(tmp_path / "t.h5", [(ion, 30)])
    systems.write_bricks(tmp_path, [(ion, 30)], position, BOX)
    start = setup(tmp_path, 1)
    inp = systems.control(
        tmp_path / "min.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
        OUTPUT={"rstfile": tmp_path / "end().rst"}, ENERGY=ENERGY,
        MINIMIZE={"method": method, "nsteps": 150, "eneout_period": 1, "force_scale_max": 1e-2})
    done = systems.run("run", inp, program="chromamd")
    assert done.returncode == 0, done.stderr
    energy = systems.read_table(done.stdout)["POTENTIAL_ENE"]
    taken = energy[np.insert(np.diff(energy) != 0, 0, True)]  # an undone step shows as the same energy again
    highest = [taken[max(0, i - 5):i].max() for i in range(1, len(taken))]
    assert (taken[1:] <= highest + 1e-4 * np.abs(taken[1:])).all()
    assert energy[-1] < 10.0
    end = systems.read_restarts(str(tmp_path / "end().rst"), 1)
    distance = np.linalg.norm(end.position[:, None] - end.position[None], axis=2)[np.triu_indices(30, 1)]
    assert distance.min() > 2.0


def test_initial_centre_of_mass_velocity_is_removed(tmp_path):
    runs = make_system(tmp_path)
    start = minimised(tmp_path)
    dynamics(tmp_path, start, str(tmp_path / "end().rst"), 1)
    state = systems.read_restarts(str(tmp_path / "end().rst"), 1)
    mass = np.concatenate([np.tile(m.mass, c) for m, c in runs])
    momentum = (mass[:, None] * state.velocity).sum(axis=0)
    assert np.abs(momentum).max() < 1e-9 * (mass[:, None] * np.abs(state.velocity)).sum()


@pytest.mark.release
@pytest.mark.mpi
def test_lbfgs_finds_the_minimum(tmp_path):
    """A chain with charges and Lennard-Jones that starts with a clash: L-BFGS is far ahead of steepest descent after as
    many steps; two ranks take the same way."""
    make_system(tmp_path, n_waters=0, neutral=False)
    table = {}
    for method, ranks in (("SD", 1), ("LBFGS", 1), ("LBFGS", 2)):
        start = setup(tmp_path, ranks)
        inp = systems.control(
            tmp_path / "min.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start}, ENERGY=ENERGY,
            MINIMIZE={"method": method, "nsteps": 120, "eneout_period": 1, "force_scale_max": 1e-2})
        done = systems.run("run", inp, ranks)
        assert done.returncode == 0, done.stderr
        table[method, ranks] = systems.read_table(done.stdout)
    steepest, ours, two = table.values()
    assert ours["RMSG"][-1] < 1e-4 * ours["RMSG"][0]
    assert ours["POTENTIAL_ENE"][-1] < steepest["POTENTIAL_ENE"][-1] - 10
    assert two["POTENTIAL_ENE"][:40] == pytest.approx(ours["POTENTIAL_ENE"][:40], abs=1e-3)
