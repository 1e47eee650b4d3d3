"""Charges in implicit solvent (electrostatic = DEBYE) against OpenMM's custom forces; ranks without a periodic box.

A duplex of eight base pairs without its water stands in the middle of a box of 120 angstrom, so that domains cut it.
"""

import numpy as np
import openmm
import pytest
from support import systems as written
from support.engine_energies import ENERGY_COLUMNS, TOLERANCE, relative_rms, write_input
from support.molecular_systems import MolecularSystem, fixture, make_topology

from chromabuild.base.errors import BadInputError
from chromabuild.simulate import chromamd
from chromabuild.simulate.openmm_engine import (
    ANGSTROM_PER_NM,
    KJ_PER_KCAL,
    TERMS,
    NonbondedOptions,
    energies_by_term,
    system_from_topology,
)

pytestmark = pytest.mark.mpi
EDGE = 120.0
DEBYE = {"electrostatic": "DEBYE", "cutoffdist": 10.0, "switchdist": 8.0, "pairlistdist": 11.5}
WATER = {"dielectric_form": "CONSTANT", "dielectric": 78.5, "debye_length": 7.9}
GROWING = {"dielectric_form": "DISTANCE", "dielectric": 4.0, "debye_length": 7.9}
OPEN = {"type": "NOBC"}


@pytest.fixture(scope="module")
def dry() -> MolecularSystem:
    solute, position = fixture("duplex")
    position = np.round(position - position.mean(axis=0) + EDGE / 2, 3)
    return MolecularSystem(make_topology(solute, {}), position, np.full(3, EDGE))


def reference(system: MolecularSystem, solvent: dict, is_open: bool):
    """OpenMM's energies by term and forces, charges by custom forces with the formula of the documentation."""
    topology, cutoff = system.topology, DEBYE["cutoffdist"] / ANGSTROM_PER_NM
    judge = system_from_topology(topology, system.box, NonbondedOptions(
        DEBYE["cutoffdist"], 0.34, (32, 32, 32), DEBYE["switchdist"]))
    for k in reversed(range(judge.getNumForces())):
        if judge.getForce(k).getForceGroup() == TERMS.index("electrostatic"):
            judge.removeForce(k)
    order = 2 if solvent["dielectric_form"] == "DISTANCE" else 1
    values = {"scale": topology.coulomb_constant * KJ_PER_KCAL / ANGSTROM_PER_NM,
              "eps": solvent["dielectric"] * ANGSTROM_PER_NM ** (order - 1),
              "kappa": ANGSTROM_PER_NM / solvent["debye_length"], "rc": cutoff}
    law = f"exp(-kappa*r)/(eps*r^{order})"
    there = f"exp(-kappa*rc)/(eps*rc^{order})"
    pairs = openmm.CustomNonbondedForce(
        f"scale*q1*q2*({law} - {there} + (r - rc)*{there}*(kappa + {order}/rc))")
    pairs.addPerParticleParameter("q")
    pairs.setNonbondedMethod(pairs.CutoffNonPeriodic if is_open else pairs.CutoffPeriodic)
    pairs.setCutoffDistance(cutoff)
    for charge in topology.charges().tolist():
        pairs.addParticle([charge])
    for i, j in topology.exclusions().tolist():
        pairs.addExclusion(i, j)
    near = openmm.CustomBondForce(f"scale*qq*{law}")
    near.addPerBondParameter("qq")
    pair14 = topology.term("pair14")
    for (i, j), product in zip(pair14["atoms"].tolist(), pair14["charge_product"].tolist(), strict=True):
        near.addBond(i, j, [product])
    for force in (pairs, near):
        for name, value in values.items():
            force.addGlobalParameter(name, value)
        force.setForceGroup(TERMS.index("electrostatic"))
        judge.addForce(force)
    if is_open:
        for force in judge.getForces():
            if isinstance(force, (openmm.NonbondedForce, openmm.CustomNonbondedForce)):
                force.setNonbondedMethod(force.CutoffNonPeriodic)
            elif not isinstance(force, openmm.CMMotionRemover):
                force.setUsesPeriodicBoundaryConditions(False)
            if isinstance(force, openmm.NonbondedForce):
                force.setExceptionsUsePeriodicBoundaryConditions(False)
    return energies_by_term(judge, system.position)


def energies(folder, entries: dict, energy: dict, boundary: dict, ranks: int = 1, precision: str = "double"):
    """Energies by column and forces of `chromamd energy`."""
    path = folder / "energy.inp"
    chromamd.write_control(path, {"INPUT": entries, "OUTPUT": {"forcefile": folder / "force"},
                                  "ENERGY": DEBYE | energy, "BOUNDARY": boundary})
    chromamd.launch("energy", path, ranks, precision)
    return chromamd.read_energies(path), chromamd.read_forces(folder / "force")


@pytest.mark.parametrize(("solvent", "boundary", "ranks", "precision"), [
    (WATER, OPEN, 1, "double"), (GROWING, {}, 1, "double"), (GROWING, OPEN, 2, "double"),
    pytest.param(WATER, {}, 2, "mixed", marks=pytest.mark.release),
    pytest.param(GROWING, OPEN, 1, "mixed", marks=pytest.mark.release)])
def test_energies_and_forces_against_openmm(dry, tmp_path, solvent, boundary, ranks, precision):
    energy_tolerance, force_tolerance = TOLERANCE[precision]
    ours, force = energies(tmp_path, write_input(dry, tmp_path), solvent, boundary, ranks, precision)
    theirs, their_force = reference(dry, solvent, boundary is OPEN)
    for term, columns in ENERGY_COLUMNS.items():
        assert sum(ours[column] for column in columns) == pytest.approx(theirs[term], rel=energy_tolerance), term
    assert ours["RECIPROCAL"] == 0 and abs(theirs["electrostatic"]) > 1
    assert relative_rms(force, their_force) < force_tolerance


def test_forces_are_differences_of_the_energy(dry, tmp_path):
    """By a thousandth of an angstrom, which bricks hold, along each coordinate."""
    _, force = energies(tmp_path, write_input(dry, tmp_path), GROWING, OPEN)
    step = 0.001 * np.sign(force)
    ends = []
    for sign in (1, -1):
        folder = tmp_path / f"moved{sign}"
        folder.mkdir()
        moved = MolecularSystem(dry.topology, dry.position + sign * step, dry.box)
        ends.append(energies(folder, write_input(moved, folder), GROWING, OPEN)[0]["POTENTIAL_ENE"])
    assert ends[0] - ends[1] == pytest.approx(-2 * np.sum(force * step), rel=1e-4)


def test_debye_length_follows_from_salt_and_temperature(dry, tmp_path):
    """The permittivity of water at 25 degrees is 78.30 (Malmberg and Maryott)."""
    entries = write_input(dry, tmp_path)
    boltzmann = 8.31446261815324e-3 / KJ_PER_KCAL
    density = 6.02214076e-4 * 0.1
    length = np.sqrt(78.30334 * boltzmann * 298.15 / (8 * np.pi * dry.topology.coulomb_constant * density))
    assert length == pytest.approx(9.61, abs=0.01)
    automatic, _ = energies(tmp_path, entries, {"ionic_strength": 0.1}, OPEN)
    given, _ = energies(tmp_path, entries, {"debye_length": length}, OPEN)
    assert automatic["ELECT"] == pytest.approx(given["ELECT"], rel=1e-5)
    bare, _ = energies(tmp_path, entries, {"ionic_strength": 0}, OPEN)
    long, _ = energies(tmp_path, entries, {"debye_length": 1e12}, OPEN)
    assert bare["ELECT"] == pytest.approx(long["ELECT"], rel=1e-9)
    assert bare["ELECT"] != pytest.approx(automatic["ELECT"], rel=0.01)


def run(folder, name: str, start: str, ranks: int, threads: int, boundary: dict, **sections: dict):
    """Last state and table of a run in the deterministic mode with heavy atoms held."""
    path = folder / f"{name}{ranks}.inp"
    log, end = path.with_suffix(".log"), str(folder / f"{name}{ranks}_().rst")
    chromamd.write_control(path, {
        "INPUT": {"topologyfile": folder / "topology.h5", "rstfile": start,
                  "reffile": folder / "shards" / "bricks.txt"},
        "OUTPUT": {"rstfile": end, "logfile": log},
        "ENERGY": DEBYE | GROWING | {"deterministic": True}, "BOUNDARY": OPEN | boundary,
        "SELECTION": {"group1": "heavy"},
        "RESTRAINTS": {"nfunctions": 1, "function1": "POSI", "constant1": 1.0, "select_index1": 1}, **sections})
    chromamd.launch("run", path, ranks, threads=threads)
    return end, written.read_restarts(end, ranks), written.read_table(log.read_text())


def test_minimisation_and_dynamics_have_the_same_bits_on_any_number_of_ranks(dry, tmp_path):
    """Of four domains each holds a part of the duplex; of three the outer ones hold nothing until borders move."""
    entries = write_input(dry, tmp_path)
    ends = []
    for ranks, threads, boundary in ((1, 1, {}), (4, 1, {}), (3, 2, {"load_balance": True})):
        pattern = str(tmp_path / f"start{ranks}_().rst")
        chromamd.write_control(tmp_path / "setup.inp", {
            "INPUT": entries, "OUTPUT": {"rstfile": pattern}, "ENERGY": DEBYE | GROWING | {"deterministic": True},
            "BOUNDARY": OPEN, "ENSEMBLE": {"temperature": 200}})
        chromamd.launch("setup", tmp_path / "setup.inp", ranks)
        if ranks == 4:
            heads = [(tmp_path / f"start4_{k}.rst").read_bytes()[:200] for k in range(4)]
            assert all(np.frombuffer(head, "<i8", 16, 8)[6] > 0 for head in heads)
        low, _, minimised = run(tmp_path, "low", pattern, ranks, threads, boundary,
                                MINIMIZE={"nsteps": 20, "eneout_period": 5})
        end, state, table = run(
            tmp_path, "end", low, ranks, threads, boundary, CONSTRAINTS={"rigid_bond": True},
            DYNAMICS={"nsteps": 20, "timestep": 0.002, "eneout_period": 5, "iseed": 3},
            ENSEMBLE={"ensemble": "NVT", "tpcontrol": "LANGEVIN", "temperature": 300, "gamma_t": 5})
        assert minimised["POTENTIAL_ENE"][-1] < minimised["POTENTIAL_ENE"][0]
        ends.append((state, minimised["POTENTIAL_ENE"], table["TOTAL_ENE"], end))
    one = ends[0]
    for other in ends[1:]:
        for field in ("position", "velocity"):
            assert np.array_equal(getattr(other[0], field), getattr(one[0], field)), field
        assert np.array_equal(other[1], one[1]) and np.array_equal(other[2], one[2])
    again = str(tmp_path / "again_().rst")
    chromamd.write_control(tmp_path / "setup.inp", {
        "INPUT": {"topologyfile": tmp_path / "topology.h5", "rstfile": ends[1][3]}, "OUTPUT": {"rstfile": again},
        "ENERGY": DEBYE | GROWING | {"deterministic": True}, "BOUNDARY": OPEN})
    chromamd.launch("setup", tmp_path / "setup.inp", 2)
    assert np.array_equal(written.read_restarts(again, 2).position, one[0].position)


@pytest.mark.parametrize(("section", "keys", "words"), [
    ("ENERGY", {"electrostatic": "PME", "dielectric": 2}, "dielectric = 2 needs electrostatic = DEBYE"),
    ("ENERGY", {"dielectric_form": "CONSTANT"}, "needs dielectric"),
    ("ENERGY", {"debye_length": 0}, "must be positive"),
    ("ENERGY", {"debye_length": 8, "ionic_strength": 0.1}, "remove one of them"),
    ("ENERGY", {"debye_length": 0.2}, "too short for a cutoff"),
    ("ENERGY", {"vdw_shift": True}, "give switchdist"),
    ("ENERGY", {"table": True}, "give table = NO"),
    ("ENERGY", {"dispersion_corr": "EPRESS"}, "uniform density"),
    ("ENSEMBLE", {"ensemble": "NPT", "tpcontrol": "BUSSI"}, "needs the pressure of the water"),
    ("DYNAMICS", {"integrator": "VRES"}, "electrostatic = DEBYE has not"),
])
def test_contradictions_are_refused(dry, tmp_path, section, keys, words):
    sections = {"INPUT": write_input(dry, tmp_path), "ENERGY": dict(DEBYE)}
    sections.setdefault(section, {}).update(keys)
    chromamd.write_control(tmp_path / "e.inp", sections)
    with pytest.raises(BadInputError, match=words):
        chromamd.launch("energy", tmp_path / "e.inp", 1)
