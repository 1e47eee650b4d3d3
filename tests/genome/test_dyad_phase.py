"""The phase of WW dinucleotides, on 468 chemically mapped dyads of yeast and on sequences made for it."""

from pathlib import Path

import numpy as np
import pytest

from chromabuild.base.settings import LocusSection
from chromabuild.genome.dyad_phase import PERIOD, dyad_phase
from chromabuild.genome.fasta import read_fasta
from chromabuild.genome.locus import load_locus
from chromabuild.genome.nucleosomes import read_nucleosomes
from chromabuild.pipeline.workflow import workflow_folder

LOCI = workflow_folder() / "config" / "loci"
FASTA, DYADS = LOCI / "chrXIII_36501-119500.fa.gz", LOCI / "chrXIII_36501-119500.dyads.bed"


@pytest.fixture(scope="module")
def yeast():
    _, sequence = read_fasta(FASTA)
    return sequence, np.array([n.dyad for n in read_nucleosomes(DYADS, "chrXIII", 36500, len(sequence))])


def test_the_yeast_map_is_in_phase(yeast):
    """The map and sacCer3 agree on this part of chrXIII to the base pair (error of the phase: 0.13 bp)."""
    phase = dyad_phase(*yeast)
    assert phase.dyads > 460 and phase.strength > 10 and abs(phase.shift) < 3 * phase.error
    assert phase.warning is None


@pytest.mark.parametrize("shift", [-3, -2, -1, 1, 2, 3])
def test_shifts_are_told_to_the_base_pair(yeast, shift):
    sequence, dyads = yeast
    phase = dyad_phase(sequence, dyads + shift)
    assert phase.shift == pytest.approx(shift, abs=3 * phase.error)
    side = "right" if shift > 0 else "left"
    assert f"{abs(phase.shift):.1f} bp too far to the {side}" in phase.warning


@pytest.mark.parametrize("away", [101, 1003])
def test_dyads_of_another_place_have_no_signal(yeast, away):
    sequence, dyads = yeast
    assert "none of the periodic WW" in dyad_phase(sequence, dyads + away).warning


def test_few_dyads_tell_nothing(yeast):
    sequence, dyads = yeast
    assert dyad_phase(sequence, dyads[:49] + 3).warning is None
    assert dyad_phase(sequence, []).warning is None


def test_a_signal_that_is_made_has_its_phase():
    """Weak bases where cos(2 pi x / period) is least, x from a dyad that lies 2 bp to the left of what is said."""
    rng = np.random.default_rng(1)
    pieces, dyads = [], []
    for k in range(200):
        x = np.arange(-90, 90)
        weak = rng.random(180) < 0.5 - 0.4 * np.cos(2 * np.pi * x / PERIOD)
        pieces.append("".join(rng.choice(list("AT")) if w else rng.choice(list("CG")) for w in weak))
        dyads.append(180 * k + 90)
    sequence = "".join(pieces)
    assert dyad_phase(sequence, dyads).shift == pytest.approx(0, abs=0.1)
    assert dyad_phase(sequence, np.array(dyads) + 2).shift == pytest.approx(2, abs=0.1)


def test_repeats_count_once(yeast):
    sequence, dyads = yeast
    one = sequence[dyads[100] - 90:dyads[100] + 90]
    assert dyad_phase(300 * one, [180 * k + 93 for k in range(300)]).warning is None


def test_the_locus_warns(yeast, tmp_path: Path):
    shifted = tmp_path / "shifted.bed"
    lines = [line.split("\t") for line in DYADS.read_text().splitlines() if not line.startswith("#")]
    shifted.write_text("".join(f"{line[0]}\t{int(line[1]) + 2}\t{int(line[2]) + 2}\n" for line in lines))
    locus = load_locus(LocusSection(fasta=str(FASTA), nucleosomes=str(shifted)))
    assert "too far to the right" in locus.summary()["warning"] and str(shifted) in locus.warnings[0]
    assert "warning" not in load_locus(LocusSection(fasta=str(FASTA), nucleosomes=str(DYADS))).summary()
