"""Curves, circles and their topology."""

import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.build.duplex import build_dna
from chromabuild.dna.backbone import ATOM_CLASS
from chromabuild.dna.curve import circular_path, follow_curve
from chromabuild.dna.helix import crystal_path, sequence_path, straight_path, superhelix_path
from chromabuild.dna.linking import twist, writhe
from chromabuild.dna.steps import analyse, dna_parameters
from chromabuild.molecule.residues import residue_library, residue_names


def trefoil(scale=150.0, points=200):
    t = np.linspace(0, 2 * np.pi, points, endpoint=False)
    return scale * np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)


def gauss_linking(first, second):
    """Linking number of two closed polygons by Gauss' double sum over small pieces; an oracle of its own."""
    mid_1, mid_2 = (0.5 * (curve + np.roll(curve, -1, axis=0)) for curve in (first, second))
    step_1, step_2 = (np.roll(curve, -1, axis=0) - curve for curve in (first, second))
    apart = mid_1[:, None] - mid_2[None]
    triple = np.einsum("ijk,ijk->ij", apart, np.cross(step_1[:, None], step_2[None]))
    return np.sum(triple / np.linalg.norm(apart, axis=2) ** 3) / (4 * np.pi)


@pytest.mark.parametrize("n, linking_number", [(210, None), (210, 22), (339, 31)])
def test_circle_is_linked_as_asked(n, linking_number):
    origin, frame = circular_path(n, linking_number)
    expected = round(n * 34.286 / 360) if linking_number is None else linking_number
    assert twist(origin, frame, closed=True) + writhe(origin, closed=True) == pytest.approx(expected, abs=1e-9)
    # The strands themselves, ten angstrom off the axis on either side, finely interpolated.
    t = np.arange(0, n, 0.25)
    strands = []
    for side in (1, -1):
        # Between base pairs the frame turns by a part of its step.
        k, part = t.astype(int), t - t.astype(int)
        x, y = frame[k, :, 0], frame[k, :, 1]
        turn = np.radians(360 * expected / n) * part[:, None]
        point = (1 - part[:, None]) * origin[k] + part[:, None] * origin[(k + 1) % n]
        strands.append(point + side * 10.0 * (np.cos(turn) * y - np.sin(turn) * x))
    assert gauss_linking(*strands) == pytest.approx(expected, abs=0.1)  # of a sum over pieces


def test_knotted_circle_closes_with_an_integer_linking_number():
    origin, frame = follow_curve(trefoil(), closed=True)
    total = twist(origin, frame, closed=True) + writhe(origin, closed=True)
    assert total == pytest.approx(round(total), abs=1e-6)
    assert writhe(origin, closed=True) == pytest.approx(-3.35, abs=0.05)  # of a trefoil near its ideal: 3.4
    steps = analyse(origin, frame, np.roll(origin, -1, axis=0), np.roll(frame, -1, axis=0))
    assert np.ptp(steps[:, 2]) < 0.02 and np.ptp(steps[:, 5]) < 0.5  # the seam is a step like the others


def test_writhe_of_a_helix_and_of_plane_curves():
    t = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    ellipse = np.stack([300 * np.cos(t), 200 * np.sin(t), 0 * t], axis=1)
    assert abs(writhe(ellipse, closed=True)) < 1e-12
    # Fuller 1971: a long regular helix of pitch angle a writhes 1 - sin(a) a turn, right-handed positive.
    angle = np.linspace(0, 2 * np.pi * 40, 1600)
    for hand in (1, -1):
        helix = np.stack([np.cos(angle), hand * np.sin(angle), 0.4 * angle], axis=1)
        expected = hand * 40 * (1 - 0.4 / np.hypot(1, 0.4))
        assert writhe(helix) == pytest.approx(expected, rel=0.03)  # ends count for less
    assert writhe(ellipse[:2]) == 0


def test_threads_do_not_change_the_writhe():
    points = np.cumsum(np.random.Generator(np.random.Philox(key=3)).normal(size=(500, 3)), axis=0)
    assert writhe(points, threads=1) == writhe(points, threads=3)


def test_nucleosome_is_negatively_wound():
    origin, frame = crystal_path()
    # Less than two left-handed turns: a closed coil would writhe -1.67 (1 - 26 / hypot(26, 2 pi 42)) = -1.5, an open
    # one less, as the ends see only one side. The regular superhelix differs by the crystal's own waves.
    assert writhe(origin) == pytest.approx(writhe(superhelix_path(103.6, 26.0, 3.34)[0]), abs=0.1)
    assert -1.5 < writhe(origin) < -0.3
    # Britton, Olson & Tobias 2009: not the sum of the step twists (34.6 degrees), but near it.
    assert twist(origin, frame) == pytest.approx(144 * 34.6 / 360, abs=0.6)


def test_straight_line_gives_b_dna():
    points = np.outer(np.arange(5), [0.0, 0.0, 100.0])
    origin, frame = follow_curve(points)
    assert len(origin) == 119 and origin[-1] == pytest.approx([0, 0, 400])
    steps = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])
    assert np.allclose(steps[:, [0, 1, 3, 4]], 0, atol=1e-6) and np.allclose(steps[:, 5], 34.286)
    assert twist(*straight_path(106)) == pytest.approx(104 * 34.286 / 360, abs=0.02)


def test_unstrained_dna_has_the_tabulated_steps():
    base = np.array([0, 3, 2, 2, 1, 0])
    origin, frame = sequence_path(base)
    steps = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])
    for k, name in enumerate(("AT", "TG", "GG", "GC", "CA")):
        assert np.allclose(steps[k], dna_parameters().step[name].mean, atol=1e-9)


@pytest.mark.parametrize("closed", [True, False], ids=["knot", "wild"])
def test_any_smooth_curve_closes(closed):
    random_walk = np.cumsum(200 * np.random.Generator(np.random.Philox(key=9)).normal(size=(6, 3)), axis=0)
    origin, frame = follow_curve(trefoil(100.0) if closed else random_walk, closed=closed)
    sequence = np.random.Generator(np.random.Philox(key=4)).integers(0, 4, len(origin))
    _, template, report = build_dna(sequence, origin, frame, circular=closed)
    assert report["bond_rmsz"] <= 0.2 and report["angle_rmsz"] <= 0.7
    assert report["bond_outliers"] == report["angle_outliers"] == sum(report["wrong_chirality"].values()) == 0
    assert 1.60 <= report["o3_p_shortest"] and report["o3_p_longest"] <= 1.615
    ends = [k for k, name in enumerate(residue_names()) if name in {f"D{base}{end}" for base in "ACGT" for end in "53"}]
    assert np.isin(template, ends).sum() == (0 if closed else 4)


@pytest.mark.parametrize("make, complaint", [
    (lambda: follow_curve(np.zeros((2, 3))), "at least 4 points"),
    (lambda: follow_curve(np.zeros((5, 3))), "points 0 and the next"),
    (lambda: follow_curve(np.outer(np.arange(5), [0, 0, 50.0]), n=40),
     "cannot span a path of 200.0 angstrom .* take 60"),
    (lambda: circular_path(50), "radius of 27.0 angstrom at base pair .* longer"),
    (lambda: circular_path(210, 30), "linking number 30 twists 210 base pairs .* take one near 20"),
    (lambda: build_dna(np.zeros(57, int), *circular_path(57), circular=True), "circle of 57 base pairs"),
])
def test_impossible_paths_are_refused_with_a_remedy(make, complaint):
    with pytest.raises(BadInputError, match=complaint):
        make()


@pytest.mark.parametrize("nucleotide", [0, 52, 104, 105, 209])
def test_the_backbone_of_a_circle_keeps_clear_of_what_lies_beside_it(nucleotide):
    """A carbon 2.2 angstrom beyond an oxygen of a phosphate, at the seam of either strand and away from it: the
    backbone turns to where no atom is nearer than 2.7 angstrom, and stays sound."""
    sequence, path = np.random.default_rng(3).integers(0, 4, 105), circular_path(105)
    free, template, _ = build_dna(sequence, *path, circular=True)
    library = list(residue_library().values())
    names = np.array([name for k in template for name in library[k].atoms])
    oxygen, phosphorus = (free[names == name][nucleotide] for name in ("OP1", "P"))
    carbon = oxygen + 2.2 * (oxygen - phosphorus) / np.linalg.norm(oxygen - phosphorus)
    beside, _, report = build_dna(sequence, *path, circular=True,
                                  histones=(carbon[None], np.array([ATOM_CLASS["C"]], np.int32)))
    assert np.linalg.norm(free - carbon, axis=1).min() == pytest.approx(2.2)
    assert np.linalg.norm(beside - carbon, axis=1).min() > 2.7
    assert report["bond_outliers"] == report["angle_outliers"] == 0
