"""Phases of a simulation: what the engine does with ramps and releases, and what is run, in both engines."""

import json
import re

import numpy as np
import openmm
import pytest
from support import systems as made_up
from support.chain_in_water import ENERGY, lone_ions, make_system, minimised, setup
from support.engine_energies import relative_rms, write_input
from support.molecular_systems import write_bricks
from support.opencl import needs_opencl

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings, validated
from chromabuild.forcefield.topology_file import molecule_kinds
from chromabuild.simulate import chromamd, groups, openmm_engine
from chromabuild.simulate.boost import BoostReport
from chromabuild.simulate.end_pairs import end_bonds
from chromabuild.simulate.exchange import ExchangeReport
from chromabuild.simulate.protocol import Task, plan_phases, run_phases
from chromabuild.simulate.result import Run

THREE_PHASES = [
    {"name": "minimise", "kind": "minimise", "steps": 20, "restraints": [{"group": "heavy", "constant": 5}]},
    {"name": "heat", "steps": 40, "temperature": [50, 300], "output_period": 10, "trajectory_period": 20,
     "restraints": [{"group": "heavy", "constant": 5}]},
    {"name": "release", "length": "80 fs", "ensemble": "NPT", "output_period": 10, "trajectory_period": 20,
     "restraints": [{"group": "backbone", "constant": [5, 0]}], "end_pairs": 5},
]


def evaluate(folder, **sections):
    """The table of a run of 100 steps of 1 fs from the minimised chain in water or from lone ions."""
    inp = made_up.control(
        folder / "run.inp", OUTPUT={"rstfile": folder / "end().rst"}, ENERGY=ENERGY | {"pme_max_spacing": 4},
        CONSTRAINTS={"rigid_bond": "YES"}, **{"DYNAMICS": {"nsteps": 100, "eneout_period": 1, "timestep": 0.001}}
        | sections)
    done = made_up.run("run", inp)
    assert done.returncode == 0, done.stderr
    return made_up.read_table(done.stdout)


@pytest.mark.parametrize(("bath", "keys"), [("BUSSI", {"tau_t": 0.005}), ("LANGEVIN", {"gamma_t": 200}),
                                            ("NHC", {"tau_t": 0.01}), ("BERENDSEN", {"tau_t": 0.005})])
def test_temperature_follows_the_ramp_and_heat_is_booked(tmp_path, bath, keys):
    """Free atoms from 100 to 400 K: velocities are drawn at the start of the ramp, and the mean over each third of the
    run is that of the ramp, but for the fluctuation of 189 degrees of freedom and the lag of the thermostat."""
    start = lone_ions(tmp_path)
    steps = 300
    table = evaluate(tmp_path, INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
                     DYNAMICS={"nsteps": steps, "eneout_period": 1, "timestep": 0.001},
                     ENSEMBLE={"ensemble": "NVT", "tpcontrol": bath, "temperature": 100, "temperature_end": 400,
                               **keys})
    assert table["TEMPERATURE"][0] == pytest.approx(100, rel=0.35)
    target = 100 + 300 * np.arange(steps + 1) / steps
    for third in np.array_split(np.arange(1, steps + 1), 3):
        assert table["TEMPERATURE"][third].mean() == pytest.approx(target[third].mean(), rel=0.2)
    # The chain itself holds energy, and is stiffer here than where its own test looks.
    assert np.ptp(table["CONSERVED_ENE"]) < (0.02 if bath == "NHC" else 1e-3) * np.ptp(table["TOTAL_ENE"])


@pytest.mark.parametrize("kind", ["POSI", pytest.param("DIST", marks=pytest.mark.release), "RMSD"])
def test_work_of_a_release_is_booked(tmp_path, kind):
    """Isolated dynamics whose restraint fades: total energy follows the restraint, the conserved quantity stays."""
    make_system(tmp_path, n_waters=4)
    keys = {"POSI": {"select_index1": 1}, "DIST": {"select_index1": "1 2", "reference1": 3},
            "RMSD": {"select_index1": 1, "reference1": 1}}[kind]
    entries = {"topologyfile": tmp_path / "t.h5", "rstfile": minimised(tmp_path), "reffile": tmp_path / "bricks.txt"}
    tables = [evaluate(tmp_path, INPUT=entries, SELECTION={"group1": "ai:1-9", "group2": "ai:20-25"},
                       RESTRAINTS={"nfunctions": 1, "function1": kind, "constant1": 40, "constant_end1": end, **keys},
                       ENSEMBLE={"ensemble": "NVE", "temperature": 300}) for end in (40, 0)]
    errors = [np.ptp(table["CONSERVED_ENE"]) for table in tables]
    lost = np.ptp(tables[1]["TOTAL_ENE"])
    assert tables[1]["RESTRAINT_TOTAL"][-1] == 0 < tables[1]["RESTRAINT_TOTAL"][0]
    assert lost > 3 * errors[1]
    # No more than the integrator errs without a release.
    assert errors[1] < 1.5 * errors[0] + 0.01 * lost


@pytest.mark.release
@pytest.mark.mpi
def test_anchors_go_with_their_atoms(tmp_path):
    """The same bits on one rank and on several, whose atoms change hands."""
    runs = make_system(tmp_path)
    ends, start = [], minimised(tmp_path)
    for ranks in (1, 2, 4):
        pattern = str(tmp_path / f"start{ranks}().rst")
        inp = made_up.control(tmp_path / "setup.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
                              OUTPUT={"rstfile": pattern}, ENERGY=ENERGY)
        assert made_up.run("setup", inp, ranks).returncode == 0
        inp = made_up.control(
            tmp_path / "run.inp", ENERGY=ENERGY | {"pme_max_spacing": 4, "deterministic": "YES"},
            INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": pattern, "reffile": tmp_path / "bricks.txt"},
            OUTPUT={"rstfile": tmp_path / f"end{ranks}().rst"}, SELECTION={"group1": "all", "group2": "ai:1-20"},
            RESTRAINTS={"nfunctions": 2, "function1": "POSI", "constant1": 0.5, "constant_end1": 0.1,
                        "select_index1": 1, "function2": "POSI", "constant2": 0.2, "select_index2": 2},
            DYNAMICS={"nsteps": 400, "eneout_period": 50, "rstout_period": 50},
            ENSEMBLE={"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 5, "temperature": 400,
                      "temperature_end": 600})
        done = made_up.run("run", inp, ranks)
        assert done.returncode == 0, done.stderr
        end = made_up.read_restarts(str(tmp_path / f"end{ranks}().rst"), ranks)
        ends.append((end.position, end.velocity, made_up.read_table(done.stdout)["CONSERVED_ENE"]))
    assert len(ends[0][0]) == sum(molecule.n * count for molecule, count in runs)
    for other in ends[1:]:
        for ours, theirs in zip(ends[0], other, strict=True):
            assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(("sections", "words"), [
    ({"ENSEMBLE": {"temperature_end": 300}, "DYNAMICS": {"nsteps": 1}}, ["temperature_end", "thermostat"]),
    ({"ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature_end": 300},
      "DYNAMICS": {"nsteps": 1, "annealing": "YES", "anneal_period": 5}}, ["temperature_end", "annealing"]),
    ({"MINIMIZE": {"nsteps": 1}}, ["constant_end1", "MINIMIZE"]),
])
def test_contradictions_are_refused_by_the_engine(tmp_path, sections, words):
    make_system(tmp_path, n_waters=4)
    inp = made_up.control(
        tmp_path / "run.inp", ENERGY=ENERGY, INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": setup(tmp_path, 1),
                                                   "reffile": tmp_path / "bricks.txt"},
        SELECTION={"group1": "all"}, RESTRAINTS={"nfunctions": 1, "function1": "POSI", "constant1": 1,
                                                 "constant_end1": 0, "select_index1": 1}, **sections)
    done = made_up.run("run", inp)
    assert done.returncode == 3
    for word in words:
        assert word in made_up.sentence(done)


def config_of(phases, **dynamics) -> Settings:
    return validated({"dynamics": dynamics, "simulate": {"protocol": None, "phases": phases}}, {}, "locus.yaml")


@pytest.fixture
def build(systems, tmp_path):
    """A solvated duplex as the stages before leave it."""
    return write_input(systems["duplex"], tmp_path), tmp_path


def task_of(build, config, folder="md") -> Task:
    entries, place = build
    return Task(config.dynamics, 5, entries["topologyfile"], entries["shardfile"], place / folder)


def test_restraints_of_groups_against_openmm(systems, build):
    """Energy and forces of restrained groups and hydrogen bonds at the ends, when all atoms have moved."""
    system, (entries, folder) = systems["duplex"], build
    phase = plan_phases(config_of([{"name": "a", "steps": 1, "restraints": [
        {"group": "backbone", "constant": 2.5}, {"group": "dna", "constant": [1.5, 0]}], "end_pairs": 4}]).simulate)[0]
    bonds = end_bonds(entries["topologyfile"])
    moved = system.position + np.random.default_rng(3).normal(scale=0.3, size=system.position.shape).round(3)
    judge = openmm.System()
    judge.setDefaultPeriodicBoxVectors(*(np.diag(system.box) / 10))
    for mass in system.topology.masses():
        judge.addParticle(mass)
    # As the shards have them: whole thousandths of an angstrom.
    openmm_engine.add_restraints(judge, phase, system.topology, system.position.round(3))
    openmm_engine.add_end_bonds(judge, phase.end_pairs, bonds)
    context = openmm.Context(judge, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(moved / 10)
    state = context.getState(getEnergy=True, getForces=True)
    kcal = openmm.unit.kilocalorie_per_mole
    molecules = molecule_kinds(entries["topologyfile"])
    bricks = write_bricks(folder / "moved", moved, system.box, system.topology)
    results = []
    for part in (chromamd.restraint_sections(phase, molecules, bonds), {}):
        chromamd.write_control(folder / "e.inp", {
            "INPUT": {"topologyfile": entries["topologyfile"], "shardfile": bricks, "reffile": entries["shardfile"]},
            "OUTPUT": {"forcefile": folder / "f.bin"}, "ENERGY": chromamd.energy_section(Settings().dynamics), **part})
        chromamd.launch("energy", folder / "e.inp", 2, "double")
        results.append((chromamd.read_energies(folder / "e.inp")["RESTRAINT_TOTAL"],
                        chromamd.read_forces(folder / "f.bin")))
    assert results[0][0] == pytest.approx(state.getPotentialEnergy().value_in_unit(kcal), rel=1e-6)
    theirs = state.getForces(asNumpy=True).value_in_unit(kcal / openmm.unit.angstrom)
    assert relative_rms(results[0][1] - results[1][1], theirs) < 1e-6


def test_hydrogen_bonds_at_the_ends(systems, build):
    """Of a duplex as it is built, where each is as long as it shall be; a protein has none."""
    system, (entries, folder) = systems["duplex"], build
    bonds = end_bonds(entries["topologyfile"])
    names = np.concatenate([np.tile(system.topology.templates[t].atom_name, count) for t, count in
                            zip(system.topology.run_template, system.topology.run_count, strict=True)])
    bases = [template.residue_name[end].decode()[1] for template in system.topology.templates[:1] for end in (0, -1)]
    assert len(bonds) == sum({"A": 2, "T": 2, "G": 3, "C": 3}[base] for base in bases)
    for bond in bonds:
        i, j = bond.atoms
        assert {names[i][:1], names[j][:1]} <= {b"N", b"O"}
        assert np.linalg.norm(system.position[i] - system.position[j]) == pytest.approx(bond.length, abs=0.35)
    systems["peptide"].topology.write(folder / "peptide.h5")
    assert end_bonds(folder / "peptide.h5") == []


@pytest.mark.mpi
@pytest.mark.release
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("engine", "keys"), [
    pytest.param(chromamd, {}, id="one-rank"), pytest.param(chromamd, {"ranks": 2}, id="two-ranks"),
    pytest.param(openmm_engine, {"platform": "CPU"}, id="openmm")])
def test_three_phases(build, engine, keys):
    """Minimise, heat, release at constant pressure: files of each, clocks that go on, and nothing twice."""
    config = config_of(THREE_PHASES, thermostat_time=0.01, **keys)
    task = task_of(build, config)
    rows = []
    run = run_phases(config, task, engine, progress=lambda phase, row: rows.append((phase.name, row and row["STEP"])))
    assert {name for name, _ in rows} == {"minimise", "heat", "release"}
    assert [step for name, step in rows if name == "release"] == [40, 50, 60, 70, 80]
    table = run.energies
    assert table["TIME"] == pytest.approx(np.arange(0, 0.161, 0.02)) and table["STEP"].tolist() == [*range(0, 81, 10)]
    assert run.minimisation["POTENTIAL_ENE"][-1] < run.minimisation["POTENTIAL_ENE"][0]
    # 3,000 degrees of freedom and more: half of what is put in goes on into potential energy.
    assert table["TEMPERATURE"][0] == pytest.approx(50, rel=0.1)
    assert table["TEMPERATURE"][4] > 1.5 * table["TEMPERATURE"][0] and table["TEMPERATURE"][-1] < 350
    assert [path.name for path in run.trajectories] == ["02-heat.dcd", "03-release.dcd"]
    assert Run.read(task.folder) == run

    rows.clear()
    run_phases(config, task, engine, progress=lambda phase, row: rows.append((phase.name, row)))
    assert rows == [("minimise", None), ("heat", None), ("release", None)]
    # A longer last phase, and a harmed log before it: what was not touched stays.
    longer = config_of([*THREE_PHASES[:2], THREE_PHASES[2] | {"length": "100 fs"}], thermostat_time=0.01, **keys)
    rows.clear()
    run_phases(longer, task, engine, progress=lambda phase, row: rows.append((phase.name, row and row["STEP"])))
    assert rows[:2] == [("minimise", None), ("heat", None)] and rows[-1] == ("release", 90)


@pytest.mark.mpi
@pytest.mark.release
def test_exchange_of_temperatures(build):
    """After a minimisation on two ranks two replicas of one rank: what is left is sorted by temperature, the first one
    in the files of the phase; done it is not run again, and longer it goes on from its checkpoint."""
    phases = [{"name": "minimise", "kind": "minimise", "steps": 10},
              {"name": "remd", "steps": 20, "output_period": 5, "trajectory_period": 10,
               "exchange": {"temperatures": [300, 303], "period": 5}}]
    config = config_of(phases, ranks=2, deterministic=True)
    task = task_of(build, config, "remd")
    for steps in (20, 30):
        phases[1]["steps"] = steps
        run = run_phases(config_of(phases, ranks=2, deterministic=True), task, chromamd)
        logs = [(task.folder / name).read_text() for name in ("02-remd.log", "02-remd_par2.log")]
        tables = [made_up.read_table(log) for log in logs]
        records = [np.loadtxt(task.folder / f"02-remd_rep{k}.rem", dtype=int) for k in (1, 2)]
        of_replicas = [made_up.read_table((task.folder / f"02-remd_rep{k}.log").read_text()) for k in (1, 2)]
        held = [[record[max(np.searchsorted(record[:, 0], step) - 1, 0), 1] for step in tables[0]["STEP"]]
                for record in records]
        assert tables[0]["STEP"].tolist() == [*range(0, steps + 1, 5)] and "CONSERVED_ENE" not in tables[0]
        for k in (0, 1):
            expected = [of_replicas[0 if first == k + 1 else 1]["TOTAL_ENE"][row]
                        for row, first in enumerate(held[0])]
            assert tables[k]["TOTAL_ENE"].tolist() == expected
    assert "continued from the checkpoint at step 20" in (task.folder / "02-remd_rep1.log").read_text()
    assert [path.name for path in run.trajectories] == ["02-remd.dcd"]
    assert len(list(task.folder.glob("02-remd_par*.dcd"))) == 1
    report = ExchangeReport.read(task.folder / "02-remd_rep1.log")
    assert report.pairs[1, 2][1] == 6 and set(report.round_trips) == {1, 2}
    rows = []
    run_phases(config_of(phases, ranks=2, deterministic=True), task, chromamd,
               progress=lambda phase, row: rows.append(row))
    assert rows == [None, None]


@pytest.mark.mpi
@pytest.mark.release
def test_a_boost_begins_with_what_was_learnt(build):
    """A phase watches, the next one boosts and goes on learning, the last holds what that one knew at its end."""
    phases = [{"name": "minimise", "kind": "minimise", "steps": 10},
              *({"name": name, "steps": 12, "output_period": 1, "boost": {
                  "mode": mode, "period": 6, "potential_deviation": 20.0, "torsion_deviation": 1.0}}
                for name, mode in (("look", "watch"), ("follow", "learn"), ("produce", "hold")))]
    config = config_of(phases)
    task = task_of(build, config, "boost")
    run = run_phases(config, task, chromamd)
    watched, followed, held = (one.energies for one in run.phases[1:])
    assert not watched["POTENTIAL_GAMD"].any() and followed["POTENTIAL_GAMD"].any() and held["DIHEDRAL_GAMD"].any()
    for source, phase in (("02-look", "03-follow"), ("03-follow", "04-produce")):
        head, *rows = (task.folder / f"{source}.gamd").read_text().splitlines()
        control = (task.folder / f"{phase}.inp").read_text()
        assert [row.split()[0] for row in rows] == ["18", "24"] if source == "03-follow" else ["6", "12"]
        for name, value in list(zip(head.split(), rows[-1].split(), strict=True))[1:]:
            assert float(re.search(rf"{name.lower()} *= (\S+)", control)[1]) == float(value)
    phase = plan_phases(config.simulate)[-1]
    report = BoostReport.of(held, phase.boost, 300.0)
    added = held["POTENTIAL_GAMD"] + held["DIHEDRAL_GAMD"]
    assert report.mean == pytest.approx(added.mean()) and 1 / len(held) <= report.effective_share <= 1
    (task.folder / "03-follow.gamd").unlink()
    (task.folder / "04-produce.json").unlink()
    with pytest.raises(BadInputError, match="from which the boost of phase produce begins, is missing"):
        run_phases(config, task, chromamd, only="produce")


@pytest.mark.mpi
@pytest.mark.release
def test_exchange_of_a_solutes_temperature(build):
    """REST2 of DNA while a restraint holds its backbone: the groups of both, the terms, and a run of two replicas."""
    phases = [{"name": "minimise", "kind": "minimise", "steps": 5},
              {"name": "rest", "steps": 6, "output_period": 3, "restraints": [{"group": "backbone", "constant": 1.0}],
               "exchange": {"temperatures": [300, 400], "period": 3, "solute": "dna", "terms": ["charge", "lj"]}}]
    config = config_of(phases, ranks=2)
    task = task_of(build, config, "rest")
    sections = chromamd.phase_sections(task, plan_phases(config.simulate)[1])
    assert sections["REMD"]["type1"] == "REST" and sections["REMD"]["param_type1"] == "CHARGE LJ"
    assert sections["REMD"]["select_index1"] == 2 and sections["SELECTION"]["group2"].startswith("mname:")
    run_phases(config, task, chromamd)
    assert ExchangeReport.read(task.folder / "02-rest_rep1.log").pairs[1, 2][1] == 2


@pytest.mark.mpi
@pytest.mark.release
@pytest.mark.parametrize(("engine", "others"), [
    (chromamd, {"ranks": 2}), pytest.param(openmm_engine, {}, marks=pytest.mark.filterwarnings("ignore"))],
    ids=["chromamd", "openmm"])
def test_settings_ask_for_the_same_bits(build, engine, others):
    """Frames and energies: of chromamd on any number of ranks, of OpenMM on a CPU when it runs again."""
    keys = {"thermostat_time": 0.01, "deterministic": True} | ({"platform": "CPU"} if engine is openmm_engine else {})
    runs = []
    for name, more in {"one": {}, "two": others}.items():
        config = config_of(THREE_PHASES[:2], **keys, **more)
        runs.append(run_phases(config, task_of(build, config, name), engine))
    one, two = runs
    for column, values in one.energies.columns.items():
        np.testing.assert_array_equal(values, two.energies[column], err_msg=column)
    header = 276  # bytes, with the time of day
    frames, again = (run.trajectories[0].read_bytes()[header:] for run in runs)
    assert frames == again and len(frames) > 2 * 12 * 3000


@needs_opencl
@pytest.mark.release
@pytest.mark.filterwarnings("ignore")
def test_dynamics_in_the_code_of_gpus(build):
    """Heating and release at constant pressure on OpenCL. OpenMM 8.6 cannot minimise on pocl, Debian's OpenCL for
    processors: it crashes there."""
    config = config_of(THREE_PHASES[1:], thermostat_time=0.01, engine="openmm", platform="OpenCL",
                       platform_precision="single")
    task = task_of(build, config)
    table = run_phases(config, task, openmm_engine).energies
    assert table["STEP"].tolist() == [*range(0, 81, 10)] and np.ptp(table["VOLUME"]) > 0
    assert table["TEMPERATURE"][0] == pytest.approx(50, rel=0.1) and 75 < table["TEMPERATURE"][4] < 350
    assert [path.name for path in Run.read(task.folder).trajectories] == ["01-heat.dcd", "02-release.dcd"]


def test_one_phase_needs_those_before_it(build, monkeypatch):
    config = config_of(THREE_PHASES)
    with pytest.raises(BadInputError, match="phase minimise is not done: run `chromabuild run --phase minimise` first"):
        run_phases(config, task_of(build, config), chromamd, only="heat")
    with pytest.raises(BadInputError, match="tea is not a phase: choose from minimise, heat, release"):
        run_phases(config, task_of(build, config), chromamd, only="tea")


@pytest.mark.parametrize("engine", [chromamd, openmm_engine], ids=["chromamd", "openmm"])
def test_a_restraint_on_nothing_is_refused(build, engine):
    config = config_of([{"name": "a", "steps": 1, "restraints": [{"group": "tails", "constant": 1}]}])
    with pytest.raises(BadInputError, match="phase a restrains tails, and the system has no atom of it"):
        run_phases(config, task_of(build, config), engine)


def test_record_of_a_phase(build, monkeypatch):
    """A phase is done until its settings, its input, a phase before it or its files change; ranks do not count."""
    calls = []

    class Engine:
        restart_name = staticmethod(chromamd.restart_name)

        @staticmethod
        def run_phase(task, phase, previous, progress, begun):
            calls.append((phase.name, previous and previous.name))
            for name in filter(None, (phase.log, phase.trajectory)):
                (task.folder / name).write_text(f"{len(calls)}")

    def run(phases=THREE_PHASES, again=False, **dynamics):
        calls.clear()
        config = config_of(phases, **dynamics)
        run_phases(config, task_of(build, config), Engine, again=again)
        return [name for name, _ in calls]

    folder = build[1] / "md"
    everything = [phase["name"] for phase in THREE_PHASES]
    assert run() == everything and calls == [("minimise", None), ("heat", "minimise"), ("release", "heat")]
    assert run() == [] and run(ranks=4) == []
    assert run(again=True) == everything
    assert run(cutoff=8.0) == everything and run() == everything
    (folder / "02-heat.dcd").write_text("harm")
    assert run() == ["heat"]
    assert run([THREE_PHASES[0], THREE_PHASES[1] | {"temperature": 300}, THREE_PHASES[2]]) == everything[1:]
    (folder / "01-minimise.json").write_text("{")
    assert run()[0] == "minimise"
    assert [entry["name"] for entry in json.loads((folder / "phases.json").read_text())["phases"]] == everything


@pytest.mark.parametrize(("marks", "cost"), [(((0, 5), (10, 25), (20, 27), (30, 29)), 0.2),
                                              (((0, 5), (10, 25)), 2.0), (((0, 5),), None)])
def test_first_steps_of_a_phase_do_not_count(build, monkeypatch, marks, cost):
    """Ten steps of 2 s each, in which a GPU compiles, and then of 0.2 s, by (step, time) of the rows."""
    class Engine:
        restart_name = staticmethod(chromamd.restart_name)

        @staticmethod
        def run_phase(task, phase, previous, progress, begun):
            (task.folder / phase.log).write_text("a log")
            for step, now in marks:
                monkeypatch.setattr("chromabuild.simulate.protocol.time.monotonic", lambda now=now: float(now))
                progress({"STEP": step})

    config = config_of([{"name": "warm", "steps": 30}])
    found = run_phases(config, task_of(build, config), Engine).phases[0].seconds_per_step
    assert found == pytest.approx(cost) if cost else found is None


@pytest.mark.parametrize("group", ["solute", "heavy", "backbone", "dna", "protein", "histone-core", "tails"])
def test_groups_of_a_nucleosome(group):
    """Tails are the residues of `chromabuild.clash.tails`; expressions and masks are of the same conditions."""
    text = groups.expression(group, {"DNA-I": "DT", "H3": "ALA", "H2A": "SER", "HOH": "HOH", "NA": "NA"})
    assert ("mname:DNA-I" in text) == (group in ("solute", "heavy", "backbone", "dna"))
    assert "HOH" not in text and text.startswith("heavy") == (group != "solute")
    assert ("mname:H2A and (rno:1-13 or rno:119-140)" in text) == (group == "tails")
    assert ("mname:H3 and not (rno:1-38)" in text) == (group == "histone-core")
    assert groups.expression("tails", {"DNA-I": "DT", "HOH": "HOH"}) == ""
