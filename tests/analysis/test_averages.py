"""Means of many series with block errors, against processes of known correlation."""

import numpy as np
import pytest
from pymbar import timeseries

from chromabuild.analysis.averages import averages, first_equilibrated, inefficiencies


def correlated(frames, columns, memory, seed):
    """Series with correlation memory^t and unit variance."""
    rng = np.random.default_rng(seed)
    values = np.empty((frames, columns))
    values[0] = rng.normal(size=columns)
    for k in range(1, frames):
        values[k] = memory * values[k - 1] + np.sqrt(1 - memory**2) * rng.normal(size=columns)
    return values


def test_inefficiency_is_that_of_pymbar_and_of_theory():
    values = correlated(2000, 40, 0.8, 3)
    found = inefficiencies(values)
    judged = [timeseries.statistical_inefficiency(column, fast=False, mintime=1) for column in values.T]
    assert np.allclose(found, judged, rtol=0.02)
    # Geometric correlation: (1 + a) / (1 - a) = 9; its estimate stops early and scatters.
    assert found.mean() == pytest.approx(9.0, rel=0.15)


def test_block_errors_are_the_scatter_of_means():
    """Of 200 series with the same mean, the block errors are what the means scatter by."""
    values = correlated(1000, 200, 0.6, 5)
    found = averages(values.reshape(1000, 20, 10))
    assert found.mean.shape == (20, 10)
    # sqrt((1 + a) / (1 - a) / 1000) = 0.063; the mean of 200 estimates that scatter by a sixth is good to 2 %.
    assert np.sqrt((found.error**2).mean()) == pytest.approx(np.sqrt(4 / 1000), rel=0.1)
    assert found.mean.std() == pytest.approx(np.sqrt(4 / 1000), rel=0.15)  # one part in sqrt(400) and as much again


def test_angles_are_averaged_on_the_circle():
    angle = 180 + np.random.default_rng(2).normal(0, 5, (400, 3)) + [0, 90, 180]
    found = averages((angle + 180) % 360 - 180, period=360.0)
    assert np.abs((found.mean - [180, -90, 0] + 180) % 360 - 180).max() < 1.0
    assert np.allclose(found.deviation, 5, rtol=0.15) and (found.error < 0.5).all()


def test_what_is_no_number_or_does_not_change_has_no_error():
    values = np.ones((100, 3))
    values[:, 1] = np.nan
    values[:, 2] = np.random.default_rng(1).normal(size=100)
    found = averages(values)
    assert np.isnan(found.error[:2]).all() and found.mean[0] == 1 and np.isnan(found.mean[1]) and found.error[2] > 0
    assert np.isnan(averages(values[:4]).error).all()  # too short for blocks


def test_start_is_that_of_the_slowest_series():
    time, rng = np.arange(600.0), np.random.default_rng(4)
    fast, slow = (np.exp(-time / tau) * 30 + rng.normal(size=600) for tau in (5.0, 40.0))
    assert first_equilibrated(time, [fast]) < first_equilibrated(time, [fast, slow]) < 300
    assert first_equilibrated(time, [np.ones(600)]) == 0
