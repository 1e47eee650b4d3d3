"""Euler exponential splines beside the direct sums."""

import numpy as np
import pytest
from support.plane_waves import MAGNESIUM_WATER, WATER, Case, compute

CASE = Case(MAGNESIUM_WATER, 9.0, 26.0, "PADE", 2, 1e-12)
ALONE = {"boundary": "CLUSTER"}


def splines(order: int = 12) -> dict:
    """Keys of [ELECTRONS]."""
    return {"local_sums": "SPLINE", "nonlocal_sums": "SPLINE", "spline_order": order}


def test_they_give_the_energy_of_direct_sums(tmp_path):
    """Magnesium has projectors of both parities. Hard oxygen errs most, by at most 2e-6 Ha at order 12 in
    docs/explanation/car-parrinello.md, and some 200 times as much at order 6."""
    direct = compute(tmp_path, CASE)
    fine, coarse = (compute(tmp_path, CASE, ELECTRONS=splines(order)) for order in (12, 6))
    assert fine["total"] == pytest.approx(direct["total"], abs=1e-5)
    assert 30 * abs(fine["total"] - direct["total"]) < abs(coarse["total"] - direct["total"]) < 2e-3
    np.testing.assert_allclose(fine["forces"], direct["forces"], atol=1e-4)
    assert fine["ewald"] == pytest.approx(direct["ewald"], abs=1e-8)
    assert fine["ewald"] != direct["ewald"] and fine["local"] != direct["local"]


def test_a_cluster_has_the_same_energy_too(tmp_path):
    case = Case(WATER[:2], 9.0, 25.0, "BLYP", -1, 1e-12)
    direct = compute(tmp_path, case, SYSTEM=ALONE)
    spline = compute(tmp_path, case, 2, SYSTEM=ALONE, ELECTRONS=splines())
    assert spline["total"] == pytest.approx(direct["total"], abs=1e-5)
    np.testing.assert_allclose(spline["forces"], direct["forces"], atol=1e-4)


def test_forces_are_slopes_of_the_energy_on_any_number_of_ranks(tmp_path):
    """Order 6, where this energy is not that of direct sums. Central differences of 1e-3 bohr, wrong by 3e-7; both
    atoms move, so that local, non-local and Ewald's parts count."""
    ends = []
    for shift, ranks in ((-1e-3, 2), (1e-3, 3)):
        atoms = [list(atom) for atom in MAGNESIUM_WATER]
        atoms[0][3] += shift
        atoms[1][1] += shift
        ends.append(compute(tmp_path, Case(atoms, 9.0, 26.0, "PADE", 2, 1e-13), ranks, ELECTRONS=splines(6))["total"])
    here = [compute(tmp_path, Case(MAGNESIUM_WATER, 9.0, 26.0, "PADE", 2, 1e-13), ranks, ELECTRONS=splines(6))
            for ranks in (1, 4, 8)]
    for other in here[1:]:
        assert other["total"] == pytest.approx(here[0]["total"], abs=1e-9)
        np.testing.assert_allclose(other["forces"], here[0]["forces"], atol=1e-7)
    slope = -(ends[1] - ends[0]) / 2e-3
    assert here[0]["forces"][0][2] + here[0]["forces"][1][0] == pytest.approx(slope, abs=1e-6)
