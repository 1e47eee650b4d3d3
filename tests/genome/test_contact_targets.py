"""Counts of a contact map, the visibilities of its bins, and the table of contact energies."""

import numpy as np
import pytest
from typer.testing import CliRunner

from chromabuild.base.errors import BadInputError
from chromabuild.cli import app
from chromabuild.genome.circle import Circle
from chromabuild.genome.contact_energies import contact_energies_text, read_contact_energies
from chromabuild.genome.contact_targets import read_counts, regularised_ratios, separation, visibilities
from mesoscale.contact_energies import ContactEnergy


def planted(bins=30, seed=1):
    """Visibilities and expected counts that fall off with distance to the power -1.4."""
    random = np.random.Generator(np.random.Philox(key=seed))
    visible = np.exp(0.4 * random.standard_normal(bins))
    visible /= np.exp(np.log(visible).mean())
    return visible, np.outer(visible, visible) * 100.0 * np.maximum(separation(bins), 0.5) ** -1.4


def test_visibilities_of_a_product_come_back_also_where_pixels_are_missing():
    visible, counts = planted()
    random = np.random.Generator(np.random.Philox(key=2))
    left_out = np.triu(random.random(counts.shape) < 0.2, 2)
    known = ~(left_out | left_out.T)
    found, decay = visibilities(np.where(known, counts, 1e6), known)
    assert found == pytest.approx(visible, rel=0.02)  # neighbouring distances share their decay
    assert decay[3] == pytest.approx(100 * 3**-1.4, rel=0.05)


def test_ratios_show_what_was_planted_and_nothing_else():
    visible, counts = planted()
    known = np.ones(counts.shape, bool)
    assert regularised_ratios(counts, known) == pytest.approx(np.ones(counts.shape), abs=0.1)
    counts[4:7, 9:12] *= 3
    counts[9:12, 4:7] *= 3
    known[5, 10] = known[10, 5] = False
    hidden = counts.copy()
    hidden[5, 10] = hidden[10, 5] = 0
    ratio = regularised_ratios(hidden, known)
    assert ratio[5, 10] > 1.8  # said by its neighbours
    assert ratio[20, 25] == pytest.approx(1, abs=0.15)
    assert np.array_equal(ratio, ratio.T)


def bedpe(path, size=1000, bins=12, extra=""):
    lines = [f"chr1\t{i * size}\t{(i + 1) * size}\tchr1\t{j * size}\t{(j + 1) * size}\t.\t{100 // (1 + j - i)}"
             for i in range(bins) for j in range(i, bins)]
    path.write_text("\n".join(lines) + "\n" + extra)
    return path


def test_whole_bins_within_the_region_are_read(tmp_path):
    counts = read_counts(bedpe(tmp_path / "map.bedpe"), "chr1", 1500, 11000)
    assert (counts.start, counts.size, counts.count.shape) == (2000, 1000, (9, 9))
    assert counts.count[0, 1] == counts.count[1, 0] == 50
    assert counts.middle[0] == 2500


@pytest.mark.parametrize(("extra", "place", "words"), [
    ("chr1\t0\t500\tchr1\t1000\t2000\t.\t3\n", ("chr1", 0, 12000), "are not bins of 1000 bp"),
    ("", ("chr1", 0, 5000), "5 whole bins of 1000 bp"), ("", ("chr2", 0, 12000), "holds no contact")])
def test_maps_that_cannot_be_used(tmp_path, extra, place, words):
    with pytest.raises(BadInputError, match=words):
        read_counts(bedpe(tmp_path / "map.bedpe", extra=extra), *place)


def test_the_table_comes_back(tmp_path):
    energies = (ContactEnergy((0, 500), (900, 1400), 0.02, -1.25), ContactEnergy((10, 20), (90, 95), 0.5, 2.0))
    (tmp_path / "table").write_text(contact_energies_text(energies, "chr1", 7000))
    assert read_contact_energies(tmp_path / "table", "chr1", 7000, 1400) == energies


@pytest.mark.parametrize(("line", "words"), [
    ("chr1 0 10 chr1 90 95 a 0.5", "8 columns"), ("chr1 0 10 chr1 90 95 a 1.5 0", "frequency 1.5 is not between"),
    ("chr1 0 10 chr1 90 95 a 0.5 -50", "energy -50 kBT is beyond"), ("chr2 0 10 chr1 90 95 a 0.5 1", "not within the"),
    ("chr1 0 10 chr1 90 950 a 0.5 1", "not within the locus"), ("chr1 0 10 chr1 90 95 a 0.5 x", "not a finite number"),
    ("# nothing", "holds no contact")])
def test_tables_that_cannot_be_used(tmp_path, line, words):
    (tmp_path / "table").write_text(line + "\n")
    with pytest.raises(BadInputError, match=words):
        read_contact_energies(tmp_path / "table", "chr1", 0, 100)


def test_the_command_writes_a_table_that_the_settings_take(tmp_path, monkeypatch):
    monkeypatch.setattr("mesoscale.maximum_entropy.WALKS", 4)
    (tmp_path / "a.fa").write_text(">chr1\n" + "ACGT" * 3000 + "\n")
    (tmp_path / "a.bed").write_text("".join(f"chr1\t{d}\t{d + 1}\n" for d in range(100, 11900, 200)))
    settings = tmp_path / "locus.yaml"
    settings.write_text(f"output: {tmp_path}/out\nlocus: {{fasta: {tmp_path}/a.fa, nucleosomes: {tmp_path}/a.bed}}\n")
    table = tmp_path / "energies.bedpe"
    map_ = str(bedpe(tmp_path / "map.bedpe"))
    done = CliRunner().invoke(app, ["contact-energies", map_, "-o", str(table), "--config", str(settings)])
    assert done.exit_code == 0, done.output
    entries = read_contact_energies(table, "chr1", 0, 12000)
    assert len(entries) == 55  # pairs of 12 bins but neighbours
    assert entries[0].target > entries[9].target > 0  # of the first bin with the third and with the last
    done = CliRunner().invoke(app, ["validate", "--config", str(settings), "--set",
                                    f"scaffold.contact_energies={table}"])  # fmt: skip
    assert done.exit_code == 0, done.output
    table.write_text(table.read_text().replace("chr1\t0\t1000", "chr9\t0\t1000"))
    done = CliRunner().invoke(app, ["validate", "--config", str(settings), "--set",
                                    f"scaffold.contact_energies={table}"])  # fmt: skip
    assert done.exit_code == BadInputError.exit_code


def ring_map(bins, around):
    """Counts of an ideal ring, (s (N - s) / N)^-1.5, seen with visibilities of the bins."""
    apart = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    visible = 1 + 0.5 * np.sin(np.arange(bins))
    return 1e4 * np.outer(visible, visible) * np.maximum(apart * (around - apart) / around, 0.5) ** -1.5


@pytest.mark.parametrize("around", [24.0, 24.4])
def test_an_ideal_ring_has_no_contacts_beyond_its_distances(around):
    """The decay is that of s (N - s) / N, and every ratio 1: of linear DNA those of the ends would be more.
    With a part of a bin at the seam the two ways round to a place differ by that part."""
    counts, known = ring_map(24, around), np.ones((24, 24), bool)
    visible, decay = visibilities(counts, known, around)
    assert visible == pytest.approx(np.exp(-np.log(1 + 0.5 * np.sin(np.arange(24))).mean())
                                    * (1 + 0.5 * np.sin(np.arange(24))), rel=0.1)
    s = np.arange(2.0, 13)
    assert decay[4:13] / decay[4] == pytest.approx((s * (around - s) / around)[2:] ** -1.5
                                                   / (4 * (around - 4) / around) ** -1.5, rel=0.15)
    assert regularised_ratios(counts, known, around=around) == pytest.approx(np.ones((24, 24)), abs=0.15)
    assert regularised_ratios(counts, known)[0, 23] > 1.7


def test_a_map_of_a_circle_may_begin_at_any_bin():
    """Ratios of a noisy map with a planted contact across the seam roll with it."""
    random = np.random.default_rng(3)
    counts = ring_map(24, 24.0)
    counts[1, 20] = counts[20, 1] = 8 * counts[1, 20]
    counts = np.triu(random.poisson(counts)).astype(float)
    counts, known = counts + np.triu(counts, 1).T, np.ones((24, 24), bool)
    one = regularised_ratios(counts, known, around=24.0)
    other = regularised_ratios(np.roll(counts, (7, 7), axis=(0, 1)), known, around=24.0)
    assert other == pytest.approx(np.roll(one, (7, 7), axis=(0, 1)), rel=1e-6)
    assert np.unravel_index(np.argmax(np.triu(one)), one.shape) == (1, 20)


@pytest.mark.parametrize("dyads", [range(100, 11900, 200), ()])
def test_the_command_fits_energies_of_a_circle(tmp_path, monkeypatch, dyads):
    """With nucleosomes and without: all pairs of 12 bins that are two apart either way round, targets of a pair across
    base pair 1 as those of one inside, and a table that the circle takes."""
    monkeypatch.setattr("mesoscale.maximum_entropy.WALKS", 4)
    (tmp_path / "a.fa").write_text(">chr1\n" + "ACGT" * 3000 + "\n")
    (tmp_path / "a.bed").write_text("".join(f"chr1\t{d}\t{d + 1}\n" for d in dyads))
    counts = 300 * ring_map(12, 12.0) / ring_map(12, 12.0).max()
    (tmp_path / "map.bedpe").write_text("".join(
        f"chr1\t{1000 * i}\t{1000 * i + 1000}\tchr1\t{1000 * j}\t{1000 * j + 1000}\t.\t{counts[i, j]}\n"
        for i in range(12) for j in range(i, 12)))
    settings, table = tmp_path / "locus.yaml", tmp_path / "energies.bedpe"
    nucleosomes = f"{tmp_path}/a.bed" if dyads else "null"
    settings.write_text(f"output: {tmp_path}/out\nlocus: {{fasta: {tmp_path}/a.fa, nucleosomes: {nucleosomes}, "
                        "circular: true}\n")
    done = CliRunner().invoke(app, ["contact-energies", str(tmp_path / "map.bedpe"), "-o", str(table), "--config",
                                    str(settings)])
    assert done.exit_code == 0, done.output
    entries = {(one.first[0] // 1000, one.second[0] // 1000): one
               for one in read_contact_energies(table, "chr1", 0, 12000, Circle(0, 12000))}
    assert len(entries) == 12 * 9 // 2 and (0, 11) not in entries
    assert entries[0, 10].target == pytest.approx(entries[4, 6].target, rel=0.5)
    assert entries[0, 10].target > 2 * entries[0, 6].target
    done = CliRunner().invoke(app, ["validate", "--config", str(settings), "--set",
                                    f"scaffold.contact_energies={table}"])  # fmt: skip
    assert done.exit_code == 0, done.output
