"""Agreement of maps: the stratum-adjusted correlation beside a calculation of its own, and what must not change it."""

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata

from chromabuild.analysis.agreement import compare, held_out_pixels, smoothed, stratum_adjusted
from chromabuild.analysis.contact_statistics import pixels

BINS = 30


def random_map(seed, other=None, share=0.0):
    values = np.random.default_rng(seed).gamma(2.0, 1.0, (BINS, BINS))
    values = np.triu(values) + np.triu(values, 1).T
    return values if other is None else share * other + (1 - share) * values


def by_hand(one, other, chosen):
    """HiCRep's weighted mean over strata, pixel by pixel; equal values are ranked in the order in which they come."""
    above = below = 0.0
    for k in range(1, len(one)):
        pairs = [(one[i, i + k], other[i, i + k]) for i in range(len(one) - k) if chosen[i, i + k]]
        pairs = [pair for pair in pairs if pair != (0.0, 0.0)]
        if len(pairs) < 3:
            continue
        x, y = map(list, zip(*pairs, strict=True))
        n = len(x)
        deviation = [np.std(rankdata(values, method="ordinal") / n, ddof=1) for values in (x, y)]
        above += n * deviation[0] * deviation[1] * pearsonr(x, y)[0]
        below += n * deviation[0] * deviation[1]
    return above / below


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_it_is_what_a_calculation_by_hand_gives(share):
    one = random_map(1)
    other = random_map(2, one, share)
    one[3, 9] = other[3, 9] = 0.0
    assert stratum_adjusted(one, other, pixels(BINS)) == pytest.approx(by_hand(one, other, pixels(BINS)), rel=1e-12)


def test_a_small_map_by_pencil():
    """Counts with ties: four pixels at distance 1 (weight 5/12), three at distance 2 that correlate with -1 (4/12)."""
    one, other = np.zeros((5, 5)), np.zeros((5, 5))
    one[np.arange(4), np.arange(1, 5)], other[np.arange(4), np.arange(1, 5)] = (1, 1, 3, 3), (2, 2, 2, 6)
    one[np.arange(3), np.arange(2, 5)], other[np.arange(3), np.arange(2, 5)] = (1, 2, 3), (3, 2, 1)
    # Distance 1: deviations (-1, -1, 1, 1) and (-1, -1, -1, 3): covariance 4, sizes 2 and sqrt(12): 1 / sqrt(3).
    expected = (5 / np.sqrt(3) - 4) / 9
    assert stratum_adjusted(one, other, np.triu(np.ones((5, 5), bool), 1)) == pytest.approx(expected, rel=1e-12)


def test_equal_maps_agree_and_opposite_ones_do_not():
    one = random_map(1)
    assert stratum_adjusted(one, one, pixels(BINS)) == pytest.approx(1.0)
    assert stratum_adjusted(one, 10 - one, pixels(BINS)) == pytest.approx(-1.0)
    assert stratum_adjusted(one, np.ones_like(one), pixels(BINS)) is None


def test_a_factor_at_each_distance_changes_nothing():
    """Agreement is of what distance does not explain: a decay common to both maps adds nothing to it."""
    one, other = random_map(1), random_map(2, random_map(1), 0.6)
    decay = (1.0 + np.abs(np.subtract.outer(np.arange(BINS), np.arange(BINS)))) ** -1.4
    plain, decayed = (compare(one * factor, other * decay, 2000, (4000, 20000)) for factor in (1.0, decay))
    assert decayed.everywhere.as_dict() == pytest.approx(plain.everywhere.as_dict())
    assert decayed.slope == pytest.approx(plain.measured_slope, abs=0.1) and decayed.slope < -1 < plain.slope


def test_held_out_pixels_are_judged_alone():
    """The simulation knows the pixels that it was given, and nothing of the others."""
    measured = random_map(1)
    held_out = held_out_pixels(BINS, 0.3, 5)
    assert np.array_equal(held_out, held_out.T) and not np.array_equal(held_out, held_out_pixels(BINS, 0.3, 6))
    simulated = np.where(held_out, random_map(2), measured)
    found = compare(simulated, measured, 2000, (4000, 20000), held_out)
    assert found.held_out.pixels == np.count_nonzero(held_out & pixels(BINS))
    # 120 pixels without any relation: a correlation has a standard error of 0.09.
    assert abs(found.held_out.pearson) < 0.35 < 0.5 < found.everywhere.pearson
    assert abs(found.held_out.stratum_adjusted) < 0.35 < 0.5 < found.everywhere.stratum_adjusted


def test_bins_that_were_not_seen_are_left_out():
    one = random_map(1)
    gap = one.copy()
    gap[4] = gap[:, 4] = 0.0
    found = compare(one, gap, 2000, (4000, 20000)).everywhere
    assert found.pixels == pixels(BINS).sum() - 27 and found.pearson == pytest.approx(1.0)


def test_smoothing_is_the_mean_of_a_square():
    one = random_map(3)
    assert smoothed(one)[10, 12] == pytest.approx(one[9:12, 11:14].mean())
    assert smoothed(one)[0, 0] == pytest.approx(one[:2, :2].mean())
