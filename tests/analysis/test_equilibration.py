"""Equilibration and errors of processes whose correlation is known."""

import time

import numpy as np
import pytest

from chromabuild.analysis.equilibration import MOST_SAMPLES, block_error, equilibration

PHI = 0.9
INEFFICIENCY = (1 + PHI) / (1 - PHI)
"""Of x' = PHI x + noise: 1 + 2 sum of PHI^k."""


def autoregressive(n: int, seed: int) -> np.ndarray:
    """Unit variance, mean zero, stationary from the first value on."""
    noise = np.random.default_rng(seed).normal(size=n) * np.sqrt(1 - PHI**2)
    values = np.empty(n)
    value = np.random.default_rng(seed + 1000).normal()
    for k in range(n):
        value = PHI * value + noise[k]
        values[k] = value
    return values


def test_start_inefficiency_and_error_of_an_autoregressive_process():
    """A decay of 40 values before 3,600 at rest. The scatter of the means of many processes is the true error."""
    found = []
    for seed in range(8):
        values = autoregressive(4000, seed) + 30 * np.exp(-np.arange(4000) / 40)
        found.append(equilibration(10 + 0.5 * np.arange(4000), values))
    starts = [one.start for one in found]
    assert min(starts) > 10 + 0.5 * 80 and max(starts) < 10 + 0.5 * 1600
    # The error of one estimate is some 20 %; a few are outliers.
    assert np.median([one.inefficiency / 0.5 for one in found]) == pytest.approx(INEFFICIENCY, rel=0.2)
    true_error = np.sqrt(INEFFICIENCY / 3600)
    assert np.median([one.error for one in found]) == pytest.approx(true_error, rel=0.25)
    assert sum(abs(one.mean) < 2 * one.error for one in found) >= 6
    assert all(one.is_reached and 60 < one.samples < 500 for one in found)


def test_what_only_drifts_is_not_equilibrated():
    found = equilibration(np.arange(300.0), np.arange(300) + np.random.default_rng(1).normal(size=300))
    assert found is not None and not found.is_reached and found.error is None


def test_series_that_say_nothing():
    assert equilibration(np.arange(5.0), np.arange(5.0)) is None
    assert equilibration(np.arange(50.0), np.ones(50)) is None
    assert equilibration(np.arange(50.0), np.r_[np.random.default_rng(1).normal(size=49), np.nan]) is None
    settled = equilibration(np.arange(50.0), np.r_[np.arange(10.0), np.ones(40)])
    assert settled is None or np.isfinite(settled.mean)


def test_long_series_are_thinned_and_quick():
    values = np.repeat(autoregressive(20000, 3), 5)
    begun = time.process_time()
    found = equilibration(np.arange(100000.0), values)
    assert time.process_time() - begun < 10
    assert found.inefficiency == pytest.approx(5 * INEFFICIENCY, rel=0.5) and MOST_SAMPLES < len(values)


def test_blocks_of_independent_values():
    values = np.random.default_rng(7).normal(size=100000)
    assert block_error(values, 1.0) == pytest.approx(1 / np.sqrt(100000), rel=0.5)
    assert block_error(values[:9], 1.0) is None and block_error(values[:100], 20.0) is None
