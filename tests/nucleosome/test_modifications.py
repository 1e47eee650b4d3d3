"""Modified residues: geometry against CHARMM36 as OpenMM carries it, room on the nucleosome, charge, language."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial import cKDTree
from support import charmm_xml
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import BuildSection, Settings
from chromabuild.build import build_solute
from chromabuild.build.octamers import octamer_of_recipe, wrapped_dna
from chromabuild.clash.correct import correct_clashes
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.mark_names import modified_residues, parse_mark
from chromabuild.nucleosome.marks import mark_of_name, marked_nucleosomes, octamer_recipes
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.peptide import rotate
from chromabuild.nucleosome.recipe import OctamerRecipe
from chromabuild.nucleosome.tail_charges import tail_charge_changes
from chromabuild.solvate.ions import formal_charges
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.sterics.reference import angle_between
from chromabuild.sterics.sidechain import side_chain_stages
from chromabuild.sterics.torsions import library_torsions, side_chain_torsions

LIBRARY = list(residue_library().values())
# One residue of each kind, all on one nucleosome but where two would meet.
MARKS = {"ALY": "H3K27ac", "MLZ": "H4K20me1", "MLY": "H3K36me2", "M3L": "H3K4me3", "NMM": "H4R3me1", "DA2": "H3R17me2a",
         "2MR": "H3R2me2s", "SEP": "H3S10ph", "TPO": "H3T3ph", "PTR": "H2BY39ph", "SAC": "H4S1nac", "AYA": "H3A1nac",
         "KCR": "H4K8cr"}
# New bonds and angles by atom, with the classes of CHARMM36 (CGenFF) that they are made of there.
BONDS = {
    "ALY": {"NZ CH": "NH1 C", "CH OH": "C O", "CH CH3": "C CT3"}, "MLZ": {"NZ CM": "NG3P2 CG334"},
    "MLY": {"NZ CH1": "NG3P1 CG334", "NZ CH2": "NG3P1 CG334"},
    "M3L": {f"NZ CM{k}": "NG3P0 CG334" for k in "123"}, "NMM": {"NH2 CAA": "NG2P1 CG334"},
    "DA2": {"NH1 C1": "NG2P1 CG334", "NH1 C2": "NG2P1 CG334"}, "2MR": {"NH1 CQ1": "NG2P1 CG334",
                                                                      "NH2 CQ2": "NG2P1 CG334"},
    "SAC": {"N C1A": "NH1 C", "C1A OAC": "C O", "C1A C2A": "C CT3"},
    "KCR": {"NZ CH": "NH1 C", "CH OH": "C O", "CH CX": "CG2O1 CG2DC1", "CX CY": "CG2DC1 CG2DC1",
            "CY CH3": "CG2DC1 CG331"},
    "AYA": {"N CT": "NH1 C", "CT OT": "C O", "CT CM": "C CT3"},
    **{name: {f"{oxygen} P": "ON2 P", **{f"P O{k}P": "P ON3" for k in "123"}}
       for name, oxygen in (("SEP", "OG"), ("TPO", "OG1"), ("PTR", "OH"))},
}
ANGLES = {
    "ALY": {"CE NZ CH": "CT2 NH1 C", "NZ CH OH": "NH1 C O", "NZ CH CH3": "NH1 C CT3", "OH CH CH3": "O C CT3"},
    "MLZ": {"CE NZ CM": "CG324 NG3P2 CG334"},
    "MLY": {"CE NZ CH1": "CG324 NG3P1 CG334", "CE NZ CH2": "CG324 NG3P1 CG334"},
    "M3L": {"CE NZ CM1": "CG324 NG3P0 CG334", "CM1 NZ CM2": "CG334 NG3P0 CG334", "CM2 NZ CM3": "CG334 NG3P0 CG334"},
    "NMM": {"CZ NH2 CAA": "CG2N1 NG2P1 CG334"},
    "DA2": {"CZ NH1 C1": "CG2N1 NG2P1 CG334", "C1 NH1 C2": "CG334 NG2P1 CG334"},
    "2MR": {"CZ NH1 CQ1": "CG2N1 NG2P1 CG334", "CZ NH2 CQ2": "CG2N1 NG2P1 CG334"},
    "SAC": {"CA N C1A": "CT1 NH1 C", "N C1A OAC": "NH1 C O", "N C1A C2A": "NH1 C CT3"},
    "KCR": {"CE NZ CH": "CT2 NH1 C", "OH CH CX": "OG2D1 CG2O1 CG2DC1", "CH CX CY": "CG2O1 CG2DC1 CG2DC1",
            "CX CY CH3": "CG2DC1 CG2DC1 CG331"},
    "AYA": {"CA N CT": "CT1 NH1 C", "N CT OT": "NH1 C O", "N CT CM": "NH1 C CT3"},
    "SEP": {"CB OG P": "CT2 ON2 P"}, "TPO": {"CB OG1 P": "CT1 ON2 P"}, "PTR": {"CZ OH P": "CA ON2B P"},
}


@cache
def marked_octamer():
    recipe = OctamerRecipe()
    for mark in MARKS.values():
        recipe = recipe.with_mark(mark)
    return octamer_of_recipe(recipe)


def residues_named(core, name):
    """Atoms (3,) by name of every residue of this kind."""
    return [dict(zip(LIBRARY[kind].atoms, core.position[a:b], strict=True))
            for kind, a, b in zip(core.residue_template, core.first_atom, core.first_atom[1:], strict=False)
            if LIBRARY[kind].name == name]


@pytest.mark.parametrize("name", BONDS)
def test_new_bonds_and_angles_are_those_of_charmm36(name):
    found = residues_named(marked_octamer(), name)
    assert len(found) == 2
    for atoms in found:
        for pair, classes in BONDS[name].items():
            a, b = (atoms[atom] for atom in pair.split())
            assert np.linalg.norm(a - b) == pytest.approx(charmm_xml.bond(*classes.split()), abs=0.021), pair
        for triple, classes in ANGLES[name].items():
            a, b, c = (atoms[atom][None] for atom in triple.split())
            assert angle_between(a, b, c)[0] == pytest.approx(charmm_xml.angle(*classes.split())[0], abs=3.0), triple


def test_phosphates_are_where_the_angles_of_charmm36_agree():
    """O-P-O of 111.6 and 120 degrees exclude each other: with three free oxygens, sin(phi/2) = sin(theta) sin(60).

    Both are harmonic, so the best theta has the least energy.
    """
    (theta0, k), (phi0, other_k) = charmm_xml.angle("ON2", "P", "ON3"), charmm_xml.angle("ON3", "P", "ON3")

    def between_free(theta):
        return np.degrees(2 * np.arcsin(np.sin(np.radians(theta)) * np.sin(np.pi / 3)))

    best = minimize_scalar(lambda theta: k * (theta - theta0)**2 + other_k * (between_free(theta) - phi0)**2,
                           (95, 120), method="golden").x
    for name, oxygen in (("SEP", "OG"), ("TPO", "OG1"), ("PTR", "OH")):
        atoms = residues_named(marked_octamer(), name)[0]
        for k_free, other in (("O1P", "O2P"), ("O2P", "O3P"), ("O3P", "O1P")):
            ester, free, next_one, phosphorus = (atoms[a][None] for a in (oxygen, k_free, other, "P"))
            assert angle_between(ester, phosphorus, free)[0] == pytest.approx(best, abs=3.0)
            assert angle_between(free, phosphorus, next_one)[0] == pytest.approx(between_free(best), abs=3.0)


def test_acetyl_and_guanidinium_are_flat_and_the_amide_is_trans():
    for name, plane in (("ALY", "CE NZ CH OH CH3 HZ"), ("NMM", "NE CZ NH2 CAA HH21"), ("DA2", "NE CZ NH1 C1 C2"),
                        ("2MR", "NE CZ NH1 CQ1 NH2 CQ2"), ("SAC", "CA N H C1A OAC C2A"), ("AYA", "CA N H CT OT CM"),
                        ("KCR", "CE NZ H13 CH OH CX CY CH3 H14 H15")):
        for atoms in residues_named(marked_octamer(), name):
            points = np.array([atoms[atom] for atom in plane.split()])
            assert np.linalg.svd(points - points.mean(axis=0))[1][-1] < 0.03  # angstrom out of the plane
            if name == "ALY":
                across = np.linalg.norm(atoms["CE"] - atoms["CH3"]), np.linalg.norm(atoms["CE"] - atoms["OH"])
                assert across[0] > 3.7 > 3.0 > across[1]  # anti to the methyl, beside the oxygen


def test_hydrogens_are_complete_and_apart():
    core = marked_octamer()
    for name in MARKS:
        entry = residue_library()[name]
        for atoms in residues_named(core, name):
            x = np.array([atoms[atom] for atom in entry.atoms])
            hydrogen = np.array(entry.elements) == "H"
            for a, b in entry.bonds:
                if hydrogen[a] or hydrogen[b]:
                    assert 0.95 < np.linalg.norm(x[a] - x[b]) < 1.11
            apart = np.linalg.norm(x[hydrogen][:, None] - x[hydrogen][None], axis=-1) + 9 * np.eye(hydrogen.sum())
            assert apart.min() > 1.5  # of a methyl 1.78, of an ammonium 1.65


def test_parents_keep_their_library_and_charges_follow_from_the_names():
    assert not any(entry.modification for entry in LIBRARY[:83])
    charge = dict(zip((entry.name for entry in LIBRARY), formal_charges().tolist(), strict=True))
    assert [charge[name] for name in ("LYS", "ALY", "NALY", "CALY", "M3L", "DA2", "SEP", "CSEP")] \
        == [1, 0, 1, -1, 1, 1, -2, -3]
    assert [charge[name] for name in ("DC", "5CM", "5CM5", "NSER", "SAC")] == [-1, -1, 0, 1, 0]
    for name, change in modifications().items():
        parent = residue_library()[change.parent]
        gained = [element for element in residue_library()[name].elements if element != "H"]
        assert len(gained) == sum(e != "H" for e in parent.elements) + len(change.place)


def test_the_octamer_has_the_exact_charge_of_its_marks():
    plain = formal_charges()[octamer("compact").residue_template].sum()
    change = {"ALY": -1, "KCR": -1, "SEP": -2, "TPO": -2, "PTR": -2, "SAC": -1, "AYA": -1}
    assert formal_charges()[marked_octamer().residue_template].sum() == plain + 2 * sum(change.values())


@pytest.mark.parametrize("mark", [*MARKS.values(), "H4K16ac", "H3K9ac", "H3K27me3", "H3K56ac", "H2BK117ac",
                                  "H2AK128ac"])
def test_a_mark_finds_room(mark):
    """No heavy atom of a modified residue nearer than 2.0 angstrom to what it is not bonded to, DNA included."""
    recipe = OctamerRecipe().with_mark(mark)
    core = octamer_of_recipe(recipe)
    library_name = parse_mark(mark).residue_name
    kinds = [k for k in range(len(core.residue_template)) if LIBRARY[core.residue_template[k]].modification]
    assert len(kinds) == 2 and {LIBRARY[core.residue_template[k]].modification for k in kinds} == {library_name}
    heavy = np.concatenate([LIBRARY[k].elements for k in core.residue_template]) != "H"
    residue = np.repeat(np.arange(len(core.residue_template)), np.diff(core.first_atom))
    dna, _ = wrapped_dna()
    for k in kinds:
        names = np.array(LIBRARY[core.residue_template[k]].atoms)
        side = core.position[residue == k][heavy[residue == k] & ~np.isin(names, ("N", "CA", "C", "O", "OXT", "CB"))]
        others = core.position[(residue != k) & heavy]
        assert np.linalg.norm(side[:, None] - others[None], axis=-1).min() > 2.0
        assert np.linalg.norm(side[:, None] - dna[None], axis=-1).min() > 2.0


def test_one_copy_alone_and_both():
    core = octamer_of_recipe(OctamerRecipe().with_mark("H3K9me2@2").with_mark("H3K9ac@1"))
    pairs = zip(core.residue_template, core.residue_chain, strict=True)
    found = {(LIBRARY[kind].name, int(chain)) for kind, chain in pairs if LIBRARY[kind].modification}
    assert found == {("ALY", 0), ("MLY", 4)}


@pytest.mark.parametrize(("recipe", "mark", "sentence"), [
    (OctamerRecipe(), "H3K27acc", "H3K27acc is no modification that is known: the nearest is H3K27ac"),
    (OctamerRecipe(), "H3K27me4", "the nearest is H3K27me3"),
    (OctamerRecipe(), "H3K28ac", "H3K28ac: H3 of xenopus has S28 there: the nearest K is K27"),
    (OctamerRecipe("human", variants=("CENP-A",)), "H3K27ac", "H3K27ac: CENP-A of human has S27 there"),
    (OctamerRecipe(), "H3.3K27ac", "the nucleosome carries H3, not H3.3"),
    (OctamerRecipe(), "H3K200ac", "has no residue 200 there: the nearest K is K122"),
    (OctamerRecipe(), "H4S47nac", "H4S47nac: only the first residue of H4, S1, has a free amino end"),
    (OctamerRecipe(), "H3K4me3@3", "write @1 or @2"),
    (OctamerRecipe(), "H2AZ", "the nearest name is H2A.Z"),
    (OctamerRecipe(modifications=("H3K27ac",)), "H3K27me3", "H3K27ac and H3K27me3 both change residue 27 of H3"),
    (OctamerRecipe(modifications=("H3K27ac",)), "H3:K27Q", "both change residue 27 of H3"),
])
def test_what_no_histone_carries_is_refused(recipe, mark, sentence):
    with pytest.raises(BadInputError, match=sentence.replace(".", r"\.")):
        recipe.with_mark(mark)


def test_names_of_variants_and_the_older_spelling():
    variant = OctamerRecipe("human", variants=("H2A.Z",))
    assert variant.with_mark("H2A.ZK7ac").modifications == ("H2A.ZK7ac",)
    assert variant.with_mark("H2A:K7ac").modifications == ("H2AK7ac",)
    assert set(modified_residues()["K"]) == {"ac", "me1", "me2", "me3", "cr", "ub"}


def test_several_files_and_conflicts_by_score(tmp_path):
    (tmp_path / "marks.bed").write_text("chrI\t0\t900\tH4K16ac\nchrI\t100\t200\tH3K27ac\t300\n")
    (tmp_path / "H3K27me3.narrowPeak").write_text("chrI\t100\t400\tpeak\t500\t.\t8.1\t-1\t-1\t50\n"
                                                  "chrII\t100\t400\tpeak\t500\t.\t8.1\t-1\t-1\t50\n")
    (tmp_path / "H3K4me3_rep1.bed").write_text("chrI\t300\t400\tpeak_17\t12\n")
    section = BuildSection(variants=("H3K27me1",), marks=tuple(
        str(tmp_path / name) for name in ("marks.bed", "H3K27me3.narrowPeak", "H3K4me3_rep1.bed")))
    found = marked_nucleosomes(section, "chrI", np.array([50, 150, 350]))
    assert [recipe.modifications for recipe in found.recipes] == [
        ("H3K27me1", "H4K16ac"), ("H3K27me3", "H4K16ac"), ("H3K27me3", "H3K4me3", "H4K16ac")]
    told = [(one["nucleosome"], one["dyad"], one["kept"], one["dropped"]) for one in found.conflicts]
    assert told == [(1, 150, "H3K27me3", "H3K27ac"), (1, 150, "H3K27me3", "H3K27me1"), (2, 350, "H3K27me3", "H3K27me1")]
    assert "score 500 of" in found.conflicts[0]["because"] and "marks.bed, line 2" in found.conflicts[0]["because"]
    # The order of the files decides nothing where scores differ.
    turned = section.model_copy(update={"marks": section.marks[::-1]})
    assert octamer_recipes(turned, "chrI", np.array([50, 150, 350])) == found.recipes


@pytest.mark.parametrize(("name", "text", "sentence"), [
    ("marks.bed", "chrI\t0\t900\tH3K27ac\nchrI\t0\t900\tH3K27acc\n", "marks.bed, line 2: H3K27acc is no modification"),
    ("marks.bed", "chrI\t0\t900\tH3K28ac\n", r"marks.bed, line 1: H3K28ac: H3 of human has S28 there"),
    ("marks.bed", "chrI\t0\t900\tH3K27ac\nchrI\t0\t900\tCENP-A\n", "line 1: H3K27ac: CENP-A of human has S27"),
    ("marks.bed", "chrI\t0\t900\tH3:A56Q\n", r"marks.bed, line 1: mutation H3:A56Q: H3 has K56 there"),
    ("marks.bed", "chrI\t0\t900\tH3K27ac\thigh\n", r"marks.bed, line 1: score 'high' is not a finite number"),
    ("peaks.narrowPeak", "chrI\t0\t900\tp\t5\t.\t1\t1\t1\t4\n", "peaks.narrowPeak holds peaks, and neither its name"),
    ("H3K27ac.bed", "chrIV\t0\t900\n", r"H3K27ac.bed marks no nucleosome of chrI"),
])
def test_bad_files_of_marks_are_refused_by_line(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    section = BuildSection(histones="human", marks=str(tmp_path / name))
    with pytest.raises(BadInputError, match=sentence):
        octamer_recipes(section, "chrI", np.array([50]))


def test_tail_beads_lose_the_charges_that_marks_take():
    """H3 tails have beads of residues 36-40, 31-35, ... 1-5 from the core to the tip, H4 16-20 in its second."""
    changes = tail_charge_changes([OctamerRecipe(), OctamerRecipe().with_mark("H3K27ac").with_mark("H4K16ac@2"),
                                   OctamerRecipe("human").with_mark("H2BK5ac"), OctamerRecipe().with_mark("H4S1nac")])
    assert [{k: change for k, change in enumerate(row) if change} for row in changes] == [
        {}, {2: -1.0, 10: -1.0, 22: -1.0}, {38: -1.0, 43: -1.0}, {20: -1.0, 25: -1.0}]
    assert tail_charge_changes([OctamerRecipe().with_mark("H3K4me3"), OctamerRecipe().with_mark("H3K79ac")]) == ()


def test_torsions_reach_the_tips():
    torsions = dict(zip((entry.name for entry in LIBRARY), library_torsions(), strict=True))
    assert [len(torsions[name].chi) for name in ("LYS", "ALY", "SEP", "PTR")] == [4, 5, 3, 4]
    acetyl = torsions["ALY"].chi[4]
    assert acetyl.planar and acetyl.period == 360.0
    assert torsions["M3L"].chi[4].period == torsions["SEP"].chi[2].period == 120.0
    assert len(torsions["M3L"].rotors) == 3 and len(torsions["ALY"].rotors) == 1


def test_every_chi_has_a_spread_in_every_stage():
    torsions = dict(zip((entry.name for entry in LIBRARY), library_torsions(), strict=True))
    for name in ("LYS", "ALY", "2MR", "PTR"):
        chi = list(torsions[name].chi)
        stages = side_chain_stages(chi, [])
        assert all(len(turned) == len(spreads) for turned, spreads in stages) and len(stages[-1][0]) == len(chi)


def test_a_fibre_with_marks_and_methylation(tmp_path):
    """Counts in the report and the exact charge of the whole; the same atoms again by the same seed."""
    scaffold = synthetic_scaffold(2, 20, 5)
    letters, dyads = bytes(scaffold.base).decode(), scaffold.position[scaffold.dyad]
    cpg = [k for k in range(len(letters) - 1) if letters[k:k + 2] == "CG"]
    (tmp_path / "cpg.bed").write_text("".join(f"chrS\t{k}\t{k + 2}\n" for k in cpg))
    (tmp_path / "marks.bed").write_text(f"chrS\t{dyads[1]}\t{dyads[1] + 1}\tH3K27me3\t9\n"
                                        f"chrS\t{dyads[1]}\t{dyads[1] + 1}\tH3S28ph\t9\n")
    files = {"marks": str(tmp_path / "marks.bed"), "methylation": str(tmp_path / "cpg.bed")}
    config = Settings.model_validate({"build": {"variants": ["H3K27ac", "H4K16ac"], **files}})
    solute = build_solute(scaffold, config)
    assert solute.build_report["modifications"] == [
        {"modification": "H3K27ac", "residue": "ALY", "residues": 2, "charge": 0},
        {"modification": "H3K27me3", "residue": "M3L", "residues": 2, "charge": 1},
        {"modification": "H3S28ph", "residue": "SEP", "residues": 2, "charge": -2},
        {"modification": "H4K16ac", "residue": "ALY", "residues": 4, "charge": 0},
        {"modification": "5mC", "residue": "5CM", "residues": 2 * len(cpg), "charge": -1}]
    told = solute.build_report["marks_that_gave_way"]
    assert [(one["nucleosome"], one["kept"], one["dropped"]) for one in told] == [(1, "H3K27me3", "H3K27ac")]
    assert solute.modifications() == {"ALY": 6, "M3L": 2, "SEP": 2, "5CM": 2 * len(cpg)}
    # 146 an octamer of 1KX5 with whole H2B, -1 each phosphate; acetyls take one, phosphates two.
    assert formal_charges()[solute.residue_template].sum() == 2 * 146 - 2 * (len(letters) - 1) - 6 - 4
    again = build_solute(scaffold, config)
    assert (again.position == solute.position).all() and (again.residue_template == solute.residue_template).all()
    audited = audit(Atoms.from_solute(solute))
    assert not audited.chirality_errors and not audited.piercings and not audited.cis_peptides


def test_the_file_of_a_mark_is_named_for_it():
    named = {"peaks/H3K27ac.narrowPeak": "H3K27ac", "H2A.Z_rep1.bed": "H2A.Z", "H2A.ZK7ac.bw": "H2A.ZK7ac",
             "H1.4.bed": "H1.4", "H3K4me3-chip.bed.gz": "H3K4me3", "marks.bed": None, "H3.bed": None,
             "H3K27acc.bed": None, "H4.txt": None}
    assert {name: mark_of_name(name) for name in named} == named


def test_a_clash_of_an_acetyl_is_corrected_by_turning_it():
    """Its torsions are set to whatever brings it nearest to an atom of another residue, then correction turns them."""
    core = octamer_of_recipe(OctamerRecipe().with_mark("H3K56ac@1"))
    solute = Solute(
        core.position.astype(np.float32), core.residue_template, core.residue_number,
        core.residue_chain.astype(np.uint16), [f"000{letter}" for letter in core.chain], list(core.chain),
        np.append(0, np.cumsum(np.bincount(core.residue_chain))), list(core.histone), np.zeros(8, np.int32))
    residue = next(k for k, kind in enumerate(core.residue_template) if LIBRARY[kind].name == "ALY")
    own = np.arange(*solute.residue_first_atom[residue:residue + 2])
    heavy = solute.elements() != "H"
    near = cKDTree(solute.position[heavy & (np.abs(solute.atom_residue - residue) > 1)])
    chi, random = side_chain_torsions(solute, residue), np.random.default_rng(3)
    best, least = None, np.inf
    for _ in range(400):
        trial = solute.position.astype(float)
        for torsion in chi:
            a, b = (trial[q] for q in torsion.quad[1:3])
            trial[list(torsion.turned)] = rotate(trial[list(torsion.turned)], b, (b - a) / np.linalg.norm(b - a),
                                                 random.uniform(0, 360))
        distance = near.query(trial[own][heavy[own]])[0].min()
        if distance < least:
            best, least = trial, distance
    assert least < 0.85
    solute.position = best.astype(np.float32)
    clean, report = correct_clashes(solute, "default", 0.9, 1, 1)
    assert report.data["before"]["pairs_below_threshold"]["count"] > 0 and report.fatal == 0
    assert any(f":ALY:{core.residue_number[residue]}" in str(move) for move in report.data["moves"])
    assert not np.allclose(clean.position[own], solute.position[own])
