"""Base-pair algebra against the published numbers of 1KX5, its own inverse, and strand symmetry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chromabuild.dna.helix import crystal_path
from chromabuild.dna.steps import (
    COMPLEMENT,
    FLIP,
    ODD_PARAMETERS,
    advance,
    analyse,
    dna_parameters,
    fit_frames,
    rebuild,
    rotation_from_vector,
    split_pair,
    step_derivatives,
)

PARAMETER = st.tuples(
    *[st.floats(-3, 3)] * 3, st.floats(-40, 40), st.floats(-40, 40), st.floats(-170, 170)
)


@settings(max_examples=200, deadline=None)
@given(PARAMETER)
def test_analysis_inverts_advance(values):
    values = np.array(values)
    origin, frame = advance(np.array([1.0, -2.0, 3.0]), rotation_from_vector(np.array([0.3, 1.0, -0.5])), values)
    found = analyse(np.array([1.0, -2.0, 3.0]), rotation_from_vector(np.array([0.3, 1.0, -0.5])), origin, frame)
    assert np.allclose(found, values, atol=1e-9)


def test_round_trip_over_the_whole_crystal_path():
    origin, frame = crystal_path()
    steps = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])
    again_origin, again_frame = rebuild(steps, origin[0], frame[0])
    again = analyse(again_origin[:-1], again_frame[:-1], again_origin[1:], again_frame[1:])
    assert np.abs(again_origin - origin).max() < 1e-9
    assert np.abs(again - steps).max() < 1e-9


def test_crystal_path_has_the_known_parameters():
    # Independent analysis of PDB 1KX5 (CEHS): mean twist 34.60 degrees, rise 3.32 angstrom; the tolerance covers the
    # choice of base geometry.
    origin, frame = crystal_path()
    steps = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])
    assert steps[:, 5].mean() == pytest.approx(34.60, abs=0.1)
    assert steps[:, 2].mean() == pytest.approx(3.32, abs=0.02)
    # A quarter of the core's roll follows the direction to the core: 7.85 cos(psi) at 34.93 degrees a base pair.
    psi = np.radians(34.93) * (np.arange(146) - 72.5)
    assert 2 * np.mean(steps[:, 4] * np.cos(psi)) == pytest.approx(7.85, abs=1.5)


def test_nucleosome_frame_is_the_one_of_the_contract():
    origin, frame = crystal_path()
    assert abs(origin[73, 1]) < 1e-5 and origin[73, 0] > 35  # x passes through the dyad
    assert abs(origin[73, 2]) < 1.5
    assert origin[-1, 2] - origin[0, 2] > 35  # climbs along +z
    angle = np.unwrap(np.arctan2(origin[:, 1], origin[:, 0]))
    assert angle[-1] < angle[0]  # left-handed
    assert frame[73, :, 0] @ [-1.0, 0.0, 0.0] > 0.95  # the major groove faces the core at the dyad


def test_step_tables_obey_strand_symmetry():
    table = dna_parameters().step
    assert len(table) == 16
    for name, entry in table.items():
        other = table[COMPLEMENT[name[1]] + COMPLEMENT[name[0]]]
        assert np.array_equal(entry.mean, other.mean * ODD_PARAMETERS)
        assert np.array_equal(entry.deviation, other.deviation)
    # Published values that a table complemented without reversal gets wrong (Olson et al. 1998).
    assert table["CT"].mean[5] == 31.9 and table["TC"].mean[5] == 36.3
    assert table["GT"].mean[5] == 31.5 and table["TG"].mean[5] == 37.3


def test_reading_the_other_strand_changes_two_signs():
    step = np.array([0.3, -0.5, 3.4, 2.0, 5.0, 33.0])
    origin, frame = advance(np.zeros(3), np.eye(3), step)
    found = analyse(origin, frame @ FLIP, np.zeros(3), FLIP)
    assert np.allclose(found, step * ODD_PARAMETERS, atol=1e-10)


def test_pair_parameters_survive_splitting_and_give_watson_crick_bonds():
    tables = dna_parameters()
    for base, pair in tables.pair.items():
        (origin_1, frame_1), (origin_2, frame_2) = split_pair(np.zeros(3), np.eye(3), pair)
        assert np.allclose(analyse(origin_2, frame_2 @ FLIP, origin_1, frame_1), pair, atol=1e-10)
        atom = {}
        for letter, origin, frame in ((base, origin_1, frame_1), (COMPLEMENT[base], origin_2, frame_2)):
            standard = tables.base[letter]
            name = "N1" if letter in "AG" else "N3"
            atom[name] = origin + frame @ standard.position[standard.atoms.index(name)]
        assert 2.7 < np.linalg.norm(atom["N1"] - atom["N3"]) < 3.1


def test_frames_are_fitted_to_noisy_atoms():
    standard = dna_parameters().base["A"].ring_position
    frame, origin = rotation_from_vector(np.array([1.0, 0.2, -2.0])), np.array([10.0, -4.0, 7.0])
    noise = np.random.Generator(np.random.Philox(key=5)).normal(0.0, 0.01, standard.shape)
    found_origin, found = fit_frames(origin + standard @ frame.T + noise, standard)
    assert np.linalg.norm(found_origin - origin) < 0.05
    assert np.linalg.det(found) == pytest.approx(1.0)
    assert np.trace(found.T @ frame) > 3 - 1e-3


def test_step_derivatives_are_those_of_the_analysis():
    """Central differences of 1e-5: their error, and that of bends near zero, is of the order of 1e-10."""
    parameters = np.random.Generator(np.random.Philox(key=5)).normal(size=(40, 6)) * [1, 1, 1, 20, 20, 30]
    parameters[:2, 3:5] = [[0.0, 0.0], [1e-7, -1e-7]]  # straight steps, where Euler angles have poles
    zero, unit = np.zeros((40, 3)), np.tile(np.eye(3), (40, 1, 1))
    origin, frame = advance(zero, unit, parameters)
    slopes, size = step_derivatives(parameters, frame), 1e-5
    for c, motion in enumerate(np.eye(6)):
        ahead, back = (analyse(zero, unit, origin + frame @ (sign * motion[:3]),
                               frame @ rotation_from_vector(sign * motion[3:])) for sign in (size, -size))
        assert slopes[:, :, c] == pytest.approx((ahead - back) / (2 * size), abs=1e-6)
