"""Runs that begin from the states of another one: the same minimum from nearer by, and sets that cannot be used."""

import re

import numpy as np
import pytest
from support.plane_waves import WATER, Case, compute, run, write_case

CASE = Case(WATER, 7.5, 25.0, "BLYP")
MOVED = Case((*WATER[:2], ("H", -1.3, 1.35, -.1)), 7.5, 25.0, "BLYP")
LEAVE, TAKE = {"OUTPUT": {"restartfile": "w().states"}}, {"INPUT": {"statesfile": "w().states"}}
FINE = {"PARALLEL": {"layer": "OBJECTS"}}
FREE = {"DYNAMICS": {"method": "NONORTHOGONAL", "nsteps": 3, "temperature": 300}}
"""Three steps of states that overlap."""


@pytest.mark.parametrize(("ranks", "layer", "before"), [(1, {}, {}), (2, {}, {}), (2, FINE, {}), (1, {}, FREE)],
                         ids=["one rank", "two ranks", "fine objects", "overlapping states"])
def test_a_moved_atom_has_one_minimum(tmp_path, ranks, layer, before):
    """Both ends are within the tolerance of the minimum, 1e-11 Ha as it is estimated; forces err by the square root."""
    compute(tmp_path, CASE, ranks, **LEAVE, **layer, **before)
    fresh = compute(tmp_path, MOVED, ranks, **layer)
    begun = compute(tmp_path, MOVED, ranks, **TAKE, **layer)
    assert begun["total"] == pytest.approx(fresh["total"], abs=1e-10)
    np.testing.assert_allclose(begun["forces"], fresh["forces"], atol=2e-5)
    np.testing.assert_array_equal(begun["positions"], fresh["positions"])
    assert begun["steps"] < 0.85 * fresh["steps"]


def test_states_at_the_minimum_are_done(tmp_path):
    """Also those of another functional begin well, though they are not its minimum."""
    first = compute(tmp_path, CASE, **LEAVE)
    again = compute(tmp_path, CASE, **TAKE)
    assert again["steps"] == 0 and again["total"] == pytest.approx(first["total"], abs=1e-12)
    other = compute(tmp_path, CASE, ELECTRONS={"functional": "PZ"}, **TAKE)
    assert 0 < other["steps"] < first["steps"]


@pytest.mark.parametrize(("case", "ranks", "words"), [
    (Case(WATER, 7.6, 25.0, "BLYP"), 1, r"states in a box of 3\.9688 x .* angstrom, and here it is 4\.0217 x "),
    (Case(WATER, 7.5, 26.0, "BLYP"), 1, r"states to 25\.0000 Ry, and here cutoff is 26\.0000; only "),
    (Case(WATER, 7.5, 25.0, "BLYP", 2), 1, "has 4 states, and here are 3; .*, or leave statesfile out"),
    (Case((*WATER, ("H", 3.5, 3.5, 3.5), ("H", 4.9, 3.5, 3.5)), 7.5, 25.0, "BLYP", 2), 1, "of 3 atoms, and here are 5"),
    (CASE, 2, "was written by 1 ranks; go on with as many"),
])
def test_states_of_another_system_are_refused(tmp_path, case, ranks, words):
    compute(tmp_path, CASE, **LEAVE)
    (tmp_path / "case.json").unlink()
    # One rank must find a file that is another's.
    (tmp_path / "w1.states").write_bytes((tmp_path / "w0.states").read_bytes())
    done = run(tmp_path, write_case(tmp_path, case, **TAKE), ranks)
    assert done.returncode == 3
    assert len(re.findall(f"^chromaqm: w[01].states: .*{words}", done.stderr, re.MULTILINE)) == 1, done.stderr
    assert not (tmp_path / "case.json").exists()


def test_damaged_and_missing_states_are_refused(tmp_path):
    control = write_case(tmp_path, CASE, **TAKE)
    done = run(tmp_path, control)
    assert done.returncode == 3 and "w0.states: this restart file is not there; check the name" in done.stderr
    compute(tmp_path, CASE, **LEAVE)
    written = (tmp_path / "w0.states").read_bytes()
    (tmp_path / "w0.states").write_bytes(written[:-20] + b"x" + written[-19:])
    done = run(tmp_path, write_case(tmp_path, CASE, **TAKE))
    assert done.returncode == 5 and "w0.states: is damaged" in done.stderr


def test_dynamics_does_not_go_on_from_a_minimum(tmp_path):
    """It has no velocities; its states it may begin from."""
    compute(tmp_path, CASE, **LEAVE)
    steps = {"DYNAMICS": {"nsteps": 1}}
    done = run(tmp_path, write_case(tmp_path, CASE, INPUT={"restartfile": "w().states"}, **steps))
    assert done.returncode == 3 and "method of dynamics" in done.stderr
    done = run(tmp_path, write_case(tmp_path, CASE, **TAKE, **steps))
    assert done.returncode == 0, done.stderr
