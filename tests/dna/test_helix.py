"""Paths and the elastic linker solver."""

import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import BuildSection
from chromabuild.build.fibre import relaxed_path
from chromabuild.dna.helix import FREE_TETHER, PEELED, crystal_path, straight_path, superhelix_path
from chromabuild.dna.sequence import base_index
from chromabuild.dna.steps import analyse, dna_parameters, rotation_about_z, rotation_from_vector


def relax(scaffold, **settings):
    return relaxed_path(scaffold, base_index(scaffold.base), BuildSection(**settings))


def test_superhelix_has_the_geometry_of_the_paper():
    origin, frame = superhelix_path()
    assert np.allclose(np.hypot(origin[:, 0], origin[:, 1]), 43.0)
    # 146 steps of 3.4 angstrom on a helix of radius 43 and pitch 28: length over the length of a turn.
    turns = 146 * 3.4 / np.hypot(2 * np.pi * 43.0, 28.0)
    assert turns == pytest.approx(1.83, abs=0.005)
    assert origin[-1, 2] - origin[0, 2] == pytest.approx(28.0 * turns)
    assert np.allclose(frame @ np.swapaxes(frame, 1, 2), np.eye(3), atol=1e-12)
    central = np.linalg.norm(origin[7:-7] - crystal_path()[0][7:-7], axis=1)
    assert np.sqrt(np.mean(central**2)) < 6.0  # the same left-handed superhelix as the crystal's
    assert frame[73, :, 0] @ [-1.0, 0.0, 0.0] > 0.999
    steps = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])
    assert steps[:, 5].mean() == pytest.approx(34.93 - 0.46, abs=0.1)  # turning minus the path's torsion


def test_straight_dna_repeats_its_step():
    origin, _ = straight_path(22)
    assert origin[21] == pytest.approx([0, 0, 21 * 3.4], abs=1e-9)


def test_consistent_scaffold_relaxes_to_a_cheap_linker(scaffold_of):
    path = relax(scaffold_of(2, 30, 10))
    (linker,) = path.linkers
    assert (linker.first_bp, linker.last_bp) == (157, 186)
    assert linker.cost_kt < 2.0 and abs(linker.stretch) < 0.01 and linker.largest_z < 1.0
    assert path.core_displacement.max() < 2.0


def test_energy_gradient_vanishes_at_the_minimum(scaffold_of):
    # The relaxed linker must not get cheaper by moving any of its base pairs: elasticity and the tether to the path.
    scaffold = scaffold_of(2, 12, 5)
    path = relax(scaffold)
    table, base = dna_parameters().step, base_index(scaffold.base)

    def energy(origin, frame):
        total = 0.0
        for k in range(151, 165):
            entry = table["ACGT"[base[k]] + "ACGT"[base[k + 1]]]
            z = (analyse(origin[k], frame[k], origin[k + 1], frame[k + 1]) - entry.mean) / entry.deviation
            total += 0.5 * np.sum(z**2)
        free = scaffold.nucleosome < 0
        return total + 0.5 * np.sum((origin[free] - scaffold.origin[free]) ** 2) / FREE_TETHER**2

    k = 157
    for axis in np.eye(3):
        moved, turned = [], []
        for sign in (0.01, -0.01):
            origin, frame = path.origin.copy(), path.frame.copy()
            origin[k] += sign * axis
            moved.append(energy(origin, frame))
            origin, frame = path.origin.copy(), path.frame.copy()
            frame[k] = frame[k] @ rotation_from_vector(0.1 * sign * axis)
            turned.append(energy(origin, frame))
        assert abs(moved[0] - moved[1]) / 0.02 < 0.02  # kT per angstrom; thermal forces are of order 1
        assert abs(turned[0] - turned[1]) / 0.002 < 0.2  # kT per radian


def test_long_linker_stays_on_its_path(scaffold_of):
    """A bend of 60 A over 300 base pairs, as a fibre has to clear another one, is kept: the tether (8 A for half kT)
    outweighs the bending force, 500 kT A * 60 A * (2 pi / 1000 A)^4 * 3.4 A = 2e-4 kT/A a base pair, thousandfold.
    """
    scaffold = scaffold_of(2, 300, 0)
    free = np.flatnonzero(scaffold.nucleosome < 0)
    along = scaffold.frame[free[0], :, 2]
    side = np.cross(along, [1.0, 0.0, 0.0])
    share = np.linspace(0.0, 1.0, len(free))
    scaffold.origin[free] += 60.0 * (np.sin(np.pi * share) ** 2)[:, None] * side / np.linalg.norm(side)
    path = relax(scaffold)
    assert np.linalg.norm(path.origin[free] - scaffold.origin[free], axis=1).max() < 6.0


def test_half_a_turn_of_misfit_costs_what_elasticity_says(scaffold_of):
    scaffold = scaffold_of(2, 30, 0)
    axis, pivot = scaffold.frame[162, :, 2], scaffold.origin[scaffold.first_bp[1]]
    turn = rotation_from_vector(np.radians(150.0) * axis)
    scaffold.core_frame = scaffold.core_frame.copy()
    scaffold.core_frame[1] = turn @ scaffold.core_frame[1]
    scaffold.core_origin[1] = pivot + turn @ (scaffold.core_origin[1] - pivot)
    (linker,) = relax(scaffold).linkers
    deviation = 5.0  # degree, mean of Olson's twist deviations
    expected = 0.5 * linker.twist_excess**2 / (31 * deviation**2)
    assert 120.0 < abs(linker.twist_excess) < 230.0
    assert linker.cost_kt == pytest.approx(expected, rel=0.35)


def test_an_overtwisted_linker_peels_its_cores(scaffold_of):
    """150 degrees in 11 steps of 5 degrees' deviation cost 150^2 / (2 * 11 * 25) = 41 kT; in 21 steps 21 kT."""
    scaffold = scaffold_of(2, 10, 0)
    axis, pivot = scaffold.frame[152, :, 2], scaffold.origin[scaffold.first_bp[1]]
    turn = rotation_from_vector(np.radians(150.0) * axis)
    scaffold.core_frame, scaffold.core_origin = scaffold.core_frame.copy(), scaffold.core_origin.copy()
    scaffold.core_frame[1] = turn @ scaffold.core_frame[1]
    scaffold.core_origin[1] = pivot + turn @ (scaffold.core_origin[1] - pivot)
    first = int(np.flatnonzero(scaffold.nucleosome < 0)[0])
    path = relax(scaffold)
    (linker,) = path.linkers
    assert (linker.first_bp, linker.last_bp) == (first - PEELED, first + 9 + PEELED)
    assert linker.phase_cost_kt < 30.0 and linker.largest_z < 3.5
    # Base pairs that stay on their core do so to the last digit.
    wrapped = np.arange(first - 147, first - PEELED)
    on_core = (path.origin[wrapped] - path.core_origin[0]) @ path.core_frame[0]
    assert np.allclose(on_core, crystal_path()[0][: len(wrapped)], atol=1e-9)


@pytest.mark.parametrize(("pulled", "rounds"), [(36.0, 0), (42.0, 1), (50.0, 2)])
def test_a_stretched_linker_peels_its_cores(scaffold_of, pulled, rounds):
    """Cores pulled apart along a linker of ten base pairs, 34 angstrom: as many more as bring its stretch below 4 %."""
    scaffold = scaffold_of(2, 10, 0)
    scaffold.core_origin = scaffold.core_origin.copy()
    scaffold.core_origin[1] += pulled * scaffold.frame[152, :, 2]
    first = int(np.flatnonzero(scaffold.nucleosome < 0)[0])
    path = relax(scaffold)
    (linker,) = path.linkers
    assert (linker.first_bp, linker.last_bp) == (first - rounds * PEELED, first + 9 + rounds * PEELED)
    assert abs(linker.stretch) < 0.04 and linker.largest_z < 3.0
    assert path.unwrapped == path.summary()["unwrapped base pairs"] == 2 * rounds * PEELED


def test_twist_of_the_scaffold_does_not_matter_only_its_path(scaffold_of):
    scaffold = scaffold_of(2, 25, 8)
    before = relax(scaffold)
    free = scaffold.nucleosome < 0
    spin = np.random.Generator(np.random.Philox(key=2)).uniform(-3, 3, free.sum())
    scaffold.frame[free] = scaffold.frame[free] @ rotation_about_z(spin)
    after = relax(scaffold)
    assert after.linkers[0].cost_kt == pytest.approx(before.linkers[0].cost_kt, abs=0.01)


def test_absurd_linker_is_refused_with_a_remedy(scaffold_of):
    scaffold = scaffold_of(2, 20, 5)
    scaffold.core_origin[1] += 60.0 * scaffold.frame[160, :, 2]
    with pytest.raises(BadInputError, match="linker of base pairs 152..171 cannot be built.*dyads"):
        relax(scaffold)


@pytest.mark.parametrize("nucleosomes, linker, flank, wrapped", [(0, 0, 40, 147), (1, 0, 0, 147), (2, 0, 3, 147),
                                                                (2, 20, 5, 127)])
def test_unusual_fibres(scaffold_of, nucleosomes, linker, flank, wrapped):
    scaffold = scaffold_of(nucleosomes, linker, flank, wrapped=wrapped)
    path = relax(scaffold)
    steps = analyse(path.origin[:-1], path.frame[:-1], path.origin[1:], path.frame[1:])
    assert len(path.origin) == len(scaffold.base)
    free = (scaffold.nucleosome[:-1] < 0) | (scaffold.nucleosome[1:] < 0)
    assert np.all(np.abs(steps[free, 2] - 3.35) < 0.4)
    assert np.all(np.abs(steps[free, 5] - 34.5) < 12)
