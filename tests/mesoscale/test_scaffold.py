"""The scaffold: continuous DNA from end to end, crystal path on the cores, files that round-trip."""

import time

import h5py
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mesoscale.cores import crystal_path
from mesoscale.energy import twist_deviations
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain, segment_ends, straight_conformation
from mesoscale.scaffold import Scaffold, box_axes, build_scaffold

SEQUENCE = "ACGTTGCATT" * 64
FIBRE = Fibre(SEQUENCE, (95, 272, 500), chromosome="chrX", start=1000, name="test")


@pytest.fixture(scope="module")
def scaffold():
    """A bent fibre: the straight conformation with smooth random displacements of the beads."""
    parameters = Parameters()
    chain = build_chain(FIBRE, parameters)
    position, frame = straight_conformation(chain)
    random = np.random.Generator(np.random.Philox(key=2))
    position = position + 0.1 * random.standard_normal(position.shape)
    return build_scaffold(FIBRE, chain, position, frame, parameters)


def test_frames_are_rotations_everywhere(scaffold):
    frame = scaffold.frame
    assert np.allclose(np.einsum("nij,nik->njk", frame, frame), np.eye(3), atol=1e-6)
    assert np.linalg.det(frame) == pytest.approx(np.ones(len(frame)), abs=1e-6)


def test_steps_are_dna_steps(scaffold):
    """Rise, bend and twist of every step outside the crystal's own stay near B-DNA."""
    rise = np.linalg.norm(np.diff(scaffold.origin, axis=0), axis=1)
    free = (scaffold.nucleosome[:-1] < 0) | (scaffold.nucleosome[1:] < 0)
    assert free.sum() == 640 - 3 * 146 - 1
    # Rest rise 3.34 angstrom; displacing beads by 1 angstrom changes a segment of about 9 steps by some 0.2 a step.
    assert 2.9 < rise[free].min() and rise[free].max() < 3.9
    between = np.einsum("nij,nik->njk", scaffold.frame[:-1], scaffold.frame[1:])
    bend = np.degrees(np.arccos(np.clip(between[:, 2, 2], -1, 1)))
    assert bend[free].max() < 15
    x, y = between[:, 0, 0] + between[:, 1, 1], between[:, 1, 0] - between[:, 0, 1]
    twist = np.degrees(np.arctan2(y, x))
    assert 30 < twist[free].min() and twist[free].max() < 39
    for linker in scaffold.linkers:
        assert 3.0 < linker["rise"] < 3.7 and 31 < linker["twist"] < 38


def test_wrapped_dna_is_the_crystal_path_on_the_core_frame(scaffold):
    origin, frame = crystal_path()
    for k in range(3):
        wrapped = slice(scaffold.first_bp[k], scaffold.last_bp[k] + 1)
        assert (scaffold.nucleosome[wrapped] == k).all() and scaffold.dyad[k] == FIBRE.dyads[k]
        core = scaffold.core_frame[k]
        assert np.allclose(scaffold.origin[wrapped], scaffold.core_origin[k] + 10 * origin @ core.T, atol=1e-9)
        assert np.allclose(scaffold.frame[wrapped], core @ frame, atol=1e-9)
    assert np.count_nonzero(scaffold.nucleosome < 0) == 640 - 3 * 147


def test_linkers_meet_their_cores(scaffold):
    """The contract: less than 0.1 nm and 2 degrees where a linker's own frames end on its cores; reported. A smooth
    curve that is clamped at both ends meets them to rounding (crystal frames are rotations to 1e-6)."""
    assert scaffold.observables["joint_gap"] < 1e-6 and scaffold.observables["joint_turn"] < 0.01
    # And no kink: the steps on either side of a joint differ in direction by less than steps of bent linkers do.
    for linker in scaffold.linkers:
        steps = linker["last_bp"] - linker["first_bp"]
        assert linker["contour_excess"] == pytest.approx(steps * (linker["rise"] - 3.34))
        assert linker["twist_excess"] == pytest.approx(steps * (linker["twist"] - 34.45))


@pytest.mark.parametrize("degree", [-250.0, 100.0, 200.0])
def test_a_linker_keeps_the_turns_that_it_was_sampled_with(degree):
    """A straight linker twisted by more than half a turn: frames at its ends alone would say the other way round."""
    parameters = Parameters()
    chain = build_chain(FIBRE, parameters)
    position, frame = straight_conformation(chain)
    start, end = segment_ends(chain, position, frame)
    segments = np.flatnonzero(chain.linker == 2)  # between the second and the third core
    axis = (end - start)[segments[0]] / np.linalg.norm((end - start)[segments[0]])
    before = twist_deviations(chain, position, frame)[segments].sum()
    for k, p in enumerate(range(segments[0] + 1, chain.n), start=1):
        turn = Rotation.from_rotvec(np.radians(degree) * min(k / len(segments), 1.0) * axis).as_matrix()
        position[p] = start[segments[0]] + turn @ (position[p] - start[segments[0]])
        frame[p] = turn @ frame[p]
    made = build_scaffold(FIBRE, chain, position, frame, parameters)
    assert made.linkers[2]["twist_excess"] == pytest.approx(degree + np.degrees(before), abs=1.0)
    assert made.observables["joint_turn"] < 0.01


def test_labels_and_orientation(scaffold):
    assert bytes(scaffold.base).decode() == SEQUENCE
    assert scaffold.position[0] == 1000 and scaffold.position[-1] == 1639
    extent = np.ptp(scaffold.origin, axis=0)
    assert extent[0] == extent.max()
    assert np.linalg.det(scaffold.core_frame) == pytest.approx(np.ones(3))


def test_file_round_trip_follows_the_format(scaffold, tmp_path):
    scaffold.energy = {"stretch": np.array([1.0, 2.0])}
    scaffold.acceptance = {"crank": 0.3}
    scaffold.shifts = [{"nucleosome": "n1", "from": 5, "to": 7, "reason": "dyads 100 bp apart, 157 needed"}]
    path = tmp_path / "scaffold.h5"
    scaffold.write(path)
    again = Scaffold.read(path)
    for name, value in vars(scaffold).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(again, name)) and value.dtype == getattr(again, name).dtype
        elif name != "energy":
            assert value == getattr(again, name), name
    assert np.array_equal(again.energy["stretch"], [1.0, 2.0])
    with h5py.File(path) as file:
        assert file.attrs["format"] == "chromabuild-scaffold" and "provenance" in file.attrs
        types = {"bp/origin": "f8", "bp/frame": "f8", "bp/base": "u1", "bp/nucleosome": "i4", "bp/position": "i8",
                 "nucleosome/origin": "f8", "nucleosome/frame": "f8", "nucleosome/dyad_index": "i4",
                 "nucleosome/first_bp": "i4", "nucleosome/last_bp": "i4"}  # fmt: skip
        for name, kind in types.items():
            assert file[name].dtype == np.dtype(kind), name
    assert [p.name for p in tmp_path.iterdir()] == ["scaffold.h5"]


def test_a_later_writing_has_the_same_bytes(scaffold, tmp_path):
    """HDF5 keeps times in whole seconds."""
    scaffold.write(tmp_path / "one.h5")
    time.sleep(1.1)
    scaffold.write(tmp_path / "two.h5")
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read as a scaffold"):
        Scaffold.read(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.attrs["format"] = "other"
    with pytest.raises(ValueError, match="is not a chromabuild-scaffold file of version 1"):
        Scaffold.read(tmp_path / "b.h5")


def test_shorter_wraps_and_no_flanks():
    fibre = Fibre("A" * (2 * 127 + 25), (63, 63 + 127 + 25), wrapped_length=127)
    parameters = Parameters()
    chain = build_chain(fibre, parameters)
    scaffold = build_scaffold(fibre, chain, *straight_conformation(chain), parameters)
    assert np.count_nonzero(scaffold.nucleosome >= 0) == 254
    assert len(scaffold.linkers) == 1


def test_box_axes_find_a_turned_box():
    random = np.random.Generator(np.random.Philox(key=3))
    points = random.uniform(-1, 1, (4000, 3)) * [9, 5, 3]
    turn = np.linalg.qr(random.standard_normal((3, 3)))[0]
    found = box_axes(points @ turn.T)
    extent = np.ptp(points @ turn.T @ found, axis=0)
    assert extent == pytest.approx([18, 10, 6], rel=0.02)
    assert np.linalg.det(found) == pytest.approx(1.0)
