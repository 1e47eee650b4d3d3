"""Observables of shapes whose values can be worked out by hand, and the contact map as a file for Hi-C tools."""

import json
import subprocess
import sys

import numpy as np
import pytest

from chromabuild.genome.contact_map import write_contact_map
from mesoscale.observables import (
    contact_count,
    contact_map,
    contact_pattern,
    end_to_end,
    energy_drift,
    packing_ratio,
    radius_of_gyration,
    sedimentation_coefficient,
    triplet_angles,
)

LINE = np.stack([np.arange(5.0), np.zeros(5), np.zeros(5)], axis=1)


def test_observables_of_simple_shapes():
    assert end_to_end(LINE) == 4.0
    assert radius_of_gyration(LINE) == pytest.approx(np.sqrt(2.0))
    assert contact_count(10 * LINE) == 3  # cores 20 nm apart, neighbours not counted
    assert triplet_angles(LINE) == pytest.approx([180.0] * 3)
    corner = np.array([[1.0, 0, 0], [0, 0, 0], [0, 2, 0]])
    assert triplet_angles(corner) == pytest.approx([90.0])


def test_sedimentation_of_one_two_and_far_cores():
    pair = np.array([[0.0, 0, 0], [10.0, 0, 0]])
    assert sedimentation_coefficient(pair) == pytest.approx(11.1 * (1 + 5.46 / 10))
    assert sedimentation_coefficient(pair[:1]) == pytest.approx(11.1)
    assert sedimentation_coefficient(1e6 * pair) == pytest.approx(11.1, rel=1e-5)


def test_packing_of_a_regular_fibre():
    """Cores around a straight axis, 2 nm apart along it: 5.5 for each 11 nm, whatever they do around it."""
    k = np.arange(60)
    turn = 2 * np.pi * k / 11  # whole turns in a window cancel
    fibre = np.stack([9 * np.cos(turn), 9 * np.sin(turn), 2.0 * k], axis=1)
    assert packing_ratio(fibre) == pytest.approx(5.5)
    assert packing_ratio(fibre[:12]) is None


def test_contact_pattern_of_a_zigzag():
    """Two columns 20 nm apart, 8 nm from one to the next but one: only pairs two apart touch."""
    k = np.arange(12)
    cores = np.stack([20.0 * (k % 2), np.zeros(12), 4.0 * k], axis=1)
    assert contact_pattern(cores) == [0.0, 1.0] + [0.0] * 8
    assert len(contact_pattern(cores[:4])) == 3


def test_energy_drift_compares_the_last_two_quarters():
    assert energy_drift(np.array([9.0, 9, 5, 5, 4, 4, 1, 3])) == (pytest.approx(-2.0), pytest.approx(np.sqrt(0.5)))
    assert energy_drift(np.array([7.0])) == (0.0, 0.0)


def test_contact_map_counts_pairs_in_their_bins(tmp_path):
    far = np.array([[0.0, 0, 0], [10, 0, 0], [500, 0, 0], [510, 0, 0], [0, 10, 0]])
    counts = contact_map(np.array([5, 15, 120, 130, 310]), [far, far], bins=4, resolution=100)
    expected = np.zeros((4, 4), int)
    expected[0, 0] = expected[1, 1] = 2
    expected[0, 3] = expected[3, 0] = 4
    assert np.array_equal(counts, expected)
    write_contact_map(counts, 100, "chrX", 1234, tmp_path)
    read = "import sys, hictkpy; print(hictkpy.File(sys.argv[1], 100).fetch('chrX:1200-1600').to_numpy().tolist())"
    # By another process: from its import on hictkpy keeps a core busy.
    found = subprocess.run([sys.executable, "-c", read, tmp_path / "contact_map.cool"], capture_output=True, check=True)
    assert json.loads(found.stdout) == expected.tolist()
    with np.load(tmp_path / "contact_map.npz") as again:
        assert np.array_equal(again["counts"], expected) and again["start"] == 1200
    assert sorted(p.name for p in tmp_path.iterdir()) == ["contact_map.cool", "contact_map.npz"]
