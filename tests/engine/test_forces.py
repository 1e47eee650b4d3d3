"""Non-bonded forces of the engine against independent sources: OpenMM's Reference platform, direct sums, differences.

The driver `force_driver_{mixed,double}` computes what the engine computes, on one or several ranks.
"""

import os
import subprocess
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import erf, erfc

COULOMB = 138.93545764438198 * 10.0 / 4.184  # OpenMM's constant in kcal angstrom/mol/e^2
CUT, SWITCH, SHIFT, FORCE_SWITCH, LJ_PME, QUINTIC_SWITCH, FORCE_SHIFT = range(7)
SWITCHED = (SWITCH, FORCE_SWITCH, QUINTIC_SWITCH, FORCE_SHIFT)
LOOKED_UP = (QUINTIC_SWITCH, FORCE_SHIFT)


@dataclass
class System:
    box: np.ndarray
    position: np.ndarray
    charge: np.ndarray
    lj_type: np.ndarray  # from 0
    sigma: np.ndarray
    epsilon: np.ndarray
    exclusion: np.ndarray  # (e, 2)
    cutoff: float = 9.0
    switch: float = 9.0
    reach: float = 10.5
    alpha: float = 0.34
    grid: tuple = (0, 0, 0)
    order: int = 0  # 0: no reciprocal part
    form: int = CUT
    table_order: int = 0  # 0: no tables
    table_density: float = 20.0
    dispersion_alpha: float = 0.36  # with form LJ_PME, whose reciprocal part is that of the dispersion
    drift: np.ndarray | None = None
    c6: np.ndarray | None = None
    c12: np.ndarray | None = None

    def matrices(self):
        """Lorentz-Berthelot c6 and c12, unless given."""
        if self.c6 is not None:
            return self.c6, self.c12
        sigma = 0.5 * (self.sigma[:, None] + self.sigma[None, :])
        c6 = 4 * np.sqrt(self.epsilon[:, None] * self.epsilon[None, :]) * sigma**6
        return c6, c6 * sigma**6

    def root_c6(self):
        """Of each atom: c6 of two atoms in reciprocal space is the product."""
        return 2 * np.sqrt(self.epsilon[self.lj_type]) * self.sigma[self.lj_type] ** 3


@dataclass
class Result:
    lj: float
    elec: float
    reciprocal: float
    virial_real: np.ndarray
    virial_reciprocal: np.ndarray
    force_real: np.ndarray
    force_reciprocal: np.ndarray

    @property
    def force(self):
        return self.force_real + self.force_reciprocal

    @property
    def energy(self):
        return self.lj + self.elec + self.reciprocal


def run(drivers, folder, system, kind="double", dims=(1, 1, 1), threads=1, instruction_set=3):
    n = len(system.charge)
    c6, c12 = system.matrices()
    drift = np.zeros((n, 3)) if system.drift is None else system.drift
    with open(folder / "input", "wb") as file:
        header = [n, len(system.sigma), len(system.exclusion), *system.grid, system.order, system.form,
                  system.table_order]
        np.array(header, dtype=np.int32).tofile(file)
        settings = [*system.box, system.cutoff, system.switch, system.reach, system.alpha, COULOMB,
                    system.dispersion_alpha, system.table_density]
        np.array(settings, dtype=float).tofile(file)
        np.mod(system.position, system.box).astype(float).tofile(file)
        system.charge.astype(float).tofile(file)
        (system.lj_type + 1).astype(np.int32).tofile(file)
        for array in (c6, c12, system.sigma, system.epsilon):
            np.asarray(array, dtype=float).tofile(file)
        (system.exclusion + 1).astype(np.int32).tofile(file)
        drift.astype(float).tofile(file)
    ranks = int(np.prod(dims))
    command = [str(drivers / f"force_driver_{kind}"), "input", "output", *map(str, dims), str(instruction_set)]
    if ranks > 1:
        command = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks), *command]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    data = np.fromfile(folder / "output")
    forces = data[21:].reshape(2, n, 3)
    return Result(*data[:3], data[3:12].reshape(3, 3), data[12:21].reshape(3, 3), *forces)


def relative_error(force, reference):
    """Root mean square error over root mean square force."""
    return np.sqrt(np.sum((force - reference) ** 2) / np.sum(reference**2))


def random_system(n=400, length=24.0, seed=1, minimum=1.6, **changes):
    """Charges and Lennard-Jones atoms at random, no closer than `minimum`, with random excluded near pairs."""
    rng = np.random.default_rng(seed)
    box = np.array([length, length + 1.0, length + 2.5])
    position = np.empty((0, 3))
    while len(position) < n:
        trial = rng.random(3) * box
        d = position - trial
        d -= box * np.round(d / box)
        if len(position) == 0 or np.min(np.sum(d**2, axis=1)) > minimum**2:
            position = np.vstack([position, trial])
    d = position[:, None] - position[None]
    d -= box * np.round(d / box)
    near = np.argwhere(np.triu(np.sum(d**2, axis=2) < 3.0**2, 1))
    sigma = np.array([2.0, 2.6, 3.1, 1.0])
    epsilon = np.array([0.1, 0.05, 0.2, 0.0])
    charge = rng.normal(size=n) * 0.5
    charge -= charge.mean()
    system = System(box, position, charge, rng.integers(0, 4, n), sigma, epsilon, near[::3])
    return replace(system, **changes)


def water_box(n_side=8, seed=3):
    """Rigid TIP3P waters on a jittered lattice: 3*n_side^3 atoms, liquid density."""
    rng = np.random.default_rng(seed)
    n = n_side**3
    box = np.full(3, n_side * 3.104)
    centre = (np.argwhere(np.ones((n_side,) * 3)) + 0.5) * 3.104 + rng.uniform(-0.25, 0.25, (n, 3))
    u = rng.normal(size=(n, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    v = rng.normal(size=(n, 3))
    v -= np.sum(u * v, axis=1)[:, None] * u
    v /= np.linalg.norm(v, axis=1)[:, None]
    half = np.radians(104.52 / 2)
    h1 = centre + 0.9572 * (np.cos(half) * u + np.sin(half) * v)
    h2 = centre + 0.9572 * (np.cos(half) * u - np.sin(half) * v)
    position = np.stack([centre, h1, h2], axis=1).reshape(-1, 3)
    o = 3 * np.arange(n)
    exclusion = np.concatenate([np.stack([o, o + 1], 1), np.stack([o, o + 2], 1), np.stack([o + 1, o + 2], 1)])
    return System(box, position, np.tile([-0.834, 0.417, 0.417], n), np.tile([0, 1, 1], n),
                  np.array([3.15075, 1.0]), np.array([0.1521, 0.0]), exclusion)


def direct_sum(system):
    """Real-space energies, forces and virial pair by pair in numpy, minimum image."""
    c6, c12 = system.matrices()
    position = np.mod(system.position, system.box) + (0 if system.drift is None else system.drift)
    n = len(position)
    excluded = np.zeros((n, n), bool)
    excluded[system.exclusion[:, 0], system.exclusion[:, 1]] = True
    excluded |= excluded.T
    d = position[:, None] - position[None]
    d -= system.box * np.round(d / system.box)
    r2 = np.sum(d**2, axis=2) + np.eye(n)
    r = np.sqrt(r2)
    qq = COULOMB * system.charge[:, None] * system.charge[None]
    a, b, rc, ron = c12[system.lj_type[:, None], system.lj_type], c6[system.lj_type[:, None], system.lj_type], \
        system.cutoff, system.switch
    lj, slope = a / r**12 - b / r**6, -12 * a / r**13 + 6 * b / r**7
    if system.form == SWITCH:
        u = np.clip((r2 - ron**2) / (rc**2 - ron**2), 0, 1)
        switching, change = 1 - 3 * u**2 + 2 * u**3, (-6 * u + 6 * u**2) * 2 * r / (rc**2 - ron**2)
        lj, slope = lj * switching, slope * switching + lj * change
    elif system.form == LJ_PME:
        # What reciprocal space holds is taken out; zero at the cutoff.
        product = np.outer(system.root_c6(), system.root_c6())
        held, held_slope = dispersion_in_waves(r, system.dispersion_alpha)
        at_cutoff = a / rc**12 - b / rc**6 + product * dispersion_in_waves(np.array(rc), system.dispersion_alpha)[0]
        lj, slope = lj + product * held - at_cutoff, slope + product * held_slope
    elif system.form == SHIFT:
        lj = lj - (a / rc**12 - b / rc**6)
    elif system.form == QUINTIC_SWITCH:
        # "Modified non-bonded interactions" of the GROMACS reference manual.
        u = np.clip((r - ron) / (rc - ron), 0, 1)
        switching, change = 1 - 10 * u**3 + 15 * u**4 - 6 * u**5, -30 * u**2 * (1 - u) ** 2 / (rc - ron)
        lj, slope = lj * switching, slope * switching + lj * change
    elif system.form == FORCE_SHIFT:
        # The force of each power gets A (r - ron)^2 + B (r - ron)^3, so that it and its slope vanish at the cutoff; the
        # energy is its integral from there.
        x, width = np.clip(r - ron, 0, None), rc - ron
        for p, coefficient in ((12, a), (6, -b)):
            A, B = np.linalg.solve([[width**2, width**3], [2 * width, 3 * width**2]],
                                   [-p * rc ** -(p + 1.0), p * (p + 1) * rc ** -(p + 2.0)])
            at_cutoff = rc**-float(p) - A * width**3 / 3 - B * width**4 / 4
            lj = lj - coefficient * (A * x**3 / 3 + B * x**4 / 4 + at_cutoff)
            slope = slope - coefficient * (A * x**2 + B * x**3)
    elif system.form == FORCE_SWITCH:
        # Steinbach and Brooks, J. Comput. Chem. 15, 667 (1994).
        ka, kb = rc**6 / (rc**6 - ron**6), rc**3 / (rc**3 - ron**3)
        outer = a * ka * (r**-6 - rc**-6.0) ** 2 - b * kb * (r**-3 - rc**-3.0) ** 2
        outer_slope = -12 * a * ka * (r**-6 - rc**-6.0) * r**-7 + 6 * b * kb * (r**-3 - rc**-3.0) * r**-4
        inner = lj - a / (ron * rc) ** 6 + b / (ron * rc) ** 3
        lj, slope = np.where(r > ron, outer, inner), np.where(r > ron, outer_slope, slope)
    x = system.alpha * r
    gauss = 2 / np.sqrt(np.pi) * system.alpha * np.exp(-(x**2))
    elec, elec_slope = qq * erfc(x) / r, -qq * (erfc(x) / r2 + gauss / r)
    inside = (r < rc) & ~np.eye(n, dtype=bool) & ~excluded
    lj, slope = lj * inside, (slope + elec_slope) * inside
    elec = elec * inside + np.where(excluded, -qq * erf(x) / r, 0)
    slope = slope + np.where(excluded, qq * (erf(x) / r2 - gauss / r), 0)
    if system.form == LJ_PME:
        lj, slope = lj + np.where(excluded, product * held, 0), slope + np.where(excluded, product * held_slope, 0)
    pair_force = -(slope / r)[:, :, None] * d
    return Result(lj.sum() / 2, elec.sum() / 2, 0.0, 0.5 * np.einsum("ija,ijb->ab", d, pair_force), np.zeros((3, 3)),
                  pair_force.sum(axis=1), np.zeros((n, 3)))


def dispersion_in_waves(r, alpha):
    """(1 - exp(-y)(1 + y + y^2/2))/r^6 with y = (alpha r)^2, and its slope."""
    y = (alpha * r) ** 2
    held = (1 - np.exp(-y) * (1 + y + y**2 / 2)) / r**6
    return held, -6 * (1 - np.exp(-y) * (1 + y + y**2 / 2 + y**3 / 6)) / r**7


def dispersion_reciprocal_sum(system, limit):
    """Reciprocal Ewald energy, forces and virial of -c c/r^6 (Essmann et al. 1995), self term included."""
    axis = np.arange(-limit, limit + 1)
    m = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3) / system.box
    b = np.pi / system.dispersion_alpha * np.linalg.norm(m, axis=1)
    f = (1 - 2 * b**2) * np.exp(-(b**2)) + 2 * b**3 * np.sqrt(np.pi) * erfc(b)
    change = -6 * b * np.exp(-(b**2)) + 6 * b**2 * np.sqrt(np.pi) * erfc(b)
    scale = -np.pi**1.5 * system.dispersion_alpha**3 / (6 * np.prod(system.box))
    c = system.root_c6()
    phase = np.exp(2j * np.pi * system.position @ m.T)
    wave = c @ phase
    force = c[:, None] * 4 * np.pi * np.real(1j * (phase.conj() * (scale * f * wave)) @ m.astype(complex))
    power = scale * np.abs(wave) ** 2
    rate = np.divide(b * change, np.sum(m**2, axis=1), out=np.zeros_like(b), where=b > 0)
    virial = np.eye(3) * (power * f).sum() + np.einsum("k,ka,kb->ab", power * rate, m, m)
    return (power * f).sum() + system.dispersion_alpha**6 / 12 * np.sum(c**2), force, virial


def reciprocal_sum(system, limit):
    """Reciprocal Ewald energy, forces and virial by the sum over waves up to `limit` an axis, self term included."""
    axis = np.arange(-limit, limit + 1)
    m = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3) / system.box
    m = m[np.any(m != 0, axis=1)]
    m2 = np.sum(m**2, axis=1)
    weight = COULOMB / (2 * np.pi * np.prod(system.box)) * np.exp(-((np.pi / system.alpha) ** 2) * m2) / m2
    phase = np.exp(2j * np.pi * system.position @ m.T)
    wave = system.charge @ phase
    energies = weight * np.abs(wave) ** 2
    force = system.charge[:, None] * 4 * np.pi * np.real(
        1j * (phase.conj() * (weight * wave)) @ m.astype(complex))
    virial = np.eye(3) * energies.sum() - np.einsum(
        "k,ka,kb->ab", 2 * energies * (1 + (np.pi / system.alpha) ** 2 * m2) / m2, m, m)
    background = -np.pi * COULOMB * system.charge.sum() ** 2 / (2 * np.prod(system.box) * system.alpha**2)
    self_energy = -COULOMB * system.alpha / np.sqrt(np.pi) * np.sum(system.charge**2)
    return energies.sum() + self_energy + background, force, virial + np.eye(3) * background


def openmm_reference(system):
    """Energy and forces of OpenMM's Reference platform with the same PME parameters (order 5)."""
    import openmm
    from openmm import unit

    simulated = openmm.System()
    simulated.setDefaultPeriodicBoxVectors(*(np.diag(system.box) / 10))
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.PME)
    force.setCutoffDistance(system.cutoff / 10)
    force.setUseDispersionCorrection(False)
    force.setExceptionsUsePeriodicBoundaryConditions(True)
    force.setPMEParameters(system.alpha * 10, *system.grid)
    if system.form == LJ_PME:
        force.setNonbondedMethod(openmm.NonbondedForce.LJPME)
        force.setLJPMEParameters(system.dispersion_alpha * 10, *system.grid)
    for charge, t in zip(system.charge, system.lj_type, strict=True):
        simulated.addParticle(10.0)
        force.addParticle(charge, system.sigma[t] / 10, system.epsilon[t] * 4.184)
    for a, b in system.exclusion:
        force.addException(int(a), int(b), 0.0, 0.1, 0.0)
    simulated.addForce(force)
    context = openmm.Context(simulated, openmm.VerletIntegrator(0.001),
                             openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(system.position / 10)
    state = context.getState(getEnergy=True, getForces=True)
    forces = state.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer)
    return state.getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole), np.asarray(forces) / 41.84


# The mixed build rounds pair forces to 24 bits; the target is 1e-5 of the rms force.
TOLERANCE = {"double": 1e-6, "mixed": 1e-5}
KINDS = ["double", pytest.param("mixed", marks=pytest.mark.release)]  # the debug build is in double precision


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["water", "random"])
def test_energy_and_forces_match_openmm(drivers, tmp_path, kind, name):
    system = water_box() if name == "water" else random_system(n=700, length=22.0)
    system = replace(system, grid=(24, 24, 28) if name == "water" else (24, 28, 30), order=5, cutoff=9.0)
    ours = run(drivers, tmp_path, system, kind)
    energy, force = openmm_reference(system)
    assert relative_error(ours.force, force) < TOLERANCE[kind]
    # Of the sum of magnitudes, as the parts cancel.
    scale = abs(ours.lj) + abs(ours.elec) + abs(ours.reciprocal)
    assert abs(ours.energy - energy) < TOLERANCE[kind] * scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("matrix", [False, True], ids=["rule", "matrix"])
@pytest.mark.parametrize("form", [CUT, SWITCH, SHIFT, FORCE_SWITCH, LJ_PME, QUINTIC_SWITCH, FORCE_SHIFT])
def test_real_space_matches_direct_sum(drivers, tmp_path, kind, matrix, form):
    system = random_system(cutoff=8.0, switch=6.5 if form in SWITCHED else 8.0, reach=9.0, form=form,
                           table_density=2000.0 if form in LOOKED_UP else 20.0)
    if matrix:
        c6, c12 = system.matrices()
        c6, c12 = c6.copy(), c12.copy()
        c12[0, 1] = c12[1, 0] = 1.7 * c12[0, 1]
        c6[2, 0] = c6[0, 2] = 0.6 * c6[0, 2]
        system = replace(system, c6=c6, c12=c12)
    reference = direct_sum(system)
    # The double build fits the Ewald correction to 1e-11. GROMACS' forms have no formula in the kernels but a cubic
    # table, whose error falls slowly with the density where the second derivative of the force jumps, at the switch.
    tolerance = 1e-9 if kind == "double" else 1e-5
    if form in LOOKED_UP:
        tolerance = max(tolerance, 1e-7)
    for instruction_set in (0, 2, 3):
        ours = run(drivers, tmp_path, system, kind, instruction_set=instruction_set)
        assert relative_error(ours.force_real, reference.force_real) < tolerance
        assert ours.lj == pytest.approx(reference.lj, rel=tolerance)
        assert ours.elec == pytest.approx(reference.elec, rel=tolerance, abs=tolerance * 100)
        scale = np.abs(reference.virial_real).max()
        np.testing.assert_allclose(ours.virial_real, reference.virial_real, atol=10 * tolerance * scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("screening", [0.34 * 12.0, 6.0, 12.0])
def test_any_screening_that_pme_may_have(drivers, tmp_path, kind, screening):
    """alpha times cutoff from where the polynomials of the kernels end: tables take their place, with their error."""
    system = random_system(cutoff=8.0, switch=8.0, reach=9.0, alpha=screening / 8.0)
    reference = direct_sum(system)
    ours = run(drivers, tmp_path, system, kind)
    # docs/tables/pair_tables-errors.md: 2e-7 of the rms force at this density for weaker screening.
    tolerance = 2e-6 if kind == "double" else 1e-5
    assert relative_error(ours.force_real, reference.force_real) < tolerance
    assert ours.elec == pytest.approx(reference.elec, rel=tolerance)
    assert ours.lj == pytest.approx(reference.lj, rel=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_closer_than_the_clamp_stay_finite(drivers, tmp_path, kind):
    system = random_system(n=300)
    position = system.position.copy()
    position[1] = position[0] + [0.05, 0.0, 0.0]
    position[3] = position[2]
    position[5] = position[4] + [0.5, 0.0, 0.0]
    ours = run(drivers, tmp_path, replace(system, position=position, exclusion=system.exclusion[:0]), kind)
    assert np.all(np.isfinite(ours.force)) and np.isfinite(ours.energy)
    assert np.abs(ours.force_real[5]).max() > 1e3


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_and_long_systems(drivers, tmp_path, kind):
    """Few atoms in a long box: padded clusters that reach far must add nothing."""
    rng = np.random.default_rng(5)
    system = random_system(n=60, length=30.0, seed=6, minimum=3.0)
    stretch = np.array([1.0, 2.0, 20.0])
    system = replace(system, box=system.box * stretch, position=rng.random((60, 3)) * system.box * stretch,
                     exclusion=system.exclusion[:0])
    reference = direct_sum(system)
    ours = run(drivers, tmp_path, system, kind)
    np.testing.assert_allclose(ours.force_real, reference.force_real, rtol=2e-5, atol=1e-5)


def test_pair_list_is_valid_after_motion(drivers, tmp_path):
    """Atoms that moved by less than half of the list's margin still meet all their partners."""
    system = random_system(n=500, cutoff=8.0, reach=9.5, seed=8)
    rng = np.random.default_rng(9)
    step = rng.normal(size=system.position.shape)
    step *= 0.74 / np.linalg.norm(step, axis=1)[:, None]
    system = replace(system, drift=step)
    ours = run(drivers, tmp_path, system)
    assert relative_error(ours.force_real, direct_sum(system).force_real) < 1e-9


@pytest.mark.parametrize("order", [4, 5, 6, 7, 8, 10])
def test_pme_converges_to_the_ewald_sum(drivers, tmp_path, order):
    rng = np.random.default_rng(4)
    n = 40
    system = System(np.array([14.0, 15.0, 16.0]), rng.random((n, 3)) * 14, rng.normal(size=n), np.zeros(n, int),
                    np.array([1.0]), np.array([0.0]), np.zeros((0, 2), int), cutoff=5.0, switch=5.0, reach=5.5,
                    alpha=0.5, grid=(42, 42, 48), order=order)
    ours = run(drivers, tmp_path, system)
    energy, force, virial = reciprocal_sum(system, 14)
    # Interpolation error falls with the order: about (alpha * spacing)^order.
    tolerance = max(1e-9, {4: 1e-3, 5: 2e-4, 6: 5e-5}.get(order, 1e-5))
    assert relative_error(ours.force_reciprocal, force) < tolerance
    assert ours.reciprocal == pytest.approx(energy, rel=tolerance)
    np.testing.assert_allclose(ours.virial_reciprocal, virial, atol=tolerance * np.abs(virial).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["water", "random"])
def test_dispersion_without_end_matches_openmm(drivers, tmp_path, kind, name):
    """LJ-PME: Lorentz-Berthelot within the cutoff, products of roots beyond; excluded pairs too; no charges."""
    system = water_box() if name == "water" else random_system(n=700, length=22.0)
    system = replace(system, grid=(24, 24, 28) if name == "water" else (24, 28, 30), order=5, form=LJ_PME,
                     charge=np.zeros(len(system.charge)))
    ours = run(drivers, tmp_path, system, kind)
    energy, force = openmm_reference(system)
    assert relative_error(ours.force, force) < TOLERANCE[kind]
    assert abs(ours.energy - energy) < TOLERANCE[kind] * (abs(ours.lj) + abs(ours.reciprocal))


@pytest.mark.parametrize("order", [4, 6, 8])
def test_dispersion_on_the_mesh_converges_to_the_ewald_sum(drivers, tmp_path, order):
    """Reciprocal space against the sum over waves; all of it against the sum over 13^3 images of the box.

    Among images the rest of the lattice sum is a uniform density beyond 90 angstrom, whose force vanishes by symmetry
    up to terms of relative size (14/90)^4 ~ 6e-4 of a field that is itself 1e-4 of the total.
    """
    rng = np.random.default_rng(4)
    n = 40
    system = System(np.array([14.0, 15.0, 16.0]), rng.random((n, 3)) * 14, np.zeros(n), rng.integers(0, 2, n),
                    np.array([1.0, 1.4]), np.array([0.1, 0.3]), np.zeros((0, 2), int), cutoff=6.5, switch=6.5,
                    reach=7.0, alpha=0.5, dispersion_alpha=0.6, grid=(42, 42, 48), order=order, form=LJ_PME)
    # The geometric rule everywhere, so that cutoff and Ewald sum have the same coefficients.
    c = 2 * np.sqrt(system.epsilon) * system.sigma**3
    c6 = np.outer(c, c)
    system = replace(system, c6=c6, c12=c6 * 1.2**6)
    ours = run(drivers, tmp_path, system)
    energy, force, virial = dispersion_reciprocal_sum(system, 16)
    tolerance = {4: 3e-3, 6: 1e-4, 8: 1e-5}[order]
    assert relative_error(ours.force_reciprocal, force) < tolerance
    assert ours.reciprocal == pytest.approx(energy, rel=tolerance)
    np.testing.assert_allclose(ours.virial_reciprocal, virial, atol=tolerance * np.abs(virial).max())

    images = np.argwhere(np.ones((13, 13, 13))) - 6
    lattice = np.zeros((n, 3))
    for shift in images * system.box:
        d = system.position[:, None] - system.position[None] + shift
        r2 = np.sum(d**2, axis=2)
        r2[r2 == 0] = np.inf
        pair_c6, pair_c12 = c6[system.lj_type[:, None], system.lj_type], system.c12[system.lj_type[:, None],
                                                                                    system.lj_type]
        over_r = 12 * pair_c12 / r2**7 * (r2 < system.cutoff**2) - 6 * pair_c6 / r2**4
        lattice += np.sum(over_r[:, :, None] * d, axis=1)
    attraction = ours.force - lattice
    # Real space leaves exp(-y)(1 + y + y^2/2) = 3e-5 of the dispersion at the cutoff.
    assert np.sqrt(np.mean(attraction**2)) < max(1e-4, tolerance) * np.sqrt(np.mean(force**2))


def check_virial_by_the_box(drivers, tmp_path, system):
    """The diagonal of the virial is what the energy loses as the box and all in it grow along an axis."""
    ours = run(drivers, tmp_path, system)
    h = 1e-5
    for axis in range(3):
        energies = []
        for s in (1, -1):
            scale = np.ones(3)
            scale[axis] += s * h
            energies.append(run(drivers, tmp_path, replace(
                system, box=system.box * scale, position=np.mod(system.position, system.box) * scale)).energy)
        expected = -(energies[0] - energies[1]) / (2 * h)
        total = ours.virial_real + ours.virial_reciprocal
        assert total[axis, axis] == pytest.approx(expected, rel=1e-5, abs=1e-2)


def test_virial_of_the_dispersion_is_the_derivative_by_the_box(drivers, tmp_path):
    system = random_system(n=200, length=20.0, cutoff=8.0, switch=8.0, reach=9.0, form=LJ_PME, dispersion_alpha=0.6,
                           grid=(40, 40, 40), order=8, exclusion=np.zeros((0, 2), int))
    system = replace(system, charge=np.zeros(200))
    check_virial_by_the_box(drivers, tmp_path, system)


@pytest.mark.parametrize("charges_alone", [False, True])
def test_forces_are_differences_of_the_energy(drivers, tmp_path, charges_alone):
    """Along a random direction; with the switched Lennard-Jones energy, and with charges alone."""
    system = random_system(n=200, length=20.0, cutoff=8.0, switch=6.0, reach=9.0, form=SWITCH, alpha=0.5,
                           grid=(32, 32, 32), order=6)
    if charges_alone:
        system = replace(system, epsilon=np.zeros(4))
    ours = run(drivers, tmp_path, system)
    rng = np.random.default_rng(2)
    direction = rng.normal(size=system.position.shape)
    h = 1e-5
    energies = [run(drivers, tmp_path, replace(system, position=system.position + s * h * direction)).energy
                for s in (1, -1)]
    slope = (energies[0] - energies[1]) / (2 * h)
    # PME forces are derivatives of the interpolated energy; erfc(4) = 1.5e-8 is left at the cutoff.
    assert -np.sum(ours.force * direction) == pytest.approx(slope, rel=1e-4)


def test_virial_is_the_derivative_by_the_box(drivers, tmp_path):
    system = random_system(n=200, length=20.0, cutoff=8.0, switch=6.0, reach=9.0, form=SWITCH, alpha=0.5,
                           grid=(40, 40, 40), order=8, exclusion=np.zeros((0, 2), int))
    check_virial_by_the_box(drivers, tmp_path, system)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_change_a_bit(drivers, tmp_path, kind):
    system = replace(water_box(10), grid=(32, 30, 28), order=4)
    one, two, three = (run(drivers, tmp_path, system, kind, threads=t) for t in (1, 2, 3))
    for other in (two, three):
        assert np.array_equal(one.force_real, other.force_real)
        assert np.array_equal(one.force_reciprocal, other.force_reciprocal)
        assert (one.lj, one.elec, one.reciprocal) == (other.lj, other.elec, other.reciprocal)
        assert np.array_equal(one.virial_real, other.virial_real)
        assert np.array_equal(one.virial_reciprocal, other.virial_reciprocal)


@pytest.mark.mpi
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims", [(2, 1, 1), (1, 3, 1), (2, 2, 1), (1, 1, 5), (3, 2, 1), (7, 1, 1), (2, 2, 2)],
                         ids=lambda dims: "x".join(map(str, dims)))
def test_any_number_of_ranks(drivers, tmp_path, kind, dims):
    system = random_system(n=900, length=40.0, cutoff=5.0, switch=4.0, reach=5.6, form=SWITCH, alpha=0.55,
                           grid=(30, 36, 42), order=5)
    # Some atoms are far outside of their domain, some charge is left over.
    system = replace(system, charge=system.charge + 0.01)
    one = run(drivers, tmp_path, system, kind)
    many = run(drivers, tmp_path, system, kind, dims=dims)
    tolerance = 1e-10 if kind == "double" else 2e-6
    assert relative_error(many.force_real, one.force_real) < tolerance
    assert relative_error(many.force_reciprocal, one.force_reciprocal) < tolerance
    assert many.lj == pytest.approx(one.lj, rel=tolerance)
    assert many.elec == pytest.approx(one.elec, rel=tolerance)
    assert many.reciprocal == pytest.approx(one.reciprocal, rel=tolerance)
    scale = np.abs(one.virial_reciprocal).max()
    np.testing.assert_allclose(many.virial_reciprocal, one.virial_reciprocal, atol=tolerance * scale)
    scale = np.abs(one.virial_real).max()
    np.testing.assert_allclose(many.virial_real, one.virial_real, atol=10 * tolerance * scale)


@pytest.mark.mpi
def test_atoms_far_outside_of_their_domain(drivers, tmp_path):
    """The bricks of PME widen when atoms drift beyond their margin."""
    system = random_system(n=300, length=60.0, cutoff=5.0, switch=5.0, reach=5.6, alpha=0.5, grid=(60, 60, 60), order=4)
    rng = np.random.default_rng(3)
    system = replace(system, drift=rng.uniform(-9, 9, system.position.shape))
    one = run(drivers, tmp_path, system)
    many = run(drivers, tmp_path, system, dims=(2, 2, 1))
    assert relative_error(many.force_reciprocal, one.force_reciprocal) < 1e-10
