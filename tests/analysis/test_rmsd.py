"""RMSD against MDAnalysis, and atoms followed through the faces of a box."""

import numpy as np
import pytest
from MDAnalysis.analysis.rms import rmsd
from scipy.spatial.transform import Rotation

from chromabuild.analysis.rmsd import followed, superposed_rmsd

RNG = np.random.default_rng(4)


def test_against_mdanalysis():
    reference = RNG.normal(0, 10, (50, 3))
    frames = np.array([Rotation.random(rng=k).apply(reference) + RNG.normal(0, 0.3 * k, (50, 3)) + 100 * k
                       for k in range(5)])
    theirs = [rmsd(frame, reference, center=True, superposition=True) for frame in frames]
    assert superposed_rmsd(frames, reference) == pytest.approx(theirs, abs=1e-5)
    assert theirs[0] == pytest.approx(0, abs=1e-5) and theirs[4] > 1


def test_a_mirror_image_is_no_superposition():
    reference = RNG.normal(0, 10, (50, 3))
    mirrored = reference * [1, 1, -1]
    assert superposed_rmsd(mirrored[None], reference)[0] == pytest.approx(
        rmsd(mirrored, reference, center=True, superposition=True), abs=1e-5)
    assert superposed_rmsd(mirrored[None], reference)[0] > 1


def test_atoms_are_followed_through_faces_and_a_changing_box():
    """A molecule that drifts by three boxes, while these shrink, comes back in one piece."""
    start = RNG.uniform(10, 20, (30, 3))
    boxes = np.array([np.array([30.0, 40, 50]) * (1 - 0.0005 * k) for k in range(60)])
    true = np.array([start + k * np.array([2.0, -1, 0.5]) for k in range(60)])
    wrapped = np.array([frame % box for frame, box in zip(true, boxes, strict=True)])
    path = followed(wrapped, boxes, start)
    # What left the box is counted in edges of the present box.
    crossed = np.round((path - wrapped) / boxes[:, None])
    assert np.allclose(path, wrapped + crossed * boxes[:, None])
    # By a shift of the whole; the RMSD itself is the root of what two sums of squares differ by in rounding.
    assert np.ptp(path[0] - start, axis=0).max() < 1e-9 and superposed_rmsd(path[:1], start)[0] < 1e-6
    assert np.abs(np.diff(path, axis=0)).max() < 3.0
