"""The rule by which an ensemble stops, on maps whose signal and noise are known."""

import numpy as np
import pytest

from chromabuild.analysis.convergence import checks, convergence, is_enough

BINS = 25


def maps(folds, noise, seed=1):
    """A common map, different at every pixel by about a tenth, and as many with noise of their own around it."""
    random = np.random.default_rng(seed)
    common = 1 + 0.1 * random.normal(size=(BINS, BINS))
    found = common + noise * random.normal(size=(folds, BINS, BINS))
    return np.triu(found) + np.transpose(np.triu(found, 1), (0, 2, 1))


@pytest.mark.parametrize(("folds", "noise"), [(8, 0.1), (16, 0.3), (32, 0.5)])
def test_reliability_is_the_share_of_the_signal(folds, noise):
    """Means of n folds have variance s^2 + e^2/n, of which s^2 is common to another n: 276 pixels tell the ratio within
    some 0.07 (standard error of a correlation, and of the variance s^2)."""
    expected = 0.01 / (0.01 + noise**2 / folds)
    found = convergence(maps(folds, noise))
    assert found.reliability == pytest.approx(expected, abs=0.2 * (1 - expected) + 0.05)
    assert found.split_half == pytest.approx(expected / (2 - expected), abs=0.2 * (1 - expected) + 0.06)
    # The spread of the mean map has signal and error in it.
    assert found.relative_error == pytest.approx(np.sqrt(1 - expected), rel=0.15)


def test_noise_alone_never_is_enough():
    """Expected of a split half is zero, with a standard error of 0.06."""
    random = np.random.default_rng(7)
    found = convergence(1 + 0.1 * random.normal(size=(32, BINS, BINS)))
    assert abs(found.split_half) < 0.2 and not is_enough(found, 0.5)


def test_too_little_says_nothing():
    assert convergence(maps(1, 0.1)).reliability is None
    assert convergence(np.ones((5, BINS, BINS))).reliability is None
    assert not is_enough(convergence(maps(1, 0.1)), 0.1)


def test_it_is_asked_at_agreed_numbers():
    assert checks(32) == [8, 12, 16, 20, 24, 28, 32] and checks(6) == [6] and checks(9) == [8, 9]
