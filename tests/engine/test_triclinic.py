"""Boxes whose edges lean: rhombic dodecahedra and truncated octahedra.

OpenMM's Reference platform judges a rhombic dodecahedron by the rectangular box that holds two of its cells. In the
deterministic mode the half shell on one rank judges all else: other ranks, halo patterns, transports, schemes.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import openmm
import pytest
from support import systems
from support.engine_energies import (
    ENERGY_COLUMNS,
    assert_agree,
    chromamd_energy,
    energy_section,
    relative_rms,
    write_input,
)
from support.molecular_systems import MolecularSystem, solvated
from support.triclinic_systems import (
    alpha_of,
    cut_out,
    nearest,
    reference_of_doubled,
    rhombic_dodecahedron,
    truncated_octahedron,
)

from chromabuild.base.box_vectors import nearest_image, reduced, straight, vectors_from_angles, wrapped
from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology
from chromabuild.simulate.restart_file import Restart, read_restart

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
             program: str = "chromamd", **sections: dict) -> tuple[Restart, dict[str, np.ndarray]]:
    """State after some steps of 2 fs, and the energy table."""
    domains = ranks - sections.get("COMM", {}).get("pme_ranks", 0)
    if start is None:
        start = f"start{domains}"
        if not (folder / f"{start}_0.rst").exists():
            run("setup", systems.control(folder / "setup.inp", INPUT=source(folder, "start1"), ENERGY=BITWISE,
                                         OUTPUT={"rstfile": folder / f"{start}_().rst"}), domains)
    sections = {"ENERGY": BITWISE, "ENSEMBLE": NPT, **sections}
    table = systems.read_table(run("run", systems.control(
        folder / f"{name}.inp", INPUT=source(folder, start), OUTPUT={"rstfile": folder / f"{name}_().rst"},
        CONSTRAINTS={"rigid_bond": "YES"},
        DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": 5, "iseed": 5, "stoptr_period": 10}, **sections),
        ranks, program))
    return read_restart(folder / f"{name}_().rst", n_atoms(folder)), table


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
    """At constant energy and, by what the pistons hold, at constant pressure, which takes the virial."""
    for ensemble in ({"ensemble": "NVE"}, NPT | {"tpcontrol": "NHC", "tau_t": 1}):
        _, table = dynamics(folder, 1, "long", 500, program="chromamd-double", ENERGY=RUN, ENSEMBLE=ensemble)
        conserved = table["CONSERVED_ENE"]
        print(ensemble, np.ptp(conserved), conserved[[0, -1]], np.ptp(table["TOTAL_ENE"]), np.ptp(table["VOLUME"]), table["TEMPERATURE"].mean())
