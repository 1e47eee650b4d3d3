"""Histones of other species, variants and mutations: sequences, geometry, contacts with DNA, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from Bio.SeqUtils import seq1

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.base.settings import BuildSection
from chromabuild.build.duplex import build_dna
from chromabuild.build.octamers import octamer_of_recipe
from chromabuild.dna.helix import crystal_path
from chromabuild.genome.bigwig import read_signal
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.homology import histone_table
from chromabuild.nucleosome.marks import octamer_recipes
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.peptide import torsion
from chromabuild.nucleosome.recipe import (
    OctamerRecipe,
    linker_histone_table,
    stored_histone,
    stored_linker_histone,
)
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.sterics.detect import find_clashes

pytestmark = pytest.mark.release

SIGNAL = Path(__file__).parent / "data" / "signal.bw"
SEQUENCES = json.loads(template_path("histones.json").read_text())
RECIPES = {
    "human": OctamerRecipe("human"),
    "yeast": OctamerRecipe("yeast"),
    "human CENP-A, H2A.Z": OctamerRecipe("human", variants=("CENP-A", "H2A.Z")),
    "human CENP-A": OctamerRecipe("human", variants=("CENP-A",)),
    "human H2A.Z": OctamerRecipe("human", variants=("H2A.Z",)),
    "mouse": OctamerRecipe("mouse"),
    "fly": OctamerRecipe("fly"),
    "fly H2A.Z": OctamerRecipe("fly", variants=("H2A.Z",)),
    "xenopus": OctamerRecipe(),
    "xenopus H2A.Z": OctamerRecipe(variants=("H2A.Z",)),
    "human H3.1, macroH2A": OctamerRecipe("human", variants=("H3.1", "macroH2A")),
    "human H3.3": OctamerRecipe("human", variants=("H3.3",)),
    "yeast Cse4": OctamerRecipe("yeast", variants=("Cse4",)),
    "yeast H2A.Z": OctamerRecipe("yeast", variants=("H2A.Z",)),
    "H3 K56Q": OctamerRecipe(mutations=("H3:K56Q",)),
    "H2B of H2A.Z nucleosome mutated": OctamerRecipe("yeast", variants=("H2A.Z",), mutations=("H2A:K14Q", "H4:K16Q")),
}


def sequences(core):
    """One-letter sequences of the eight chains."""
    library = list(residue_library().values())
    return ["".join(seq1(library[kind].pdb_name) for kind in core.residue_template[core.residue_chain == c])
            for c in range(8)]


def nucleosome(core):
    """The octamer with 147 base pairs around it, every base in every fourth place."""
    origin, frame = crystal_path()
    dna, kinds, _ = build_dna((np.arange(147) + 1) % 4, origin, frame)
    residues = np.bincount(core.residue_chain)
    return Solute(
        position=np.concatenate([dna, core.position]).astype(np.float32),
        residue_template=np.concatenate([kinds, core.residue_template]),
        residue_number=np.concatenate([np.arange(294) + 1, core.residue_number]).astype(np.int32),
        residue_segment=np.concatenate([np.zeros(294, int), core.residue_chain + 1]).astype(np.uint16),
        segment_name=["DNA0", *(f"000{letter}" for letter in core.chain)], segment_chain=list("XABCDEFGH"),
        molecule_first_residue=np.concatenate([[0, 147], 294 + np.append(0, np.cumsum(residues))]),
        molecule_name=["DNA-I", "DNA-J", *core.histone], molecule_nucleosome=np.array([-1, -1] + [0] * 8, np.int32))


@pytest.mark.parametrize("name", ["human", "mouse", "fly", "yeast"])
def test_every_chain_has_the_sequence_of_the_table(name):
    core = octamer_of_recipe(RECIPES[name])
    assert core.histone == ("H3", "H4", "H2A", "H2B") * 2
    assert sequences(core) == [SEQUENCES[name][histone]["sequence"] for histone in core.histone]


def test_variants_replace_both_copies_and_keep_their_numbers():
    core = octamer_of_recipe(RECIPES["human CENP-A, H2A.Z"])
    assert core.histone == ("CENP-A", "H4", "H2A.Z", "H2B") * 2
    assert sequences(core)[4] == SEQUENCES["human"]["CENP-A"]["sequence"]
    # Arginine 80 and glycine 81 of loop L1 are the mark of CENP-A (Tachiwana et al. 2011).
    names = np.array(residue_names())[core.residue_template]
    first = core.residue_chain == 0
    assert [names[first][core.residue_number[first] == number].item() for number in (80, 81)] == ["ARG", "GLY"]


def test_cse4_of_yeast_has_its_own_length_and_fold():
    """229 residues without the first methionine; its fold lies on that of H3, with three residues more in loop 1."""
    core, plain = octamer_of_recipe(RECIPES["yeast Cse4"]), octamer_of_recipe(RECIPES["yeast"])
    assert core.histone == ("Cse4", "H4", "H2A", "H2B") * 2
    assert [len(s) for s in sequences(core)[::4]] == [228, 228]
    fold = {}
    for name, each, offset in (("Cse4", core, 91), ("H3", plain, 0)):
        first = np.concatenate([[0], np.cumsum([len(list(residue_library().values())[k].atoms)
                                                for k in each.residue_template])])
        rows = np.flatnonzero((each.residue_chain == 0) & (each.residue_number - offset >= 45)
                              & (each.residue_number - offset <= 77))  # helices alpha N and alpha 1
        library = list(residue_library().values())
        fold[name] = np.array([each.position[first[k] + library[each.residue_template[k]].index["CA"]] for k in rows])
    assert np.sqrt(np.mean(np.sum((fold["Cse4"] - fold["H3"]) ** 2, axis=1))) < 0.5


@pytest.mark.parametrize("name", RECIPES)
def test_models_are_sound(name):
    """Chirality, peptides and rings as they must be, bonds closed, no heavy pairs of protein below 2.0 angstrom."""
    core_recipe = RECIPES[name]
    solute = nucleosome(octamer_of_recipe(core_recipe))
    found = audit(Atoms.from_solute(solute))
    assert not found.chirality_errors and not found.cis_peptides and not found.piercings
    assert not found.twisted_peptides
    a, b = solute.bonds().T
    heavy = (solute.elements()[a] != "H") & (solute.elements()[b] != "H")
    length = np.linalg.norm((solute.position[a] - solute.position[b]).astype(float), axis=1)[heavy]
    assert 1.15 < length.min() and length.max() < 1.86  # C=O 1.23, C-S 1.81
    pairs, distance = find_clashes(solute, 2.0)
    between_heavy = np.all(solute.elements()[pairs] != "H", axis=1)
    dna = np.any(pairs < solute.molecule_first_atom[2], axis=1)
    if len(core_recipe.variants) + len(core_recipe.mutations) <= 1:
        assert not np.any(between_heavy & ~dna)
    # Other bases than the model met stand around it, and variants were modelled one at a time: such contacts are the
    # clash correction's to mend.
    assert distance[between_heavy].min(initial=9.0) >= 1.3
    assert distance.min(initial=9.0) > 0.5


def test_peptides_of_the_models_are_planar():
    """Loops and ends that are built anew close with strain; the audit counts what is more than 30 degrees off."""
    chains = [(species, name, chain) for species, table in histone_table().items() for name in table
              for chain in stored_histone(species, name).copies]
    chains += [("linker histone", name, stored_linker_histone(name)) for name in linker_histone_table()]
    for species, name, chain in chains:
        omega = np.abs([torsion(one.atoms["CA"], one.atoms["C"], other.atoms["N"], other.atoms["CA"])
                        for one, other in zip(chain, chain[1:], strict=False)])
        assert np.minimum(omega, 180.0 - omega).max() < 28.0, (species, name)


def test_the_folded_core_stays_where_it_is():
    """CA atoms of the helices of H4 and H2B, which no variant or loop touches: within 0.5 angstrom of the crystal."""
    crystal, library = octamer("compact"), list(residue_library().values())

    def alpha(core, chain, numbers):
        first = np.concatenate([[0], np.cumsum([len(library[k].atoms) for k in core.residue_template])])
        rows = np.flatnonzero((core.residue_chain == chain) & np.isin(core.residue_number, numbers))
        return np.array([core.position[first[k] + library[core.residue_template[k]].index["CA"]] for k in rows])

    for name in ("human", "yeast"):
        moved = alpha(octamer_of_recipe(RECIPES[name]), 1, range(31, 95)) - alpha(crystal, 1, range(31, 95))
        assert np.linalg.norm(moved, axis=1).max() < 0.5


def test_a_mutation_changes_one_residue_of_each_copy():
    mutated, plain = octamer_of_recipe(RECIPES["H3 K56Q"]), octamer("compact")
    differing = np.flatnonzero(mutated.residue_template != plain.residue_template)
    assert plain.residue_number[differing].tolist() == [56, 56]
    assert [residue_names()[k] for k in mutated.residue_template[differing]] == ["GLN", "GLN"]


@pytest.mark.parametrize(("recipe", "sentence"), [
    (OctamerRecipe("rat"), "histones of rat are not known: choose one of xenopus, human, mouse, fly, yeast"),
    (OctamerRecipe("yeast", variants=("CENP-A",)), "no variant 'CENP-A' here: choose one of Cse4, H2A.Z"),
    (OctamerRecipe("human", variants=("CENP-A", "H3.3")), "replace the same histone"),
    (OctamerRecipe(mutations=("H3:K57Q",)), "H3 has S57 there"),
    (OctamerRecipe(mutations=("H3:K56B",)), "not of the form H3:K56Q"),
    (OctamerRecipe("human", tails="crystal"), "set build.tails to compact"),
])
def test_what_cannot_be_built_is_refused(recipe, sentence):
    with pytest.raises(BadInputError, match=sentence):
        octamer_of_recipe(recipe)


def test_marks_by_a_signal(tmp_path):
    """signal.bw (written by pyBigWig): on chrI 2 over 100..250, 0.5 over 300..400, 9 at 700, 1 and 2 and 3 over 10 base
    pairs from 1000, 1020, 1100, and 4 to 7 over 20 base pairs each from 1500, 1530, 1560, 1590.
    """
    values = read_signal(SIGNAL, "chrI", 0, 3000)
    assert np.nansum(values) == 150 * 2 + 100 * 0.5 + 9 + 10 * (1 + 2 + 3) + 20 * (4 + 5 + 6 + 7)
    assert values[[100, 249, 700, 1100, 1609]].tolist() == [2, 2, 9, 3, 7] and np.isnan(values[[99, 250, 1610]]).all()
    dyads = np.array([174, 248, 250, 252, 700])
    mean = [np.nansum(values[d - 73:d + 74]) / 147 for d in dyads]
    section = BuildSection(histones="yeast", marks=str(SIGNAL), track_mark="H2A.Z", track_threshold=1.15)
    common = OctamerRecipe("yeast")
    expected = [common.with_mark("H2A.Z") if m >= 1.15 else common for m in mean]
    assert octamer_recipes(section, "chrI", dyads) == expected and 0 < expected.count(common) < 5


@pytest.mark.parametrize(("change", "sentence"), [
    ({"track_mark": None}, "signal.bw is a signal: set build.track_mark .* and build.track_threshold"),
    ({"track_threshold": 50.0}, "signal.bw reaches 50.0 on no nucleosome of chrI: .* its highest mean is 2$"),
    ({"chromosome": "chrX"}, r"has no chromosome chrX \(it has chrI, chrII, chrIII\)"),
    ({"damage": slice(0, 4)}, "no bigWig file"), ({"damage": slice(300, None)}, "damaged"),
])
def test_unfit_signals_are_refused(tmp_path, change, sentence):
    path, data = tmp_path / "signal.bw", SIGNAL.read_bytes()
    where = change.get("damage", slice(0, 0))
    path.write_bytes(data[:where.start] if where.stop is None else b"\1" * where.stop + data[where.stop:])
    section = BuildSection(histones="yeast", marks=str(path), track_mark=change.get("track_mark", "H2A.Z"),
                           track_threshold=change.get("track_threshold", 1.0))
    with pytest.raises(BadInputError, match=sentence):
        octamer_recipes(section, change.get("chromosome", "chrI"), np.array([174, 700]))


def test_marks_by_place(tmp_path):
    bed = tmp_path / "marks.bed"
    bed.write_text("chrI\t100\t400\tH2A.Z\nchrI\t300\t301\tH3:K56Q\nchrII\t0\t900\tCENP-A\n")
    section = BuildSection(histones="human", marks=str(bed), variants=("H4:K16Q",))
    found = octamer_recipes(section, "chrI", np.array([50, 120, 300, 400]))
    common = OctamerRecipe("human", mutations=("H4:K16Q",))
    assert found == [common, common.with_mark("H2A.Z"), common.with_mark("H2A.Z").with_mark("H3:K56Q"), common]
    bed.write_text("chrI\t100\t400\tH2A.Q\n")
    with pytest.raises(BadInputError, match="marks.bed, line 1: human histones have no variant 'H2A.Q'"):
        octamer_recipes(section, "chrI", np.array([120]))
    bed.write_text("chrIII\t100\t400\tH2A.Z\n")
    with pytest.raises(BadInputError, match="marks no nucleosome of chrI"):
        octamer_recipes(section, "chrI", np.array([120]))
