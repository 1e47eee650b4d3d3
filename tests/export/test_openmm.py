"""OpenMM on the exported files: energies of its own force field, the phases of the protocol, an interrupted run."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import openmm
import pytest
from openmm import app, unit
from support.engine_energies import set_pme
from support.four_point import placed
from support.molecular_systems import make_solute
from support.triclinic_systems import rhombic_dodecahedron

from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.settings import DynamicsSection, SimulateSection
from chromabuild.export.openmm_files import LARGEST, export_openmm
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import nonbonded_options, system_from_topology
from chromabuild.simulate.protocol import plan_phases
from chromabuild.simulate.restart_file import read_restart

PHASES = [{"name": "minimise", "kind": "minimise", "steps": 5, "restraints": [{"group": "heavy", "constant": 5}]},
          {"name": "heat", "steps": 30, "temperature": [100, 300], "hydrogen_mass_factor": 3, "end_pairs": 2,
           "output_period": 10, "trajectory_period": 10,
           "restraints": [{"group": "heavy", "constant": [5, 1]}, {"group": "backbone", "constant": 20}]},
          {"name": "produce", "steps": 20, "ensemble": "NPT", "output_period": 5, "trajectory_period": 20}]
DYNAMICS = DynamicsSection(cutoff=8.0, trajectory_selection="solute")


def planned(phases):
    return plan_phases(SimulateSection(protocol=None, phases=phases))


WITHOUT_US = """
import runpy, sys
sys.path += {packages!r}
sys.modules["chromabuild"] = None  # importing it fails
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(folder):
    """The script, where there is no chromabuild."""
    packages = [path for path in sys.path if "site-packages" in path]
    return subprocess.Popen([sys.executable, "-S", "-c", WITHOUT_US.format(packages=packages), folder / "run.py",
                             "--platform", "CPU"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def duplex(systems):
    """With velocities, as after a phase."""
    system = systems["duplex"]
    velocity = np.random.Generator(np.random.Philox(key=5)).normal(0, 3, system.position.shape).round(4)
    return BuiltSystem(system.topology, system.position, system.box, velocity=velocity)


def test_openmm_assigns_its_force_field_to_the_exported_atoms(systems, tmp_path):
    """Atoms, residues and bonds of system.cif are what OpenMM's amber14 takes: its energy is that of system.xml to
    1e-6, both with rigid waters and bonds to hydrogen.

    The file has 4 decimals in angstrom, as many as positions here.
    """
    system = systems["peptide"]
    dynamics = DYNAMICS.model_copy(update={"dispersion_correction": False})  # OpenMM counts other pairs
    export_openmm(BuiltSystem(system.topology, system.position, system.box), tmp_path, dynamics)
    pdbx = app.PDBxFile(str(tmp_path / "system.cif"))
    assert pdbx.topology.getNumAtoms() == system.topology.n_atoms
    judge = app.ForceField("amber14-all.xml", "amber14/tip3p.xml").createSystem(
        pdbx.topology, nonbondedMethod=app.PME, nonbondedCutoff=0.8, constraints=app.HBonds, rigidWater=True,
        removeCMMotion=False)
    options = nonbonded_options(dynamics, system.box)
    set_pme(judge, options)
    ours = openmm.XmlSerializer.deserialize((tmp_path / "system.xml").read_text())
    assert ours.getNumConstraints() == judge.getNumConstraints()
    state = openmm.XmlSerializer.deserialize((tmp_path / "state.xml").read_text())
    energies = []
    for one, positions in ((ours, state.getPositions()), (judge, pdbx.getPositions())):
        context = openmm.Context(one, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
        context.setPeriodicBoxVectors(*state.getPeriodicBoxVectors())
        context.setPositions(positions)
        energies.append(context.getState(getEnergy=True).getPotentialEnergy()._value)
    assert energies[0] == pytest.approx(energies[1], rel=1e-6)
    assert not (tmp_path / "run.py").exists()  # without phases there is nothing to run


@pytest.mark.parametrize(("name", "switch"), [("amber14", 7.0), ("amber19", None), ("charmm36m", 7.0)])
def test_files_are_those_that_openmm_writes(tmp_path, name, switch):
    """The System to the byte, the State and the PDBx to the number; OpenMM would hold all of them in memory."""
    molecules = make_solute([["DA5", "DC", "DG3"], ["NALA", "TRP", "CVAL"]])
    counts = {"water": 7, "sodium": 2, "chloride": 1}
    topology = make_topology(molecules, counts, name, water="tip3p" if name == "charmm36m" else "opc")
    box = np.full(3, 24.0)
    dynamics = DynamicsSection(cutoff=8.0, switch_distance=switch)
    position = placed(topology, np.random.default_rng(7).uniform(0, 20, (topology.n_atoms, 3)).round(3))
    built = BuiltSystem(topology, position, box)
    export_openmm(built, tmp_path, dynamics)
    options = nonbonded_options(dynamics, box)
    whole = system_from_topology(topology, box, options, rigid=True, by_term=False)
    assert (tmp_path / "system.xml").read_text() == openmm.XmlSerializer.serialize(whole)
    while whole.getNumForces():
        whole.removeForce(0)
    whole.addForce(openmm.HarmonicBondForce())  # without a force that is periodic, a State has no box
    whole.getForce(0).setUsesPeriodicBoundaryConditions(True)
    context = openmm.Context(whole, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(position / 10)
    state = openmm.XmlSerializer.serialize(context.getState(getPositions=True, getVelocities=True))
    words, theirs = ((re.sub(r'"[^"]*"', '""', text).split(), re.findall(r'="(-?[.\d][^"]*)"', text))
                     for text in ((tmp_path / "state.xml").read_text(), state))
    assert words[0] == theirs[0]
    np.testing.assert_allclose(np.array(words[1][2:], float), np.array(theirs[1][2:], float), atol=1e-12)
    pdbx = app.PDBxFile(str(tmp_path / "system.cif"))
    assert np.abs(pdbx.getPositions(asNumpy=True)._value * 10 - position).max() < 6e-5
    bonds = {tuple(sorted((a.index, b.index))) for a, b in pdbx.topology.bonds()}
    n = molecules.n_atoms
    ours = {tuple(sorted(pair)) for pair in topology.term("bond")["atoms"].tolist()}
    assert {pair for pair in bonds if max(pair) < n} == {pair for pair in ours if max(pair) < n}
    assert sum(max(pair) >= n for pair in bonds) == 2 * counts["water"]  # no bond between hydrogens


def test_the_state_has_what_the_system_has(duplex, tmp_path):
    export_openmm(duplex, tmp_path, DYNAMICS)
    state = openmm.XmlSerializer.deserialize((tmp_path / "state.xml").read_text())
    assert np.diag(state.getPeriodicBoxVectors(asNumpy=True)._value) * 10 == pytest.approx(duplex.box)
    assert np.abs(state.getPositions(asNumpy=True)._value * 10 - duplex.position).max() < 1e-9
    assert np.abs(state.getVelocities(asNumpy=True)._value * 10 - duplex.velocity).max() < 1e-9
    # As an export after a phase of the OpenMM engine reads it.
    end = read_restart(tmp_path / "state.xml", len(duplex.position))
    assert np.abs(end.position - duplex.position).max() < 1e-9 and end.box == pytest.approx(duplex.box)
    assert np.abs(end.velocity - duplex.velocity).max() < 1e-9
    with pytest.raises(IntegrityError, match="state.xml holds .* atoms and not 7"):
        read_restart(tmp_path / "state.xml", 7)


def test_the_script_runs_every_phase(duplex, tmp_path):
    """Restraints hold, hydrogens are heavy, temperature rises, the box changes; called again nothing is done."""
    topology = duplex.topology
    first, last = np.flatnonzero(topology.per_atom("atom_name") == b"P")[[0, -1]].tolist()
    bonds = [EndBond((first, last), 8.0)]
    paths = export_openmm(duplex, tmp_path, DYNAMICS, planned(PHASES), 3, bonds)
    assert [path.name for path in paths] == ["system.xml", "state.xml", "system.cif", "groups.npz", "protocol.json",
                                             "run.py"]
    said, told = run(tmp_path).communicate(timeout=300)
    assert said.split() == ["01-minimise", "02-heat", "03-produce"], told
    rows = list(csv.DictReader((tmp_path / "02-heat.csv").read_text().splitlines()))
    assert [row['#"Step"'] for row in rows] == ["10", "20", "30"]
    states = {name: openmm.XmlSerializer.deserialize((tmp_path / f"{name}.xml").read_text())
              for name in ("01-minimise", "02-heat", "03-produce")}
    assert states["02-heat"].getTime().value_in_unit(unit.femtosecond) == pytest.approx(60)
    box = states["03-produce"].getPeriodicBoxVolume()._value
    assert box == pytest.approx(np.prod(duplex.box) / 1000, rel=0.05)
    with np.load(tmp_path / "groups.npz") as groups:
        heavy = groups["heavy"]
    moved = states["01-minimise"].getPositions(asNumpy=True)._value * 10 - duplex.position
    assert 0 < np.abs(moved[heavy]).max() < 1.0
    frames = (tmp_path / "02-heat.dcd").read_bytes()
    n_solute = sum(template.n_atoms for template in topology.templates if template.n_atoms > 3)
    assert len(frames) == 276 + 3 * (56 + 3 * (4 * n_solute + 8))
    again, _ = run(tmp_path).communicate(timeout=300)
    assert again == ""


@pytest.mark.slow
def test_an_interrupted_script_goes_on(duplex, tmp_path):
    """Its rows come in two tables, none twice and none missing but those after the last checkpoint."""
    steps = 200_000
    export_openmm(duplex, tmp_path, DYNAMICS, planned([{"name": "warm", "steps": steps, "output_period": 10}]))
    protocol = json.loads((tmp_path / "protocol.json").read_text())
    (tmp_path / "protocol.json").write_text(json.dumps(protocol | {"checkpoint_period": 20}))
    process = run(tmp_path)
    until = time.monotonic() + 120
    while not (tmp_path / "01-warm.checkpoint.xml").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    state = openmm.XmlSerializer.deserialize((tmp_path / "01-warm.checkpoint.xml").read_text())
    at = state.getStepCount()
    assert at and at % 20 == 0
    protocol["phases"][0]["steps"] = at + 40
    (tmp_path / "protocol.json").write_text(json.dumps(protocol))
    _, told = run(tmp_path).communicate(timeout=300)
    rows = list(csv.DictReader((tmp_path / "01-warm.2.csv").read_text().splitlines()))
    assert [int(row['#"Step"']) for row in rows] == [at + 10, at + 20, at + 30, at + 40], told
    assert not (tmp_path / "01-warm.checkpoint.xml").exists()


def test_what_cannot_be_exported_is_refused(tmp_path):
    topology = make_topology(make_solute([["NALA", "CALA"]]), {})
    system = BuiltSystem(topology, np.zeros((topology.n_atoms, 3)), np.full(3, 30.0))
    held = [{"name": "hold", "steps": 1, "restraints": [{"group": "dna", "constant": 1}]}]
    with pytest.raises(BadInputError, match="restrains dna, and the system has no atom of it"):
        export_openmm(system, tmp_path / "out", DYNAMICS, planned(held))
    water = make_topology(None, {"water": LARGEST // 3 + 1})
    with pytest.raises(BadInputError, match="too many for OpenMM's files"):
        export_openmm(BuiltSystem(water, np.broadcast_to(np.zeros(3), (water.n_atoms, 3)), system.box),
                      tmp_path / "out", DYNAMICS)
    assert not (tmp_path / "out").exists()


def test_molecules_are_made_whole(systems, tmp_path):
    """Atoms wrapped one by one into the box come back to within one shift of the molecule."""
    system = systems["duplex"]
    shifted = system.position + 17.0
    wrapped = BuiltSystem(system.topology, shifted % system.box, system.box)
    assert np.abs(wrapped.position - shifted).max() > 1
    away = (np.asarray(wrapped.whole(tmp_path).position) - shifted) / system.box
    assert np.abs(away - np.round(away)).max() < 1e-9
    first = system.topology.run_first_atom
    for t, count, start in zip(system.topology.run_template, system.topology.run_count, first, strict=False):
        n = system.topology.templates[t].n_atoms
        molecules = away[start:start + count * n].reshape(count, n, 3)
        assert np.ptp(molecules, axis=1).max() < 1e-9


def test_leaning_box(duplex, tmp_path):
    """State and System have the vectors."""
    shape = rhombic_dodecahedron(40.0)
    export_openmm(replace(duplex, box=shape), tmp_path, DYNAMICS)
    for name, ask in (("state", "getPeriodicBoxVectors"), ("system", "getDefaultPeriodicBoxVectors")):
        found = openmm.XmlSerializer.deserialize((tmp_path / f"{name}.xml").read_text())
        vectors = [[component * 10 for component in vector._value] for vector in getattr(found, ask)()]
        np.testing.assert_allclose(vectors, shape, atol=1e-9)
