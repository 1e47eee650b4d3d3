"""Nucleosomes that are partly unwrapped or lack dimers: from BED through fold and build to a few steps of dynamics."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.complexes import SEQUENCE, write_complex

from chromabuild import Locus
from chromabuild.api import build_solute, fold, relax_solute, remove_clashes
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings, validated
from chromabuild.dna.helix import DYAD, crystal_path
from chromabuild.dna.steps import analyse
from chromabuild.export.instances import instanced_entities
from chromabuild.forcefield.assign import make_topology
from chromabuild.genome.locus import load_locus
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.marks import marked_nucleosomes
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.peptide import superposition
from chromabuild.nucleosome.recipe import OctamerRecipe, build_octamer
from chromabuild.pipeline.inspect import locus_summary
from chromabuild.solvate.ions import formal_charges
from mesoscale.core_charges import core_charges
from mesoscale.cores import crystal_core
from mesoscale.fibre import Fibre
from mesoscale.folding import fold as fold_fibre
from mesoscale.model import Parameters

NOWHERE = np.zeros((0, 3)), np.zeros(0, dtype=bool)
LENGTH = 400
NUCLEOSOMES = "chrT\t1080\t1081\tfirst\t1\t+\t1030\t1147\nchrT\t1240\t1241\tsecond\t1\t+\n"


def write_locus(folder, nucleosomes=NUCLEOSOMES, dimers="chrT\t1230\t1250\tproximal\n", bases=LENGTH, site=1340,
                **locus):
    """Settings of a locus of 400 bp with two nucleosomes, 50 and 66 bp around the first dyad, and a protein."""
    letters = np.random.Generator(np.random.Philox(key=2)).choice(list("ACGT"), bases)
    (folder / "g.fa").write_text(f">chrT:1001-{1000 + bases}\n{''.join(letters)}\n")
    (folder / "n.bed").write_text(nucleosomes)
    (folder / "d.bed").write_text(dimers)
    (folder / "p.bed").write_text(f"chrT\t{site}\t{site + len(SEQUENCE)}\tH2B\n")
    write_complex(folder / "H2B.pdb")
    files = {key: str(folder / name) for key, name in
             (("fasta", "g.fa"), ("nucleosomes", "n.bed"), ("missing_dimers", "d.bed"), ("proteins", "p.bed"))}
    wrapping = "thick" if any(line.count("\t") >= 7 for line in nucleosomes.splitlines()) else "uniform"
    return validated({"locus": files | {"wrapping": wrapping} | locus, "scaffold": {"sweeps": 20},
                      "build": {"structures": str(folder / "H2B.pdb")}}, {}, "test")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    settings = write_locus(tmp_path_factory.mktemp("partial"))
    scaffold = fold(load_locus(settings.locus), settings, threads=1)
    return settings, scaffold, build_solute(scaffold, settings, threads=1)


def test_what_is_wrapped_reaches_every_stage(built):
    """Columns 7 and 8 of the first; 38 + 1 + 73 base pairs of the hexasome."""
    settings, scaffold, solute = built
    assert scaffold.first_bp.tolist() == [30, 202] and scaffold.last_bp.tolist() == [146, 313]
    assert scaffold.missing == ["", "entry"] and scaffold.floor_violations == 0
    assert np.bincount(scaffold.nucleosome + 1).tolist() == [LENGTH - 117 - 112, 117, 112]
    assert solute.molecule_name[2:] == ["H3", "H4", "H2A", "H2B"] * 2 + ["H3", "H4", "H3", "H4", "H2A", "H2B", "H2B"]
    assert [row["missing_dimers"] for row in solute.build_report["octamers"]] == ["none", "entry"]
    summary = load_locus(settings.locus).summary()
    assert (summary["wrapped_shortest"], summary["wrapped_longest"]) == (112, 117)
    assert (summary["hexasomes"], summary["tetrasomes"]) == (1, 0)


def test_wrapped_base_pairs_and_histones_lie_as_in_the_crystal(built):
    """The scaffold's base pairs have the steps of 1KX5; six histones of the hexasome superpose on theirs, but for side
    chains that have made room."""
    _, scaffold, solute = built
    origin, frame = crystal_path()
    for k, (first, last) in enumerate(zip(scaffold.first_bp, scaffold.last_bp, strict=True)):
        rows, own = slice(first, last + 1), slice(first - scaffold.dyad[k] + DYAD, last - scaffold.dyad[k] + DYAD + 1)
        here, there = (analyse(o[:-1], f[:-1], o[1:], f[1:]) for o, f in
                       ((scaffold.origin[rows], scaffold.frame[rows]), (origin[own], frame[own])))
        assert np.abs(here - there).max() < 1e-3  # frames in the template have six digits
    core, first = octamer("compact"), solute.molecule_first_atom
    kept = np.repeat(~np.isin(core.residue_chain, (2, 3)), np.diff(core.first_atom))
    main = np.isin(solute.atom_names()[first[10]:first[16]], ("N", "CA", "C", "O"))
    placed, expected = solute.position[first[10]:first[16]][main].astype(float), core.position[kept][main]
    matrix, shift = superposition(placed, expected)
    assert np.sqrt(np.mean(np.sum((placed @ matrix.T + shift - expected) ** 2, axis=1))) < 0.05


def test_scenes_put_the_one_copy_of_a_hexasome_on_its_side(built):
    """H2A of chain C is on the first nucleosome alone, that of chain G on both; the protein is at its site."""
    _, scaffold, solute = built
    found = [one for one in instanced_entities(solute, scaffold) if one.label == "H2A"]
    assert [len(one.origin) for one in found] == [1, 2]
    assert np.array_equal(found[0].origin[0], scaffold.core_origin[0])
    (bound,) = [one for one in instanced_entities(solute, scaffold) if "sites" in one.description]
    assert np.array_equal(bound.origin, scaffold.proteins.origin)


@pytest.mark.release
def test_nothing_overlaps_and_dynamics_run(tmp_path):
    """A tetrasome of 77 bp and a protein: heavy atoms of two molecules, strands with each other left out, stay 2
    angstrom apart; the charge is whole; a few steps of chromamd without water."""
    settings = write_locus(tmp_path, "chrT\t1060\t1061\ta\n", "chrT\t1060\t1061\tboth\n", bases=145, site=1120)
    solute = build_solute(fold(load_locus(settings.locus), settings, threads=1), settings, threads=1)
    clean, report = remove_clashes(solute, settings, threads=1)
    assert report.fatal == 0
    molecule = np.repeat(np.arange(len(clean.molecule_name)), np.diff(clean.molecule_first_atom))
    heavy = np.flatnonzero(clean.elements() != "H")
    pairs = molecule[heavy[cKDTree(clean.position[heavy]).query_pairs(2.0, output_type="ndarray")]]
    assert not [pair for pair in pairs.tolist() if pair[0] != pair[1] and set(pair) != {0, 1}]
    charge = int(formal_charges()[clean.residue_template].sum())
    # AMBER's residue charges have four to six decimals.
    assert make_topology(clean, {}).net_charge == pytest.approx(charge, abs=0.01)
    relaxed, _ = relax_solute(clean, tmp_path / "relax", settings, threads=1, minimise_steps=10, length="5 fs")
    assert np.isfinite(relaxed.position).all() and relaxed.molecule_name == clean.molecule_name


@pytest.mark.parametrize(("missing", "copies"), [("entry", (2, 3)), ("exit", (6, 7)), ("both", (2, 3, 6, 7))])
def test_reduced_core_has_the_charge_of_what_is_left(missing, copies):
    """Formal charges: two a base pair, and those of the histones that are there, counted residue by residue.

    The mesoscale core has the chains as the crystal shows them, each H2B without its Glu -1.
    """
    core = octamer("crystal")
    left = ~np.isin(core.residue_chain, copies)
    histones = int(formal_charges()[core.residue_template[left]].sum())
    wrapped = (38 if missing != "exit" else 73, 38 if missing != "entry" else 73)
    unseen = len({3, 7} - set(copies))
    whole, found = (crystal_core(ends, charges="formal", missing=what).site_charge.sum()
                    for ends, what in (((73, 73), ""), (wrapped, missing)))
    assert whole == pytest.approx(-2 * 147 + int(formal_charges()[core.residue_template].sum()) + 2, abs=1e-9)
    assert found == pytest.approx(-2 * (sum(wrapped) + 1) + histones + unseen, abs=1e-9)
    # The balls of the octamer that are left, which come after those of DNA, lie on the histones that are left.
    shape = crystal_core(wrapped, missing=missing)
    dna = int(np.sum(shape.sphere_radius == shape.sphere_radius[0]))
    balls = shape.sphere[dna:len(shape.sphere) - {"both": 42}.get(missing, 60)]
    lost, rest = (cKDTree(core.position[np.repeat(some, np.diff(core.first_atom))] / 10.0) for some in (~left, left))
    assert 0 < len(balls) < 32 and (rest.query(balls)[0] < lost.query(balls)[0]).all()


def test_whole_core_is_a_special_case():
    one, other = crystal_core(121), crystal_core((60, 60))
    assert all(np.array_equal(getattr(one, key), getattr(other, key)) for key in ("site", "sphere", "joint_frame"))
    assert len(core_charges(0.15)[0]) == 300


def test_flexible_tails_of_a_missing_dimer_are_not_there():
    """Beads of H2A and H2B on that side are NaN, all others are placed, and no floor is violated."""
    fibre = Fibre("ACGT" * 100, (80, 280), ends=((38, 73), (38, 38)), missing=("entry", "both"))
    scaffold = fold_fibre(fibre, Parameters(tails="flexible"), 5, 1, threads=1)
    assert np.isnan(scaffold.tails).any(axis=2).sum(axis=1).tolist() == [12, 24]
    assert scaffold.floor_violations == 0


def test_octamers_without_dimers():
    found = build_octamer(OctamerRecipe("human", "compact", missing="exit", modifications=("H2AK5ac@1",)), *NOWHERE)
    assert found.chain == tuple("ABCDEF") and found.histone == ("H3", "H4", "H2A", "H2B", "H3", "H4")
    assert len(found.position) == found.first_atom[-1]
    names = [list(residue_library())[k] for k in found.residue_template]
    assert names.count("ALY") == 1


@pytest.mark.parametrize(("mark", "missing", "sentence"), [
    ("H2AK5ac@1", "entry", "lacks the dimer at its entry: the histone is not there"),
    ("H2BK12ac", "both", "lacks both dimers: the histone is not there"),
    ("H2A.Z", "both", "the histone is not there"),
    ("H1.4", "exit", "a linker histone needs both H2A-H2B dimers"),
])
def test_marks_on_missing_histones_are_refused(tmp_path, mark, missing, sentence):
    (tmp_path / "m.bed").write_text(f"chr1\t90\t110\t{mark}\n")
    section = validated({"build": {"marks": str(tmp_path / "m.bed"), "histones": "human"}}, {}, "test").build
    with pytest.raises(BadInputError, match=sentence):
        marked_nucleosomes(section, "chr1", np.array([100]), 1, [missing])


def test_what_every_nucleosome_carries_is_left_out_where_it_cannot_be(tmp_path):
    keys = {"variants": ["H2AK5ac", "H3K9ac"], "linker_histone": "H1.4", "histones": "human"}
    section, missing = validated({"build": keys}, {}, "test").build, ["", "exit", "both"]
    whole, hexasome, tetrasome = marked_nucleosomes(section, "chr1", np.array([1, 2, 3]), 1, missing).recipes
    assert (whole.modifications, whole.linker_histone) == (("H2AK5ac", "H3K9ac"), "H1.4")
    assert (hexasome.modifications, hexasome.linker_histone) == (("H2AK5ac", "H3K9ac"), "")
    assert tetrasome.modifications == ("H3K9ac",)
    assert Settings().locus.missing_dimers is None


@pytest.mark.parametrize(("nucleosomes", "dimers", "locus", "sentence"), [
    ("chrT\t1080\t1081\ta\t1\t+\t1040\t1120\n", None, {}, "n.bed, line 1: 80 bp are wrapped, an octamer holds 101"),
    ("chrT\t1080\t1081\ta\t1\t+\t996\t1120\n", None, {}, "does not lie within 73 bp of the dyad 1080"),
    ("chrT\t1080\t1081\ta\t1\t+\t1090\t1220\n", None, {}, "does not lie within 73 bp of the dyad 1080"),
    ("chrT\t1100\t1180\ta\n", None, {"wrapping": "width"}, "80 bp are wrapped"),
    (NUCLEOSOMES, "chrT\t1230\t1250\tleft\n", {}, "d.bed, line 1: 'left' is none of proximal, distal, both"),
    (NUCLEOSOMES, "chrT\t1\t2\tboth\n", {}, "meets no nucleosome"),
    (NUCLEOSOMES, "chrT\t1230\t1250\tboth\nchrT\t1230\t1250\tdistal\n", {}, "line 2: nucleosome second lacks another"),
    ("chrT\t1080\t1081\ta\nchrT\t1180\t1181\tb\n", "chrT\t1080\t1081\tproximal\n",
     {"wrapping": "uniform", "overlaps": "error"}, "one can be a hexasome"),
])
def test_validate_refuses(tmp_path, nucleosomes, dimers, locus, sentence):
    config = write_locus(tmp_path, nucleosomes, dimers or "", **({} if dimers else {"missing_dimers": None}) | locus)
    with pytest.raises(BadInputError) as error:
        locus_summary(config)
    assert sentence in str(error.value)


def test_fragments_of_mnase_are_what_is_wrapped(tmp_path):
    """160 bp are cut to 147 about the middle, 120 are as they are; strand turns proximal; a hexasome makes room."""
    config = write_locus(tmp_path, "chrT\t1020\t1180\ta\nchrT\t1220\t1340\tb\n", "chrT\t1270\t1290\tproximal\t0\t-\n",
                         wrapping="width", proteins=None)
    first, second = load_locus(config.locus).nucleosomes
    assert (first.before, first.after, second.before, second.after) == (73, 73, 59, 38)
    assert second.missing == "exit"


def test_hexasomes_come_closer(tmp_path):
    """Dyads 130 bp apart: 73 + 1 + 10 + 38 = 122 are needed where the proximal dimer of the second is missing, 157
    where it is not, and then they are moved."""
    beds = "chrT\t1100\t1101\ta\nchrT\t1230\t1231\tb\n"
    keys = {"wrapping": "uniform", "proteins": None}
    packed = load_locus(write_locus(tmp_path, beds, "chrT\t1230\t1231\tproximal\n", **keys).locus)
    assert [n.dyad for n in packed.nucleosomes] == [100, 230] and not packed.adjustments
    moved = load_locus(write_locus(tmp_path, beds, **keys | {"missing_dimers": None}).locus)
    assert np.diff([n.dyad for n in moved.nucleosomes]) == [157] and len(moved.adjustments) == 2


def test_loci_without_these_features_have_fibres_as_before(tmp_path):
    config = write_locus(tmp_path, "chrT\t1100\t1101\ta\n", missing_dimers=None, proteins=None, wrapping="uniform")
    fibre = Locus.from_files(config.locus.fasta, config.locus.nucleosomes).fibre()
    assert (fibre.ends, fibre.missing, fibre.proteins) == ((), (), ()) and fibre.key == repr(fibre)
    assert "ends" not in repr(fibre)
