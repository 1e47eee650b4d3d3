"""Tables over the inverse squared distance in place of the formulas of real space (table = YES).

The judge builds the same tables in numpy from the energies alone: forces by complex steps, interpolation by numpy and
scipy. Against the formulas themselves the errors must be those of interpolation.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.special import erfc
from support import systems as written
from test_forces import (
    COULOMB,
    CUT,
    FORCE_SWITCH,
    KINDS,
    SHIFT,
    SWITCH,
    System,
    direct_sum,
    random_system,
    relative_error,
    run,
    water_box,
)

LINEAR, CUBIC = 1, 3
FORMS = [CUT, SWITCH, SHIFT, FORCE_SWITCH]


def system_of(form: int, **changes) -> System:
    return random_system(cutoff=8.0, switch=6.5 if form in (SWITCH, FORCE_SWITCH) else 8.0, reach=9.0, form=form,
                         **changes)


def energies(system: System, r: np.ndarray) -> np.ndarray:
    """Coulomb, r^-12 and r^-6 with screening, switch and shift; complex r for slopes."""
    on, off = system.switch, system.cutoff
    found = [erfc(system.alpha * r) / r]
    for n in (12, 6):
        power = r ** -n
        if system.form == SWITCH:
            u = np.where(r.real > on, (r**2 - on**2) / (off**2 - on**2), 0.0)
            power = power * (1 - 3 * u**2 + 2 * u**3)
        elif system.form == SHIFT:
            power = power - off ** -n
        elif system.form == FORCE_SWITCH:
            m = n // 2
            factor = 1 / (1 - (on / off) ** m)
            power = np.where(r.real > on, factor * (r**-m - off**-m) ** 2, power - (on * off) ** -m)
        found.append(power)
    return np.array(found)


def tabulated(system: System, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Interpolated energies and forces over the distance, (3, ...) each."""
    scale = system.table_density * system.cutoff**2
    points = np.arange(int(system.table_density), int(scale / r.min() ** 2) + 3, dtype=float)

    def values(x):
        r = np.sqrt(scale / x)
        tiny = 1e-30
        return energies(system, r + 0j).real, -energies(system, r + 1j * tiny).imag / tiny / r

    def slopes(x):
        h = 1e-4 * x
        near, far = np.array(values(x + h)) - values(x - h), np.array(values(x + 2 * h)) - values(x - 2 * h)
        return (8 * near - far) / (12 * h)

    found = []
    for value, slope in zip(values(points), slopes(points), strict=True):
        if system.table_order == CUBIC:
            found.append(CubicHermiteSpline(points, value, slope, axis=1)(scale / r**2))
        else:
            found.append(np.array([np.interp(scale / r**2, points, one) for one in value]))
    return found[0], found[1]


def tabulated_sum(system: System) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Energies (van der Waals, Coulomb) of the pairs within the cutoff, their forces and virial."""
    c6, c12 = system.matrices()
    n = len(system.charge)
    first, second = np.triu_indices(n, 1)
    excluded = np.zeros((n, n), bool)
    excluded[system.exclusion[:, 0], system.exclusion[:, 1]] = True
    d = system.position[first] - system.position[second]
    d -= system.box * np.round(d / system.box)
    r = np.linalg.norm(d, axis=1)
    keep = (r < system.cutoff) & ~(excluded | excluded.T)[first, second]
    first, second, d, r = first[keep], second[keep], d[keep], r[keep]
    qq = COULOMB * system.charge[first] * system.charge[second]
    types = system.lj_type[first], system.lj_type[second]
    energy, slope = tabulated(system, r)
    pair_force = (qq * slope[0] + c12[types] * slope[1] - c6[types] * slope[2])[:, None] * d
    force = np.zeros((n, 3))
    np.add.at(force, first, pair_force)
    np.add.at(force, second, -pair_force)
    return ((c12[types] * energy[1] - c6[types] * energy[2]).sum(), (qq * energy[0]).sum(), force,
            np.einsum("ka,kb->ab", d, pair_force))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [LINEAR, CUBIC])
@pytest.mark.parametrize("form", FORMS)
def test_forces_are_those_of_the_tables(drivers, tmp_path, kind, order, form):
    """Excluded pairs are computed by the formulas and left out here. Rounding as in test_forces.py."""
    system = system_of(form, n=300, table_order=order)
    system = replace(system, exclusion=system.exclusion[:0])
    lj, elec, force, virial = tabulated_sum(system)
    tolerance = 1e-9 if kind == "double" else 1e-5
    # What the forms differ in lies in the tables, not in the kernels.
    for instruction_set in (0, 2, 3) if form == SWITCH else (3,):
        ours = run(drivers, tmp_path, system, kind, instruction_set=instruction_set)
        assert relative_error(ours.force_real, force) < tolerance
        assert ours.lj == pytest.approx(lj, rel=tolerance)
        assert ours.elec == pytest.approx(elec, rel=tolerance, abs=tolerance * 100)
        np.testing.assert_allclose(ours.virial_real, virial, atol=10 * tolerance * np.abs(virial).max())


@pytest.mark.parametrize("order", [LINEAR, CUBIC])
@pytest.mark.parametrize("matrix", [False, True], ids=["rule", "matrix"])
def test_error_falls_with_the_density(drivers, tmp_path, order, matrix):
    """Against the formulas, with excluded pairs: as the square of the step, or its fourth power."""
    system = replace(water_box(6), cutoff=8.0, switch=8.0, reach=9.0, form=CUT, table_order=order)
    if matrix:
        c6, c12 = system.matrices()
        c12 = c12.copy()
        c12[0, 1] = c12[1, 0] = 0.01 * c12[0, 0]
        system = replace(system, c6=c6, c12=c12)
    reference = direct_sum(system)
    coarse, fine = (relative_error(run(drivers, tmp_path, replace(system, table_density=density)).force_real,
                                   reference.force_real) for density in (5.0, 20.0))
    assert coarse / fine == pytest.approx(4.0 ** (order + 1), rel=0.25)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_no_bit(drivers, tmp_path, kind):
    """A density that is no whole number; far atoms of pads; water hydrogens, which skip Lennard-Jones."""
    system = replace(water_box(12), form=SWITCH, switch=7.5, table_order=LINEAR, table_density=30.5)
    one, two = (run(drivers, tmp_path, system, kind, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.force_real, two.force_real)
    assert (one.lj, one.elec) == (two.lj, two.elec)
    plain = run(drivers, tmp_path, replace(system, table_order=0), kind)
    assert 0 < relative_error(one.force_real, plain.force_real) < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_clashing_atoms_feel_the_force_of_the_clamp(drivers, tmp_path, kind):
    """The last points of the table: 0.3 angstrom and less."""
    system = random_system(n=300, table_order=CUBIC)
    system.position[1] = system.position[0] + [0.05, 0.0, 0.0]
    system = replace(system, exclusion=system.exclusion[:0])
    plain = run(drivers, tmp_path, replace(system, table_order=0), kind)
    ours = run(drivers, tmp_path, system, kind)
    assert np.isfinite(ours.force_real).all()
    assert relative_error(ours.force_real, plain.force_real) < 1e-5


@pytest.mark.mpi
def test_engine_runs_with_tables(tmp_path):
    """chromamd energy by tables and without; keys that do not go with them are refused."""
    written.write_water(tmp_path)
    inputs = {"topologyfile": tmp_path / "t.h5", "shardfile": tmp_path / "bricks.txt"}
    settings = {"cutoffdist": 9, "switchdist": 8, "pairlistdist": 10.5}

    def energy(program="chromamd-double", **keys):
        file = written.control(tmp_path / "e.inp", INPUT=inputs, ENERGY={**settings, **keys})
        return written.run("energy", file, program=program)

    plain = written.read_energies(energy().stdout)
    for order, tolerance in ((1, 1e-3), (3, 1e-5)):
        done = energy(table="YES", table_order=order)
        assert done.returncode == 0, done.stderr
        ours = written.read_energies(done.stdout)
        for name in ("VDWAALS", "ELECT"):
            assert ours[name] != plain[name]
            assert ours[name] == pytest.approx(plain[name], rel=tolerance)
    for keys, reason in (({"vdw": "PME", "switchdist": 9}, "vdw = PME"), ({"table_density": 100000}, "million points")):
        done = energy(table="YES", **keys)
        assert done.returncode == 3 and reason in done.stderr and "table = NO" in done.stderr
