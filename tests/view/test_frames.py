"""Frames of the dynamics: a fibre that was moved as a whole and cut by a box comes back as it was."""

import numpy as np
import pytest
from MDAnalysis.lib.formats.libdcd import DCDFile
from scipy.spatial.transform import Rotation

from chromabuild.base.errors import BadInputError
from chromabuild.nucleosome.peptide import superposition
from chromabuild.view.frames import read_frames
from chromabuild.view.overview import drawn_places

BOX = np.array([180.0, 170.0, 160.0])  # smaller than the fibre: every molecule is cut
TURN = Rotation.from_rotvec([0.4, -0.8, 0.3]).as_matrix()


def write_dcd(path, frames, box):
    with DCDFile(str(path), "w") as file:
        file.write_header("", len(frames[0]), istart=10, nsavc=10, delta=0.04090965911746025, is_periodic=1)
        for frame in frames:
            file.write(frame.astype(np.float32), [box[0], 90, box[1], 90, 90, box[2]])


@pytest.fixture(scope="module")
def trajectory(built, tmp_path_factory):
    """Seven frames: the solute turned, shifted and wrapped atom by atom, and two waters."""
    path = tmp_path_factory.mktemp("dcd") / "run.dcd"
    atoms = built.solute.position.astype(float)
    frames = []
    for k in range(7):
        moved = atoms @ TURN.T + [40.0 * k, -90.0, 25.0]
        frames.append(np.concatenate([moved - np.floor(moved / BOX) * BOX, np.zeros((6, 3))]))
    write_dcd(path, frames, BOX)
    return path


def test_whole_motion_and_box_are_taken_back(built, trajectory):
    places = drawn_places(len(built.scaffold.base))
    found = read_frames([("heat", trajectory)], built.solute, built.scaffold, places, 3)
    assert found.label == ["heat, 0.02 ps", "heat, 0.08 ps", "heat, 0.14 ps"]  # first, middle, last; steps of 2 fs
    for k in range(3):
        # A float32 of some hundred angstrom is right within 2e-5; the path adds up 400 of them.
        np.testing.assert_allclose(found.path[k], built.scaffold.origin[places], atol=0.01)
        np.testing.assert_allclose(found.core[k], built.scaffold.core_origin, atol=0.01)
        np.testing.assert_allclose(found.core_frame[k], built.scaffold.core_frame, atol=1e-3)


def test_a_nucleosome_that_moved_is_seen(built, tmp_path):
    atoms = built.solute.position.astype(float)
    first, owner = built.solute.molecule_first_atom, built.solute.molecule_nucleosome
    for k in np.flatnonzero(owner == 1):
        atoms[first[k]:first[k + 1]] += [0.0, 0.0, 4.0]
    write_dcd(tmp_path / "moved.dcd", [atoms], np.zeros(3))
    places = drawn_places(len(built.scaffold.base))
    found = read_frames([("run", tmp_path / "moved.dcd")], built.solute, built.scaffold, places, 20)
    np.testing.assert_allclose(found.core[0] - built.scaffold.core_origin, [[0, 0, 0], [0, 0, 4]], atol=0.01)


def test_a_trajectory_of_something_else_is_told(built, tmp_path):
    write_dcd(tmp_path / "small.dcd", [np.zeros((5, 3))], BOX)
    (tmp_path / "broken.dcd").write_bytes(b"no trajectory")
    for name, sentence in (("small.dcd", "5 atoms"), ("broken.dcd", "cannot be read")):
        with pytest.raises(BadInputError, match=sentence):
            read_frames([("run", tmp_path / name)], built.solute, built.scaffold, drawn_places(10), 20)


def test_no_frames_are_no_frames(built, trajectory):
    places = drawn_places(len(built.scaffold.base))
    assert read_frames([], built.solute, built.scaffold, places, 20) is None
    assert read_frames([("heat", trajectory)], built.solute, built.scaffold, places, 0) is None


def test_superposition_is_a_rotation_even_of_mirrored_points():
    random = np.random.default_rng(3)
    points = random.normal(size=(20, 3))
    turn, shift = superposition(points, points @ TURN.T + 7)
    np.testing.assert_allclose(turn, TURN, atol=1e-12)
    np.testing.assert_allclose(shift, 7, atol=1e-12)
    mirrored, _ = superposition(points, points * [1, 1, -1])
    assert np.isclose(np.linalg.det(mirrored), 1)
