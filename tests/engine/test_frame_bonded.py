"""Bonded terms and 1-4 pairs against OpenMM's Reference platform, and their independence of the domains."""

from pathlib import Path

import numpy as np
import openmm
import pytest
from openmm import unit
from support import systems

KCAL, ANGSTROM, RADIAN = unit.kilocalorie_per_mole, unit.angstrom, unit.radian
BOX = np.array([41.0, 37.0, 39.0])
ENERGY = {"cutoffdist": 7, "switchdist": 7, "pairlistdist": 8}
PARTS = ["BOND", "ANGLE", "UREY-BRADLEY", "DIHEDRAL", "IMPROPER", "CMAP", "PAIR14_VDW", "PAIR14_ELECT"]


def openmm_parts(molecule: systems.Molecule, position: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
    """Energies (kcal/mol) of every kind and the forces (kcal/mol/angstrom) of all together, without periodicity."""
    system = openmm.System()
    for mass in molecule.mass:
        system.addParticle(mass)
    k2 = KCAL / ANGSTROM**2
    bond, urey = openmm.HarmonicBondForce(), openmm.HarmonicBondForce()
    for force, terms in ((bond, molecule.bonds), (urey, molecule.urey_bradley)):
        for (i, j), k, r0 in terms:
            force.addBond(i, j, r0 * ANGSTROM, 2 * k * k2)  # OpenMM: half k (r - r0)^2
    angle = openmm.HarmonicAngleForce()
    for (i, j, k), constant, theta0 in molecule.angles:
        angle.addAngle(i, j, k, theta0 * unit.degree, 2 * constant * KCAL / RADIAN**2)
    dihedral = openmm.PeriodicTorsionForce()
    for (i, j, k, m), constant, n, phase in molecule.dihedrals:
        dihedral.addTorsion(i, j, k, m, n, phase * unit.degree, constant * KCAL)
    improper = openmm.CustomTorsionForce("k*min(d, 2*pi-d)^2; d=abs(theta-theta0); pi=3.141592653589793")
    improper.addPerTorsionParameter("k")
    improper.addPerTorsionParameter("theta0")
    for (i, j, k, m), constant, psi0 in molecule.impropers:
        improper.addTorsion(i, j, k, m, [(constant * KCAL).value_in_unit(unit.kilojoule_per_mole), np.radians(psi0)])
    cmap = openmm.CMAPTorsionForce()
    for energy in systems.CMAP:
        cmap.addMap(len(energy), (energy.T.ravel() * KCAL).value_in_unit(unit.kilojoule_per_mole))
    for (i, j, k, m, n), number in molecule.cmap:
        cmap.addTorsion(number, i, j, k, m, j, k, m, n)
    lj = openmm.CustomBondForce("4*epsilon*((sigma/r)^12-(sigma/r)^6)")
    elec = openmm.CustomBondForce("qq/r")
    for force, names in ((lj, ("sigma", "epsilon")), (elec, ("qq",))):
        for name in names:
            force.addPerBondParameter(name)
    for (i, j), product, sigma, epsilon in molecule.pair14:
        lj.addBond(i, j, [sigma / 10, epsilon * 4.184])
        elec.addBond(i, j, [product * systems.COULOMB * 0.4184])
    for group, force in enumerate((bond, angle, urey, dihedral, improper, cmap, lj, elec)):
        force.setForceGroup(group)
        system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(position / 10)
    energy = {name: context.getState(getEnergy=True, groups={g}).getPotentialEnergy().value_in_unit(KCAL)
              for g, name in enumerate(PARTS)}
    forces = context.getState(getForces=True).getForces(asNumpy=True).value_in_unit(KCAL / ANGSTROM)
    return energy, np.array(forces)


def evaluate(folder: Path, runs: list, position: np.ndarray, ranks: int = 1, threads: int = 1, rigid: bool = False,
             boundary: dict | None = None) -> tuple[dict[str, float], np.ndarray]:
    """Energies and forces of our program, charges and Lennard-Jones of ordinary pairs being absent."""
    systems.write_topology(folder / "t.h5", runs, lj=False)
    systems.write_bricks(folder, runs, position, BOX)
    inp = systems.control(
        folder / "e.inp", INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"},
        OUTPUT={"forcefile": folder / "forces"}, ENERGY=ENERGY, BOUNDARY=boundary or {},
        CONSTRAINTS={"rigid_bond": "YES" if rigid else "NO"})
    done = systems.run("energy", inp, ranks, threads=threads)
    assert done.returncode == 0, done.stderr
    return systems.read_energies(done.stdout), systems.read_forces(folder / "forces")


@pytest.fixture(scope="module")
def molecule() -> tuple[systems.Molecule, np.ndarray]:
    molecule, position = systems.chain(40, np.random.default_rng(11), charged=False)
    # 1-4 pairs carry their own charge products; the atoms' own charges stay zero so that nothing else acts.
    rng = np.random.default_rng(12)
    molecule.pair14 = [(pair, rng.normal(scale=0.1), sigma, epsilon) for pair, _, sigma, epsilon in molecule.pair14]
    return molecule, np.round(position, 3)


def test_terms_agree_with_openmm_reference(tmp_path, molecule):
    template, position = molecule
    expected, forces = openmm_parts(template, position)
    found, found_forces = evaluate(tmp_path, [(template, 1)], position + BOX / 3)
    for name in PARTS:
        # Two codes in double precision that round differently, and pi in degrees: 1e-9 relative is generous.
        assert found[name] == pytest.approx(expected[name], rel=1e-9), name
        assert found[name] != 0, name
    assert np.abs(found_forces - forces).max() < 1e-9 * np.abs(forces).max()
    assert np.abs(found_forces.sum(axis=0)).max() < 1e-10 * np.abs(forces).max()


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_forces_do_not_depend_on_the_domains(tmp_path, molecule, ranks):
    """Molecules across faces, edges and the corner of the box and of the domains."""
    template, position = molecule
    centred = position - position.mean(axis=0)
    places = np.array([[0, 0, 0], [0.5, 0.5, 0.5], [0, 0.5, 0.25], [0.5, 0, 0], [0.25, 0.75, 0.5]]) * BOX
    runs = [(template, len(places)), (systems.water(), 30)]
    rng = np.random.default_rng(5)
    shape = np.array([[0, 0, 0], [0.957, 0, 0], [-0.24, 0.927, 0]])
    waters = (rng.random((30, 1, 3)) * BOX + shape).reshape(-1, 3)
    everything = np.concatenate([*(centred + p for p in places), waters])
    one, forces_one = evaluate(tmp_path, runs, everything)
    many, forces_many = evaluate(tmp_path, runs, everything, ranks)
    for name in PARTS:
        assert many[name] == pytest.approx(one[name], rel=1e-12), name
    assert np.abs(forces_many - forces_one).max() < 1e-10 * np.abs(forces_one).max()
    # The copies of one molecule feel the same forces wherever they lie (positions are rounded to 0.001 A when written).
    n = template.n
    assert np.abs(forces_many[:n] - forces_many[n:2 * n]).max() < 0.02 * np.abs(forces_many[:n]).max()


@pytest.mark.mpi
def test_slab_domains_and_threads_give_the_same(tmp_path, molecule):
    template, position = molecule
    one, forces_one = evaluate(tmp_path, [(template, 1)], position)
    slabs, forces_slabs = evaluate(tmp_path, [(template, 1)], position, 3, boundary={"domain_x": 3})
    assert np.abs(forces_slabs - forces_one).max() < 1e-10 * np.abs(forces_one).max()
    _, forces_threads = evaluate(tmp_path, [(template, 1)], position, threads=2)
    assert np.array_equal(forces_threads, forces_one)


def test_constrained_bonds_are_left_out(tmp_path, molecule):
    template, position = molecule
    position = position + BOX / 3
    rigid = {tuple(sorted(pair)) for pair, _ in template.constraints}
    rest = [bond for bond in template.bonds if tuple(sorted(bond[0])) not in rigid]
    k = np.array([bond[1] for bond in rest])
    r0 = np.array([bond[2] for bond in rest])
    length = np.array([np.linalg.norm(position[i] - position[j]) for (i, j), *_ in rest])
    found, _ = evaluate(tmp_path, [(template, 1)], np.round(position, 3), rigid=True)
    assert found["BOND"] == pytest.approx(float((k * (length - r0) ** 2).sum()), rel=0.02)


@pytest.mark.parametrize("case", ["collinear", "coincident"])
def test_degenerate_geometry_stays_finite(tmp_path, case):
    template = systems.Molecule(
        "LIN", [12.0] * 4, [0.0] * 4, [3] * 4, bonds=[((0, 1), 300, 1.5), ((1, 2), 300, 1.5), ((2, 3), 300, 1.5)],
        angles=[((0, 1, 2), 50, 110), ((1, 2, 3), 50, 110)], dihedrals=[((0, 1, 2, 3), 2.0, 3, 0.0)],
        impropers=[((0, 1, 2, 3), 5.0, 20.0)], pair14=[((0, 3), 0.1, 3.0, 0.1)],
        exclusions=[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    x = [0, 1.5, 3, 4.5] if case == "collinear" else [0, 0, 1.5, 1.5]
    position = np.zeros((4, 3))
    position[:, 0] = x
    _, forces = evaluate(tmp_path, [(template, 1)], position + 10)
    assert np.isfinite(forces).all()
