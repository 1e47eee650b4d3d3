"""Beads in the engine: 3SPN.2 DNA against open3SPN2 on OpenMM's Reference platform (data/bead_judgement.npz)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import systems as written
from support.beads import displaced, dna_of_nucleosome
from support.engine_energies import TOLERANCE, relative_rms, write_input
from support.molecular_systems import MolecularSystem, fixture
from support.spread_nucleosomes import one_nucleosome

from chromabuild.base.constants import COULOMB_CONSTANT, KJ_PER_KCAL
from chromabuild.base.errors import BadInputError
from chromabuild.build.beads import beads_of
from chromabuild.forcefield.bead_topology import bead_topology, protein_parameters
from chromabuild.molecule.solute import Solute
from chromabuild.simulate import chromamd

pytestmark = pytest.mark.mpi
JUDGEMENT = Path(__file__).parents[1] / "support" / "data" / "bead_judgement.npz"
COLUMNS = {"bond": "BOND", "angle": "ANGLE", "dihedral": "DIHEDRAL", "stacking": "STACKING", "base_pair": "BASE_PAIR",
           "cross_stacking": "CROSS_STACKING", "volume": "VDWAALS", "charge": "ELECT"}
CUTOFF = 180.0
"""Angstrom, 23 Debye lengths: what the shift of the force leaves at pairs is below 1e-8 of it."""
WATER = {"electrostatic": "DEBYE", "dielectric_form": "CONSTANT", "dielectric": 75.0, "debye_length": 7.7,
         "cutoffdist": 25.0, "switchdist": 25.0, "pairlistdist": 27.0, "vdw_repulsion": True}
OPEN = {"type": "NOBC"}


def bead_system(solute: Solute, by: float = 0.1) -> MolecularSystem:
    """The beads of a solute, moved at random, in a box around them."""
    beads = beads_of(solute)
    place = displaced(beads, solute, by)
    low = place.min(axis=0) - 5.0
    return MolecularSystem(bead_topology(solute, beads), place - np.round(low, 3),
                           np.ceil(np.ptp(place, axis=0)) + 10.0)


def energies(folder: Path, system: MolecularSystem, energy: dict, ranks: int = 1, precision: str = "double"):
    """Energies by column and forces of `chromamd energy`."""
    folder.mkdir(exist_ok=True)
    path = folder / "energy.inp"
    chromamd.write_control(path, {"INPUT": write_input(system, folder), "OUTPUT": {"forcefile": folder / "force"},
                                  "ENERGY": energy, "BOUNDARY": OPEN})
    chromamd.launch("energy", path, ranks, precision)
    return chromamd.read_energies(path), chromamd.read_forces(folder / "force")


@pytest.mark.parametrize("name", ["duplex", "nucleosome"])
def test_energies_and_forces_are_those_of_open3spn2(tmp_path, name):
    """All terms of 3SPN.2, each alone, of eight base pairs and of 177 bent around a nucleosome."""
    with np.load(JUDGEMENT) as file:
        judge = {key.split(" ")[1]: file[key] for key in file.files if key.startswith(name)}
    solute = fixture("duplex")[0] if name == "duplex" else dna_of_nucleosome()
    per_nm = COULOMB_CONSTANT * KJ_PER_KCAL / 10  # the judge gives its constants in kJ/mol and nm
    ours, force = energies(tmp_path, bead_system(solute), WATER | {
        "dielectric": repr(per_nm * float(judge["denominator"])), "debye_length": repr(float(judge["debye_length"])),
        "cutoffdist": CUTOFF, "switchdist": CUTOFF, "pairlistdist": CUTOFF + 2})
    energy_tolerance, force_tolerance = TOLERANCE["double"]
    for term, energy in zip(judge["terms"].tolist(), judge["energy"].tolist(), strict=True):
        assert ours[COLUMNS[term]] == pytest.approx(energy, rel=energy_tolerance), term
        assert abs(energy) > 0.1
    assert ours["POTENTIAL_ENE"] == pytest.approx(judge["energy"].sum(), rel=energy_tolerance)
    assert relative_rms(force, judge["force"]) < force_tolerance


def test_both_precisions_agree(tmp_path):
    """Of a whole nucleosome, with the cutoff of dynamics."""
    system = bead_system(one_nucleosome())
    ours, force = energies(tmp_path / "mixed", system, WATER, precision="mixed")
    exact, exact_force = energies(tmp_path / "double", system, WATER)
    for column in (*COLUMNS.values(), "PAIR14_VDW", "PAIR14_ELECT"):
        assert ours[column] == pytest.approx(exact[column], rel=TOLERANCE["mixed"][0]), column
    assert relative_rms(force, exact_force) < TOLERANCE["mixed"][1]


def test_a_built_nucleosome_holds_its_shape(tmp_path):
    """Springs and contacts have their least energies, which are known; bricks round to 0.001 A."""
    solute = one_nucleosome()
    system = bead_system(solute, by=0.0)
    ours, _ = energies(tmp_path, system, WATER)
    springs, contacts = (system.topology.term(kind) for kind in ("bond", "pair14"))
    assert len(contacts["atoms"]) > 500
    dna, _ = energies(tmp_path, bead_system(dna_of_nucleosome(), by=0.0), WATER)
    assert ours["BOND"] == pytest.approx(dna["BOND"], abs=0.02)
    assert len(springs["atoms"]) > 10 * np.sum(system.topology.per_atom("atom_name") == b"CA")
    depth = protein_parameters()["contact"] / KJ_PER_KCAL
    assert ours["PAIR14_VDW"] == pytest.approx(-depth * len(contacts["atoms"]), rel=1e-5)


@pytest.mark.parametrize("exact", [False, True])
def test_excluded_volume_by_the_rule_and_by_matrices(tmp_path, exact):
    """Weeks, Chandler and Andersen's repulsion from its definition; a pair of types is stronger than the rule says."""
    system = bead_system(dna_of_nucleosome(), by=0.4)
    topology = system.topology
    stronger = topology.lj_c12 * 1.0
    stronger[1, 1] *= 2.0
    for c12 in (topology.lj_c12, stronger):
        matrix = replace(topology, lj_c12=c12, lj_c6=topology.lj_c6)
        ours, _ = energies(tmp_path, replace(system, topology=matrix), WATER | {"deterministic": exact})
        assert ours["VDWAALS"] == pytest.approx(repulsion(matrix, system.position), rel=1e-4 if exact else 1e-7)


def repulsion(topology, position: np.ndarray) -> float:
    """c12/r^12 - c6/r^6 + c6^2/(4 c12) of all pairs within the minimum that are not excluded, kcal/mol."""
    i, j = np.triu_indices(len(position), 1)
    excluded = topology.exclusions()
    left = ~np.isin(i * len(position) + j, excluded[:, 0] * len(position) + excluded[:, 1])
    i, j = i[left], j[left]
    kind = topology.per_atom("lj_type")
    c12, c6 = topology.lj_c12[kind[i], kind[j]], topology.lj_c6[kind[i], kind[j]]
    r6 = np.sum((position[i] - position[j]) ** 2, axis=1) ** 3
    return float(np.sum(np.where(r6 < 2 * c12 / c6, c12 / r6**2 - c6 / r6 + c6**2 / (4 * c12), 0.0)))


def test_forces_are_differences_of_the_energy(tmp_path):
    """Of a whole nucleosome, by a thousandth of an angstrom along each coordinate; two ranks share the forces."""
    system = bead_system(one_nucleosome())
    _, force = energies(tmp_path / "here", system, WATER, ranks=2)
    step = 0.001 * np.sign(force)
    ends = [energies(tmp_path / f"moved{sign}", replace(system, position=system.position + sign * step),
                     WATER)[0]["POTENTIAL_ENE"] for sign in (1, -1)]
    assert ends[0] - ends[1] == pytest.approx(-2 * np.sum(force * step), rel=1e-4)


def dynamics(folder: Path, system: MolecularSystem, ranks: int = 1, threads: int = 1, **keys: object):
    """State and log after dynamics, of ``ENSEMBLE`` keys in capitals and of ``DYNAMICS``."""
    folder.mkdir(exist_ok=True)
    entries = write_input(system, folder)
    start, end, log = str(folder / "start_().rst"), str(folder / "end_().rst"), folder / "run.log"
    common = {"ENERGY": WATER | {"deterministic": True}, "BOUNDARY": OPEN}
    chromamd.write_control(folder / "run.inp", {"INPUT": entries, "OUTPUT": {"rstfile": start}, **common})
    chromamd.launch("setup", folder / "run.inp", ranks, threads=threads)
    chromamd.write_control(folder / "run.inp", {
        "INPUT": {"topologyfile": entries["topologyfile"], "rstfile": start},
        "OUTPUT": {"rstfile": end, "logfile": log}, **common,
        "DYNAMICS": {"integrator": "VVER", "iseed": 26, **keys["DYNAMICS"]}, "ENSEMBLE": keys["ENSEMBLE"]})
    chromamd.launch("run", folder / "run.inp", ranks, threads=threads)
    return written.read_restarts(end, ranks), written.read_table(log.read_text())


def test_dynamics_has_the_same_bits_on_any_number_of_ranks_and_threads(tmp_path):
    """50 steps of Langevin dynamics of a nucleosome."""
    system = bead_system(one_nucleosome(), by=0.0)
    (state, table), *others = (
        dynamics(tmp_path / f"{ranks}{threads}", system, ranks, threads,
                 DYNAMICS={"nsteps": 50, "timestep": 0.002, "eneout_period": 10},
                 ENSEMBLE={"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 1.0, "temperature": 300.0})
        for ranks, threads in ((1, 1), (2, 1), (1, 2)))
    assert {"STACKING", "BASE_PAIR", "CROSS_STACKING"} <= set(table)
    for other, rows in others:
        assert np.array_equal(state.position, other.position) and np.array_equal(state.velocity, other.velocity)
        assert np.array_equal(table["STACKING"], rows["STACKING"])


def test_dynamics_conserves_energy(tmp_path):
    """Of a duplex that moves: velocity Verlet's energy fluctuates with the square of the step, and does not drift.

    Four times less at half the step, of 10 fs, by a third. The slope is below 1 % of the kinetic energy in 20 ps.
    """
    system = bead_system(fixture("duplex")[0], by=0.0)
    noise = []
    for step in (0.010, 0.005):
        _, table = dynamics(tmp_path, system, ENSEMBLE={"ensemble": "NVE", "temperature": 300.0},
                            DYNAMICS={"nsteps": round(20 / step), "timestep": step, "eneout_period": round(0.1 / step)})
        drift, _ = np.polyfit(table["TIME"], table["TOTAL_ENE"], 1)
        assert abs(20 * drift) < 0.01 * table["KINETIC_ENE"].mean()
        noise.append(np.std(table["TOTAL_ENE"]))
    assert noise[0] / noise[1] == pytest.approx(4, rel=1 / 3)


def test_repulsion_alone_needs_implicit_solvent(tmp_path):
    system = bead_system(fixture("duplex")[0])
    with pytest.raises(BadInputError, match="vdw_repulsion = YES needs electrostatic = DEBYE"):
        energies(tmp_path, system, {"electrostatic": "CUTOFF", "vdw_repulsion": True})
