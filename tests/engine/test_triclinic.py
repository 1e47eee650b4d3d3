"""Triclinic boxes: rhombic dodecahedra and truncated octahedra.

OpenMM's Reference platform judges a rhombic dodecahedron by the rectangular box that holds two of its cells. In the
deterministic mode the half shell on one rank judges all else: other ranks, halo patterns, transports, schemes.
"""

from dataclasses import replace
from pathlib import Path

import MDAnalysis
import numpy as np
import openmm
import pytest
from MDAnalysis.lib.mdamath import triclinic_vectors
from openmm import unit
from support import systems
from support.engine_energies import (
    ENERGY_COLUMNS,
    assert_agree,
    chromamd_energy,
    evaluate,
    relative_rms,
    write_input,
)
from support.molecular_systems import MolecularSystem, fixture, solvated
from support.triclinic_systems import (
    alpha_of,
    cut_out,
    nearest,
    reference_of_doubled,
    rhombic_dodecahedron,
    truncated_octahedron,
)

from chromabuild.base.box_vectors import nearest_image, reduced, straight, vectors_from_angles, wrapped
from chromabuild.base.settings import SolvateSection
from chromabuild.export.frame import gathered
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.shards import read_shards
from chromabuild.simulate.openmm_engine import NonbondedOptions, system_from_topology
from chromabuild.simulate.restart_file import Restart, read_restart
from chromabuild.solvate import solvate

pytestmark = pytest.mark.mpi

FINE = NonbondedOptions(cutoff=9.0, alpha=alpha_of(1e-9, 9.0), grid=(48, 48, 48))
"""Splines of order 8 on this mesh err by less than 1e-7 of the energy."""
RUN = {"cutoffdist": 8, "switchdist": 7, "pairlistdist": 9, "pme_max_spacing": 1.2}
BITWISE = RUN | {"deterministic": "YES"}
NPT = {"ensemble": "NPT", "tpcontrol": "LANGEVIN", "barostat": "MTK", "gamma_t": 5, "tau_p": 1, "temperature": 300}


@pytest.fixture(scope="module")
def dodecahedron() -> MolecularSystem:
    """A peptide in 449 atoms of salt water; half of the height, 7.5 angstrom, is less than the cutoff."""
    return cut_out("peptide", 30.0, rhombic_dodecahedron(21.2))


@pytest.fixture(scope="module")
def folder(dodecahedron, tmp_path_factory) -> Path:
    """Its bricks, and restart files of one rank after a short minimisation."""
    folder = tmp_path_factory.mktemp("triclinic")
    inp = systems.control(folder / "raw.inp", INPUT=write_input(dodecahedron, folder), ENERGY=RUN,
                          OUTPUT={"rstfile": folder / "raw_().rst"})
    run("setup", inp)
    run("run", systems.control(folder / "relax.inp", INPUT=source(folder, "raw"), ENERGY=RUN,
                               OUTPUT={"rstfile": folder / "start1_().rst"}, MINIMIZE={"nsteps": 200}))
    return folder


def source(folder: Path, name: str) -> dict[str, object]:
    return {"topologyfile": folder / "topology.h5", "rstfile": folder / f"{name}_().rst"}


def run(command: str, control: Path, ranks: int = 1, program: str = "chromamd") -> str:
    done = systems.run(command, control, ranks, program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dynamics(folder: Path, ranks: int, name: str, steps: int = 20, start: str | None = None,
             program: str = "chromamd", every: int = 0, **sections: dict) -> tuple[Restart, dict[str, np.ndarray]]:
    """State after some steps of 2 fs, and the energy table."""
    domains = ranks - sections.get("COMM", {}).get("pme_ranks", 0)
    if start is None:
        start = f"start{domains}"
        if not (folder / f"{start}_0.rst").exists():
            run("setup", systems.control(folder / "setup.inp", INPUT=source(folder, "start1"), ENERGY=BITWISE,
                                         OUTPUT={"rstfile": folder / f"{start}_().rst"}), domains)
    sections = {"ENERGY": BITWISE, "ENSEMBLE": NPT, **sections}
    sections["OUTPUT"] = {"rstfile": folder / f"{name}_().rst", **sections.get("OUTPUT", {})}
    table = systems.read_table(run("run", systems.control(
        folder / f"{name}.inp", INPUT=source(folder, start),
        CONSTRAINTS={"rigid_bond": "YES"},
        DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": 5, "iseed": 5, "stoptr_period": 10,
                  "crdout_period": every}, **sections),
        ranks, program))
    return read_restart(folder / f"{name}_().rst", n_atoms(folder), domains), table


def n_atoms(folder: Path) -> int:
    return int((folder / "shards/bricks.txt").read_text().splitlines()[3].split()[1])


@pytest.mark.parametrize(("precision", "energy", "force"), [
    ("double", 3e-7, 3e-8), pytest.param("mixed", 1e-5, 1e-4, marks=pytest.mark.release)])
def test_energies_are_those_of_two_cells_in_a_rectangular_box(dodecahedron, tmp_path, precision, energy, force):
    """Ewald summation there, a fine mesh here: the pairs are the same to round-off, and the waves to the mesh."""
    theirs = reference_of_doubled(dodecahedron, FINE, 1e-9)
    for ranks in (1, 3) if precision == "double" else (1,):
        ours = chromamd_energy(dodecahedron, tmp_path, precision, FINE, ranks, pme_nspline=8)
        assert_agree(ours, theirs, energy, force)
        if precision == "double":
            assert sum(ours[0][column] for column in ENERGY_COLUMNS["lennard_jones"]) == \
                pytest.approx(theirs[0]["lennard_jones"], rel=1e-12)


@pytest.mark.parametrize(("ranks", "sections"), [
    (2, {}), (4, {}),
    (4, {"COMM": {"method": "MIDPOINT"}}),
    (3, {"COMM": {"pattern": "STAGED"}}),
    (3, {"COMM": {"pme_ranks": 1}}),
    pytest.param(6, {"COMM": {"pattern": "FULL", "fft": "SLAB"}}, marks=pytest.mark.release),
    pytest.param(5, {"COMM": {"overlap": "YES", "transport": "ONE_SIDED"}}, marks=pytest.mark.release)])
def test_bits_do_not_depend_on_ranks(folder, ranks, sections):
    """Twenty steps at constant pressure: pairs, SETTLE and SHAKE, waves and the barostat."""
    one, one_table = dynamics(folder, 1, "one")
    assert one.box.shape == (3, 3) and one.box[2, 2] != rhombic_dodecahedron(21.2)[2, 2]
    many, table = dynamics(folder, ranks, "many", **sections)
    np.testing.assert_array_equal(many.box, one.box)
    np.testing.assert_array_equal(many.velocity, one.velocity)
    np.testing.assert_array_equal(many.position, one.position)
    assert all(np.array_equal(table[name], one_table[name]) for name in one_table)


def test_a_run_goes_on_from_its_restart_files_bit_by_bit(folder):
    """Also on other ranks; the shape is in the files."""
    whole, _ = dynamics(folder, 1, "one")
    dynamics(folder, 1, "half", 10)
    rest, _ = dynamics(folder, 1, "rest", 10, start="half")
    np.testing.assert_array_equal(rest.box, whole.box)
    np.testing.assert_array_equal(rest.position, whole.position)
    lean = whole.box[[1, 2, 2], [0, 0, 1]] / whole.box[[1, 2, 2], [1, 2, 2]]
    vectors = rhombic_dodecahedron(21.2)
    np.testing.assert_allclose(lean, vectors[[1, 2, 2], [0, 0, 1]] / vectors[[1, 2, 2], [1, 2, 2]], rtol=1e-14)


def test_energy_is_conserved(folder):
    """At constant energy and, with what the pistons hold, at constant pressure, which takes the virial.

    In half a picosecond it keeps to a hundredth of the kinetic energy, its trend to half of that, while the energy
    without the pistons moves by twenty times as much and the volume by a thirtieth.
    """
    dynamics(folder, 1, "warm", 400, ENERGY=RUN, ENSEMBLE={"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.05})
    for ensemble in ({"ensemble": "NVE"}, NPT | {"tpcontrol": "NHC", "tau_t": 0.5}):
        _, table = dynamics(folder, 1, "long", 250, start="warm", program="chromamd-double", ENERGY=RUN,
                            ENSEMBLE=ensemble)
        conserved = table["CONSERVED_ENE"]
        trend = np.polyfit(np.arange(len(conserved)), conserved, 1)[0] * len(conserved)
        assert abs(trend) < 0.005 * table["KINETIC_ENE"].mean()
        assert np.ptp(conserved) < 0.01 * table["KINETIC_ENE"].mean()
    assert np.ptp(table["TOTAL_ENE"]) > 20 * np.ptp(conserved) and np.ptp(table["VOLUME"]) > 0.03 * table["VOLUME"][0]


def sheared(system: MolecularSystem, *changes: tuple[int, int, int]) -> MolecularSystem:
    """The same lattice by other vectors: ``changes`` adds so many times the second vector to the first."""
    vectors = np.diag(system.box)
    for change, of, times in changes:
        vectors[change] += times * vectors[of]
    return replace(system, box=vectors)


@pytest.mark.parametrize(("energy", "ranks"), [({}, 1), ({"vdw": "PME"}, 1), ({"electrostatic": "CUTOFF"}, 2)])
@pytest.mark.release
def test_other_vectors_of_a_cube_change_nothing(tmp_path, energy, ranks):
    """Pairs are the same to round-off; waves to the mesh, whose lines run another way: 4.5e-8 at 0.4 angstrom."""
    cube = solvated("peptide", 26.0)
    options = replace(FINE, alpha=0.4, grid=(64, 64, 64))
    results = []
    for k, system in enumerate((cube, sheared(cube, (2, 0, 1)), sheared(cube, (1, 0, -1), (2, 1, 1)))):
        (tmp_path / str(k)).mkdir()
        results.append(chromamd_energy(system, tmp_path / str(k), "double", options, ranks, pme_nspline=8, **energy))
    for ours, force in results[1:]:
        for column in ("VDWAALS", "ELECT", "POTENTIAL_ENE"):
            assert ours[column] == pytest.approx(results[0][0][column], rel=1e-7 if "PME" in str(energy) or
                                                 column == "POTENTIAL_ENE" else 1e-12), column
        assert relative_rms(force, results[0][1]) < 1e-6


def test_pressures_along_the_axes_are_those_of_the_cube(tmp_path):
    """The virial of all terms, of the waves too, at the first step of rigid molecules; 0.1 atm of some thousands."""
    cube = solvated("peptide", 26.0)
    pressures = []
    for k, system in enumerate((cube, sheared(cube, (1, 0, -1), (2, 1, 1)))):
        folder = tmp_path / str(k)
        folder.mkdir()
        energy = RUN | {"pme_nspline": 8, "pme_max_spacing": 0.5}
        run("setup", systems.control(folder / "setup.inp", INPUT=write_input(system, folder), ENERGY=energy,
                                     OUTPUT={"rstfile": folder / "start_().rst"}), program="chromamd-double")
        _, table = dynamics(folder, 1, "one", 1, start="start", program="chromamd-double", ENERGY=energy)
        pressures.append([table[f"PRESS{axis}"][0] for axis in ("XX", "YY", "ZZ")])
    assert np.ptp(pressures[0]) > 100
    np.testing.assert_allclose(pressures[1], pressures[0], atol=0.1)


def test_restraints_see_nearest_images(tmp_path):
    """Of positions, of a distance across a face, and of a shape, whose atoms lie on both sides of it."""
    cube = solvated("peptide", 26.0)
    cube = replace(cube, position=cube.position + [0, 0, 14.0])
    results = []
    for k, system in enumerate((cube, sheared(cube, (1, 0, -1), (2, 1, 1)))):
        entries = write_input(system, tmp_path / str(k))
        reference = replace(system, position=np.round(system.position + [0.4, -0.3, 0.2] * np.sin(system.position), 3))
        entries |= {"reffile": write_input(reference, tmp_path / f"{k}r")["shardfile"]}
        control = systems.control(
            tmp_path / f"{k}.inp", INPUT=entries, OUTPUT={"forcefile": tmp_path / "force"},
            ENERGY=RUN | {"electrostatic": "CUTOFF"}, SELECTION={"group1": "ai:1-60", "group2": "ai:100-130"},
            RESTRAINTS={"nfunctions": 3, "function1": "POSI", "constant1": 2, "select_index1": 1, "function2": "DIST",
                        "constant2": 3, "reference2": 4, "select_index2": "1 2", "function3": "RMSD", "constant3": 50,
                        "reference3": 0, "select_index3": 2})
        out = run("energy", control, 1 + 2 * k, "chromamd-double")
        results.append((systems.read_energies(out)["RESTRAINT_TOTAL"], systems.read_forces(tmp_path / "force")))
    (energy, force), (ours, our_force) = results
    assert energy > 10 and ours == pytest.approx(energy, rel=1e-9)
    np.testing.assert_allclose(our_force, force, atol=1e-8 * np.abs(force).max())


def test_trajectories_tell_the_cell(folder, tmp_path):
    """DCD, XTC and the merged files of domains, read by MDAnalysis: edges, angles, and atoms in the cell."""
    names = {"dcd": "frames.dcd", "xtc": "frames.xtc", "ranks": "frames_().part"}
    frames = {}
    for kind, name in names.items():
        end, _ = dynamics(folder, 1, "frames", 10, OUTPUT={"dcdfile": tmp_path / name}, every=5)
        if kind == "ranks":
            run("merge", systems.control(tmp_path / "merge.inp", INPUT={"topologyfile": folder / "topology.h5",
                                                                        "dcdfile": tmp_path / name},
                                         OUTPUT={"dcdfile": tmp_path / "merged.dcd"}))
            name = "merged.dcd"
        universe = MDAnalysis.Universe.empty(len(end.position), trajectory=True).load_new(str(tmp_path / name))
        assert len(universe.trajectory) == 2
        frames[kind] = universe.trajectory[-1]
        np.testing.assert_allclose(triclinic_vectors(frames[kind].dimensions), end.box, atol=2e-4)
        apart = nearest(frames[kind].positions - end.position, end.box)
        assert np.abs(apart).max() < (0.006 if kind == "xtc" else 1e-4)
        share = straight(frames[kind].positions[-3:], end.box) / np.diag(end.box)
        assert (share > -0.1).all() and (share < 1.1).all()


@pytest.mark.parametrize(("change", "keys", "words"), [
    ("semi", {"ENSEMBLE": NPT | {"isotropy": "SEMI-ISO"}}, "isotropy"),
    ("wide", {"ENERGY": BITWISE | {"pairlistdist": 10.7}}, "half the distance between images"),
])
def test_what_is_not_known_is_refused(folder, change, keys, words):
    sections = {"ENERGY": BITWISE, "ENSEMBLE": NPT, **keys}
    control = systems.control(folder / "bad.inp", INPUT=source(folder, "start1"), DYNAMICS={"nsteps": 1}, **sections)
    done = systems.run("run", control)
    assert done.returncode == 3 and words in systems.sentence(done)


def test_vectors_that_lean_too_far_are_refused(tmp_path):
    """An edge that leans by more than the one before it is long."""
    cube = solvated(None, 25.0)
    control = systems.control(tmp_path / "setup.inp", INPUT=write_input(sheared(cube, (2, 0, 2)), tmp_path), ENERGY=RUN,
                              OUTPUT={"rstfile": tmp_path / "a_().rst"})
    done = systems.run("setup", control)
    assert done.returncode == 3 and "by its shortest edges" in systems.sentence(done)


def test_vectors_of_boxes_agree_with_other_readers():
    """Lengths and angles by MDAnalysis; nearest images and places by trying all."""
    rng = np.random.default_rng(3)
    for vectors in (rhombic_dodecahedron(30.0), truncated_octahedron(30.0)):
        lengths = np.linalg.norm(vectors, axis=1)
        cosines = [vectors[i] @ vectors[j] / lengths[i] / lengths[j] for i, j in ((1, 2), (0, 2), (0, 1))]
        angles = np.degrees(np.arccos(cosines))
        np.testing.assert_allclose(vectors_from_angles(lengths, angles), vectors, atol=1e-9)
        np.testing.assert_allclose(vectors, triclinic_vectors(np.concatenate([lengths, angles])), atol=1e-4)
        # An edge in the middle between two of the lattice may lean to either side.
        np.testing.assert_allclose(np.abs(reduced(vectors + [[0, 0, 0], vectors[0], vectors[0] - 2 * vectors[1]])),
                                   np.abs(vectors), atol=1e-9)
        position = rng.uniform(-35, 35, (200, 3))
        share = wrapped(position, vectors) @ np.linalg.inv(vectors)
        assert (share > -1e-12).all() and (share < 1 + 1e-12).all()
        np.testing.assert_allclose(nearest(position - wrapped(position, vectors), vectors), 0, atol=1e-9)
        short = rng.uniform(-1, 1, (200, 3)) * np.diag(vectors).min() / 4
        np.testing.assert_allclose(nearest_image(short + rng.integers(-1, 2, (200, 3)) @ vectors, vectors), short,
                                   atol=1e-9)


def test_solvated_dodecahedron(tmp_path):
    """Leaning bricks, read domain by domain: energies of every rank count, those of two cells in a rectangular box, and
    of OpenMM's CPU platform, which takes the solute in one piece as the bricks hold it. The run goes on from them."""
    solute = fixture("peptide")[0]
    manifest = solvate(solute, SolvateSection(box="dodecahedron", padding=8.0, brick_edge=15.0), 1, 1,
                       tmp_path / "shards")
    assert len(manifest.shards) >= 8
    counts = {key: count for key, count in manifest.counts.items() if key != "solute"}
    topology = make_topology(solute, counts)
    topology.write(tmp_path / "topology.h5")
    box, position = read_shards(tmp_path / "shards")
    options = replace(FINE, grid=(72, 72, 72))
    theirs = reference_of_doubled(MolecularSystem(topology, position, box), options, 1e-9)
    entries = {"topologyfile": tmp_path / "topology.h5", "shardfile": tmp_path / "shards" / "bricks.txt"}
    for ranks in (1, 4):
        assert_agree(evaluate(entries, tmp_path, "double", options, ranks, pme_nspline=8), theirs, 3e-7, 3e-8)
    whole = system_from_topology(topology, box, options, by_term=False)
    context = openmm.Context(whole, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("CPU"))
    context.setPositions(position / 10)
    found = context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
    # Splines of order 5 and single precision.
    assert found == pytest.approx(sum(theirs[0].values()), rel=5e-5)
    run("setup", systems.control(tmp_path / "setup.inp", INPUT=entries, ENERGY=RUN,
                                 OUTPUT={"rstfile": tmp_path / "start_().rst"}), 3)
    run("run", systems.control(tmp_path / "relax.inp", INPUT=source(tmp_path, "start"), ENERGY=RUN,
                               OUTPUT={"rstfile": tmp_path / "end_().rst"}, MINIMIZE={"nsteps": 5}), 3)
    # Molecules that the box has parted are put together again beside where they were built.
    end = read_restart(tmp_path / "end_().rst", topology.n_atoms)
    again = gathered(end.position[:solute.n_atoms], solute, end.box, position[:solute.n_atoms])
    assert np.abs(again - position[:solute.n_atoms]).max() < 1.0
    parted = BuiltSystem(topology, wrapped(position, box), box).whole(tmp_path)
    bonds = topology.term("bond")["atoms"]
    length, built = (np.linalg.norm(np.diff(np.asarray(one)[bonds], axis=1)[:, 0], axis=1)
                     for one in (parted.position[:], position))
    assert length == pytest.approx(built, abs=1e-6)
