"""Four-point waters: a charge without mass that the atoms of its molecule place. OpenMM's Reference platform judges."""

from dataclasses import fields, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from openmm import app
from support import systems
from support.engine_energies import (
    TOLERANCE,
    assert_agree,
    chromamd_energy,
    energies_by_force,
    reference_energy,
    relative_rms,
    write_input,
)
from support.four_point import placed, solvated_in

from chromabuild.base.constants import BOLTZMANN
from chromabuild.forcefield.assign import force_field_files
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.simulate import chromamd
from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology

pytestmark = pytest.mark.mpi

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(30, 30, 30))
SYSTEMS = [("opc", None, 26.0, 2000, 5), ("tip4pew", None, 26.0, 2000, 5), ("opc", "peptide", 27.0, 2000, 0)]
"""Water model, solute, edge (angstrom), steps of the equilibration in TIP3P, ions of each kind put in."""
SHORT = {"cutoffdist": 8, "switchdist": 6.5, "pairlistdist": 9, "pme_alpha": 0.45, "pme_max_spacing": 1.2}


@pytest.mark.parametrize("precision", ["double", pytest.param("mixed", marks=pytest.mark.release)])
@pytest.mark.parametrize("ingredients", SYSTEMS, ids=["opc", "tip4pew", "peptide-opc"])
def test_energies_and_forces_match_openmm(tmp_path, ingredients, precision):
    system = solvated_in(*ingredients)
    ours = chromamd_energy(system, tmp_path, precision, OPTIONS)
    assert_agree(ours, reference_energy(system, OPTIONS), *TOLERANCE[precision])
    sites = system.topology.term("virtual_site")["atoms"][:, 0]
    assert len(sites) > 400 and not ours[1][sites].any()


@pytest.mark.parametrize("ingredients", SYSTEMS[1:], ids=["tip4pew", "peptide-opc"])
def test_topology_gives_the_energies_of_the_force_field(ingredients):
    """OpenMM's own files on the same atoms: water, ions and solute. Positions have 0.001 angstrom, so that OpenMM must
    place the sites; only the rounding of unit conversions differs."""
    system = solvated_in(*ingredients)
    ours, force = energies_by_term(system_from_topology(system.topology, system.box, OPTIONS), system.position)
    rules = app.ForceField(*force_field_files("amber14", ingredients[0]))
    judge = rules.createSystem(system.judge, nonbondedMethod=app.PME, nonbondedCutoff=OPTIONS.cutoff / 10,
                               constraints=None, rigidWater=False, removeCMMotion=False)
    theirs, their_force = energies_by_force(judge, OPTIONS, placed(system.topology, system.position) / 10)
    assert ours["bond"] == pytest.approx(theirs["bond"], rel=1e-9)
    assert ours["lennard_jones"] + ours["electrostatic"] == pytest.approx(theirs["nonbonded"], rel=1e-9)
    massive = system.topology.masses() > 0
    assert relative_rms(force[massive], their_force[massive]) < 1e-9


@pytest.mark.slow
def test_virial_is_the_derivative_of_openmms_energy(tmp_path):
    """Under a strain that differs by axis, as for three-point water in test_barostats; alpha and switch keep the energy
    smooth at the cutoff."""
    system = solvated_in("opc", None, 26.0, 2000, 5)
    options = NonbondedOptions(cutoff=9.0, alpha=0.5, grid=(48, 48, 48), switch_distance=7.5)
    chromamd_energy(system, tmp_path, "double", options)
    text = (tmp_path / "energy_double_1.out").read_text()
    virial = np.array(text.split("VIRIAL =")[1].split()[:9], dtype=float).reshape(3, 3)
    step, weight, position = 2e-4, np.array([1.0, -0.5, 2.0]), placed(system.topology, system.position)
    energy = []
    for k in (-2, -1, 1, 2):
        factor = np.exp(k * step * weight)
        strained = system_from_topology(system.topology, system.box * factor, options)
        terms, _ = energies_by_term(strained, position * factor)
        energy.append(sum(terms.values()))
    slope = (energy[0] - 8 * energy[1] + 8 * energy[2] - energy[3]) / (12 * step)
    assert weight @ np.diag(virial) == pytest.approx(-slope, rel=2e-5, abs=0.05)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A peptide in OPC water, relaxed a little: restart files of one rank."""
    folder = tmp_path_factory.mktemp("sites")
    entries = write_input(solvated_in("opc", "peptide", 26.0), folder)
    set_up(folder, {"shardfile": entries["shardfile"]}, 1, "raw")
    done = systems.run("run", systems.control(
        folder / "relax.inp", INPUT={"topologyfile": folder / "topology.h5", "rstfile": folder / "raw_().rst"},
        OUTPUT={"rstfile": folder / "start_().rst"}, ENERGY=SHORT, MINIMIZE={"nsteps": 150}), program="chromamd")
    assert done.returncode == 0, done.stderr
    return folder


def set_up(folder: Path, source: dict, ranks: int, name: str) -> str:
    """Restart files for so many ranks, made once; returns their pattern."""
    pattern = str(folder / f"{name}_().rst")
    if not (folder / f"{name}_0.rst").exists():
        done = systems.run("setup", systems.control(
            folder / "setup.inp", INPUT={"topologyfile": folder / "topology.h5", **source},
            OUTPUT={"rstfile": pattern}, ENERGY=SHORT), ranks, "chromamd")
        assert done.returncode == 0, done.stderr
    return pattern


Run = tuple[systems.Restart, dict[str, np.ndarray]]


def dynamics(folder: Path, ensemble: dict, steps: int, ranks: int = 1, threads: int = 1, program: str = "chromamd",
             source: str = "", energy: dict | None = None, group: str = "all", **keys: object) -> Run:
    """State after some steps of 2 fs with rigid bonds, and the energy table."""
    start = source or set_up(folder, {"rstfile": folder / "start_().rst"}, ranks, f"start{ranks}")
    end = str(folder / f"{keys.pop('name', 'end')}_().rst")
    done = systems.run("run", systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "topology.h5", "rstfile": start}, OUTPUT={"rstfile": end},
        ENERGY=SHORT | (energy or {}), CONSTRAINTS={"rigid_bond": "YES"}, ENSEMBLE={"temperature": 300, **ensemble},
        SELECTION={"group1": group},
        DYNAMICS={"nsteps": steps, "timestep": 0.002, "iseed": 5, "eneout_period": 10, **keys}),
        ranks, program, threads)
    assert done.returncode == 0, done.stderr
    return systems.read_restarts(end, ranks), systems.read_table(done.stdout)


def assert_same(found: Run, expected: Run) -> None:
    """Every bit of the state and of the table."""
    np.testing.assert_array_equal(found[0].position, expected[0].position)
    np.testing.assert_array_equal(found[0].velocity, expected[0].velocity)
    for name, column in expected[1].items():
        np.testing.assert_array_equal(found[1][name], column, err_msg=name)


def test_bits_do_not_depend_on_ranks_and_threads(folder):
    """Langevin friction and pistons, centre of mass stopped on the way. Sites stand where their parents put them, to a
    step of the lattice of positions, and have no velocity."""
    ensemble = {"ensemble": "NPT", "tpcontrol": "LANGEVIN", "gamma_t": 5, "barostat": "MTK", "tau_p": 1}
    exact = {"energy": {"deterministic": "YES"}, "stoptr_period": 10}
    one = dynamics(folder, ensemble, 20, **exact)
    for ranks, threads in [(1, 2), (2, 2), (4, 1)]:
        assert_same(dynamics(folder, ensemble, 20, ranks, threads, **exact), one)
    topology = Topology.read(folder / "topology.h5")
    np.testing.assert_allclose(one[0].position, placed(topology, one[0].position), atol=1e-11, rtol=0)
    assert not one[0].velocity[topology.masses() == 0].any() and one[0].velocity[topology.masses() > 0].all()


def test_sites_of_fixed_atoms_stay(folder):
    """Every atom below a number is fixed, in the midst of a water: its oxygen, but not its hydrogens. Others move, and
    sites with their parents."""
    topology = Topology.read(folder / "topology.h5")
    site, oxygen = topology.term("virtual_site")["atoms"][40, :2]
    before = systems.read_restarts(set_up(folder, {"rstfile": folder / "start_().rst"}, 1, "start1"), 1).position
    after, table = dynamics(folder, {"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 5}, 20,
                            group=f"ai:1-{oxygen + 1}", fixatm_select_index=1)
    fixed = np.arange(len(before)) <= oxygen
    box = after.box
    moved = after.position - before
    moved = np.linalg.norm(moved - box * np.round(moved / box), axis=1)
    # Sites are placed anew by their parents, which rounds.
    assert moved[fixed].max() < 1e-12 and moved[~fixed].min() > 1e-5 and moved[site] > 1e-5
    np.testing.assert_allclose(after.position, placed(topology, after.position), atol=1e-11, rtol=0)
    assert 100 < table["TEMPERATURE"][-1] < 500


@pytest.mark.parametrize("method", ["SD", "LBFGS"])
@pytest.mark.release
def test_minimisation_goes_the_same_way(folder, method):
    def minimised(ranks: int) -> Run:
        start = set_up(folder, {"rstfile": folder / "raw_().rst"}, ranks, f"raw{ranks}")
        done = systems.run("run", systems.control(
            folder / "low.inp", INPUT={"topologyfile": folder / "topology.h5", "rstfile": start},
            OUTPUT={"rstfile": folder / "low_().rst"}, ENERGY=SHORT | {"deterministic": "YES"},
            MINIMIZE={"method": method, "nsteps": 60, "eneout_period": 5}), ranks, "chromamd")
        assert done.returncode == 0, done.stderr
        return systems.read_restarts(str(folder / "low_().rst"), ranks), systems.read_table(done.stdout)

    one = minimised(1)
    assert one[1]["POTENTIAL_ENE"][-1] < one[1]["POTENTIAL_ENE"][0] - 200
    assert_same(minimised(2), one)


@pytest.mark.release
def test_energy_is_conserved_to_the_order_of_the_step(folder):
    """Rigid water of four points: what the energy wanders falls with the square of the step. Sites have no degrees of
    freedom."""
    spread = []
    for timestep in (0.002, 0.001):
        _, table = dynamics(folder, {"ensemble": "NVE", "temperature": 200}, round(0.1 / timestep), timestep=timestep,
                            program="chromamd-double", eneout_period=1)
        half = len(table["STEP"]) // 2
        spread.append(np.std(table["TOTAL_ENE"][half:]))
        assert np.ptp(table["POTENTIAL_ENE"]) > 100 * spread[-1]
    assert 3 < spread[0] / spread[1] < 5.5
    topology = Topology.read(folder / "topology.h5")
    n_freedom = 3 * (topology.masses() > 0).sum() - len(topology.term("constraint")["atoms"]) - 3
    thermal = table["KINETIC_ENE"] + 2 / 3 * table["HALF_KICK_ENE"]
    np.testing.assert_allclose(2 * thermal / (BOLTZMANN * table["TEMPERATURE"]), n_freedom, rtol=1e-5)


@pytest.mark.release
def test_pistons_conserve_their_quantity(folder):
    """In a box that breathes the conserved quantity holds only if the pressure between molecules is right: what it
    wanders falls with the square of the step."""
    ensemble = {"ensemble": "NPT", "tpcontrol": "NHC", "tau_t": 0.1, "tau_p": 0.1, "pressure": 3000,
                "isotropy": "ANISO"}
    spread = []
    for timestep in (0.001, 0.0005):
        _, table = dynamics(folder, ensemble, round(0.06 / timestep), timestep=timestep, program="chromamd-double",
                            eneout_period=1)
        exchanged = np.ptp(table["TOTAL_ENE"])
        assert exchanged > 50 and np.ptp(table["CONSERVED_ENE"]) < 0.04 * exchanged
        spread.append(np.std(table["CONSERVED_ENE"]))
    assert 3.0 < spread[0] / spread[1] < 5.5


@pytest.mark.parametrize("ensemble", [
    {"ensemble": "NPT", "tpcontrol": "NHC", "barostat": "MC", "tau_t": 0.1},
    pytest.param({"ensemble": "NVT", "tpcontrol": "BUSSI"}, marks=pytest.mark.release)], ids=["monte-carlo", "bussi"])
def test_continued_run_is_bitwise_the_same(folder, ensemble):
    keys = {"thermostat_period": 2, "barostat_period": 4} if ensemble["ensemble"] == "NPT" else {}
    whole, _ = dynamics(folder, ensemble, 40, 2, rstout_period=20, name="whole", **keys)
    dynamics(folder, ensemble, 20, 2, name="half", **keys)
    rest, _ = dynamics(folder, ensemble, 20, 2, name="rest", source=str(folder / "half_().rst"), **keys)
    np.testing.assert_array_equal(rest.position, whole.position)
    np.testing.assert_array_equal(rest.velocity, whole.velocity)


def test_multiple_time_steps(folder):
    """Forces of reciprocal space kept apart reach the parents too: near the plain integrator's energies after 0.02 ps,
    where 1 fs of mesh forces left on the sites would miss by hundreds of kcal/mol."""
    ensemble = {"ensemble": "NVE"}
    _, plain = dynamics(folder, ensemble, 20, timestep=0.001)
    _, split = dynamics(folder, ensemble, 20, timestep=0.001, integrator="VRES", elec_long_period=2)
    assert split["TOTAL_ENE"][-1] == pytest.approx(plain["TOTAL_ENE"][-1], abs=2.0)
    assert abs(split["POTENTIAL_ENE"][-1] - split["POTENTIAL_ENE"][0]) > 100


@pytest.mark.parametrize(("change", "told"), [
    (lambda t: t.virtual_site_atoms.__setitem__((0, 1), 3), "has a site among the parents of another"),
    (lambda t: t.mass.__setitem__(3, 1.0), "virtual sites have none"),
    (lambda t: t.mass.__setitem__(1, 0.0), "all but virtual sites must have one"),
    (lambda t: t.virtual_site_atoms.__setitem__((0, 3), 7), "names an atom that the template does not have"),
    (lambda t: (setattr(t, "constraint_atoms", t.constraint_atoms[:1]),
                setattr(t, "constraint_distance", t.constraint_distance[:1])),
     "is placed by atoms that no constraints hold together"),
], ids=["site-of-site", "mass", "no-mass", "no-atom", "loose-parents"])
def test_bad_sites_are_refused(tmp_path, change, told):
    system = solvated_in("opc", None, 26.0, 2000)
    change(system.topology.templates[0])
    entries = write_input(system, tmp_path)
    control = tmp_path / "energy.inp"
    chromamd.write_control(control, {"INPUT": entries, "ENERGY": SHORT})
    done = systems.run("energy", control)
    assert done.returncode != 0 and told in systems.sentence(done)


def in_pairs(topology: Topology) -> Topology:
    """The waters of a topology, an even number of one kind, as molecules of two residues each, which the file cuts."""
    one = topology.templates[0]
    columns = {}
    for field in fields(one):
        value = getattr(one, field.name)
        if not isinstance(value, np.ndarray):
            continue
        shift = one.n_atoms if field.name.endswith("_atoms") or field.name == "exclusion" else 0
        shift = 1 if field.name in ("atom_residue", "residue_number") else shift
        columns[field.name] = np.concatenate([value, value + shift if shift else value])
    pair = MoleculeTemplate("PAIR", rigid_water=False, **columns)
    return replace(topology, templates=[pair, *topology.templates[1:]],
                   run_count=np.array([topology.run_count[0] // 2, *topology.run_count[1:]]))


def test_sites_in_pieces_of_molecules(tmp_path):
    """As pieces of longer molecules, held by SHAKE, waters have the same energies and follow the same path."""
    found = {}
    for name in ("waters", "pairs"):
        folder = tmp_path / name
        folder.mkdir()
        system = solvated_in("opc", None, 26.0, 2000, 4)
        assert system.topology.run_count[0] % 2 == 0
        if name == "pairs":
            system = replace(system, topology=in_pairs(system.topology))
        found[name] = [chromamd_energy(system, folder, "double", OPTIONS)]
        if name == "pairs":
            with h5py.File(folder / "topology.h5") as file:
                assert file["pieces/virtual_site/atoms"].shape == (1, 4)
        set_up(folder, {"shardfile": folder / "shards" / "bricks.txt"}, 1, "start1")
        found[name].append(dynamics(folder, {"ensemble": "NVE"}, 10, program="chromamd-double")[0])
    (energy, force), (other_energy, other_force) = found["waters"][0], found["pairs"][0]
    assert other_energy["POTENTIAL_ENE"] == pytest.approx(energy["POTENTIAL_ENE"], rel=1e-12)
    np.testing.assert_allclose(other_force, force, atol=1e-8)
    # 10 steps with bonds held to 1e-10.
    np.testing.assert_allclose(found["pairs"][1].position, found["waters"][1].position, atol=1e-6)
