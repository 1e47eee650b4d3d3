"""Nucleosomes drawn from a map of many cells: each set stands on the sequence, and sets have the map's fractions."""

from itertools import permutations

import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.genome.locus import Locus
from chromabuild.genome.nucleosomes import drawn_subset


def fractions(dyads, scores, spacing, draws=2000):
    taken = np.zeros(len(dyads))
    for seed in range(draws):
        taken[drawn_subset(np.array(dyads), np.array(scores), spacing, seed)] += 1
    return taken / draws


def by_enumeration(dyads, scores, spacing):
    """Shares when dyads are taken in turn, the next with the probability of its share of the scores left."""
    share = np.zeros(len(dyads))
    for order in permutations(range(len(dyads))):
        left, probability, chosen = sum(scores), 1.0, []
        for k in order:
            probability *= scores[k] / left
            left -= scores[k]
            if all(abs(dyads[k] - dyads[j]) >= spacing for j in chosen):
                chosen.append(k)
        share[chosen] += probability
    return share


def test_alternatives_are_drawn_in_proportion_to_their_scores():
    """A lone dyad always; of two that overlap the shares of their scores; of three in a row what enumeration says.

    2,000 draws have a standard error of 1.1 % at most; four of them.
    """
    dyads, scores = [100, 500, 600, 1000, 1120, 1240], [0.2, 3.0, 1.0, 1.0, 2.0, 4.0]
    found = fractions(dyads, scores, 147)
    assert found[0] == 1
    assert found[1] == pytest.approx(0.75, abs=0.045)
    assert found[1] + found[2] == 1
    assert found == pytest.approx(by_enumeration(dyads, scores, 147), abs=0.045)
    assert found[4] == pytest.approx(2 / 7, abs=0.045)  # overlaps both of its neighbours
    assert np.allclose(found[3], found[5])  # both are free where it is not


def test_sets_are_full_and_without_overlap():
    random = np.random.Generator(np.random.Philox(key=5))
    dyads, scores = np.unique(random.integers(0, 20000, 150)), None
    scores = random.random(len(dyads)) + 0.1
    for seed in range(5):
        drawn = drawn_subset(dyads, scores, 147, seed)
        assert np.diff(dyads[drawn]).min() >= 147
        assert all(np.abs(dyads[drawn] - dyad).min() < 147 for dyad in np.delete(dyads, drawn))
        assert drawn == drawn_subset(dyads, scores, 147, seed)
    # A part of the map draws the same alternatives, away from its borders.
    part = dyads >= 10000
    inner = set(dyads[drawn_subset(dyads, scores, 147, 3)]) & set(range(12000, 19000))
    cut = dyads[part][drawn_subset(dyads[part] - 10000, scores[part], 147, 3, start=10000)]
    assert len(inner - set(cut)) <= 1


def write(folder, dyads):
    (folder / "a.fa").write_text(">chr1\n" + "ACGT" * 300 + "\n")
    (folder / "a.bed").write_text("".join(f"chr1\t{d}\t{d + 1}\tn{d}\t{s}\n" for d, s in dyads))
    return folder / "a.fa", folder / "a.bed"


def test_what_stands_too_close_after_the_draw_is_shifted(tmp_path):
    files = write(tmp_path, [(200, 1.0), (352, 1.0), (600, 5.0), (650, 1e-9)])
    locus = Locus.from_files(*files, overlaps="draw", seed=4)
    assert [n.dyad for n in locus.nucleosomes] == [198, 355, 600]  # 152 apart, 157 needed
    assert [a["reason"] for a in locus.adjustments if a["to"] is None] == ["an alternative was drawn"]


def test_a_map_without_scores_above_zero_is_refused(tmp_path):
    files = write(tmp_path, [(200, 0.0), (500, -1.0)])
    with pytest.raises(BadInputError, match="no nucleosome has a positive score"):
        Locus.from_files(*files, overlaps="draw")
