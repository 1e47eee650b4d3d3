"""Replica exchange: densities that it samples, acceptances against theory, the same bits on any ranks and after stops.
"""

import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, gamma, kstest
from support import systems
from support.chain_in_water import KB, PME, relaxed_charged
from support.engine_energies import assert_agree, energy_section, reference_energy, write_input
from support.molecular_systems import solvated
from support.processes import signal_engines, wait_until
from support.replica_runs import ENERGY, acceptances, outputs, parameters_of_rows, tables, write_oscillators
from support.systems import sentence
from test_checkpoints import kill, start, wait_for_step

from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.openmm_engine import NonbondedOptions

pytestmark = pytest.mark.mpi

ATMOSPHERE = 101325 * 1e-30 * 6.02214076e23 / 4184
"""kcal/mol/angstrom^3."""


def oscillate(folder: Path, steps: int, exchange: dict, replicas: int, ensemble: dict | None = None,
              restraints: dict | None = None, period: int = 5, **sections: dict) -> None:
    """Two atoms on springs, 5 kcal/mol/angstrom^2 each, at near-critical friction: BAOAB samples positions of harmonic
    systems exactly at any time step (Leimkuhler and Matthews, J. Chem. Phys. 138, 174102 (2013))."""
    inp = systems.control(
        folder / "run.inp", ENERGY=ENERGY, OUTPUT=outputs(folder),
        SELECTION={"group1": "all"} | sections.pop("SELECTION", {}),
        INPUT={"topologyfile": folder / "t.h5", "rstfile": write_oscillators(folder), "reffile": folder / "bricks.txt"},
        RESTRAINTS=restraints or {"nfunctions": 1, "function1": "POSI", "constant1": 5, "select_index1": 1},
        DYNAMICS={"nsteps": steps, "eneout_period": 4 * period, "timestep": 0.01, "stoptr_period": 0},
        ENSEMBLE={"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 27, "group_tp": "NO", **(ensemble or {})},
        REMD={"exchange_period": period, **exchange}, **sections)
    done = systems.run("run", inp, replicas)
    assert done.returncode == 0, done.stderr


@pytest.mark.release
def test_temperatures_keep_their_densities(tmp_path):
    """Six harmonic degrees of freedom: the energy at each temperature is that of a gamma distribution of shape 3.

    The time between attempts (0.05 ps) is below the relaxation time (0.1 ps): rules that break the balance show. The
    energy of the colder replica is the higher one with the probability I_x(3, 3), x = T1/(T1 + T2), and by the balance
    an exchange is accepted with twice that."""
    oscillate(tmp_path, 15000, {"nreplica1": 2, "parameters1": "300 420"}, 2)
    logs = tables(tmp_path, 2)
    energy = np.array([table["POTENTIAL_ENE"] for table in logs])
    held = parameters_of_rows(tmp_path, 2, logs[0]["STEP"])
    assert (np.sort(held, axis=0) == [[1], [2]]).all()
    for parameter, temperature in ((1, 300), (2, 420)):
        # Rows 0.4 ps apart do not know of each other.
        sample = energy.T[held.T == parameter][5::2]
        assert kstest(sample, gamma(3, scale=KB * temperature).cdf).pvalue > 1e-3
    (accepted, tried), = acceptances(tmp_path).values()
    expected = 2 * beta.sf(420 / 720, 3, 3)
    # Attempts of 0.1 ps count as one: four standard errors of n/3 independent ones.
    assert tried == 3000
    assert abs(accepted / tried - expected) < 4 * np.sqrt(3 * expected * (1 - expected) / tried)
    for table in logs:
        # Rescaled velocities are booked as heat; what is left is the integrator's own.
        assert np.ptp(table["CONSERVED_ENE"]) < 0.3
        assert table["TEMPERATURE"].mean() == pytest.approx(360, rel=0.1)
    assert "round trips through dimension 1" in (tmp_path / "run2.log").read_text()


@pytest.mark.release
def test_pressures_meet_by_their_volumes(tmp_path):
    """An ideal gas of n atoms at pressure p has volumes of the density V^n exp(-p V/kT), a gamma distribution of shape
    n + 1: acceptance as of temperatures, with the ratio of pressures, while Monte Carlo moves keep the density."""
    n, pressures, temperature = 8, (13.0, 16.0), 300.0
    start = write_oscillators(tmp_path, n)
    inp = systems.control(
        tmp_path / "run.inp", ENERGY=ENERGY, OUTPUT=outputs(tmp_path),
        INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
        DYNAMICS={"nsteps": 12000, "eneout_period": 6, "timestep": 0.001, "barostat_period": 1, "stoptr_period": 0},
        ENSEMBLE={"ensemble": "NPT", "tpcontrol": "LANGEVIN", "gamma_t": 5, "temperature": temperature,
                  "barostat": "MC", "group_tp": "NO"},
        HEALTH={"max_volume_ratio": 0},
        REMD={"exchange_period": 6, "type1": "PRESSURE", "nreplica1": 2,
              "parameters1": " ".join(map(str, pressures))})
    done = systems.run("run", inp, 2)
    assert done.returncode == 0, done.stderr
    logs = tables(tmp_path, 2)
    held = parameters_of_rows(tmp_path, 2, logs[0]["STEP"])
    volume = np.array([table["VOLUME"] for table in logs])
    (accepted, tried), = acceptances(tmp_path).values()
    expected = 2 * beta.sf(pressures[1] / sum(pressures), n + 1, n + 1)
    assert abs(accepted / tried - expected) < 4 * np.sqrt(20 * expected * (1 - expected) / tried)
    for parameter, pressure in enumerate(pressures, 1):
        # A shape of 9 has a width of a third of the mean; some 20 moves of up to 10 % lead to another volume.
        sample = volume[held == parameter]
        mean = (n + 1) * KB * temperature / (pressure * ATMOSPHERE)
        assert abs(sample.mean() / mean - 1) < 4 / 3 / np.sqrt(len(sample) * 24 / 20)


@pytest.mark.release
def test_umbrellas_keep_their_densities(tmp_path):
    """A free atom on a spring of each umbrella along its distance to a held one: with k (r - R)^2 the density of r is
    r^2 exp(-k (r - R)^2/kT), and the acceptance is the mean of the rule over both of them, by quadrature."""
    k, places, temperature = 2.0, (8.0, 9.0), 300.0
    oscillate(tmp_path, 15000, {"type1": "RESTRAINT", "nreplica1": 2, "rest_function1": 2}, 2,
              {"temperature": temperature},
              {"nfunctions": 2, "function1": "POSI", "constant1": 50, "select_index1": 2,
               "function2": "DIST", "constant2": k, "reference2": "8 9", "select_index2": "2 3"},
              SELECTION={"group2": "ai:1", "group3": "ai:2"})
    logs = tables(tmp_path, 2)
    held = parameters_of_rows(tmp_path, 2, logs[0]["STEP"])
    kt = KB * temperature
    r = np.linspace(4, 13, 1801)
    density = np.array([r**2 * np.exp(-k * (r - place)**2 / kt) for place in places])
    density /= density.sum(axis=1, keepdims=True)
    energy = k * np.array([(r - place)**2 for place in places])
    excess = (energy[0] - energy[1]) / kt
    rule = np.minimum(1, np.exp(-(excess[None, :] - excess[:, None])))  # x at the first, y at the second
    expected = density[0] @ rule @ density[1]
    (accepted, tried), = acceptances(tmp_path).values()
    assert abs(accepted / tried - expected) < 4 * np.sqrt(3 * expected * (1 - expected) / tried)
    for parameter in (1, 2):
        # The held atom has 3/2 kT, the distance what its density says.
        own = (density[parameter - 1] * energy[parameter - 1]).sum() + 1.5 * kt
        sample = np.array([table["POTENTIAL_ENE"] for table in logs])[held == parameter][10:]
        assert abs(sample.mean() - own) < 4 * sample.std() / np.sqrt(len(sample) / 2)


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> Path:
    """A charged chain among 60 waters, relaxed a little, as restart files of one and of two ranks."""
    return relaxed_charged(tmp_path_factory.mktemp("replicas"), 60)


def control(system: Path, folder: Path, ranks: int = 1, steps: int = 60, start: str | None = None,
            output: dict | None = None, go_on: str = "NO", exchange: dict | None = None, **sections: dict) -> Path:
    """Two temperatures so near that attempts succeed, but not all, with chains of thermostats that carry a state."""
    folder.mkdir(exist_ok=True)
    return systems.control(
        folder / "run.inp", INPUT={"topologyfile": system / "t.h5", "continue": go_on,
                                   "rstfile": start or system / f"start{ranks}_().rst"},
        OUTPUT=outputs(folder) | {"dcdfile": folder / "run{}.dcd"} | (output or {}), ENERGY=PME,
        CONSTRAINTS={"rigid_bond": "YES"},
        ENSEMBLE={"ensemble": "NVT", "tpcontrol": "NHC", "tau_t": 0.1},
        DYNAMICS={"nsteps": steps, "eneout_period": 10, "crdout_period": 3, "timestep": 0.002, "iseed": 5},
        REMD=exchange or {"exchange_period": 5, "nreplica1": 2, "parameters1": "300 340"}, **sections)


def state(folder: Path, ranks: int = 1, replicas: int = 2) -> list[object]:
    """Bits of the last restarts, and energy tables and records of all replicas."""
    found: list[object] = []
    for replica in range(1, replicas + 1):
        end = systems.read_restarts(str(folder / f"run{replica}_().rst"), ranks)
        lines = (folder / f"run{replica}.log").read_text().splitlines()
        found += [end.box.tobytes(), end.position.tobytes(), end.velocity.tobytes(),
                  (folder / f"run{replica}.rem").read_text(), (folder / f"run{replica}.dcd").read_bytes(),
                  [line for line in lines if line.startswith("INFO:")],
                  {line.split(":")[0]: line for line in lines
                   if line.startswith(("exchange", "replica 1:", "replica 2:"))}]
    return found


@pytest.fixture(scope="module")
def undisturbed(system) -> Path:
    """A run of one rank a replica; in other tests its bits come again."""
    done = systems.run("run", control(system, system / "whole"), 2, "chromamd")
    assert done.returncode == 0, done.stderr
    return system / "whole"


def test_replicas_differ_and_exchange(undisturbed):
    (accepted, tried), = acceptances(undisturbed).values()
    assert tried == 12 and 0 < accepted < 12
    first, second = tables(undisturbed, 2)
    assert not np.array_equal(first["POTENTIAL_ENE"], second["POTENTIAL_ENE"])


@pytest.mark.parametrize(("comm", "ranks"), [({"transport": "ONE_SIDED"}, 2), ({"pme_ranks": 1, "overlap": "YES"}, 2)])
def test_bits_do_not_depend_on_the_ranks_of_a_replica(system, undisturbed, tmp_path, comm, ranks):
    """Domains and messages of one-sided windows within replicas; ranks for reciprocal space."""
    domains = ranks - comm.get("pme_ranks", 0)
    done = systems.run("run", control(system, tmp_path, domains, COMM=comm), 2 * ranks, "chromamd")
    assert done.returncode == 0, done.stderr
    assert state(tmp_path, domains) == state(undisturbed)


def test_a_run_in_two_halves_is_the_same(system, tmp_path):
    """Restart files hold the parameters: 40 steps, or 20 and then 20 from their restarts, end with the same bytes."""
    for name, steps, begin in (("whole", 40, None), ("half", 20, None), ("rest", 20, tmp_path / "half/run{}_().rst")):
        inp = control(system, tmp_path / name, steps=steps, start=begin)
        inp.write_text(inp.read_text().replace("[DYNAMICS]", "[DYNAMICS]\nrstout_period = 20"))
        done = systems.run("run", inp, 2, "chromamd")
        assert done.returncode == 0, done.stderr
    for replica in (1, 2):
        ends = [(tmp_path / name / f"run{replica}_0.rst").read_bytes() for name in ("whole", "rest")]
        assert ends[0] == ends[1]
    assert np.loadtxt(tmp_path / "rest/run1.rem")[0].tolist() == np.loadtxt(tmp_path / "half/run1.rem")[-1].tolist()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGKILL])
def test_stopped_replicas_go_on_with_the_same_bytes(system, undisturbed, tmp_path, number):
    """From their checkpoint, all of one step: after a signal to stop, and after kill -9 at some moment."""
    saved = {"checkpoint": tmp_path / "check{}_().rst", "checkpoint_interval": 1e-6}
    inp = control(system, tmp_path, output=saved, go_on="YES")
    process = start(inp, 2)
    if number == signal.SIGKILL:
        wait_until((tmp_path / "check2_whole.txt").exists)
        kill(process)
    else:
        wait_for_step(process, tmp_path / "run1.log", 10)
        signal_engines(process, number)
        process.wait(60)
        assert "the checkpoint" in inp.with_suffix(".out").read_text()
    done = systems.run("run", inp, 2, "chromamd")
    assert done.returncode == 0, done.stderr
    # Where the machine was too busy to look in time, the run was over and its files stay as they are.
    assert number == signal.SIGKILL or "continued from the checkpoint" in (tmp_path / "run2.log").read_text()
    assert state(tmp_path) == state(undisturbed)


def test_marks_of_two_sets_lead_to_the_set_that_all_have(system, undisturbed, tmp_path):
    """Killed while one replica had the mark of the second set and the other had not: both go on from the first."""
    saved = {"checkpoint": tmp_path / "check{}_().rst"}
    first = {}
    for steps, go_on in ((20, "NO"), (30, "YES")):
        done = systems.run("run", control(system, tmp_path, output=saved, steps=steps, go_on=go_on), 2, "chromamd")
        assert done.returncode == 0, done.stderr
        if steps == 20:
            first = {path: path.read_bytes() for path in tmp_path.glob("check*")}
    for path, content in first.items():
        if path.name != "check1_whole.txt":
            path.write_bytes(content)
    assert (tmp_path / "check1_whole.txt").read_bytes() != first[tmp_path / "check1_whole.txt"]
    done = systems.run("run", control(system, tmp_path, output=saved, go_on="YES"), 2, "chromamd")
    assert done.returncode == 0, done.stderr
    assert "continued from the checkpoint at step 20" in (tmp_path / "run1.log").read_text()
    assert state(tmp_path) == state(undisturbed)


@pytest.mark.parametrize("pattern", ["run{}.dcd", "run{}_().traj"])
def test_frames_sorted_by_parameter(system, undisturbed, tmp_path, pattern):
    """Each frame of each replica stands once among those of the parameter that its record names, in order."""
    source = undisturbed
    if "()" in pattern:
        done = systems.run("run", control(system, tmp_path, output={"dcdfile": tmp_path / pattern}), 2, "chromamd")
        assert done.returncode == 0, done.stderr
        source = tmp_path
    inp = systems.control(tmp_path / "merge.inp",
                          INPUT={"topologyfile": system / "t.h5", "dcdfile": source / pattern,
                                 "remfile": source / "run{}.rem"},
                          OUTPUT={"dcdfile": tmp_path / "sorted{}.dcd"})
    done = systems.run("merge", inp, program="chromamd")
    assert done.returncode == 0, done.stderr
    frames = [_frames(undisturbed / f"run{replica}.dcd") for replica in (1, 2)]
    held = parameters_of_rows(undisturbed, 2, 3 * np.arange(1, 21))
    assert 1 < (held[0] == 1).sum() < 20
    for parameter in (1, 2):
        expected = [frames[np.flatnonzero(held[:, k] == parameter)[0]][k] for k in range(20)]
        assert np.array_equal(_frames(tmp_path / f"sorted{parameter}.dcd"), expected)


def _frames(path: Path) -> np.ndarray:
    """(frames, bytes) of a DCD behind its head of 196 bytes."""
    data = np.frombuffer(path.read_bytes(), np.uint8)
    n_atoms = int(data[188:192].view("<i4")[0])
    return data[196:].reshape(-1, 56 + 3 * (8 + 4 * n_atoms))


@pytest.mark.parametrize(("exchange", "ranks", "told"), [
    ({"nreplica1": 2, "parameters1": "300 310"}, 3, "makes 2 replicas, and 3 ranks cannot be shared out evenly"),
    ({"nreplica1": 1, "parameters1": "300"}, 2, "'nreplica1 = 1' must be at least 2"),
    ({"nreplica1": 2, "parameters1": "310 300"}, 2, "parameters1 = 310 300 must ascend"),
    ({"nreplica1": 3, "parameters1": "300 310"}, 3, "parameters1 = 300 310 must be nreplica1 = 3 numbers, not 2"),
    ({"nreplica1": 2, "parameters1": "300 x"}, 2, "'parameters1 = 300 x' is not a number"),
    ({"nreplica1": 2}, 2, "parameters1 in [REMD] is missing"),
    ({"parameters1": "300 310"}, 2, "nreplica1 in [REMD] is missing"),
    ({"nreplica1": 2, "parameters1": "0 310"}, 2, "must be positive temperatures"),
    ({"type1": "REST", "nreplica1": 2, "parameters1": "300 310"}, 2, "select_index1 in [REMD] is missing"),
    ({"type1": "REST", "nreplica1": 2, "parameters1": "300 310", "select_index1": 1}, 2,
     "group1 in [SELECTION] is missing"),
    ({"type1": "RESTRAINT", "nreplica1": 2, "rest_function1": 1}, 2, "must name functions of [RESTRAINTS], 1 to 0"),
    ({"dimension": 2, "nreplica1": 2, "parameters1": "300 310", "nreplica2": 2, "parameters2": "300 310"}, 4,
     "type2 in [REMD] is that of another dimension"),
    ({"type1": "GAMMA", "nreplica1": 2, "parameters1": "0 310"}, 2, "exchanges surface tensions"),
    ({"type1": "VOLUME", "nreplica1": 2, "parameters1": "0 310"}, 2, "type1 = VOLUME"),
])
def test_what_cannot_be_exchanged_is_refused(system, tmp_path, exchange, ranks, told):
    done = systems.run("run", control(system, tmp_path, exchange=exchange), ranks, "chromamd")
    assert done.returncode == 3, done.stderr
    assert told in sentence(done)


@pytest.mark.parametrize(("before", "after", "told"), [
    ("logfile = {folder}/run{{}}.log", "logfile = {folder}/run.log", "must contain {}"),
    ("ensemble = NVT", "ensemble = NVT\ntemperature_end = 400", "contradicts an exchange of temperatures"),
    ("tpcontrol = NHC", "", "without a thermostat"),
    ("rstfile = {system}/start1_().rst", "rstfile = {system}/start{{}}_().rst", "replica 2"),
])
def test_contradictions_are_refused(system, tmp_path, before, after, told):
    """The last one names restart files of two ranks for the second of the replicas: that one fails, and all end."""
    inp = control(system, tmp_path)
    names = {"folder": tmp_path, "system": system}
    text = inp.read_text().replace(before.format(**names), after.format(**names))
    assert text != inp.read_text()
    inp.write_text(text)
    done = systems.run("run", inp, 2, "chromamd")
    assert done.returncode in (3, 5), done.stderr
    assert told in sentence(done) or told == "replica 2" and "start2_0.rst" in sentence(done)


def test_a_replica_that_fails_ends_all(system, tmp_path):
    """The hotter replica leaves its band of temperatures: one sentence says which and why, and nothing hangs."""
    inp = control(system, tmp_path, exchange={"exchange_period": 5, "nreplica1": 2, "parameters1": "1 900"},
                  HEALTH={"max_temperature": 150})
    begin = time.monotonic()
    done = systems.run("run", inp, 2, "chromamd", timeout=120)
    assert done.returncode == 8 and sentence(done).startswith("chromamd: replica 2: "), done.stderr
    assert time.monotonic() - begin < 100


TERMS_OF_REST = {"ALL": "bond angle dihedral improper charge lj", "D CM L": "dihedral lj", "charges": "charge"}


def scaled(topology: Topology, template: int, chosen: np.ndarray, factor: float, terms: list[str]) -> Topology:
    """A topology with a solute at the factor, by the definition: a term with k of its l atoms in it by factor^(k/l)."""
    one = topology.templates[template]

    def power(atoms: np.ndarray) -> np.ndarray:
        return factor ** (chosen[atoms].sum(axis=1) / atoms.shape[1])

    n = len(topology.lj_sigma)
    lj_type, others = one.lj_type.copy(), {}
    if "lj" in terms:
        lj_type = np.where(chosen, n + one.lj_type, one.lj_type)
        others = {"lj_name": np.tile(topology.lj_name, 2), "lj_sigma": np.tile(topology.lj_sigma, 2),
                  "lj_epsilon": np.concatenate([topology.lj_epsilon, factor * topology.lj_epsilon]),
                  "lj_c6": None, "lj_c12": None}
    keys = {f"{term}_k": getattr(one, f"{term}_k") * power(getattr(one, f"{term}_atoms"))
            for term in ("bond", "angle", "dihedral", "improper") if term in terms}
    if "lj" in terms:
        keys["pair14_epsilon"] = one.pair14_epsilon * power(one.pair14_atoms)
    if "charge" in terms:
        keys["charge"] = one.charge * np.where(chosen, factor**0.5, 1.0)
        keys["pair14_charge_product"] = one.pair14_charge_product * power(one.pair14_atoms)
    templates = list(topology.templates)
    templates[template] = replace(one, lj_type=lj_type.astype("i4"), **keys)
    return replace(topology, templates=templates, **others)


@pytest.mark.parametrize(("solute", "edge", "grid", "terms"), [
    *(("peptide", 26.0, 30, terms) for terms in TERMS_OF_REST), ("duplex", 36.0, 40, "ALL")])
def test_scaled_energies_are_those_of_openmm_with_scaled_parameters(tmp_path, solute, edge, grid, terms):
    """REST2 and gREST at the factor 300/400, of a part of a peptide or of a strand of DNA, whose residues occur beyond
    it as well; every term, on one rank and two. To 1e-6 in double precision, as for topologies that are not scaled.
    """
    system, options = solvated(solute, edge), NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(grid,) * 3)
    chosen = np.arange(len(system.topology.templates[0].charge)) < 80
    judged = replace(system, topology=scaled(system.topology, 0, chosen, 0.75, TERMS_OF_REST[terms].split()))
    expected = reference_energy(judged, options)
    inp = systems.control(
        tmp_path / "rest.inp", INPUT=write_input(system, tmp_path), OUTPUT={"forcefile": tmp_path / "rest.bin"},
        ENERGY={key: value for key, value in energy_section(options).items() if value}, SELECTION={"group1": "ai:1-80"},
        ENSEMBLE={"temperature": 300},
        REMD={"type1": "REST", "nreplica1": 2, "parameters1": "300 400", "select_index1": 1, "param_type1": terms})
    for ranks in (1, 2):
        done = systems.run("energy", inp, ranks)
        assert done.returncode == 0, done.stderr
        plain, hot = (systems.read_energies(block[1:]) for block in done.stdout.split("PARAMETER = ")[1:])
        assert_agree((hot, systems.read_forces(tmp_path / "rest.bin")), expected, 1e-6, 1e-6)
        assert abs(plain["POTENTIAL_ENE"] - hot["POTENTIAL_ENE"]) > 0.1


def test_solute_exchange_goes_on_bit_for_bit(system, tmp_path):
    """Cross energies, forces of the partner and back: 1 and 2 ranks a replica, and a run in two halves."""
    exchange = {"exchange_period": 5, "type1": "REST", "nreplica1": 2, "parameters1": "300 320", "select_index1": 1}
    group = {"group1": "mname:CHN"}
    for name, ranks, steps, begin in (("one", 1, 40, None), ("two", 2, 40, None), ("half", 1, 20, None),
                                      ("rest", 1, 20, tmp_path / "half/run{}_().rst")):
        inp = control(system, tmp_path / name, ranks, steps, begin, exchange=exchange, SELECTION=group)
        inp.write_text(inp.read_text().replace("[DYNAMICS]", "[DYNAMICS]\nrstout_period = 20"))
        done = systems.run("run", inp, 2 * ranks, "chromamd")
        assert done.returncode == 0, done.stderr
    (accepted, tried), = acceptances(tmp_path / "one").values()
    assert tried == 8 and 0 < accepted < 8
    assert state(tmp_path / "two", 2) == state(tmp_path / "one")
    for replica in (1, 2):
        ends = [(tmp_path / name / f"run{replica}_0.rst").read_bytes() for name in ("one", "rest")]
        assert ends[0] == ends[1]
    conserved = np.array([table["CONSERVED_ENE"] for table in tables(tmp_path / "one", 2)])
    assert np.ptp(conserved, axis=1).max() < 5
