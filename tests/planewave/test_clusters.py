"""A cluster alone in its box, `boundary = CLUSTER`."""

import numpy as np
import pytest
from support.plane_waves import MAGNESIUM_WATER, WATER, Case, compute, run, write_case

MAGNESIUM = (("Mg", .1, .2, .3),)
MADELUNG = 2.837297
"""Of a point charge in a neutralised cube: -MADELUNG q^2/(2L)."""


def alone(case: Case) -> dict:
    """Keys of the section [SYSTEM]."""
    return {"box": case.box, "charge": case.charge, "boundary": "CLUSTER"}


def test_the_energy_of_an_ion_does_not_depend_on_the_box(tmp_path):
    """Mg+ has one electron, whose density at half an edge of 20 bohr, exp(-2 sqrt(2 x 0.54) x 10), is 1e-9. Waves
    change with the edge, which costs some 1e-5 Ha at this cutoff. In a periodic box the energy has the interaction with
    images too: of point charges to first order, and the next falls with the cube of the edge (Makov and Payne 1995)."""
    small, large = (Case(MAGNESIUM, edge, 12.0, "PZ", 1) for edge in (20.0, 24.0))
    here, there = (compute(tmp_path, case, SYSTEM=alone(case))["total"] for case in (small, large))
    assert here == pytest.approx(there, abs=5e-5)
    beyond = [compute(tmp_path, case)["total"] + MADELUNG / (2 * case.box) - there for case in (small, large)]
    assert beyond[1] / beyond[0] == pytest.approx((20 / 24)**3, abs=0.05)


def test_ions_repel_without_images(tmp_path):
    case = Case(MAGNESIUM_WATER, 12.0, 26.0, "PZ", 2)
    places = np.array([atom[1:] for atom in case.atoms])
    charges = [{"Mg": 2, "O": 6, "H": 1}[atom[0]] for atom in case.atoms]
    expected = sum(charges[i] * charges[j] / np.linalg.norm(places[i] - places[j]) for i in range(4) for j in range(i))
    assert compute(tmp_path, case, SYSTEM=alone(case))["ewald"] == pytest.approx(expected, abs=1e-12)


def test_forces_are_slopes_of_the_energy(tmp_path):
    """Hydroxide. Central differences as in test_total_energies.py, here on two ranks."""
    case = Case(WATER[:2], 9.0, 25.0, "BLYP", -1, 1e-13)
    forces = compute(tmp_path, case, SYSTEM=alone(case))["forces"]
    energy = []
    for shift in (-2e-3, 2e-3):
        atoms = (("O", .1 + shift, .2, .3), case.atoms[1])
        energy.append(compute(tmp_path, Case(atoms, 9.0, 25.0, "BLYP", -1, 1e-13), 2, SYSTEM=alone(case))["total"])
    assert forces[0][0] == pytest.approx(-(energy[1] - energy[0]) / 4e-3, abs=1e-6)


def test_a_cluster_without_room_is_refused(tmp_path):
    case = Case(MAGNESIUM_WATER, 8.0, 26.0, "PZ", 2)
    done = run(tmp_path, write_case(tmp_path, case, SYSTEM=alone(case)))
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr == (
        "chromaqm: case.inp, line 7: box = 8.0 is too small for boundary = CLUSTER: atoms reach over 4.3 BOHR along x, "
        "more than half of the edge; make it at least 28.6, twice their extent with the tails of their density\n")
