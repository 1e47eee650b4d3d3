"""The relaxed path of a circle with nucleosomes."""

from dataclasses import replace

import numpy as np
import pytest

from chromabuild.base.settings import BuildSection
from chromabuild.build.fibre import relaxed_path
from chromabuild.dna.linking import twist, writhe
from chromabuild.dna.sequence import base_index
from chromabuild.dna.steps import analyse
from mesoscale.circle import closed_start, linking_number_of
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain
from mesoscale.scaffold import Scaffold, build_scaffold

LENGTH, DYADS = 374, (93, 280)


@pytest.fixture(scope="module")
def scaffold() -> Scaffold:
    sequence = "".join(np.random.default_rng(1).choice(list("ACGT"), LENGTH))
    fibre, parameters = Fibre(sequence, DYADS, circular=True), Parameters(core_charges="formal")
    chain = build_chain(fibre, parameters)
    start = closed_start(fibre, chain, parameters, np.random.default_rng(1))
    found = build_scaffold(fibre, chain, start.position, start.frame, parameters)
    assert linking_number_of(fibre, chain, start, parameters) == round(linked(found.origin, found.frame))
    return found


def linked(origin: np.ndarray, frame: np.ndarray) -> float:
    return twist(origin, frame, closed=True) + writhe(origin, closed=True)


def relax(scaffold: Scaffold, **settings: object):
    return relaxed_path(scaffold, base_index(scaffold.base), BuildSection(**settings))


def begun_at(scaffold: Scaffold, k: int) -> Scaffold:
    """The same circle, its base pairs counted from number k on, which is free."""
    rolled = {name: np.roll(getattr(scaffold, name), -k, axis=0) for name in ("origin", "frame", "base", "nucleosome")}
    moved = {name: getattr(scaffold, name) - k for name in ("dyad", "first_bp", "last_bp")}
    return replace(scaffold, **rolled, **moved)


def test_linkers_keep_their_turns_and_steps_close(scaffold):
    """The linking number is the scaffold's, a whole number; the step across the seam is like any other."""
    path = relax(scaffold)
    assert linked(path.origin, path.frame) == pytest.approx(linked(scaffold.origin, scaffold.frame), abs=1e-6)
    steps = analyse(path.origin, path.frame, np.roll(path.origin, -1, axis=0), np.roll(path.frame, -1, axis=0))
    free = scaffold.nucleosome < 0
    assert steps[free, 2].min() > 2.9 and steps[free, 2].max() < 4.2 and steps[-1, 5] == pytest.approx(35, abs=15)
    assert [(one.first_bp, one.last_bp) for one in path.linkers] == [(167, 206), (354, 19)]
    assert path.core_displacement.max() < 5.0


def test_the_seam_may_lie_anywhere_in_a_linker(scaffold):
    """The same path wherever base pairs are counted from, as near as two minimisations come."""
    path, other = relax(scaffold), relax(begun_at(scaffold, 12))
    assert np.abs(np.roll(other.origin, 12, axis=0) - path.origin).max() < 1e-6
    assert [one.cost_kt for one in other.linkers] == pytest.approx([one.cost_kt for one in path.linkers], rel=1e-6)


def test_an_overwound_linker_across_the_seam_peels_both_its_cores(scaffold):
    """A turn and a half more in the linker across the seam than it has at rest costs more than its cores hold."""
    frame = scaffold.frame.copy()
    across = np.r_[354:LENGTH, 0:20]
    angle = np.linspace(0, 3 * np.pi, len(across) + 2)[1:-1] * 2 / 3  # a whole turn more: its ends stay
    c, s = np.cos(angle), np.sin(angle)
    zero, one = 0 * angle, 0 * angle + 1
    turn = np.stack([c, -s, zero, s, c, zero, zero, zero, one], axis=1).reshape(-1, 3, 3)
    frame[across] = frame[across] @ turn
    path = relax(replace(scaffold, frame=frame))
    assert linked(path.origin, path.frame) == pytest.approx(linked(scaffold.origin, scaffold.frame) + 1, abs=1e-6)
    assert path.unwrapped in (10, 20)
    assert (path.linkers[-1].first_bp, path.linkers[-1].last_bp) in ((349, 24), (344, 29))
