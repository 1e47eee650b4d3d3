"""Nucleosomes beside the seam of a circle."""

from types import SimpleNamespace

import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import BuildSection, Settings
from chromabuild.build.modified_bases import modified_bases
from chromabuild.genome.bigwig_writer import write_signal
from chromabuild.genome.circle import Circle
from chromabuild.genome.contacts import enriched_pairs
from chromabuild.genome.locus import Locus
from chromabuild.genome.methylation import read_methylation
from chromabuild.nucleosome.marks import marked_nucleosomes, within_stretches
from chromabuild.pipeline.stages.scaffold import _as_given
from chromabuild.view.overview import _within


def written(tmp_path, length, dyads):
    (tmp_path / "c.fa").write_text(">c\n" + ("ACGT" * length)[:length] + "\n")
    (tmp_path / "c.bed").write_text("".join(f"c\t{dyad}\t{dyad + 1}\tN{dyad}\n" for dyad in dyads))
    return tmp_path / "c.fa", tmp_path / "c.bed"


def test_a_circle_knows_its_nucleosomes_and_the_linker_across_the_seam(tmp_path):
    locus = Locus.from_files(*written(tmp_path, 414, (103, 310)), circular=True, linking_number=38)
    fibre = locus.fibre()
    assert fibre.circular and fibre.linking_number == 38 and fibre.dyads == (103, 310)
    assert fibre.linkers == [60, 60]


def shifted(tmp_path, by, length=414, dyads=(103, 290), seed=5):
    """The locus of one circle, numbered from ``by`` base pairs further on."""
    text = "".join(np.random.default_rng(seed).choice(list("ACGT"), length))
    folder = tmp_path / str(by)
    folder.mkdir()
    (folder / "c.fa").write_text(f">c\n{text[by:]}{text[:by]}\n")
    (folder / "c.bed").write_text("".join(f"c\t{place}\t{place + 1}\tN{dyad}\n"
                                          for dyad in dyads for place in [(dyad - by) % length]))
    return Locus.from_files(folder / "c.fa", folder / "c.bed", circular=True)


@pytest.mark.parametrize("by", [1, 60, 103, 104, 200, 290, 413])
def test_the_origin_of_a_circle_changes_nothing_but_its_numbering(tmp_path, by):
    one, other = shifted(tmp_path, 0), shifted(tmp_path, by)
    assert other.sequence == one.sequence and other.fibre().dyads == one.fibre().dyads
    assert [n.name for n in other.nucleosomes] == [n.name for n in one.nucleosomes]
    assert (other.position == (one.position - by) % 414).all()
    named = {n.name: int(other.position[n.dyad]) for n in other.nucleosomes}
    assert named == {"N103": (103 - by) % 414, "N290": (290 - by) % 414}


def test_a_circle_begins_in_the_middle_of_its_longest_linker(tmp_path):
    locus = shifted(tmp_path, 0)  # between 363 and 30 of the next turn: 80 bp
    assert locus.turn == (364 + 40) % 414 and locus.fibre().linkers == [40, 80]


def test_equal_linkers_are_told_apart_by_the_sequence(tmp_path):
    one, other = (shifted(tmp_path, by, dyads=(100, 307)) for by in (0, 307))
    assert one.sequence == other.sequence and one.fibre().linkers == [60, 60]


def test_a_moved_nucleosome_is_told_in_the_numbering_of_the_input(tmp_path):
    """Two that stand 5 bp apart across base pair 1 are moved away from each other."""
    locus = Locus.from_files(*written(tmp_path, 500, (60, 408)), circular=True)
    assert locus.fibre().linkers[0] == 10
    assert {(one["from"], one["to"]) for one in locus.adjustments} <= {(408, 407), (408, 406), (408, 405), (60, 61),
                                                                       (60, 62), (60, 63)}
    assert sum(abs(one["to"] - one["from"]) for one in locus.adjustments) == 5


def test_too_little_room_on_the_circle(tmp_path):
    with pytest.raises(BadInputError, match="N20 and N20 leave 8 bp between them on the circle, 10 are needed"):
        Locus.from_files(*written(tmp_path, 155, (20,)), circular=True)


def test_no_linker_to_begin_in(tmp_path):
    with pytest.raises(BadInputError, match="N20 lies across base pair 1 of the circle, and no linker"):
        Locus.from_files(*written(tmp_path, 200, (20, 120)), circular=True)


def test_methylation_is_read_where_the_input_has_it(tmp_path):
    """Each C of a strand's own letters, wherever the circle begins."""
    locus = shifted(tmp_path, 104)
    sequence = "".join(np.array(list(locus.sequence))[np.argsort(locus.position)])
    places = [k for k, letter in enumerate(sequence) if letter == "C"][:20]
    (tmp_path / "m.bed").write_text("".join(f"c\t{k}\t{k + 1}\tm\t1000\t+\n" for k in places))
    settings = Settings.model_validate({"build": {"methylation": str(tmp_path / "m.bed"),
                                                  "methylation_threshold": 0.5}})
    found = modified_bases(settings, "c", locus.position, locus.sequence)
    assert sorted(locus.position[np.flatnonzero(found[:414])].tolist()) == places and not found[414:].any()


def occupied(tmp_path, by, nucleosomes, length=900):
    """The locus of one circle with three contacts and two proteins, numbered from ``by`` base pairs further on."""
    text = "".join(np.random.default_rng(5).choice(list("ACGT"), length))
    folder = tmp_path / f"{by}_{len(nucleosomes)}"
    folder.mkdir()

    def at(first, end):
        return f"c\t{(first - by) % length}\t{(first - by) % length + end - first}"

    (folder / "c.fa").write_text(f">c\n{text[by:]}{text[:by]}\n")
    (folder / "c.bed").write_text("".join(f"{at(dyad - 10, dyad + 11)}\tN{dyad}\n" for dyad in nucleosomes))
    (folder / "p.bed").write_text("".join(f"{at(first, first + 12)}\tlac\t0\t+\n" for first in (300, 895)))
    (folder / "k.bedpe").write_text("".join(
        "\t".join((at(*one), at(*other), ".", f"{weight}")) + "\n" for one, other, weight in (
            ((880, 920), (400, 440), 1), ((40, 60), (700, 720), 2), ((250, 650), (650, 1050), 3))))
    return Locus.from_files(folder / "c.fa", folder / "c.bed" if nucleosomes else None, folder / "k.bedpe",
                            circular=True, proteins=str(folder / "p.bed"))


@pytest.mark.parametrize("nucleosomes", [(120, 500, 780), ()])
def test_contacts_and_proteins_go_with_the_circle(tmp_path, nucleosomes):
    """What is built does not depend on where the numbering begins: in a nucleosome, in a protein or in a contact."""
    one = occupied(tmp_path, 0, nucleosomes)
    fibre = one.fibre()
    places = [one.position[site.first_bp] for site in one.proteins]
    assert sorted(places) == [300, 895] and len(one.contacts) == 3 and not one.ignored_contacts
    assert [one.position[round(sum(c.first) / 2) % 900] for c in one.contacts] == [0, 50, 450]
    for by in (1, 130, 306, 450, 885, 899):
        other = occupied(tmp_path, by, nucleosomes)
        assert other.fibre().sequence == fibre.sequence and other.fibre().dyads == fibre.dyads
        assert other.contacts == one.contacts
        assert [(s.first_bp, s.end, s.reverse) for s in other.proteins] == [
            (s.first_bp, s.end, s.reverse) for s in one.proteins]
        assert (other.position == (one.position - by) % 900).all()


def test_proteins_need_room_across_the_origin_too(tmp_path):
    """Told in the numbering of the input."""
    fasta, bed = written(tmp_path, 500, (80, 300))
    (tmp_path / "p.bed").write_text("c\t494\t505\tlac\n")
    with pytest.raises(BadInputError, match=r"line 1: lac on 494-505 leaves 2 bp beside nucleosome N80, which holds "
                                            "7-154"):
        Locus.from_files(fasta, bed, circular=True, proteins=str(tmp_path / "p.bed"))


@pytest.mark.parametrize("end", [914, 1001])
def test_an_interval_goes_round_a_circle_once_at_most(tmp_path, end):
    fasta, bed = written(tmp_path, 500, (100, 300))
    (tmp_path / "k.bedpe").write_text(f"c\t413\t{end}\tc\t200\t210\n")
    with pytest.raises(BadInputError, match=f"413-{end} with 200-210 reaches outside the locus"):
        Locus.from_files(fasta, bed, tmp_path / "k.bedpe", circular=True)


def test_distances_in_a_matrix_of_a_circle_are_the_shorter_way_round():
    """Ten bins; counts fall with the distance round the circle, and one pair is seen three times as often. Counted
    from any bin, it is the only one that stands out, by 3/(1 + 2/10) for the mean of its distance."""
    i, j = np.triu_indices(10)
    apart = np.minimum(j - i, 10 - (j - i))
    for first in range(10):
        pair = sorted(((first + 1) % 10, (first + 4) % 10))
        count = 60.0 / (1 + apart) * np.where((i == pair[0]) & (j == pair[1]), 3, 1)
        ((a, b, ratio),) = enriched_pairs(i, j, count, 10, around=10.0)
        assert [a, b] == pair and ratio == pytest.approx(3 / 1.2)


def bigwig(path, values):
    """A bigWig of one chromosome, c."""
    write_signal(path, "c", 0, values)
    return str(path)


@pytest.mark.parametrize("by", [0, 60, 104, 111, 140, 299])
def test_a_signal_is_averaged_over_base_pairs_across_the_origin(tmp_path, by):
    """A step of 1 on 30 of the 147 base pairs of a nucleosome: the mean is 30/147 wherever the numbering begins."""
    locus = shifted(tmp_path, by, length=500, dyads=(103, 290))
    values = np.roll(np.where((np.arange(500) >= 110) & (np.arange(500) < 140), 1.0, 0.0), -by)
    section = BuildSection(marks=bigwig(tmp_path / "H3K27ac.bw", values), track_threshold=0.2)
    dyads = locus.position[[one.dyad for one in locus.nucleosomes]]
    found = marked_nucleosomes(section, "c", dyads, circle=Circle(0, 500))
    assert [name for name, recipe in zip([n.name for n in locus.nucleosomes], found.recipes, strict=True)
            if recipe.modifications] == ["N103"]
    with pytest.raises(BadInputError, match="its highest mean is 0.204"):
        marked_nucleosomes(section.model_copy(update={"track_threshold": 0.21}), "c", dyads, circle=Circle(0, 500))


def test_intervals_of_marks_run_across_the_end(tmp_path):
    (tmp_path / "m.bed").write_text("c\t450\t560\tH3K27ac\n")
    dyads, circle = np.array([40, 70, 300, 460]), Circle(0, 500)
    found = marked_nucleosomes(BuildSection(marks=str(tmp_path / "m.bed")), "c", dyads, circle=circle)
    assert [bool(one.modifications) for one in found.recipes] == [True, False, False, True]
    assert within_stretches(tmp_path / "m.bed", "c", dyads, circle=circle).tolist() == [True, False, False, True]
    cut = Circle(0, 500, is_cut=True)  # beyond 500 lies another part of the chromosome
    assert within_stretches(tmp_path / "m.bed", "c", dyads, circle=cut).tolist() == [False, False, False, True]


def test_a_cpg_across_the_origin_is_one_pair(tmp_path):
    """The strandless record of the C at the end marks both strands; drawn, both have one draw, whatever the seed."""
    (tmp_path / "m.bed").write_text("c\t9\t11\tm\t0\t.\n")
    found = read_methylation(tmp_path / "m.bed", "c", 0, "GATTATTATC", 0.5, circle=Circle(0, 10))
    assert np.argwhere(found).tolist() == [[0, 9], [1, 0]]
    half = ["c\t9\t10\tm\t0\t.", "9", "10", "0,0,0", "10", "50"]
    (tmp_path / "h.bed").write_text("\t".join(half) + "\n")
    drawn = [read_methylation(tmp_path / "h.bed", "c", 0, "GATTATTATC", seed=seed, circle=Circle(0, 10))[[0, 1], [9, 0]]
             for seed in range(20)]
    assert all(one == other for one, other in drawn) and 0 < sum(one for one, _ in drawn) < 20


def test_contacts_are_told_in_the_numbering_of_the_input(tmp_path):
    """Those of the summary of a fold, and those of the page; the page shows the longer part of a stretch that lies
    across the seam of the scaffold."""
    locus = occupied(tmp_path, 130, (120, 500, 780))
    folded = [{"first": list(one.first), "second": list(one.second)} for one in locus.contacts]
    told = [one["first"] + one["second"] for one in _as_given(folded, locus)]
    assert told == [[750, 790, 270, 310], [810, 830, 570, 590], [120, 520, 520, 920]]
    assert [_within(SimpleNamespace(position=range(900)), *stretch) for stretch in (
        (10, 20), (880, 900), (880, 930), (860, 910))] == [(10, 20), (880, 900), (0, 30), (860, 900)]


def test_missing_dimers_of_an_interval_across_the_end(tmp_path):
    fasta, bed = written(tmp_path, 500, (20, 300))
    (tmp_path / "d.bed").write_text("c\t450\t530\tboth\n")
    locus = Locus.from_files(fasta, bed, circular=True, missing_dimers=str(tmp_path / "d.bed"))
    assert {one.name: one.missing for one in locus.nucleosomes} == {"N20": "both", "N300": ""}
