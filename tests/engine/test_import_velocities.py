"""`chromabuild import`: velocities of every program reach the engine's restart files, and files that are not whole or
not of this system are told apart."""

from pathlib import Path

import numpy as np
import openmm
import pytest
from openmm import unit
from support.command_line import chromabuild
from support.engine_energies import energy_section
from support.foreign_files import assert_same_topology, write_amber, write_gromacs
from support.genesis_files import write_genesis_restart
from support.molecular_systems import solvated

from chromabuild.base.box_vectors import edges_and_angles
from chromabuild.base.errors import BadInputError
from chromabuild.export.amber import write_prmtops, write_restart
from chromabuild.export.gromacs.coordinates import write_gro
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.coordinate_files import read_cell, read_coordinates, read_velocities
from chromabuild.forcefield.import_files import import_system, import_topology
from chromabuild.simulate import chromamd
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.simulate.restart_file import read_restart

AKMA = np.sqrt(418.4)
"""Angstrom/ps in the unit of velocity in which energies are kcal/mol: 1 kcal = 418.4 u angstrom^2/ps^2."""


@pytest.fixture(scope="module")
def system() -> BuiltSystem:
    """A peptide in salt water at 300 K, its rigid bonds included."""
    made = solvated("peptide", 30.0)
    mass = made.topology.masses()
    velocity = np.random.default_rng(2).normal(size=made.position.shape) * np.sqrt(1.987204e-3 * 300 / mass)[:, None]
    return BuiltSystem(made.topology, made.position, made.box, None, velocity * AKMA)


@pytest.fixture(scope="module")
def prmtop(system, tmp_path_factory) -> Path:
    return write_prmtops(system, tmp_path_factory.mktemp("amber"), 1.0)[0]


def write_namd(path: Path, values: np.ndarray) -> Path:
    path.write_bytes(np.int32(len(values)).tobytes() + values.astype("<f8").tobytes())
    return path


def write_text_restart(path: Path, system: BuiltSystem) -> Path:
    rows = np.concatenate([system.position.ravel(), (system.velocity / 20.455).ravel(), system.box, [90.0] * 3])
    cells = [f"{value:12.7f}" for value in rows]
    cuts = [0, system.position.size, 2 * system.position.size, len(cells)]
    lines = ["x", f"{len(system.position):6d}  0.1000000E+02"]
    for a, b in zip(cuts[:-1], cuts[1:], strict=True):
        lines += ["".join(cells[k:min(k + 6, b)]) for k in range(a, b, 6)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_openmm_state(path: Path, system: BuiltSystem) -> Path:
    made = openmm.System()
    made.setDefaultPeriodicBoxVectors(*np.diag(system.box / 10))
    for mass in system.topology.masses():
        made.addParticle(mass)
    context = openmm.Context(made, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(system.position * unit.angstrom)
    context.setVelocities(system.velocity * unit.angstrom / unit.picosecond)
    path.write_text(openmm.XmlSerializer.serialize(context.getState(positions=True, velocities=True)))
    return path


def files_of(program: str, folder: Path, system: BuiltSystem) -> tuple[Path, dict]:
    """Coordinates, and what else the import is given. No file has the suffix of its kind."""
    path, given = folder / "state of a run.txt", {}
    if program == "amber":
        write_restart(path, system)
    elif program == "amber text":
        write_text_restart(path, system)
    elif program == "gromacs":
        write_gro(path, system)
    elif program == "openmm":
        write_openmm_state(path, system)
    elif program == "genesis":
        write_genesis_restart(path, system.position, system.velocity / AKMA, system.box)
    else:
        write_namd(path, system.position)
        x, y, z = system.box
        (folder / "a.xsc").write_text(f"# NAMD\n#$LABELS step a_x\n0 {x} 0 0 0 {y} 0 0 0 {z} 0 0 0\n")
        given = {"velocities": write_namd(folder / "a vel", system.velocity / AKMA), "cell": folder / "a.xsc"}
    return path, given


# Half of the last digit: gro 5e-6 nm/ps, text of AMBER 5e-8 of its unit. That unit is a float of 32 bits in NetCDF
# files, and that of GENESIS and NAMD has nine digits: both within 1e-7.
@pytest.mark.parametrize(("program", "last_digit"), [
    ("amber", 0), ("amber text", 5e-8 * 20.455), ("gromacs", 5e-5), ("openmm", 0), ("genesis", 0), ("namd", 0)])
def test_velocities_reach_the_restart_files(system, prmtop, tmp_path, program, last_digit):
    """Of a prmtop and the coordinates of each program, by `chromamd setup` on the control file of the import."""
    coordinates, given = files_of(program, tmp_path, system)
    folder = tmp_path / "a folder"
    summary = import_system(prmtop, coordinates, [], folder, **given)
    assert summary["velocities"].startswith("kept, ") and summary["outputs"][-1] == str(folder / "setup.inp")
    chromamd.launch("setup", folder / "setup.inp", 1)
    found = read_restart(folder / "start_().rst", system.topology.n_atoms)
    np.testing.assert_allclose(found.velocity, system.velocity, rtol=1e-7, atol=1.01 * last_digit)
    apart = found.position - system.position
    assert np.abs(apart - system.box * np.round(apart / system.box)).max() < 5.1e-4
    np.testing.assert_allclose(found.box, system.box, atol=5.1e-4)


def test_dynamics_begin_with_them(system, prmtop, tmp_path):
    """The kinetic energy of the first row, without rigid bonds, is theirs, and no other of the seed."""
    write_restart(tmp_path / "a.rst7", system)
    import_system(prmtop, tmp_path / "a.rst7", [], tmp_path)
    chromamd.launch("setup", tmp_path / "setup.inp", 1)
    chromamd.write_control(tmp_path / "run.inp", {
        "INPUT": {"topologyfile": tmp_path / "topology.h5", "rstfile": tmp_path / "start_().rst"},
        "OUTPUT": {"logfile": tmp_path / "run.log"},
        "ENERGY": energy_section(NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(32, 32, 32))),
        "DYNAMICS": {"nsteps": 1, "timestep": 0.0001, "eneout_period": 1},
        "CONSTRAINTS": {"rigid_bond": False}, "ENSEMBLE": {"ensemble": "NVE", "temperature": 100}})
    chromamd.launch("run", tmp_path / "run.inp", 1, "double")
    kinetic = 0.5 * np.sum(system.topology.masses()[:, None] * (system.velocity / AKMA) ** 2)
    # The motion of the centre of mass may be taken out: 1/n of the energy.
    assert EnergyLog.read(tmp_path / "run.log")["KINETIC_ENE"][0] == pytest.approx(
        kinetic, rel=3 / system.topology.n_atoms)


def test_without_velocities_no_old_ones_are_left(system, prmtop, tmp_path):
    write_restart(tmp_path / "a.rst7", system)
    assert len(import_system(prmtop, tmp_path / "a.rst7", [], tmp_path)["outputs"]) == 4
    write_namd(tmp_path / "a.coor", system.position)
    summary = import_system(prmtop, tmp_path / "a.coor", [], tmp_path)  # the box is that of the prmtop
    assert summary["velocities"] == "none: they are drawn" and not (tmp_path / "state.bin").exists()
    assert "statefile" not in (tmp_path / "setup.inp").read_text()
    np.testing.assert_allclose(summary["box"], system.box, atol=5.1e-4)


@pytest.mark.parametrize(("change", "words"), [
    ("cut", "vel has 11,111 atoms by its first number and room for .*: it is cut short"),
    ("other", "velocities of 5 atoms, the structure file has"), ("none", "holds no velocities"),
    ("positions", "K: are they velocities"), ("nan", "not numbers"), ("missing", "No such file"),
    ("text", "is not 6 numbers of 9 characters"), ("trr", "is a trr file of GROMACS: write a gro file"),
    ("packed", "unpack it with gunzip"), ("xml", "State of OpenMM"), ("netcdf", "NetCDF restart"),
    ("half", "numbers, and .* atoms have"), ("xsc", "no extended system file"), ("both", "both say what the box is")])
def test_bad_velocities_are_told(system, prmtop, tmp_path, change, words):
    """Each by one sentence, before anything is written."""
    write_restart(tmp_path / "a.rst7", replace_velocity(system, None))
    path, more = tmp_path / "a.vel", {}
    if change == "cut":
        path.write_bytes(np.int32(11111).tobytes() + bytes(24 * 700))
    elif change == "other":
        write_namd(path, system.velocity[:5])
    elif change == "none":
        path = tmp_path / "a.rst7"
    elif change == "positions":
        write_namd(path, system.position)
    elif change == "nan":
        write_namd(path, np.full_like(system.velocity, np.nan))
    elif change == "text":
        write_gro(path, system)
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:9], lines[9][:50], *lines[10:]]) + "\n")
    elif change in ("trr", "packed"):
        path.write_bytes({"trr": b"\x00\x00\x07\xc9", "packed": b"\x1f\x8b"}[change] + bytes(100))
    elif change == "xml":
        path.write_text(write_openmm_state(path, system).read_text()[:5000])
    elif change == "netcdf":
        path.write_bytes((tmp_path / "a.rst7").read_bytes()[:3000])
    elif change == "half":
        lines = write_text_restart(path, system).read_text().splitlines()
        path.write_text("\n".join(lines[:-3]) + "\n")
    elif change in ("xsc", "both"):
        path.write_text("# only a title\n")
        more = {"cell": path, "box": system.box if change == "both" else None}
        path = None
    with pytest.raises(BadInputError, match=words):
        import_system(prmtop, tmp_path / "a.rst7", [], tmp_path / "out", velocities=path, **more)
    assert not (tmp_path / "out").exists()


def replace_velocity(system: BuiltSystem, velocity: np.ndarray | None) -> BuiltSystem:
    return BuiltSystem(system.topology, system.position, system.box, None, velocity)


def test_boxes_whose_edges_lean_are_kept(system, prmtop, tmp_path):
    """Vectors of gro and xsc, angles of AMBER's text: reduced, edges in 0.001 angstrom; nine numbers may be upright."""
    write_gro(tmp_path / "a.gro", system)
    lines = (tmp_path / "a.gro").read_text().splitlines()
    vectors = np.array([[30, 0, 0], [9, 30, 0], [9, -9, 30]], dtype=float)
    for name, tail in (("flat", "0 0 0 0 0 0"), ("tilted", "0 0 0.9 0 0.9 -0.9"), ("far", "0 0 0.9 0 5.7 5.1")):
        (tmp_path / f"{name}.gro").write_text("\n".join([*lines[:-1], f"{lines[-1]} {tail}"]) + "\n")
    text = write_text_restart(tmp_path / "a.rst7", system).read_text()
    angles = edges_and_angles(vectors)
    (tmp_path / "text.rst7").write_text(
        text[:text.rstrip().rfind("\n") + 1] + "".join(f"{value:12.7f}" for value in angles) + "\n")
    boxes = {}
    for name in ("flat.gro", "tilted.gro", "text.rst7", "far.gro"):
        told = import_system(prmtop, tmp_path / name, [], tmp_path / name[:4])
        box = np.array((tmp_path / name[:4] / "shards/bricks.txt").read_text().split()[3:9])
        boxes[name] = np.diag(box[:3].astype(float)) if name == "flat.gro" else box.astype(float)
        assert ("tilt" in told) == (name != "flat.gro")
    np.testing.assert_allclose(boxes["flat.gro"], np.diag([30.0] * 3))
    for name in ("tilted.gro", "far.gro", "text.rst7"):
        np.testing.assert_allclose(boxes[name], [30, 30, 30, 9, 9, -9], atol=1e-4, err_msg=name)
    with pytest.raises(BadInputError, match=r"tilted.gro has a box with angles .* of which --box says nothing"):
        import_system(prmtop, tmp_path / "tilted.gro", [], tmp_path / "edges", box=[30, 30, 30])
    (tmp_path / "none.rst7").write_text(
        text[:text.rstrip().rfind("\n") + 1] + "".join(f"{value:12.7f}" for value in (30, 30, 30, 30, 30, 120)) + "\n")
    with pytest.raises(BadInputError, match=r"none.rst7: three edges with angles of 30, 30, 120 degrees .* no box"):
        import_system(prmtop, tmp_path / "none.rst7", [], tmp_path / "none")
    (tmp_path / "a.xsc").write_text("#\n0 30 0 0 10 28 0 10 9 26 0 0 0\n")
    vectors = np.array([[30, 0, 0], [10, 28, 0], [10, 9, 26]], dtype=float)
    angle = np.degrees(np.arccos(vectors[1] @ vectors[2] / np.prod(np.linalg.norm(vectors[1:], axis=1))))
    np.testing.assert_allclose(read_cell(tmp_path / "a.xsc")[[0, 3]], [30, angle])
    (tmp_path / "b.xsc").write_text("#\n0 30 1 0 10 28 0 10 9 26 0 0 0\n")
    with pytest.raises(BadInputError, match=r"b.xsc has box vectors of which the first is not along x"):
        read_cell(tmp_path / "b.xsc")


def test_command_tells_what_it_kept(system, prmtop, tmp_path):
    write_namd(tmp_path / "my run.coor", system.position)
    write_namd(tmp_path / "my run.vel", system.velocity / AKMA)
    done = chromabuild("import", prmtop, "my run.coor", "--velocities", "my run.vel", "-o", "my md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "velocities: kept, " in done.stdout and "next: chromamd setup 'my md/setup.inp'" in done.stdout
    temperature = float(done.stdout.split("velocities: kept, ")[1].split()[0])
    # 3 n - 3 - constraints degrees of freedom, over velocities that were drawn for 3 n.
    degrees = 3 * system.topology.n_atoms
    held = len(system.topology.term("constraint")["atoms"]) + 3
    assert temperature == pytest.approx(300 * degrees / (degrees - held), rel=4 * np.sqrt(2 / degrees))


@pytest.mark.parametrize("write", [write_amber, write_gromacs])
def test_one_molecule_of_each_kind_is_enough(system, tmp_path, write):
    """What one of each kind gives is what OpenMM makes of the whole file; an empty file of local restraints asks for
    that."""
    structure, _ = write(tmp_path, system.topology, system.position, system.box)
    (tmp_path / "none.txt").write_text("")
    ours, whole = import_topology(structure, []), import_topology(structure, [], local=tmp_path / "none.txt")
    assert_same_topology(ours, whole)
    assert len(ours.run_count) <= len(whole.run_count)


def test_a_pdb_of_several_models_gives_the_first(tmp_path):
    lines = [f"ATOM  {k:5d}  X   RES A   1    {k:8.3f}{2:8.3f}{-3:8.3f}" for k in (1, 2)]
    (tmp_path / "a.pdb").write_text("\n".join(["MODEL        1", *lines, "ENDMDL", "MODEL        2", *lines, "ENDMDL"]))
    found = read_coordinates(tmp_path / "a.pdb")
    assert found.position.tolist() == [[1, 2, -3], [2, 2, -3]] and found.box is None
    with pytest.raises(BadInputError, match="holds no velocities"):
        read_velocities(tmp_path / "a.pdb")
