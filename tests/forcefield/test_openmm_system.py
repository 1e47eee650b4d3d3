"""What a topology file cannot hold is refused, and formulas are understood by what they give."""

import numpy as np
import openmm
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.openmm_system import read_system


def four_atoms() -> tuple[openmm.System, openmm.NonbondedForce]:
    system, force = openmm.System(), openmm.NonbondedForce()
    for _ in range(4):
        system.addParticle(12.0)
        force.addParticle(0.0, 0.3, 0.5)
    system.addForce(force)
    return system, force


def torsion(formula: str, *values: float, names: tuple[str, ...] = ("k", "theta0")) -> openmm.CustomTorsionForce:
    force = openmm.CustomTorsionForce(formula)
    for name in names:
        force.addPerTorsionParameter(name)
    force.addTorsion(0, 1, 2, 3, values)
    return force


def pairs(formula: str) -> openmm.CustomNonbondedForce:
    """Between two kinds of particles; a = 2, 3 for the kinds 0 and 1."""
    force = openmm.CustomNonbondedForce(formula)
    force.addPerParticleParameter("type")
    force.addPerParticleParameter("a")
    for kind in (0, 1, 1, 0):
        force.addParticle([kind, kind + 2.0])
    force.addTabulatedFunction("c", openmm.Discrete2DFunction(2, 2, [1e-6, 3e-6, 3e-6, 2e-6]))
    return force


def chains(*rows: tuple[int, ...]) -> openmm.CMAPTorsionForce:
    force = openmm.CMAPTorsionForce()
    force.addMap(4, np.zeros(16))
    for row in rows:
        force.addTorsion(0, *row)
    return force


def maps_of_two_sizes() -> openmm.CMAPTorsionForce:
    force = chains()
    force.addMap(6, np.zeros(36))
    return force


@pytest.mark.parametrize(("force", "words"), [
    (lambda: torsion("k*(1 - cos(theta - theta0))", 1.0, 0.0), "dihedral energy"),
    (lambda: torsion("k*theta", 1.0, names=("k",)), "dihedral energy"),
    (lambda: pairs("c(type1, type2)/r^12 - a1*a2*1e-4/r^4"), "not of the form"),
    (lambda: pairs("select(step(r - 0.4), 0, c(type1, type2)/r^12)"), "not of the form"),
    (lambda: chains((0, 1, 2, 3, 2, 1, 3, 0)), "follow each other"),
    (maps_of_two_sizes, "different sizes"),
    (lambda: openmm.CustomAngleForce("theta"), "CustomAngleForce"),
    (openmm.DrudeForce, "DrudeForce"),
])
def test_what_the_engine_lacks_is_refused(force, words):
    system, _ = four_atoms()
    system.addForce(force())
    with pytest.raises(BadInputError, match=words):
        read_system(system)


def test_virtual_sites_are_refused():
    system, _ = four_atoms()
    system.setVirtualSite(3, openmm.TwoParticleAverageSite(0, 1, 0.5, 0.5))
    with pytest.raises(BadInputError, match="virtual site of a kind"):
        read_system(system)


def test_exclusions_of_charges_alone_are_refused():
    system, force = four_atoms()
    force.addException(0, 1, 0.0, 1.0, 0.0)
    system.addForce(pairs("c(type1, type2)/r^12"))
    with pytest.raises(BadInputError, match="excludes different pairs"):
        read_system(system)


@pytest.mark.parametrize(("formula", "factor"), [
    ("0.5*k*(thetap - theta0)^2; thetap = step(theta0 - theta - pi)*2*pi + theta - step(theta - theta0 - pi)*2*pi;"
     "pi = 3.14159265358979", 0.5),
    ("k*min(d, 2*pi - d)^2; d = abs(theta - theta0); pi = 3.141593", 1.0),
])
def test_harmonic_impropers_in_any_words(formula, factor):
    system, _ = four_atoms()
    system.addForce(torsion(formula, 8.368, 0.5))
    improper = read_system(system).terms["improper"]
    assert improper["k"] == pytest.approx([2.0 * factor], rel=1e-5)
    assert improper["psi0"] == pytest.approx([np.degrees(0.5)])


def test_pair_matrix_is_added_to_the_rule():
    """A force of pairs beside ordinary Lennard-Jones terms: coefficients of both add up."""
    system, _ = four_atoms()
    system.addForce(pairs("(a1*a2)*1e-7/r^12 - 0.001*c(type1, type2)/r^6"))
    found = read_system(system)
    a, c = np.array([2.0, 3.0]), np.array([[1e-6, 3e-6], [3e-6, 2e-6]])
    c12 = np.outer(a, a) * 1e-7 + 4 * 0.5 * 0.3**12
    c6 = 0.001 * c + 4 * 0.5 * 0.3**6
    assert found.lj_type.tolist() == [0, 1, 1, 0]
    np.testing.assert_allclose(found.c12, c12 * 1e12 / 4.184, rtol=1e-9)
    np.testing.assert_allclose(found.c6, c6 * 1e6 / 4.184, rtol=1e-9)
    np.testing.assert_allclose(found.sigma**6, np.diag(c12 / c6) * 1e6, rtol=1e-9)
