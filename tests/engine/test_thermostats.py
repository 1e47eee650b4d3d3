"""Thermostats: the ensemble they sample, the quantity they conserve, and that they are the same everywhere."""

from pathlib import Path

import numpy as np
import physical_validation
import pytest
from support import systems
from support.chain_in_water import BOX, ENERGY, KB, lone_ions, make_system, minimised

THERMOSTATS = {
    "BUSSI": {"tau_t": 0.02},
    "LANGEVIN": {"gamma_t": 20},
    "NHC": {"tau_t": 0.03},
    "BERENDSEN": {"tau_t": 0.02},
}


def simulate(folder: Path, start: str, end: str, n_steps: int, ensemble: dict, ranks: int = 1, threads: int = 1,
             rigid: bool = True, **keys: object) -> str:
    """Dynamics from a restart under an [ENSEMBLE]; returns the log."""
    inp = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start}, OUTPUT={"rstfile": end},
        ENERGY=ENERGY | {"pme_max_spacing": 4}, CONSTRAINTS={"rigid_bond": "YES" if rigid else "NO"},
        DYNAMICS={"nsteps": n_steps, "eneout_period": 1, "timestep": 0.001, **keys},
        ENSEMBLE={"ensemble": "NVT", "temperature": 300, **ensemble})
    done = systems.run("run", inp, ranks, threads=threads)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", THERMOSTATS)
def test_heat_is_booked(tmp_path, name):
    """From 100 to 300 K by the thermostat alone, with nothing else at work: the conserved quantity stays."""
    start = lone_ions(tmp_path)
    cold = {"ensemble": "NVE", "tpcontrol": "NO", "temperature": 100}
    simulate(tmp_path, start, str(tmp_path / "cold().rst"), 1, cold)
    table = systems.read_table(simulate(
        tmp_path, str(tmp_path / "cold().rst"), str(tmp_path / "end().rst"), 200,
        {"tpcontrol": name, **THERMOSTATS[name]}))
    assert table["TEMPERATURE"][0] < 130 and table["TEMPERATURE"][-50:].mean() > 240
    assert table["POTENTIAL_ENE"] == pytest.approx(0, abs=1e-9)
    # All but the chain book their heat exactly; the chain is a sixth-order step of 0.5 fs in 30.
    assert np.ptp(table["CONSERVED_ENE"]) < (1e-4 if name == "NHC" else 3e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "group_tp"), [("BUSSI", "YES"), ("BUSSI", "NO"), ("LANGEVIN", "NO"), ("NHC", "NO")])
def test_kinetic_energy_is_maxwell_distributed(tmp_path, name, group_tp):
    """Bonds, rigid bonds and rigid waters, 0.5 fs: mean and width of the kinetic energy, by physical_validation.

    A thermostat of the groups' centres of mass passes its heat on to their rotations only by collisions and torsions,
    which a gas has too few of, so that case looks at ions, whose groups are atoms.
    """
    if group_tp == "YES":
        start, rigid = lone_ions(tmp_path), False
        n_atoms, n_constraints = 64, 0
    else:
        runs = make_system(tmp_path)
        start, rigid = minimised(tmp_path), True
        n_atoms = sum(m.n * c for m, c in runs)
        n_constraints = sum(len(m.constraints) * c for m, c in runs)
    log = simulate(tmp_path, start, str(tmp_path / "end().rst"), 6000, rigid=rigid, eneout_period=10, timestep=0.0005,
                   ensemble={"tpcontrol": name, **THERMOSTATS[name], "group_tp": group_tp})
    kinetic = systems.read_table(log)["KINETIC_ENE"][100:]
    data = physical_validation.data.SimulationData(
        units=physical_validation.data.UnitData(
            kb=KB, energy_conversion=4.184, length_conversion=0.1, volume_conversion=1e-3, temperature_conversion=1,
            pressure_conversion=1.01325, time_conversion=1),
        ensemble=physical_validation.data.EnsembleData("NVT", natoms=n_atoms, volume=BOX.prod(), temperature=300),
        system=physical_validation.data.SystemData(
            natoms=n_atoms, nconstraints=n_constraints, ndof_reduction_tra=3, ndof_reduction_rot=0),
        observables=physical_validation.data.ObservableData(kinetic_energy=kinetic))
    mean, width = physical_validation.kinetic_energy.distribution(data, strict=False, verbosity=0)
    assert abs(mean) < 4 and abs(width) < 4  # in standard errors of the estimate


@pytest.mark.parametrize(("name", "share"), [("BUSSI", 2 / 3), ("LANGEVIN", 1)])
def test_long_steps_have_the_temperature(tmp_path, name, share):
    """Ions on springs, x = w^2 dt^2/4 = 1/4: a step of a sixth of a period.

    Velocity Verlet turns a spring of energy E with the mean potential E/2 / (1 - x), the mean kinetic energy E/2 at
    whole steps and the mean x E/2 / (1 - x) of half a kick. A thermostat that holds K + s K_kick at kT/2 thus leaves
    the potential kT/2 / (1 - x + s x): 1.091 kT/2 for s = 2/3, kT/2 for s = 1, as BAOAB samples springs. By K alone it
    were 1.333 kT/2.
    """
    n, timestep, temperature, x = 64, 0.002, 300, 0.25
    start = lone_ions(tmp_path, n)
    ion = systems.ion()
    constant = 2 * x * ion.mass[0] / timestep**2 / 418.4  # of U = constant d^2: w^2 = 2 constant/mass
    # Springs of one frequency stay in phase if they begin so.
    rng = np.random.default_rng(5)
    stretched = np.random.default_rng(4).random((n, 3)) * BOX + rng.normal(0, np.sqrt(KB * 300 / 2 / constant), (n, 3))
    (tmp_path / "reference").mkdir()
    places = systems.write_bricks(tmp_path / "reference", [(ion, n)], stretched, BOX)
    inp = systems.control(
        tmp_path / "run.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start, "reffile": places},
        ENERGY=ENERGY | {"pme_max_spacing": 4}, CONSTRAINTS={"rigid_bond": "NO"}, SELECTION={"group1": "all"},
        RESTRAINTS={"nfunctions": 1, "function1": "POSI", "constant1": constant, "select_index1": 1},
        DYNAMICS={"nsteps": 4000, "eneout_period": 5, "timestep": timestep, "thermostat_period": 2, "stoptr_period": 0},
        ENSEMBLE={"ensemble": "NVT", "temperature": temperature, "tpcontrol": name, "tau_t": 0.02, "gamma_t": 50},
        HEALTH={"max_drift": 100})  # with such steps the energy at whole steps is far from the one that is conserved
    done = systems.run("run", inp)
    assert done.returncode == 0, done.stderr
    table = systems.read_table(done.stdout)
    thermal = table["KINETIC_ENE"] + share * table["HALF_KICK_ENE"]
    assert 2 * thermal / (3 * n * KB) == pytest.approx(table["TEMPERATURE"], rel=1e-5)
    equipartition = 3 * n * KB * temperature / 2
    found = table["RESTRAINT_TOTAL"][100:].mean() / equipartition
    # 192 springs, energies apart by 10 fs and alike for some 40: 0.1 / sqrt(200) of it is one standard error.
    assert found == pytest.approx(1 / (1 - x + share * x), abs=0.03)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("name", ["BUSSI", "LANGEVIN"])
def test_thermostats_do_not_depend_on_ranks_and_threads(tmp_path, name):
    """The same random numbers for the same atoms: trajectories differ by rounding only."""
    make_system(tmp_path, n_waters=60, neutral=False)
    ends = []
    for ranks, threads in ((1, 1), (1, 2), (4, 1)):
        start = minimised(tmp_path, ranks)
        simulate(tmp_path, start, str(tmp_path / "end().rst"), 40, {"tpcontrol": name, **THERMOSTATS[name]}, ranks,
                 threads, thermostat_period=4, eneout_period=20)
        ends.append(systems.read_restarts(str(tmp_path / "end().rst"), ranks))
    assert np.array_equal(ends[0].position, ends[1].position)
    apart = ends[0].position - ends[2].position
    apart -= BOX * np.round(apart / BOX)
    assert np.abs(apart).max() < 1e-7
    assert np.abs(ends[0].velocity - ends[2].velocity).max() < 1e-5


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("name", ["BUSSI", "LANGEVIN", "NHC"])
def test_continued_thermostat_is_bitwise_the_same(tmp_path, name):
    """Interrupted between two uses of the thermostat: same restart file, same last row, heat included."""
    ranks = 2
    make_system(tmp_path, n_waters=60, neutral=False)
    start = minimised(tmp_path, ranks)
    whole, half, rest = (str(tmp_path / f"{kind}().rst") for kind in ("whole", "half", "rest"))
    ensemble = {"tpcontrol": name, **THERMOSTATS[name]}
    keys = {"thermostat_period": 4, "stoptr_period": 7, "eneout_period": 10}
    log_whole = simulate(tmp_path, start, whole, 60, ensemble, ranks, rstout_period=30, **keys)
    simulate(tmp_path, start, half, 30, ensemble, ranks, **keys)
    log_rest = simulate(tmp_path, half, rest, 30, ensemble, ranks, **keys)
    for rank in range(ranks):
        assert Path(whole.replace("()", str(rank))).read_bytes() == Path(rest.replace("()", str(rank))).read_bytes()
    last = [[line for line in log.splitlines() if line.startswith("INFO:")][-1] for log in (log_whole, log_rest)]
    assert last[0] == last[1]


def test_seed_changes_the_noise(tmp_path):
    start = lone_ions(tmp_path)
    ends = []
    for seed in (1, 1, 2):
        simulate(tmp_path, start, str(tmp_path / "end().rst"), 5, {"tpcontrol": "LANGEVIN"}, iseed=seed)
        ends.append(systems.read_restarts(str(tmp_path / "end().rst"), 1).position)
    assert np.array_equal(ends[0], ends[1]) and not np.allclose(ends[0], ends[2])


def test_centre_of_mass_stays_at_rest_under_noise(tmp_path):
    start = lone_ions(tmp_path)
    momentum = []
    for period in (1, 0):
        simulate(tmp_path, start, str(tmp_path / "end().rst"), 20, {"tpcontrol": "LANGEVIN", "gamma_t": 20},
                 stoptr_period=period)
        momentum.append(np.abs(systems.read_restarts(str(tmp_path / "end().rst"), 1).velocity.sum(axis=0)).max())
    assert momentum[0] < 1e-10 < 1e-2 < momentum[1]
