"""Atoms that do not move (fixatm_select_index): they stay where they are to the last bit, and the others obey the laws
of motion: energy, equipartition and the lengths of rigid bonds."""

from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, ENERGY, KB, PME, lone_ions, make_system, minimised, relaxed_charged, setup
from support.systems import sentence

LANGEVIN = {"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 20, "temperature": 300}
BUSSI = {"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.1, "temperature": 300}
# Of the chain some atoms with rigid bonds to others; of the waters one whole, the oxygen of one, the hydrogens of one.
SOME = "ai:1-9 or ai:42-44 or ai:48 or ai:52-53"


def run(folder: Path, start: str, end: str, ranks: int = 1, threads: int = 1, group: str = SOME, energy: dict = ENERGY,
        section: str = "DYNAMICS", program: str = "chromamd-double", continues: bool = False, **sections: dict) -> str:
    """Run with a group of fixed atoms; returns the log."""
    motion = {"nsteps": 40, "eneout_period": 1, **sections.pop(section, {})}
    inp = systems.control(
        folder / f"{end}.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
        OUTPUT={"rstfile": folder / f"{end}_().rst"}, ENERGY=energy, SELECTION={"group1": "ai:1", "group2": group},
        **{section: motion | {"fixatm_select_index": "1 2"}}, **sections)
    done = systems.run("run", inp, ranks, program, threads=threads)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fixed_of(runs: list) -> np.ndarray:
    """Which atoms `SOME` chooses."""
    number = np.arange(1, sum(molecule.n * count for molecule, count in runs) + 1)
    return (number <= 9) | np.isin(number, [42, 43, 44, 48, 52, 53])


def moved(folder: Path, start: str, end: str, ranks: int = 1) -> np.ndarray:
    """How far each atom has moved between two sets of restart files, angstrom."""
    change = (systems.read_restarts(str(folder / f"{end}_().rst"), ranks).position
              - systems.read_restarts(start, ranks).position)
    return np.linalg.norm(change - BOX * np.round(change / BOX), axis=1)


@pytest.mark.parametrize("ensemble", [{"ensemble": "NVE", "temperature": 300}, LANGEVIN, BUSSI],
                         ids=["nve", "langevin", "bussi"])
@pytest.mark.parametrize("rigid", ["YES", "NO"])
def test_fixed_atoms_stay_and_others_move(tmp_path, ensemble, rigid):
    runs = make_system(tmp_path)
    start = minimised(tmp_path)
    log = run(tmp_path, start, "end", ENSEMBLE=ensemble, CONSTRAINTS={"rigid_bond": rigid})
    fixed = fixed_of(runs)
    distance = moved(tmp_path, start, "end")
    # Wrapping a group by an edge of the box and back rounds.
    assert distance[fixed].max() < 1e-13
    assert distance[~fixed].min() > 1e-4
    end = systems.read_restarts(str(tmp_path / "end_().rst"), 1)
    assert not end.velocity[fixed].any() and np.linalg.norm(end.velocity[~fixed], axis=1).min() > 0
    assert f"{fixed.sum()} atoms are fixed; the centre of mass is not stopped; group_tp = NO" in log


def test_energy_is_conserved(tmp_path):
    """With rigid bonds, those to fixed atoms too. Velocity Verlet errs by dt^2: a quarter of the error with half the
    step, until the tolerance of SHAKE."""
    make_system(tmp_path)
    start = minimised(tmp_path)
    error = []
    for steps, timestep in ((100, 0.001), (200, 0.0005)):
        log = run(tmp_path, start, "end", ENSEMBLE={"temperature": 300}, CONSTRAINTS={"rigid_bond": "YES"},
                  DYNAMICS={"nsteps": steps, "timestep": timestep})
        table = systems.read_table(log)
        error.append(np.std(table["TOTAL_ENE"]))
        assert error[-1] < 0.01 * table["KINETIC_ENE"].mean()
    assert error[1] < 0.35 * error[0]


@pytest.mark.parametrize("ensemble", [LANGEVIN, BUSSI], ids=["langevin", "bussi"])
def test_temperature_counts_atoms_that_move(tmp_path, ensemble):
    """Of 64 ions that feel nothing 40 are fixed: the 24 others have 72 degrees of freedom."""
    start = lone_ions(tmp_path)
    log = run(tmp_path, start, "end", group="ai:25-64 and not ai:30 or ai:30", ENSEMBLE=ensemble,
              DYNAMICS={"nsteps": 4000, "timestep": 0.002, "eneout_period": 10, "iseed": 3})
    table = systems.read_table(log)
    n_freedom = 3 * 23  # group 1 holds one of the 24
    kinetic = table["KINETIC_ENE"][40:]
    assert table["TEMPERATURE"][40:] == pytest.approx(2 * kinetic / (n_freedom * KB), rel=1e-4)
    # The kinetic energy of n degrees of freedom has a relative variance of 2/n; values are apart by 0.02 ps, and stay
    # alike for 0.05 to 0.1 ps: about 36 independent values at least, four standard errors.
    assert kinetic.mean() == pytest.approx(n_freedom * KB * 300 / 2, rel=4 * np.sqrt(2 / n_freedom / 36))


def test_rigid_bonds_to_fixed_atoms_keep_their_lengths(tmp_path):
    runs = make_system(tmp_path)
    start = minimised(tmp_path)
    run(tmp_path, start, "end", ENSEMBLE=LANGEVIN, CONSTRAINTS={"rigid_bond": "YES"})
    n = runs[0][0].n
    end = systems.read_restarts(str(tmp_path / "end_().rst"), 1).position
    waters = end[n:].reshape(-1, 3, 3)
    shapes = np.linalg.norm(waters - np.roll(waters, 1, axis=1), axis=2)
    fixed = fixed_of(runs)[n:].reshape(-1, 3)
    parted = fixed.any(axis=1) & ~fixed.all(axis=1)
    free = ~fixed.any(axis=1)
    assert parted.sum() == 2 and fixed.all(axis=1).sum() == 1
    # Waters that are free have the shape of the model; a pair of fixed atoms keeps the length that it had.
    for k in range(3):
        model = shapes[free][:, k]
        assert np.ptp(model) < 1e-8
        held = parted & ~(fixed[:, k] & fixed[:, k - 1])
        assert shapes[held][:, k] == pytest.approx(model[0], abs=1e-8)


@pytest.mark.mpi
@pytest.mark.parametrize("program", ["chromamd", "chromamd-double"])
def test_ranks_and_threads_have_the_same_bits(tmp_path, program):
    folder = relaxed_charged(tmp_path, 40)
    ends = []
    for ranks, threads in ((1, 1), (1, 2), (2, 1)):
        name = f"end{ranks}{threads}"
        run(folder, str(folder / f"start{ranks}_().rst"), name, ranks, threads, energy=PME, program=program,
            ENSEMBLE=LANGEVIN, CONSTRAINTS={"rigid_bond": "YES"})
        ends.append(systems.read_restarts(str(folder / f"{name}_().rst"), ranks))
    for end in ends[1:]:
        assert np.array_equal(end.position, ends[0].position) and np.array_equal(end.velocity, ends[0].velocity)


@pytest.mark.mpi
@pytest.mark.parametrize("keys", [{"integrator": "LEAP"}, {"integrator": "VRES", "elec_long_period": 4}],
                         ids=["leap", "vres"])
def test_other_integrators(tmp_path, keys):
    """Leapfrog, and forces of a longer step; lists are made often, so that atoms change hands between them."""
    folder = relaxed_charged(tmp_path, 40)
    ends = []
    for ranks in (1, 2):
        start = str(folder / f"start{ranks}_().rst")
        run(folder, start, f"end{ranks}", ranks, energy=PME, ENSEMBLE=BUSSI, CONSTRAINTS={"rigid_bond": "YES"},
            DYNAMICS={**keys, "eneout_period": 8, "thermostat_period": 8, "nbupdate_period": 1})
        fixed = np.zeros(161, bool)
        fixed[:9] = fixed[[41, 42, 43, 47, 51, 52]] = True
        distance = moved(folder, start, f"end{ranks}", ranks)
        # The deterministic mode rounds positions to parts of the box, once.
        assert distance[fixed].max() < 1e-6 and distance[~fixed].min() > 1e-4
        ends.append(systems.read_restarts(str(folder / f"end{ranks}_().rst"), ranks))
    assert np.array_equal(ends[0].position, ends[1].position)


def test_a_continued_run_is_the_uninterrupted_one(tmp_path):
    make_system(tmp_path)
    start = minimised(tmp_path)
    keys = {"ENSEMBLE": LANGEVIN, "CONSTRAINTS": {"rigid_bond": "YES"}}
    run(tmp_path, start, "whole", **keys, DYNAMICS={"nsteps": 40, "rstout_period": 20})
    run(tmp_path, start, "first", **keys, DYNAMICS={"nsteps": 20})
    run(tmp_path, str(tmp_path / "first_().rst"), "rest", **keys, DYNAMICS={"nsteps": 20})
    whole, rest = (systems.read_restarts(str(tmp_path / f"{name}_().rst"), 1) for name in ("whole", "rest"))
    assert np.array_equal(whole.position, rest.position) and np.array_equal(whole.velocity, rest.velocity)


@pytest.mark.mpi
@pytest.mark.parametrize("method", ["SD", "LBFGS"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_minimisation(tmp_path, method, ranks):
    """The energy goes down, fixed atoms stay, and the gradient that the log shows is that of the others."""
    runs = make_system(tmp_path)
    start = setup(tmp_path, ranks)
    log = run(tmp_path, start, "end", ranks, section="MINIMIZE",
              MINIMIZE={"method": method, "nsteps": 400, "eneout_period": 50, "force_scale_max": 5e-4})
    fixed = fixed_of(runs)
    distance = moved(tmp_path, start, "end", ranks)
    assert distance[fixed].max() < 1e-13 and distance[~fixed].max() > 0.05
    table = systems.read_table(log)
    assert table["POTENTIAL_ENE"][-1] < table["POTENTIAL_ENE"][0]
    assert table["RMSG"][-1] < 0.3 * table["RMSG"][0]
    forces = tmp_path / "f.bin"
    inp = systems.control(tmp_path / "e.inp", INPUT={"topologyfile": tmp_path / "t.h5",
                                                     "rstfile": tmp_path / "end_().rst"},
                          OUTPUT={"forcefile": forces}, ENERGY=ENERGY)
    done = systems.run("energy", inp, ranks)
    assert done.returncode == 0, done.stderr
    free = systems.read_forces(forces)[~fixed]
    assert table["RMSG"][-1] == pytest.approx(np.sqrt(np.mean(free**2)), rel=1e-3)


def test_open_boundaries(tmp_path):
    """Without a periodic box rotation is not stopped either."""
    runs = make_system(tmp_path, neutral=False)
    boundary = {"type": "NOBC"}
    energy = ENERGY | {"electrostatic": "CUTOFF"}
    inp = systems.control(tmp_path / "setup.inp", OUTPUT={"rstfile": tmp_path / "s_().rst"}, ENERGY=energy,
                          INPUT={"topologyfile": tmp_path / "t.h5", "shardfile": tmp_path / "bricks.txt"},
                          BOUNDARY=boundary)
    assert systems.run("setup", inp).returncode == 0
    start = str(tmp_path / "s_().rst")
    run(tmp_path, start, "min", energy=energy, section="MINIMIZE", BOUNDARY=boundary, MINIMIZE={"nsteps": 200})
    log = run(tmp_path, str(tmp_path / "min_().rst"), "end", energy=energy, ENSEMBLE=BUSSI, BOUNDARY=boundary,
              DYNAMICS={"nsteps": 20, "stoptr_period": 1})
    change = (systems.read_restarts(str(tmp_path / "end_().rst"), 1).position
              - systems.read_restarts(start, 1).position)
    fixed = fixed_of(runs)
    assert not change[fixed].any() and np.linalg.norm(change[~fixed], axis=1).min() > 0
    assert "the centre of mass is not stopped" in log


@pytest.mark.parametrize(("sections", "words"), [
    ({"DYNAMICS": {"fixatm_select_index": 3}}, "group3 in [SELECTION] is missing; the control file uses it"),
    ({"DYNAMICS": {"fixatm_select_index": 1}, "SELECTION": {"group1": "ai:999999"}}, "chooses no atom"),
    ({"DYNAMICS": {"fixatm_select_index": 1}, "SELECTION": {"group1": "all"}}, "leaves no atom that moves"),
    ({"DYNAMICS": {"fixatm_select_index": "heavy"}}, "must name groups of [SELECTION] by their numbers"),
    ({"DYNAMICS": {"fixatm_select_index": 1}, "ENSEMBLE": {"ensemble": "NPT", "tpcontrol": "BUSSI"}},
     "changes the box"),
    ({"MINIMIZE": {}, "CONSTRAINTS": {"fixatm_select_index": 1}}, "for a minimisation give it in [MINIMIZE]"),
])
def test_what_cannot_be_is_refused(tmp_path, sections, words):
    make_system(tmp_path)
    inp = systems.control(tmp_path / "r.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": setup(tmp_path, 1)},
                          ENERGY=ENERGY, **{"SELECTION": {"group1": "ai:1-9"}, **sections})
    done = systems.run("run", inp)
    assert done.returncode == 3
    assert words in sentence(done)
