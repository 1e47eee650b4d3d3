"""Contacts against distance and maps without it, on maps and chains whose statistics are known."""

import numpy as np
from scipy.stats import chi2

from chromabuild.analysis.contact_statistics import (
    by_distance,
    distance_normalised,
    pixels,
    rebinned,
    seen_bins,
    slope,
)
from mesoscale.observables import CONTACT_DISTANCE, contact_map


def symmetric(bins, seed, rate=5.0):
    counts = np.random.default_rng(seed).poisson(rate, (bins, bins))
    return np.triu(counts) + np.triu(counts, 1).T


def test_pairs_are_kept_when_bins_are_joined():
    """Each pair of fine bins lies in one coarse pixel; those beyond the edges are gone."""
    fine = symmetric(30, 1)
    place = 100 + 10 * (np.arange(30) + 0.5)
    coarse = rebinned(fine, place, np.arange(120, 381, 40))  # fine bins 2 to 27
    expected = np.zeros((6, 6))
    for i in range(2, 26):
        for j in range(i, 26):
            a, b = (i - 2) // 4, (j - 2) // 4
            expected[a, b] += fine[i, j]
            expected[b, a] += fine[i, j] if a != b else 0
    assert np.array_equal(coarse, expected)


def test_a_gaussian_chain_falls_off_with_three_halves():
    """The squared distance of two beads s steps of length b apart, over s b^2 / 3, has the chi-square distribution with
    three degrees of freedom: contacts within b fall off as s^-1.5 (de Gennes 1979), a little less at short distances.
    700 chains leave a standard error of 0.025, estimated from five other seeds."""
    random = np.random.default_rng(3)
    counts = np.zeros((300, 300))
    for _ in range(700):
        steps = random.normal(scale=CONTACT_DISTANCE / np.sqrt(3), size=(300, 3))
        counts += contact_map(np.arange(300), [steps.cumsum(axis=0)], 300, 1)
    exact = chi2.cdf(3 / np.maximum(np.arange(300.0), 1), 3)
    assert abs(slope(exact, 1.0, 100, 299) + 1.5) < 0.01 and abs(slope(exact, 1.0, 8, 40) + 1.45) < 0.001
    assert abs(slope(by_distance(counts), 1.0, 8, 40) + 1.45) < 0.075


def test_slope_is_that_of_a_power_law_and_needs_three_distances():
    law = np.maximum(np.arange(60.0), 0.5) ** -1.2
    assert abs(slope(law, 2000, 4000, 20000) + 1.2) < 1e-12
    assert slope(law, 2000, 4000, 7000) is None
    assert slope(np.zeros(60), 2000, 4000, 20000) is None


def test_the_mean_at_every_distance_is_one_without_bins_that_were_not_seen():
    counts = symmetric(40, 2) * 20.0 / (1 + np.abs(np.subtract.outer(np.arange(40), np.arange(40))))
    counts[7] = counts[:, 7] = 0
    seen = seen_bins(counts)
    assert seen.sum() == 39 and not seen[7]
    ratio = distance_normalised(counts, seen)
    assert np.isnan(ratio[7]).all()
    for k in range(39):
        assert np.isclose(np.nanmean(np.diagonal(ratio, k)), 1.0)
    chosen = pixels(40, seen)
    # Pairs of 39 bins but for neighbours, which 6 and 8 are not.
    assert chosen.sum() == 38 * 37 / 2 + 1 and not chosen[7].any()
