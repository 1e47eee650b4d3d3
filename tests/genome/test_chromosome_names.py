"""One chromosome under four names: every reader takes the records of it, with a table and not without."""

import json
import pickle

import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import BuildSection, LocusSection, Settings
from chromabuild.build.modified_bases import modified_bases
from chromabuild.genome.bigwig import read_signal
from chromabuild.genome.bigwig_writer import write_signal
from chromabuild.genome.chromosomes import Chromosome, read_names, same_chromosome
from chromabuild.genome.contact_map import write_contact_map
from chromabuild.genome.contacts import matrix_pixels
from chromabuild.genome.locus import load_locus
from chromabuild.nucleosome.marks import marked_nucleosomes, within_stretches
from chromabuild.pipeline.inspect import locus_summary
from mesoscale.fibre import Fibre

TABLE = "# sequenceName\talias names\nchrIV\tIV\tNC_001136.10\tBK006938.2\nchrV\tV\tNC_001137.3\n"
SEQUENCE = "ACGT" * 175  # 700 bp, a CpG at 1, 5, ...


@pytest.fixture
def inputs(tmp_path):
    """A genome whose files call the chromosome chrIV, IV, NC_001136.10 and BK006938.2; each holds chrV, too."""
    text = {
        "names.txt": TABLE,
        "genome.fa": f">NC_001137.3\nACGT\n>NC_001136.10 chromosome IV\n{SEQUENCE}\n",
        "dyads.bed": "V\t300\t301\tother\nIV\t150\t151\ta\nIV\t420\t421\tb\nIV\t5000\t5001\tfar\n",
        "loops.bedpe": "chrIV\t100\t200\tBK006938.2\t400\t450\nchrV\t1\t9\tchrV\t20\t30\n",
        "marks.bed": "BK006938.2\t100\t200\tH3K27ac\nBK006938.2\t210\t220\tH3K27ac\nV\t100\t200\tH3K27ac\n",
        "acetylated.bed": "chrIV\t400\t500\nchrIV\t600\t610\n",
        "m5c.bed": "NC_001136.10\t1\t2\tm\t1\t+\nNC_001137.3\t1\t2\tm\t1\t+\n",
    }
    for name, content in text.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def section(folder, **keys):
    return LocusSection(fasta=str(folder / "genome.fa"), nucleosomes=str(folder / "dyads.bed"), region="chrIV:11-690",
                        contacts=str(folder / "loops.bedpe"), **keys)


def test_every_reader_knows_all_names(inputs):
    locus = load_locus(section(inputs, chromosome_names=str(inputs / "names.txt")))
    assert (locus.chromosome, locus.start, locus.sequence) == ("NC_001136.10", 10, SEQUENCE[10:690])
    assert [n.name for n in locus.nucleosomes] == ["a", "b"] and len(locus.contacts) == 1
    assert locus.records_used == {"dyads.bed": "2 of 4", "loops.bedpe": "1 of 2"}
    dyads = np.array([150, 420])
    marked = marked_nucleosomes(BuildSection(marks=str(inputs / "marks.bed")), locus.chromosome, dyads)
    assert [one.modifications for one in marked.recipes] == [("H3K27ac",), ()]
    assert marked.used.partly() == {"marks.bed": "1 of 3"}
    assert within_stretches(inputs / "acetylated.bed", locus.chromosome, dyads).tolist() == [False, True]
    settings = Settings(build=BuildSection(methylation=str(inputs / "m5c.bed")))
    assert modified_bases(settings, locus.chromosome, np.arange(len(SEQUENCE)), SEQUENCE).sum() == 1
    write_signal(inputs / "signal.bw", "IV", 0, np.arange(700.0))
    assert read_signal(inputs / "signal.bw", locus.chromosome, 10, 12).tolist() == [10.0, 11.0]
    write_contact_map(np.ones((7, 7), dtype=np.int64), 100, "BK006938.2", 0, inputs)
    assert matrix_pixels(str(inputs / "contact_map.cool"), locus.chromosome, 0, 700)["bins"] == 7


def test_without_a_table_other_names_are_refused(inputs):
    with pytest.raises(BadInputError, match="no record that holds chrIV:11-690"):
        load_locus(section(inputs))


def test_what_is_partly_used_is_counted_by_validate(inputs):
    settings = Settings(locus=section(inputs, chromosome_names=str(inputs / "names.txt")))
    settings.dynamics.force_field = "charmm36m"
    settings.build.marks, settings.build.methylation = str(inputs / "marks.bed"), str(inputs / "m5c.bed")
    settings.scaffold.acetylated = str(inputs / "acetylated.bed")
    (inputs / "m5c.bed").write_text("NC_001136.10\t21\t22\tm\t1\t+\nNC_001137.3\t1\t2\tm\t1\t+\n")
    assert locus_summary(settings)["records_used"] == {
        "dyads.bed": "2 of 4", "loops.bedpe": "1 of 2", "marks.bed": "1 of 3", "acetylated.bed": "1 of 2",
        "m5c.bed": "1 of 2"}


@pytest.mark.parametrize(("text", "message"), [
    ("chrIV\n", "line 1: 'chrIV' is one name"),
    ("chrIV NC_1\nchrV NC_1\n", "line 2: 'nc_1' is the name of another line"),
    ("# nothing\n", "holds no names"),
    ("chrV V5\n", "has no line with 'chrIV'")])
def test_tables_that_do_not_fit_are_refused(tmp_path, text, message):
    (tmp_path / "names.txt").write_text(text)
    with pytest.raises(BadInputError, match=message):
        Chromosome.of_table("chrIV", tmp_path / "names.txt")


def test_older_tables_have_a_line_an_alias(tmp_path):
    (tmp_path / "old.txt").write_text("#alias\tchrom\tsource\nIV4\tchrIV\tensembl\nNC_4.1\tchrIV\trefseq\n"
                                      "NC_5.1\tchrV\trefseq\n")
    assert sorted(map(sorted, read_names(tmp_path / "old.txt"))) == [["iv", "iv4", "nc_4.1"], ["nc_5.1", "v"]]


def test_a_name_that_knows_others_is_text_like_any(tmp_path):
    (tmp_path / "names.txt").write_text(TABLE)
    name = Chromosome.of_table("chrIV", tmp_path / "names.txt")
    assert name == "chrIV" and json.dumps(name) == '"chrIV"' and repr(name) == "'chrIV'"
    assert same_chromosome("NC_001136.10", name) and same_chromosome(name, "bk006938.2")
    assert not same_chromosome("NC_001136.9", name) and not same_chromosome("chrV", name)
    assert same_chromosome(pickle.loads(pickle.dumps(name)), "NC_001136.10")
    assert Fibre("ACGT", (), chromosome=name).key == Fibre("ACGT", (), chromosome="chrIV").key
