"""A locus cut from a genome's files, names of chromosomes in several spellings, and inputs of which nothing is used."""

import gzip
import json
import os

import numpy as np
import pytest
import yaml
from Bio import SeqIO, bgzf
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import chromabuild

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection, load_config
from chromabuild.genome.bigwig import read_signal
from chromabuild.genome.bigwig_writer import write_signal
from chromabuild.genome.chromosomes import canonical, spelled
from chromabuild.genome.contact_map import upper_pixels, write_pixels
from chromabuild.genome.fasta import read_fasta, read_region
from chromabuild.genome.locus import load_locus
from chromabuild.genome.region import Region
from chromabuild.nucleosome.marks import within_stretches
from chromabuild.view.tracks import read_track

WIDTH = 60
CHROMOSOMES = {"chrI": 5000, "chrII": 3000, "chrM": 700}


def letters(length, seed):
    """A sequence, some of it in lower case."""
    return "".join(np.random.default_rng(seed).choice(list("ACGTacgt"), length))


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    """A folder with a genome as FASTA: plain, with index, gzip and bgzip; and its nucleosomes."""
    folder = tmp_path_factory.mktemp("genome")
    text, index, offset = "", "", 0
    for seed, (name, length) in enumerate(CHROMOSOMES.items()):
        sequence = letters(length, seed)
        header = f">{name} yeast\n"
        rows = [sequence[k:k + WIDTH] for k in range(0, length, WIDTH)]
        index += f"{name}\t{length}\t{offset + len(header)}\t{WIDTH}\t{WIDTH + 1}\n"
        text += header + "\n".join(rows) + "\n"
        offset = len(text)
    (folder / "plain.fa").write_text(text)
    (folder / "indexed.fa").write_text(text)
    (folder / "indexed.fa.fai").write_text(index)
    (folder / "genome.fa.gz").write_bytes(gzip.compress(text.encode()))
    with bgzf.BgzfWriter(str(folder / "blocks.fa.gz")) as writer:
        writer.write(text)
    (folder / "all.bed").write_text("".join(
        f"{name}\t{dyad}\t{dyad + 1}\tn{k}\t{k}\n" for name, length in CHROMOSOMES.items()
        for k, dyad in enumerate(range(100, length - 80, 180))))
    return folder


@pytest.mark.parametrize("file", ["plain.fa", "indexed.fa", "genome.fa.gz", "blocks.fa.gz"])
@pytest.mark.parametrize("region", ["chrI:1-60", "chrI:61-4,321", "II:2,900-3,000", "MT:1-700"])
def test_region_is_what_biopython_cuts(genome, file, region):
    parsed = Region.of_setting(region)
    whole = {record.id: str(record.seq) for record in SeqIO.parse(genome / "plain.fa", "fasta")}
    name = spelled(parsed.chromosome, whole)
    assert read_region(genome / file, parsed) == (name, whole[name][parsed.start:parsed.end].upper())


@settings(max_examples=50, deadline=None)
@given(first=st.integers(1, 3000), length=st.integers(1, 3000))
def test_index_and_stream_agree_everywhere(genome, first, length):
    region = Region("chrII", first - 1, first - 1 + length)
    if region.end > 3000:
        for file in ("plain.fa", "indexed.fa"):
            with pytest.raises(BadInputError, match="ends at base 3000, before locus.region"):
                read_region(genome / file, region)
    else:
        assert read_region(genome / "plain.fa", region) == read_region(genome / "indexed.fa", region)


def test_a_region_of_a_region(tmp_path):
    """A FASTA record that is a region itself: positions stay those of the chromosome."""
    sequence = letters(1000, 7)
    (tmp_path / "part.fa").write_text(f">chrXIII:5,001-6,000 part\n{sequence}\n")
    assert read_region(tmp_path / "part.fa", Region("XIII", 5100, 5200)) == ("chrXIII", sequence[100:200].upper())
    with pytest.raises(BadInputError, match="ends at base 6000"):
        read_region(tmp_path / "part.fa", Region("chrXIII", 5100, 6001))
    with pytest.raises(BadInputError, match=r"no record that holds chrXIII:4001-5200"):
        read_region(tmp_path / "part.fa", Region("chrXIII", 4000, 5200))


def test_index_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "a.fa").write_text(">chr1\n" + "ACGT" * 10 + "\n>chr2\n" + "ACGT" * 10 + "\n")
    (tmp_path / "a.fa.fai").write_text("chr1\t80\t6\t40\t41\n")
    with pytest.raises(BadInputError, match="samtools faidx"):
        read_region(tmp_path / "a.fa", Region("chr1", 20, 60))
    # An older index is not used.
    os.utime(tmp_path / "a.fa.fai", (1, 1))
    assert read_region(tmp_path / "a.fa", Region("chr1", 20, 40)) == ("chr1", "ACGT" * 5)


def test_locus_cut_from_a_genome(genome, tmp_path):
    """chrI:1001-2000 with dyads 1000, 1180, ..., 1900 and, outside, 2040: two do not lie on it wholly, and are told."""
    rows = ("I 1100 1150 I 1700 1750 x 2", "chrI 900 950 chrI 1300 1350", "chrII 1100 1150 chrII 1700 1750",
            "chrI 10 20 chrI 3000 3010")
    (tmp_path / "all.bed").write_text((genome / "all.bed").read_text() + "chrI\t2040\t2041\n")
    (tmp_path / "c.bedpe").write_text("\n".join(rows).replace(" ", "\t") + "\n")
    locus = load_locus(LocusSection(fasta=str(genome / "genome.fa.gz"), nucleosomes=str(tmp_path / "all.bed"),
                                    contacts=str(tmp_path / "c.bedpe"), region="chrI:1,001-2,000"))
    assert (locus.chromosome, locus.start, len(locus.sequence)) == ("chrI", 1000, 1000)
    assert [n.dyad for n in locus.nucleosomes] == [180, 360, 540, 720, 900]
    assert [(a["from"], a["to"], a["reason"]) for a in locus.adjustments] == [
        (1000, None, "crosses the border of the region"), (2040, None, "crosses the border of the region")]
    assert locus.records_used["all.bed"].startswith("6 of ")
    assert [(c.first, c.second, c.weight) for c in locus.contacts] == [((100, 150), (700, 750), 2.0)]
    assert len(locus.ignored_contacts) == 1 and locus.ignored_contacts[0].startswith("line 2: 900-950")
    assert "reaches outside the locus" in locus.ignored_contacts[0]


def test_pairs_of_a_matrix_across_the_border_are_told(genome, tmp_path):
    """A map of chrI in bins of 100 bp, 1 everywhere and one pair that stands out: of the ten bins of the region with
    the twenty others 200 pairs cross its border; one of 5 counts among them."""
    counts = np.ones((30, 30))
    counts[12, 17] = counts[17, 12] = 20
    counts[3, 12] = counts[12, 3] = 5
    write_pixels(upper_pixels(counts), 30, 100, "chrI", 0, tmp_path / "map.cool")
    keys = {"fasta": str(genome / "genome.fa.gz"), "nucleosomes": None, "contacts": str(tmp_path / "map.cool")}
    locus = load_locus(LocusSection(**keys, region="chrI:1,001-2,000"))
    assert [(c.first, c.second) for c in locus.contacts] == [((200, 300), (700, 800))]
    assert locus.ignored_contacts == ("200 pairs of bins of which one reaches outside the locus, 204 counts in all",)
    assert load_locus(LocusSection(**keys, region="chrI:1-3000")).ignored_contacts == ()


def test_summits_of_narrow_peaks_are_dyads(tmp_path):
    """Column 10 counts from the start of the peak; -1 leaves the middle."""
    (tmp_path / "a.fa").write_text(">chr1\n" + "ACGT" * 150 + "\n")
    rows = ["chr1\t90\t170\tp1\t5\t.\t1\t1\t1\t10", "chr1\t280\t321\tp2\t5\t.\t1\t1\t1\t-1"]
    (tmp_path / "p.narrowPeak").write_text("\n".join(rows) + "\n")
    section = LocusSection(fasta=str(tmp_path / "a.fa"), nucleosomes=str(tmp_path / "p.narrowPeak"))
    assert [n.dyad for n in load_locus(section).nucleosomes] == [100, 300]
    (tmp_path / "p.narrowPeak").write_text(rows[0].replace("\t10", "\t80") + "\n")
    with pytest.raises(BadInputError, match="line 1: summit '80' does not lie in the peak of 80 bp"):
        load_locus(section)


@pytest.mark.parametrize(("keys", "said"), [
    ({"region": "chrI"}, "locus.region = 'chrI' is no region"),
    ({"region": "chrI:200-100"}, "is no region"),
    ({"region": "chrI:1-100", "start": 5}, "both place the locus"),
    ({"region": "chrV:1-100"}, "no record that holds chrV:1-100; it has chrI, chrII, chrM"),
    ({"region": "chrII:2,000-3,001"}, "chrII ends at base 3000"),
    ({"region": "chrI:1-100"}, "holds no nucleosome whose dyad lies in chrI:1-100"),
    ({"region": "chrI:50-200"}, "no nucleosome lies wholly in locus.region"),
    ({}, r"holds several records \(chrI, chrII, chrM\): name one with locus.record"),
])
def test_regions_that_cannot_be_cut(genome, keys, said):
    section = LocusSection(fasta=str(genome / "plain.fa"), nucleosomes=str(genome / "all.bed"), **keys)
    with pytest.raises(BadInputError, match=said):
        load_locus(section)


def test_contacts_of_which_none_is_used_are_refused(genome, tmp_path):
    """Also those of another chromosome, which a spelling alone does not make the same."""
    (tmp_path / "c.bedpe").write_text("chr4\t1100\t1150\tchr4\t1700\t1750\n")
    section = LocusSection(fasta=str(genome / "plain.fa"), nucleosomes=str(genome / "all.bed"), region="chrI:1001-2000",
                           contacts=str(tmp_path / "c.bedpe"))
    with pytest.raises(BadInputError, match=r"no contact that can be used within chrI:1001-2000 \(line 1: on chr4"):
        load_locus(section)


def test_other_spellings_are_read_everywhere(tmp_path):
    """BED, bigWig and tracks that say IV or 4 of a chromosome chrIV."""
    (tmp_path / "m.bed").write_text("IV 100 200 H2A.Z\n")
    assert within_stretches(tmp_path / "m.bed", "chrIV", np.array([150, 250])).tolist() == [True, False]
    assert len(read_track(tmp_path / "m.bed", "chrIV", 0, 300).features) == 1
    write_signal(tmp_path / "s.bw", "IV", 0, np.arange(300.0))
    np.testing.assert_array_equal(read_signal(tmp_path / "s.bw", "chrIV", 10, 20), np.arange(10.0, 20.0))
    with pytest.raises(BadInputError, match="has no chromosome chr4"):
        read_signal(tmp_path / "s.bw", "chr4", 10, 20)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=8))
def test_canonical_names_are_stable(name):
    assert canonical(canonical(name)) == canonical(name) or canonical(name).startswith("chr")


def test_a_record_must_be_chosen_among_several(genome):
    assert read_fasta(genome / "plain.fa", "chrM")[0].split()[0] == "chrM"
    with pytest.raises(BadInputError, match="several records"):
        read_fasta(genome / "plain.fa")


def test_a_setting_that_is_given_twice_is_refused(tmp_path):
    (tmp_path / "locus.yaml").write_text("seed: 1\nlocus:\n  name: x\n  name: y\n")
    with pytest.raises(BadInputError, match="line 4: name is given a second time"):
        load_config(tmp_path / "locus.yaml")
    (tmp_path / "locus.yaml").write_text("seed: 1\nlocus:\n  name: x\nseed: 2\n")
    with pytest.raises(BadInputError, match="line 4: seed is given a second time"):
        load_config(tmp_path / "locus.yaml")


def test_init_cuts_a_region_and_names_files_from_its_folder(genome):
    outcome = chromabuild("init", "gene", "--fasta", "genome.fa.gz", "--nucleosomes", "all.bed", "--region",
                          "chrI:1001-2000", cwd=genome)
    assert outcome.returncode == 0, outcome.stderr
    written = yaml.safe_load((genome / "gene" / "locus.yaml").read_text())["locus"]
    assert (written["fasta"], written["region"]) == ("../genome.fa.gz", "chrI:1001-2000")
    outcome = chromabuild("validate", "--json", cwd=genome / "gene")
    assert outcome.returncode == 0 and '"base_pairs": 1000' in outcome.stdout, outcome.stderr
    crossing = [shift for shift in json.loads(outcome.stdout)["shifts"] if shift["to"] is None]
    lines = chromabuild("validate", cwd=genome / "gene").stdout
    assert crossing and all(f"left out: {shift['nucleosome']} at {shift['from']:,}: crosses" in lines
                            for shift in crossing)
