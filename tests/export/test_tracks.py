"""Tracks of genome browsers: as pyBigWig reads them, and against counting by hand."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from support.judges import PYTHON, needs_judges

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.export.region import base_pairs_of_region
from chromabuild.export.tracks import CROWDING_DISTANCE, CROWDING_RADIUS, crowding, nucleosome_lines, write_tracks
from chromabuild.genome.bigwig import read_signal
from chromabuild.genome.bigwig_writer import write_signal
from chromabuild.genome.locus import Locus
from chromabuild.pipeline.export import export_tracks
from mesoscale.circle import ring
from mesoscale.model import Parameters, build_chain
from mesoscale.scaffold import build_scaffold

READ = """
import json, sys, pyBigWig
file = pyBigWig.open(sys.argv[1])
start, end = int(sys.argv[3]), int(sys.argv[4])
print(json.dumps([file.chroms(), file.header(), file.values(sys.argv[2], start, end),
                  file.stats(sys.argv[2], start, end, type="mean")]))
"""


@needs_judges
@pytest.mark.parametrize("n", [1, 4096, 4097, 20_000])
def test_pybigwig_reads_a_signal(tmp_path, n):
    values = np.random.Generator(np.random.Philox(key=n)).normal(0, 3, n).astype(np.float32)
    write_signal(tmp_path / "x.bw", "chrIV", 1000, values)
    done = subprocess.run([PYTHON, "-c", READ, tmp_path / "x.bw", "chrIV", "1000", str(1000 + n)], check=True,
                          capture_output=True, text=True)
    names, header, found, (mean,) = json.loads(done.stdout)
    assert names == {"chrIV": 1000 + n} and header["nBasesCovered"] == n
    assert found == values.tolist() and mean == pytest.approx(values.mean(dtype=float), abs=1e-6)


def test_what_is_written_is_read(tmp_path):
    """By the reader of marks, also beyond the ends."""
    values = np.arange(10_000, dtype=np.float32)
    write_signal(tmp_path / "x.bw", "chrIV", 50, values)
    assert read_signal(tmp_path / "x.bw", "chrIV", 4000, 9000).tolist() == values[3950:8950].tolist()
    found = read_signal(tmp_path / "x.bw", "chrIV", 0, 60)
    assert np.isnan(found[:50]).all() and found[50:].tolist() == values[:10].tolist()


def test_tracks_of_a_scaffold(scaffold, tmp_path):
    bed, wrapped, crowded = write_tracks(scaffold, tmp_path / "tracks")
    rows = [line.split("\t") for line in bed.read_text().splitlines() if not line.startswith("track")]
    assert [int(row[2]) - int(row[1]) for row in rows] == [147, 147] and {row[0] for row in rows} == {"chrIV"}
    assert [int(row[6]) for row in rows] == scaffold.position[scaffold.dyad].tolist()
    start = int(scaffold.position[0])
    found = read_signal(wrapped, "chrIV", start, start + len(scaffold.base))
    assert found.tolist() == (scaffold.nucleosome >= 0).astype(float).tolist()
    for row in rows:
        assert found[int(row[1]) - start:int(row[2]) - start].all()
    assert read_signal(crowded, "chrIV", start, start + len(scaffold.base)).max() == 0  # shorter than 1,000 base pairs


def test_tracks_of_a_circle_are_in_the_numbering_of_the_input(scaffold, tmp_path):
    """A nucleosome across base pair 1 has two lines, and one dyad."""
    n, first = len(scaffold.base), int(scaffold.first_bp[0])
    start = int(scaffold.position[0])
    turn = n - first - 30  # its 31st base pair is the first of the input
    circle = replace(scaffold, circular=True, position=start + (np.arange(n) + turn) % n)
    bed, wrapped, _ = write_tracks(circle, tmp_path / "tracks")
    rows = [line.split("\t") for line in bed.read_text().splitlines() if not line.startswith("track")]
    across = [row for row in rows if row[3] in ("1.part2", "1.part1")]
    assert [row[3] for row in across] == ["1.part2", "1.part1"] and max(int(row[2]) for row in rows) <= start + n
    assert [(int(row[1]) - start, int(row[2]) - start) for row in across] == [(0, 117), (n - 30, n)]
    assert [int(row[7]) - int(row[6]) for row in across] == [1, 0] and len(rows) == 3
    assert int(across[0][6]) == circle.position[circle.dyad[0]]
    found = read_signal(wrapped, "chrIV", start, start + n)
    assert (found[circle.position - start] == (circle.nucleosome >= 0)).all()
    assert base_pairs_of_region(f"chrIV:{start + 1}-{start + n}", circle) == (first + 30, first + 29)


@pytest.mark.parametrize("by", [0, 60, 110, 199])
def test_tracks_of_a_circle_are_read_back_as_the_same_circle(tmp_path, by):
    """Numbered so that no nucleosome, or one of them, lies across base pair 1: two records are read as one."""
    text = "".join(np.random.default_rng(7).choice(list("ACGT"), 500))
    (tmp_path / "c.fa").write_text(f">c\n{text[by:]}{text[:by]}\n")
    dyads = sorted((dyad - by) % 500 for dyad in (120, 340))
    (tmp_path / "n.bed").write_text("".join(f"c\t{dyad}\t{dyad + 1}\n" for dyad in dyads))
    locus = Locus.from_files(tmp_path / "c.fa", tmp_path / "n.bed", circular=True)
    chain = build_chain(locus.fibre(), Parameters(core_charges="formal"))
    scaffold = build_scaffold(locus.fibre(), chain, *ring(chain), Parameters())
    written = tmp_path / "tracks.bed"
    written.write_text(nucleosome_lines(scaffold))
    assert written.read_text().count(".part") == 2 * any(dyad < 73 or dyad >= 500 - 73 for dyad in dyads)
    again = Locus.from_files(tmp_path / "c.fa", written, circular=True)
    assert [(one.dyad, one.before, one.after) for one in again.nucleosomes] == [
        (one.dyad, one.before, one.after) for one in locus.nucleosomes]
    assert again.sequence == locus.sequence and not again.records_used


def test_a_part_without_the_other_is_refused(tmp_path):
    (tmp_path / "c.fa").write_text(">c\n" + "ACGTT" * 100 + "\n")
    rows = ["c\t0\t117\t7.part2\n", "c\t470\t500\t7.part1\n", "c\t200\t347\t8\n"]
    bed = tmp_path / "n.bed"
    for lines, keys, said in ((rows[1:], {"circular": True}, "line 1: 7.part1 needs 7.part2, and 7.part1 must end at"),
                              ([rows[0].replace("0", "5", 1), *rows[1:]], {"circular": True}, "7.part2 begin at 0"),
                              (rows, {}, "line 1: 7.part2 is a part of what lies across base pair 1 of a circle")):
        bed.write_text("".join(lines))
        with pytest.raises(BadInputError, match=said):
            Locus.from_files(tmp_path / "c.fa", bed, **keys)


def test_crowding_of_a_circle_goes_the_shorter_way_round():
    """Turning the circle turns the counts with it; on a flat ring of 6,000 base pairs nothing but neighbours is near,
    on a folded one what lies opposite is."""
    angle = 2 * np.pi * np.arange(3000) / 3000
    flat = 6000 * 3.4 / (2 * np.pi) * np.array([np.cos(angle), np.sin(angle), 0 * angle]).T
    assert not crowding(flat, circular=True).any()
    folded = flat * [1.0, 0.01, 1.0]
    counts = crowding(folded, circular=True)
    assert counts.any() and (crowding(np.roll(folded, 700, axis=0), circular=True) == np.roll(counts, 700)).all()
    assert not crowding(flat[:1500], circular=True).any()


def test_crowding_counts_pairs():
    """A random walk that comes back on itself, by brute force."""
    step = np.random.Generator(np.random.Philox(key=3)).normal(0, 20, (2500, 3))
    origin = np.cumsum(step, axis=0) % 600
    apart = np.linalg.norm(origin[:, None] - origin, axis=2)
    far = np.abs(np.subtract.outer(np.arange(2500), np.arange(2500))) >= CROWDING_DISTANCE
    expected = np.sum((apart <= CROWDING_RADIUS) & far, axis=1)
    assert expected.max() > 0 and crowding(origin).tolist() == expected.tolist()


def test_without_a_scaffold_nothing_is_written(tmp_path):
    with pytest.raises(BadInputError, match="holds no scaffold: run `chromabuild scaffold`"):
        export_tracks(Settings(output=str(tmp_path / "results")))
    assert not list(tmp_path.iterdir())
