"""DNA along trajectories: against 3DNA's tables of a crystal structure, planted shapes, rigid motions and boxes."""

import tracemalloc
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.marked_solute import SEQUENCE as MARKED
from support.marked_solute import marked_solute
from support.universes import built_dna, universe_of

from chromabuild.analysis.backbone_states import epsilon_minus_zeta, is_bii, is_canonical, is_south, pucker_name
from chromabuild.analysis.dna_analysis import DnaAnalysis
from chromabuild.analysis.helix_shape import WINDOW, bonds_kept, end_to_end_bend, frayed, helix_axes, is_open
from chromabuild.analysis.nucleotides import close_pairs, find_nucleotides, nearest_image
from chromabuild.base.errors import BadInputError
from chromabuild.dna.curve import circular_path
from chromabuild.dna.steps import rebuild

DATA = Path(__file__).parent / "data"
SEQUENCE = "GATTACAGCCTGACGTTAGCATCGATTAGCCATGCA"


def published():
    """3DNA's tables by name: (rows, columns), the first column a number from 1."""
    tables = {}
    for line in (DATA / "1kx5_3dna.txt").read_text().splitlines():
        if line.startswith("["):
            rows = tables.setdefault(line[1:line.index("]")], [])
        elif not line.startswith("#"):
            rows.append([float(word) for word in line.split()])
    return {name: np.array(rows) for name, rows in tables.items()}


@pytest.fixture(scope="module")
def crystal(tmp_path_factory):
    import gzip

    path = tmp_path_factory.mktemp("crystal") / "1kx5.pdb"
    path.write_bytes(gzip.decompress((DATA / "1kx5_dna.pdb.gz").read_bytes()))
    return MDAnalysis.Universe(str(path))


@pytest.fixture(scope="module")
def analysed(crystal):
    return DnaAnalysis(crystal).run()


def turned_by(angle):
    return (angle + 180) % 360 - 180


# 3DNA prints lengths of parameters and angles of them to 0.01, grooves, torsions and phases to 0.1: half of that is
# rounding. Angles differ by up to 0.015 degree more, because the standard bases are tabulated to 0.001 angstrom.
@pytest.mark.parametrize(("table", "measure", "tolerance"), [
    ("pairs", "pair", [0.006] * 3 + [0.02] * 3), ("steps", "step", [0.006] * 3 + [0.02] * 3),
    ("grooves", "groove", [0.051] * 4)])
def test_crystal_agrees_with_published_helix_parameters(analysed, table, measure, tolerance):
    rows = published()[table]
    found = analysed.results[measure][0][rows[:, 0].astype(int) - 1]
    assert np.array_equal(np.isnan(found), np.isnan(rows[:, 1:]))
    assert (np.nanmax(np.abs(found - rows[:, 1:]), axis=0) < tolerance).all()


@pytest.mark.parametrize(("table", "strand"), [("backbone_I", 0), ("backbone_II", 1)])
def test_crystal_agrees_with_published_torsions(analysed, table, strand):
    rows = published()[table]
    found = analysed.results.torsion[0, strand][rows[:, 0].astype(int) - 1]
    assert np.array_equal(np.isnan(found), np.isnan(rows[:, 1:]))
    assert np.nanmax(np.abs(turned_by(found - rows[:, 1:]))) < 0.051


def test_crystal_agrees_with_published_sugars(analysed):
    rows = published()["sugar_I"]
    found = analysed.results.pucker[0, 0][rows[:, 0].astype(int) - 1]
    assert np.abs(found - rows[:, [7, 6]]).max() < 0.051


def test_states_of_the_crystal(analysed):
    torsion, phase = analysed.results.torsion[0, 0], analysed.results.pucker[0, 0, :, 0]
    # 3DNA: nucleotide 16 has epsilon -113.5, zeta 152.2; nucleotide 22 alpha 105.1, gamma -158.6.
    assert epsilon_minus_zeta(torsion[15]) == pytest.approx(94.3, abs=0.1) and is_bii(torsion[15])
    assert not is_bii(torsion[16]) and is_canonical(torsion[15]) and not is_canonical(torsion[21])
    assert [pucker_name(phase[k]) for k in (0, 5, 7)] == ["C2'-endo", "C3'-exo", "C1'-exo"]
    assert is_south(phase).mean() > 0.95
    distance = analysed.results.hydrogen_bond[0]
    # One pair of the crystal is stretched by 1.26 angstrom and opened by 17.6 degree in 3DNA's table: number 127.
    assert np.flatnonzero(is_open(distance)).tolist() == [126]
    guanine = np.isin(analysed.nucleotides.letter[analysed.nucleotides.duplexes[0].first], ("G", "C"))
    assert np.array_equal(np.isfinite(distance[:, 2]), guanine) and (bonds_kept(distance)[guanine] == 3).mean() > 0.9


def test_rigid_motions_change_nothing(crystal, analysed):
    turns = Rotation.random(3, random_state=4)
    frames = [turn.apply(crystal.atoms.positions) + shift for turn, shift in
              zip(turns, ([0, 0, 0], [40, -10, 3], [-200, 90, 7]), strict=True)]
    moved = crystal.copy()
    moved.load_new(np.array(frames, np.float32))
    found = DnaAnalysis(moved).run()
    for measure in DnaAnalysis.MEASURES:
        apart = found.results[measure] - analysed.results[measure]
        if measure in ("torsion", "pucker"):
            apart = turned_by(apart)
        # Single precision at 200 angstrom is 1.5e-5 angstrom: over bonds of 1.4 angstrom 6e-4 degree, more in a phase.
        assert apart.size == 0 or np.nanmax(np.abs(apart)) < 5e-3, measure


@pytest.mark.parametrize("box", [[150, 155, 160, 90, 90, 90], [190, 190, 190, 60, 60, 90]])
def test_atoms_may_stand_in_any_image(crystal, analysed, box):
    rng = np.random.default_rng(2)
    vectors = MDAnalysis.lib.mdamath.triclinic_vectors(box)
    moved = crystal.copy()
    places = crystal.atoms.positions + rng.integers(-1, 2, (len(crystal.atoms), 3)) @ vectors
    moved.load_new(np.array([places], np.float32), dimensions=np.array([box], np.float32))
    found = DnaAnalysis(moved).run()
    assert found.pair_names == analysed.pair_names
    for measure in DnaAnalysis.MEASURES:
        apart = turned_by(found.results[measure] - analysed.results[measure])
        assert apart.size == 0 or np.nanmax(np.abs(apart)) < 5e-3, measure  # as of rigid motions


def straight(n, kink=0.0):
    """Steps of straight DNA with one roll in the middle."""
    steps = np.tile([0.0, 0.0, 3.4, 0.0, 0.0, 36.0], (n - 1, 1))
    steps[(n - 1) // 2, 4] = kink
    return steps


def test_planted_parameters_are_recovered():
    rng = np.random.default_rng(7)
    n = len(SEQUENCE)
    step = straight(n) + rng.uniform(-1, 1, (n - 1, 6)) * [0.5, 0.5, 0.1, 3, 6, 4]
    pair = rng.uniform(-1, 1, (n, 6)) * [0.3, 0.15, 0.3, 8, 10, 4]
    origin, frame = rebuild(step)
    found = DnaAnalysis(universe_of(built_dna(SEQUENCE, origin, frame, pair))).run()
    assert np.abs(found.results.step[0] - step).max() < 1e-3
    assert np.abs(found.results.pair[0] - pair).max() < 1e-3


def test_planted_bends_are_recovered():
    n = 41
    origin, frame = rebuild(straight(n, kink=25.0))
    axis = helix_axes(frame)
    assert end_to_end_bend(axis) == pytest.approx(25.0, abs=1e-6)
    found = DnaAnalysis(universe_of(built_dna((SEQUENCE * 2)[:n], origin, frame, np.zeros((n, 6))))).run()
    bend = found.results.bend[0]
    assert bend[20] == pytest.approx(25.0, abs=1e-3)
    assert np.isnan(bend[:WINDOW]).all() and np.isfinite(bend[WINDOW:-WINDOW]).all()
    assert end_to_end_bend(helix_axes(rebuild(straight(n))[1])) < 1e-5


def test_a_circle_has_as_many_steps_as_pairs():
    n, turns = 210, 20
    origin, frame = circular_path(n, turns)
    made = universe_of(built_dna((SEQUENCE * 6)[:n], origin, frame, np.zeros((n, 6)), circular=True))
    found = DnaAnalysis(made).run()
    (pairs,) = found.nucleotides.duplexes
    assert pairs.closed and pairs.steps == n and np.isfinite(found.results.groove).all()
    assert np.isfinite(found.results.torsion).all()
    # In a plane writhe is zero: the axis of every window is turned by 10 + 1 of 210 steps of a circle.
    assert found.results.bend[0] == pytest.approx(360 * (WINDOW + 1) / n, abs=0.1)
    assert found.results.step[0, :, 5].sum() / 360 == pytest.approx(turns, abs=0.05)


def test_open_pairs_and_frayed_ends(crystal):
    opened = crystal.copy()
    where = find_nucleotides(crystal)
    (pairs,) = where.duplexes
    positions = crystal.atoms.positions
    for k in (0, 1, 2, 60, 146):
        atoms = where.atoms[pairs.second[k]]
        positions[atoms[atoms >= 0]] += [0, 0, 12]
    opened.load_new(np.array([crystal.atoms.positions, positions], np.float32))
    broken = is_open(DnaAnalysis(opened).run().results.hydrogen_bond)
    assert broken.sum(axis=1).tolist() == [1, 6] and frayed(broken).tolist() == [[0, 0], [3, 1]]


def test_frames_are_shared_out_to_processes(crystal):
    moving = crystal.copy()
    rng = np.random.default_rng(5)
    moving.load_new((crystal.atoms.positions + rng.normal(0, 0.2, (4, len(crystal.atoms), 3))).astype(np.float32))
    one = DnaAnalysis(moving).run()
    two = DnaAnalysis(moving).run(backend="multiprocessing", n_workers=2)
    for measure in DnaAnalysis.MEASURES:
        assert np.array_equal(one.results[measure], two.results[measure], equal_nan=True)


@pytest.mark.parametrize(("selection", "complaint"), [("segid I", "no duplex"), ("name P", "no DNA")])
def test_what_is_no_duplex_is_told(crystal, selection, complaint):
    part = MDAnalysis.Merge(crystal.select_atoms(selection))
    with pytest.raises(BadInputError, match=f"the file holds .*{complaint}"):
        find_nucleotides(part, "the file")


def test_modified_cytosines_pair_as_others():
    """5mC, 5hmC and 5fC are cytosines: no duplex ends at them."""
    found = find_nucleotides(universe_of(marked_solute()))
    assert [len(pairs.first) for pairs in found.duplexes] == [len(MARKED)]
    assert "".join(found.letter[found.duplexes[0].first]) == "".join("ACGT"[k] for k in MARKED)


@pytest.mark.parametrize("linking_number", [20, 21])
def test_linking_number_of_a_circle(linking_number):
    sequence = "GATTACAGCC" * 21
    circle = universe_of(built_dna(sequence, *circular_path(len(sequence), linking_number), circular=True))
    ((number, twist, writhe, knot),) = DnaAnalysis(circle).run().results.circle[0]
    # Results are of single precision; a flat circle does not writhe.
    assert number == pytest.approx(linking_number, abs=1e-3) and knot == 1
    assert twist + writhe == pytest.approx(number, abs=1e-4) and abs(writhe) < 0.05


@pytest.mark.parametrize("box", [None, [60, 50, 70, 90, 90, 90], [60, 60, 60, 60, 60, 90]])
def test_close_pairs_are_those_of_all_pairs(box):
    rng = np.random.default_rng(1)
    one, other = rng.uniform(0, 60, (300, 3)), rng.uniform(0, 60, (200, 3))
    apart = nearest_image(one[:, None] - other[None], None if box is None else np.array(box, float))
    expected = np.argwhere(np.linalg.norm(apart, axis=2) < 8)
    found = close_pairs(one, other, 8, None if box is None else np.array(box))
    assert len(expected) > 100
    np.testing.assert_array_equal(sorted(map(tuple, found)), expected)


def test_close_pairs_along_a_long_molecule_take_little_memory():
    """3,400 angstrom of straight DNA in cells of a bond length each would take gigabytes."""
    line = np.arange(1000)[:, None] * np.array([[3.4, 0.0, 0.0]])
    tracemalloc.start()
    found = close_pairs(line, line + [0, 2, 0], 2.5, np.array([3500, 3500, 3500, 90, 90, 90]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(sorted(map(tuple, found)), np.arange(1000)[:, None].repeat(2, axis=1))
    assert peak < 2e7
