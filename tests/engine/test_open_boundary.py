"""Models without a periodic box ([BOUNDARY] type = NOBC): against OpenMM's Reference platform, and the laws of motion.

The droplet is the solvated peptide of the other tests in a box twice as wide, whose walls nothing crosses.
"""

from dataclasses import replace

import MDAnalysis
import numpy as np
import openmm
import pytest
from support import systems as written
from support.engine_energies import ENERGY_COLUMNS, TOLERANCES, relative_rms, write_input

from chromabuild.base.errors import BadInputError
from chromabuild.simulate import chromamd
from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology

pytestmark = pytest.mark.mpi
CUTOFF = {"electrostatic": "CUTOFF", "switchdist": 9.0, "cutoffdist": 9.0, "pairlistdist": 10.5}
VACUUM = {"electrostatic": "CUTOFF", "vacuum": True, "cutoffdist": 75.0, "pairlistdist": 76.0}
NOBC = {"type": "NOBC"}


@pytest.fixture(scope="module")
def droplet(systems):
    """The peptide, its ions and the water within 11 angstrom of its middle."""
    whole = systems["peptide"]
    return replace(whole, position=whole.position + 15.0, box=np.full(3, 60.0))


def reference(system, method: int, cutoff: float):
    """OpenMM's energies by term and forces; with a cutoff, Coulomb energies are shifted to zero there (a reaction field
    of dielectric constant 1)."""
    judge = system_from_topology(system.topology, system.box, NonbondedOptions(cutoff, 0.34, (32, 32, 32)))
    for force in judge.getForces():
        if isinstance(force, openmm.NonbondedForce):
            force.setNonbondedMethod(method)
            force.setReactionFieldDielectric(1.0)
            force.setExceptionsUsePeriodicBoundaryConditions(False)
        elif not isinstance(force, openmm.CMMotionRemover):
            force.setUsesPeriodicBoundaryConditions(False)
    return energies_by_term(judge, system.position)


def control(folder, name: str, entries: dict, energy: dict, **sections: dict):
    path = folder / f"{name}.inp"
    chromamd.write_control(path, {"INPUT": entries, "ENERGY": energy, "BOUNDARY": NOBC, **sections})
    return path


@pytest.mark.parametrize(("precision", "energy_tolerance", "force_tolerance"), TOLERANCES)
@pytest.mark.parametrize(("settings", "method"), [
    (CUTOFF, openmm.NonbondedForce.CutoffNonPeriodic), (VACUUM, openmm.NonbondedForce.NoCutoff)],
    ids=["cutoff", "vacuum"])
def test_energies_and_forces_against_openmm(droplet, tmp_path, settings, method, precision, energy_tolerance,
                                            force_tolerance):
    path = control(tmp_path, "e", write_input(droplet, tmp_path), settings, OUTPUT={"forcefile": tmp_path / "f"})
    chromamd.launch("energy", path, 1, precision)
    ours, force = chromamd.read_energies(path), chromamd.read_forces(tmp_path / "f")
    theirs, their_force = reference(droplet, method, settings["cutoffdist"])
    for term, columns in ENERGY_COLUMNS.items():
        assert sum(ours[column] for column in columns) == pytest.approx(theirs[term], rel=energy_tolerance), term
    assert ours["RECIPROCAL"] == 0
    assert relative_rms(force, their_force) < force_tolerance


def start(droplet, folder) -> dict:
    """Restart files; returns the [INPUT] entries of a run."""
    path = control(folder, "setup", write_input(droplet, folder), CUTOFF, OUTPUT={"rstfile": folder / "start_().rst"},
                   ENSEMBLE={"temperature": 300}, DYNAMICS={"iseed": 5})
    chromamd.launch("setup", path, 1)
    return {"topologyfile": folder / "topology.h5", "rstfile": folder / "start_().rst"}


def dynamics(folder, name: str, entries: dict, steps: int, energy: dict, **output: object) -> written.Restart:
    path = control(folder, name, entries, energy,
                   OUTPUT={"rstfile": folder / f"{name}_().rst", "logfile": folder / f"{name}.log", **output},
                   DYNAMICS={"nsteps": steps, "timestep": 0.001, "eneout_period": 5, "crdout_period": 10,
                             "rstout_period": 10, "stoptr_period": 0},
                   CONSTRAINTS={"rigid_bond": True})
    chromamd.launch("run", path, 1, "double")
    return written.read_restarts(str(folder / f"{name}_().rst"), 1)


@pytest.mark.slow
def test_dynamics_keeps_energy_momentum_and_angular_momentum(droplet, tmp_path):
    """Nothing outside pulls at the droplet: no image, no wall. Energy: without cutoff only the integrator errs, and of
    that only terms of dt^2, a few per mille of the kinetic energy."""
    minimised = minimise(droplet, tmp_path)
    mass = droplet.topology.masses()[:, None]
    momentum, angular = [], []
    for steps in (10, 60):
        end = dynamics(tmp_path, f"run{steps}", minimised, steps, VACUUM)
        momentum.append(np.sum(mass * end.velocity, axis=0))
        angular.append(np.sum(np.cross(end.position - end.box / 2, mass * end.velocity), axis=0))
    # Of the sum of magnitudes, about 15 angstrom from the middle.
    scale = np.sum(np.abs(mass * end.velocity))
    np.testing.assert_allclose(momentum[1], momentum[0], atol=1e-9 * scale)
    np.testing.assert_allclose(angular[1], angular[0], atol=15e-9 * scale)
    total = written.read_table((tmp_path / "run60.log").read_text())
    drift = total["TOTAL_ENE"] - total["TOTAL_ENE"][0]
    assert np.abs(drift).max() < 5e-3 * total["KINETIC_ENE"].mean()


def minimise(droplet, folder) -> dict:
    """Less potential energy than at the start; returns the [INPUT] entries of what follows."""
    entries = start(droplet, folder)
    path = control(folder, "min", entries, VACUUM, MINIMIZE={"nsteps": 20, "eneout_period": 10},
                   OUTPUT={"rstfile": folder / "min_().rst", "logfile": folder / "min.log"})
    chromamd.launch("run", path, 1, "double")
    energy = written.read_table((folder / "min.log").read_text())["POTENTIAL_ENE"]
    assert energy[-1] < energy[0]
    return {**entries, "rstfile": folder / "min_().rst"}


def test_continued_run_and_trajectory(droplet, tmp_path):
    """The bits of an uninterrupted run; frames where the input has the model, without a box."""
    entries = start(droplet, tmp_path)
    first = dynamics(tmp_path, "first", entries, 10, CUTOFF, dcdfile=tmp_path / "a.dcd")
    whole = dynamics(tmp_path, "whole", entries, 20, CUTOFF)
    rest = dynamics(tmp_path, "rest", {**entries, "rstfile": tmp_path / "first_().rst"}, 10, CUTOFF)
    assert (first.step, rest.step, whole.step) == (10, 20, 20)
    assert np.array_equal(rest.position, whole.position) and np.array_equal(rest.velocity, whole.velocity)
    frame = MDAnalysis.coordinates.DCD.DCDReader(str(tmp_path / "a.dcd"))[0]
    assert frame.dimensions is None or not frame.dimensions[:3].any()
    np.testing.assert_allclose(frame.positions, first.position - first.box / 3, atol=1e-4)
    assert np.linalg.norm(frame.positions - droplet.position, axis=1).max() < 1.0


def test_position_restraints_count_from_the_input(droplet, tmp_path):
    entries = write_input(droplet, tmp_path)
    energy = []
    for name, shift in (("here", 0.0), ("there", 0.5)):
        moved = replace(droplet, position=droplet.position + [shift, 0.0, 0.0])
        (tmp_path / name).mkdir()
        reference = write_input(moved, tmp_path / name)["shardfile"]
        path = control(tmp_path, name, {**entries, "reffile": reference}, CUTOFF, SELECTION={"group1": "ai:1-10"},
                       RESTRAINTS={"nfunctions": 1, "function1": "POSI", "constant1": 2.0, "select_index1": 1})
        chromamd.launch("energy", path, 1, "double")
        energy.append(chromamd.read_energies(path)["RESTRAINT_TOTAL"])
    assert energy[0] == pytest.approx(0.0, abs=1e-12)
    assert energy[1] == pytest.approx(2.0 * 10 * 0.25, rel=1e-9)


@pytest.mark.parametrize(("section", "keys", "words"), [
    ("ENERGY", {"electrostatic": "PME"}, "electrostatic = CUTOFF"),
    ("ENERGY", {"dispersion_corr": "EPRESS"}, "uniform density"),
    ("ENERGY", {"vacuum": True}, "has no switch"),
    ("ENERGY", {"vacuum": True, "switchdist": 9.0}, "needs a cutoffdist beyond the model"),
    ("ENSEMBLE", {"ensemble": "NPT", "tpcontrol": "BUSSI"}, "there is no pressure"),
    ("DYNAMICS", {"integrator": "VRES"}, "reciprocal space"),
    ("BOUNDARY", {"box_size_x": 60.0}, "does not go with type = NOBC"),
    ("BOUNDARY", {"type": "PBC"}, "needs type = NOBC"),
])
def test_contradictions_are_refused(droplet, tmp_path, section, keys, words):
    sections = {"INPUT": write_input(droplet, tmp_path), "ENERGY": dict(CUTOFF), "BOUNDARY": dict(NOBC)}
    sections["ENERGY"]["switchdist"] = 8.0
    if keys.get("type") == "PBC":
        sections["ENERGY"]["vacuum"] = True
    sections.setdefault(section, {}).update(keys)
    chromamd.write_control(tmp_path / "e.inp", sections)
    with pytest.raises(BadInputError, match=words):
        chromamd.launch("energy", tmp_path / "e.inp", 1)


def test_vacuum_on_ranks_and_periodic_restarts_are_refused(droplet, tmp_path):
    with pytest.raises(BadInputError, match="one rank"):
        chromamd.launch("energy", control(tmp_path, "e", write_input(droplet, tmp_path), VACUUM), 2)
    entries = start(droplet, tmp_path)
    path = control(tmp_path, "p", entries, CUTOFF)
    path.write_text(path.read_text().replace("NOBC", "PBC"))
    with pytest.raises(BadInputError, match="no periodic box"):
        chromamd.launch("energy", path, 1)
