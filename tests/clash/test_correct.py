"""Clashes of every class are solved, what must not change does not, and what cannot be solved is said."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.crowded_fibre import pulled_straight, stacked_nucleosomes
from support.placed_nucleosomes import place_nucleosomes

from chromabuild.base.errors import BadInputError
from chromabuild.clash import check, correct_clashes, find_clashes
from chromabuild.clash.correct import Corrector
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.torsions import library_torsions

TURN = Rotation.from_euler("xyz", [20, 10, 35], degrees=True).as_matrix()


@pytest.fixture(scope="module")
def threaded():
    """Two nucleosomes side by side: tails of one run through DNA and histones of the other."""
    return place_nucleosomes([(np.eye(3), np.zeros(3)), (TURN, np.array([0.0, 106.0, 0.0]))])


@pytest.fixture(scope="module")
def untangled(threaded):
    return correct_clashes(threaded)


@pytest.fixture(scope="module")
def repaired(shifted_octamer):
    return correct_clashes(shifted_octamer)


def assert_invariants(report):
    broken = {name: item for name, item in report.data["invariants"].items() if not item["holds"]}
    assert broken == {}


def test_threaded_tails_come_free(threaded, untangled):
    solute, report = untangled
    before, after = report.data["before"], report.data["after"]
    assert before["pairs_below_threshold"]["count"] > 50 and before["ring_piercings"]["count"] > 0
    assert after["pairs_below_threshold"]["count"] == 0 and after["severe_pairs"]["count"] == 0
    assert after["ring_piercings"]["count"] == 0 and report.fatal == 0 and report.data["unresolved"] == []
    assert "tail" in {move["kind"] for move in report.data["moves"]}
    assert len(find_clashes(solute, 0.9)[0]) == 0
    assert_invariants(report)
    dna = slice(0, int(threaded.molecule_first_atom[2]))
    assert np.array_equal(solute.position[dna], threaded.position[dna])


def test_protein_in_dna_comes_free(shifted_octamer, repaired):
    solute, report = repaired
    assert report.data["before"]["pairs_below_threshold"]["count"] >= 3
    assert report.data["before"]["severe_pairs"]["count"] > 30
    assert report.data["after"]["pairs_below_threshold"]["count"] == 0
    assert report.data["after"]["severe_pairs"]["count"] == 0
    assert {"chi", "phi"} <= {move["kind"] for move in report.data["moves"]}
    assert report.data["after"]["angle_outliers"]["count"] == 0 and report.data["after"]["bond_outliers"]["count"] == 0
    assert_invariants(report)
    bases = Atoms.from_solute(solute).part == 3
    methyl = np.isin(Atoms.from_solute(solute).name, ["H71", "H72", "H73"])
    assert np.array_equal(solute.position[bases & ~methyl], shifted_octamer.position[bases & ~methyl])


def test_correction_is_a_fixed_point(untangled, repaired):
    for solute, _ in (untangled, repaired):
        again, report = correct_clashes(solute)
        assert np.array_equal(again.position, solute.position) and report.data["moves"] == []


@pytest.mark.release
@pytest.mark.parametrize("threads", [2, 5])
def test_same_bytes_for_any_thread_count(shifted_octamer, repaired, threads):
    solute, report = correct_clashes(shifted_octamer, threads=threads)
    assert np.array_equal(solute.position, repaired[0].position)
    assert report.to_json() == repaired[1].to_json()


def test_seed_decides_the_tails(threaded, untangled):
    other, report = correct_clashes(threaded, seed=7)
    assert report.fatal == 0
    assert not np.array_equal(other.position, untangled[0].position)


@pytest.mark.release
def test_correction_turns_with_the_structure():
    """Rotor, chi, joint and tail moves of two histone pairs that run into each other are the same wherever they stand.

    Positions are float32, good to 4e-6 A here, and a tail multiplies an angle's error by its length and its forty
    torsions: 1e-3 A.
    """
    crowded = place_nucleosomes([(np.eye(3), np.zeros(3)), (np.eye(3), np.array([1.0, 0.0, 38.0]))], keep="AB")
    turn, shift = Rotation.from_euler("xyz", [30, 50, 70], degrees=True).as_matrix(), np.array([64.0, -32.0, 16.0])
    turned = replace(crowded, position=(crowded.position @ turn.T + shift).astype(np.float32))
    (one, report), (other, again) = correct_clashes(crowded), correct_clashes(turned)
    assert [m["kind"] for m in report.data["moves"]] == [m["kind"] for m in again.data["moves"]]
    assert {"rotor", "chi", "joint", "tail"} <= {m["kind"] for m in report.data["moves"]} and report.fatal == 0
    np.testing.assert_allclose(other.position, one.position @ turn.T + shift, atol=1e-3)


def test_input_is_left_alone(threaded):
    kept = threaded.position.copy()
    correct_clashes(threaded)
    assert np.array_equal(threaded.position, kept)


@pytest.mark.parametrize("name", ["LYS", "ARG", "LEU", "PHE", "MET", "GLN", "ILE", "TYR", "HIE", "VAL", "THR", "ASP"])
def test_planted_side_chain_clash(nucleosome, name):
    """The worst of 200 random side-chain conformations of a core residue is brought back."""
    atoms = Atoms.from_solute(nucleosome)
    corrector = Corrector(nucleosome, atoms, 0.9, 1, 1)
    scene = corrector.scene
    random = np.random.default_rng(3)
    worst = None
    for residue in [r for r, n in enumerate(atoms.residue_name) if n == name and r not in corrector.tail_of][:12]:
        chi = corrector.chi(residue)
        angle = random.uniform(-np.pi, np.pi, (200, len(chi)))
        fatal, severe, _ = scene.rotation_scores(chi, angle)
        k = int(np.lexsort((-severe, -fatal))[0])
        if worst is None or fatal[k] > worst[0]:
            worst = (int(fatal[k]), chi, angle[k])
    fatal, chi, angle = worst
    position = nucleosome.position.astype(np.float64)
    for torsion, value in zip(chi, angle, strict=True):
        scene.turn(position, torsion, value)
    planted = replace(nucleosome, position=position.astype(np.float32))
    assert fatal > 0 and len(find_clashes(planted, 0.9)[0]) > 0
    _, report = correct_clashes(planted)
    assert report.fatal == 0 and report.data["after"]["severe_pairs"]["count"] == 0
    assert_invariants(report)


def test_planted_rotor_clash(nucleosome):
    """Hydroxyl hydrogens turned into their closest neighbour turn back."""
    atoms = Atoms.from_solute(nucleosome)
    scene = Corrector(nucleosome, atoms, 0.9, 1, 1).scene
    solved = 0
    for residue, name in enumerate(atoms.residue_name):
        if name not in ("SER", "THR", "TYR"):
            continue
        for rotor in library_torsions()[nucleosome.residue_template[residue]].rotors:
            rotor = rotor.shifted(int(nucleosome.residue_first_atom[residue]))
            if rotor.period < 360 or solved >= 3:
                continue
            angle = np.radians(np.arange(0, 360, 10.0))[:, None]
            _, severe, _ = scene.rotation_scores([rotor], angle)
            if severe.max() == 0:
                continue
            position = nucleosome.position.astype(np.float64)
            scene.turn(position, rotor, float(angle[severe.argmax(), 0]))
            _, report = correct_clashes(replace(nucleosome, position=position.astype(np.float32)))
            assert report.data["after"]["severe_pairs"]["count"] == 0
            assert "rotor" in {move["kind"] for move in report.data["moves"]}
            solved += 1
    assert solved == 3


@pytest.mark.release
@pytest.mark.parametrize("apart", [44.0, 45.0])
def test_backbones_of_two_duplexes_come_free(apart):
    """Two superhelices of DNA on top of each other, so near that backbones run into backbones, sugars and bases."""
    one = place_nucleosomes([(np.eye(3), np.zeros(3))], keep="IJ")
    axis = np.linalg.svd(one.position[::20] - one.position.mean(axis=0))[2][2]
    stacked = place_nucleosomes([(np.eye(3), np.zeros(3)), (np.eye(3), apart * axis)], keep="IJ")
    classes = set(check(stacked).data["before"]["counts_by_class"])
    assert {"DNA backbone / DNA backbone", "DNA backbone / base"} <= classes
    _, report = correct_clashes(stacked)
    after = report.data["after"]
    assert report.fatal == 0 and after["severe_pairs"]["count"] == 0 and after["heavy_pairs_below_2"] == 0
    assert "phi" in {move["kind"] for move in report.data["moves"]}
    assert after["bond_outliers"]["count"] == 0 and after["angle_outliers"]["count"] == 0
    assert_invariants(report)


def test_paper_mode_turns_phi_and_chi_only(shifted_octamer):
    solute, report = correct_clashes(shifted_octamer, mode="paper")
    moves = report.data["moves"]
    assert {move["kind"] for move in moves} <= {"phi", "chi"} and moves
    assert all(len(move["torsions"]) == 1 for move in moves)
    before, after = report.data["before"], report.data["after"]
    assert after["pairs_below_threshold"]["count"] < before["pairs_below_threshold"]["count"]
    assert len(report.data["unresolved"]) == after["pairs_below_threshold"]["count"]
    assert len(find_clashes(solute, 0.9)[0]) == after["pairs_below_threshold"]["count"]


def test_bonds_left_in_rings_are_told_with_a_reason(threaded):
    """Single turns of the paper's mode do not pull a tail out of a base."""
    _, report = correct_clashes(threaded, mode="paper")
    after, bonds = report.data["after"], report.bonds_left()
    assert after["ring_piercings"]["count"] > 0
    assert len(bonds) == after["ring_piercings"]["count"] + after["threaded_strands"]["count"]
    assert all(bond["reason"] for bond in bonds)
    assert f"{bonds[0]['bond_a']} - {bonds[0]['bond_b']} through {bonds[0]['place']}" in report.to_text()
    assert f"unresolved bond\t{bonds[0]['place']}" in report.to_tsv()


@pytest.mark.slow
def test_overlapping_cores_are_reported():
    """Two histones in the same place cannot be pulled apart by torsions: fewer clashes, the rest with reasons."""
    crowded = place_nucleosomes([(np.eye(3), np.zeros(3)), (np.eye(3), np.array([3.0, 1.0, 0.5]))], keep="B")
    solute, report = correct_clashes(crowded)
    before, after = report.data["before"], report.data["after"]
    assert before["pairs_below_threshold"]["count"] > after["pairs_below_threshold"]["count"]
    fatal = [item for item in report.data["unresolved"] if item["fatal"]]
    assert len(fatal) == after["pairs_below_threshold"]["count"] == len(find_clashes(solute, 0.9)[0])
    assert all(item["reason"] for item in report.data["unresolved"])
    solved, cores = report.data["solved"], report.data["overlapping_cores"]["items"]
    assert (solved["fatal_before"], solved["fatal_after"]) == (before["pairs_below_threshold"]["count"], len(fatal))
    assert cores and all("scaffold" in core["remedy"] and core["rigid_pairs"] > 0 for core in cores)
    at_cores = [item for item in fatal if "no torsion moves" in item["reason"]]
    assert len(at_cores) == solved["fatal_at_overlapping_cores"] == sum(core["fatal"] for core in cores) > 0
    assert "overlap" in report.to_text() and cores[0]["atom_a"] in report.to_text()
    assert_invariants(report)


@pytest.mark.release
def test_tails_threaded_through_linkers_come_free():
    """A crowded fibre with every tail pulled straight, through neighbours and their linkers: 99 % and more of the
    pairs are solved, the rest is listed with a reason."""
    crowded = pulled_straight(stacked_nucleosomes(2))
    solute, report = correct_clashes(crowded)
    before, after = report.data["before"], report.data["after"]
    assert before["pairs_below_threshold"]["count"] > 100 and before["threaded_strands"]["count"] > 0
    left = [item for item in report.data["unresolved"] if item["fatal"]]
    assert len(left) == report.data["solved"]["fatal_after"] == len(find_clashes(solute, 0.9)[0])
    assert len(left) <= 0.01 * before["pairs_below_threshold"]["count"]
    assert all(item["reason"] for item in report.data["unresolved"])
    assert after["threaded_strands"]["count"] == 0 and after["ring_piercings"]["count"] == 0
    assert_invariants(report)


@pytest.mark.slow
def test_invariants_hold_where_linkers_overlap():
    """Two nucleosomes whose linkers run through each other: most is beyond torsions, and no tail that is grown again
    runs through a ring or a duplex that it did not run through before."""
    hopeless = pulled_straight(stacked_nucleosomes(2, side=112.0, turn=(0.0, 180.0)))
    _, report = correct_clashes(hopeless)
    assert report.data["before"]["threaded_strands"]["count"] > 5 and report.data["solved"]["fatal_after"] > 50
    assert "tail" in {move["kind"] for move in report.data["moves"]}
    assert_invariants(report)


def test_coincident_atoms():
    """Two histones whose tail tips share one point: no direction to move apart in, still they part."""
    one = place_nucleosomes([(np.eye(3), np.zeros(3))], keep="B")
    atoms = Atoms.from_solute(one)
    tip = one.position[np.flatnonzero((atoms.name == "NZ") & (atoms.residue < 8))[0]].astype(np.float64)
    outward = tip - one.position.mean(axis=0)
    across = np.cross(outward, [1.0, 0.0, 0.0])
    half_turn = Rotation.from_rotvec(np.pi * across / np.linalg.norm(across)).as_matrix()
    twice = place_nucleosomes([(np.eye(3), np.zeros(3)), (half_turn, tip - half_turn @ tip)], keep="B")
    assert find_clashes(twice, 0.9)[1].min() < 1e-4
    solute, report = correct_clashes(twice)
    assert np.isfinite(solute.position).all()
    assert report.data["after"]["pairs_below_threshold"]["count"] == 0
    assert_invariants(report)


def test_bad_input(nucleosome):
    with pytest.raises(BadInputError, match="use default or paper"):
        correct_clashes(nucleosome, mode="fast")
    with pytest.raises(BadInputError, match="threshold"):
        correct_clashes(nucleosome, threshold=3.0)
    broken = nucleosome.position.copy()
    broken[7] = np.nan
    with pytest.raises(BadInputError, match="not numbers"):
        correct_clashes(replace(nucleosome, position=broken))
