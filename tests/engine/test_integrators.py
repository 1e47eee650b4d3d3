"""Leapfrog, r-RESPA and heavy hydrogens beside plain velocity Verlet."""

import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, KB, make_system, minimised
from support.systems import sentence
from test_barostats import simulate

NVE = {"ensemble": "NVE"}
FINE = {"pme_max_spacing": 1.2}


@pytest.mark.release
@pytest.mark.parametrize("ensemble", [NVE, {"ensemble": "NPT", "tpcontrol": "BUSSI", "tau_t": 0.1, "pressure": 100}],
                         ids=["NVE", "NPT"])
def test_leapfrog_follows_velocity_verlet(tmp_path, ensemble):
    """The half kicks are only taken together: the same positions, and the same velocities where they are looked at."""
    make_system(tmp_path, n_waters=60, neutral=False)
    start = minimised(tmp_path)
    ends, tables = [], []
    for integrator in ("VVER", "LEAP"):
        log = simulate(tmp_path, start, 40, ensemble, integrator=integrator, eneout_period=8, thermostat_period=4,
                       barostat_period=8, stoptr_period=20)
        tables.append(systems.read_table(log))
        ends.append(systems.read_restarts(str(tmp_path / "end().rst"), 1))
    assert np.abs(ends[0].position - ends[1].position).max() < 1e-7
    assert np.abs(ends[0].velocity - ends[1].velocity).max() < 1e-5
    assert tables[0]["TOTAL_ENE"] == pytest.approx(tables[1]["TOTAL_ENE"], abs=2e-4)  # printed digits


@pytest.mark.release
def test_respa_is_velocity_verlet_with_a_longer_outer_step(tmp_path):
    """Reciprocal space every second step: the energy is kept as well as with the outer step alone, and better with a
    shorter one; a period of one is velocity Verlet itself."""
    make_system(tmp_path, n_waters=60, neutral=False)
    start = minimised(tmp_path)
    plain = systems.read_table(simulate(tmp_path, start, 20, NVE, energy=FINE))
    one = systems.read_table(simulate(tmp_path, start, 20, NVE, energy=FINE, integrator="VRES"))
    assert plain["TOTAL_ENE"] == pytest.approx(one["TOTAL_ENE"], abs=2e-4)
    spread = []
    for timestep in (0.0005, 0.00025):
        table = systems.read_table(simulate(
            tmp_path, start, int(0.1 / timestep), NVE, energy=FINE, timestep=timestep, integrator="VRES",
            elec_long_period=4, eneout_period=4))
        assert table["RECIPROCAL"].std() > 0
        spread.append(np.std(table["TOTAL_ENE"]))
    assert 2.5 < spread[0] / spread[1] < 6  # second order: 4
    assert spread[0] < 0.02 * np.ptp(table["KINETIC_ENE"])


@pytest.mark.release
def test_heavy_hydrogens(tmp_path):
    """Masses move within groups: the total stays, hydrogens move as atoms of three times their mass."""
    runs = make_system(tmp_path)
    start = minimised(tmp_path)
    keys = {"hydrogen_mr": "YES", "hmr_ratio": 3, "stoptr_period": 0}
    table = systems.read_table(simulate(tmp_path, start, 1, NVE, **keys))
    state = systems.read_restarts(str(tmp_path / "end().rst"), 1)
    mass = np.concatenate([np.tile(m.mass, c) for m, c in runs])
    heavy = mass.copy()
    first = 0
    for molecule, count in runs:
        for _ in range(count):
            # In these molecules a group is a heavy atom and the hydrogens behind it.
            for i in range(molecule.n):
                if molecule.mass[i] < 1.5:
                    parent = max(j for j in range(i) if molecule.mass[j] > 1.5)
                    heavy[first + i] += 2 * mass[first + i]
                    heavy[first + parent] -= 2 * mass[first + i]
            first += molecule.n
    assert heavy.sum() == pytest.approx(mass.sum())
    kinetic = 0.5 * (heavy[:, None] * state.velocity**2).sum() / 418.4
    assert table["KINETIC_ENE"][-1] == pytest.approx(kinetic, rel=1e-5)
    constraints = sum(len(m.constraints) * c for m, c in runs)
    thermal = kinetic + 2 / 3 * table["HALF_KICK_ENE"][-1]
    assert table["TEMPERATURE"][-1] == pytest.approx(2 * thermal / KB / (3 * len(mass) - 3 - constraints), rel=1e-4)
    assert np.abs((heavy[:, None] * state.velocity).sum(axis=0)).max() < 1e-8 * len(mass)


@pytest.mark.parametrize(("dynamics", "ensemble", "words"), [
    ({"integrator": "LEAP"}, {"ensemble": "NVT", "tpcontrol": "LANGEVIN"}, ["LEAP", "LANGEVIN", "VVER"]),
    ({"elec_long_period": 2}, {}, ["elec_long_period", "VRES"]),
    ({"integrator": "VRES", "elec_long_period": 3, "nsteps": 10}, {}, ["elec_long_period = 3", "nsteps"]),
    ({"hydrogen_mr": "YES", "hmr_ratio": 9}, {}, ["hmr_ratio", "lighter"]),
    ({"annealing": "YES"}, {"ensemble": "NVT", "tpcontrol": "BUSSI"}, ["annealing", "anneal_period"]),
    ({}, {"ensemble": "NPAT", "tpcontrol": "BUSSI"}, ["isotropy", "XY-FIXED"]),
    ({}, {"ensemble": "NVT", "tpcontrol": "BUSSI", "barostat": "MC"}, ["barostat", "NPT"]),
])
def test_keys_that_contradict_each_other_are_refused(tmp_path, dynamics, ensemble, words):
    make_system(tmp_path)
    inp = systems.control(tmp_path / "bad.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": "none().rst"},
                          DYNAMICS=dynamics, ENSEMBLE=ensemble)
    done = systems.run("run", inp)
    assert done.returncode == 3
    for word in words:
        assert word in sentence(done)


@pytest.mark.release
def test_annealing_follows_its_steps(tmp_path):
    """From 300 K down to 100 K in 20 changes; the thermostat follows within its relaxation time."""
    make_system(tmp_path)
    start = minimised(tmp_path)
    table = systems.read_table(simulate(
        tmp_path, start, 1200, {"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.02, "group_tp": "NO"},
        annealing="YES", anneal_period=40, dtemperature=-10, eneout_period=20))
    assert table["TEMPERATURE"][-20:].mean() < 150 < 230 < table["TEMPERATURE"][5:15].mean()
    assert BOX.prod() == pytest.approx(table["VOLUME"][-1])
