"""From when a time series is equilibrated, and what its mean is worth: detection after Chodera, J. Chem. Theory Comput.
12, 1799 (2016), by pymbar, and block standard errors."""

import logging
from dataclasses import dataclass
from types import ModuleType

import numpy as np

MOST_SAMPLES = 4000
"""Longer series are thinned to so many values: the work grows with more than their number."""
_STARTS = 100
"""Starts of the equilibrated part that are tried."""
LEAST_SAMPLES = 10.0
"""Fewer independent samples in the equilibrated part do not show that it is at rest."""
_BLOCKS = (5, 20)
"""Fewest and most blocks."""


@dataclass(frozen=True)
class Equilibration:
    """The equilibrated part of a time series."""

    start: float
    """Time from which it is equilibrated, in the units of the times."""
    mean: float
    error: float | None
    """Block standard error of the mean; None where the part is too short for independent blocks."""
    samples: float
    """Independent samples in it."""
    inefficiency: float
    """Statistical inefficiency in the units of the times: an independent sample takes so long."""

    @property
    def is_reached(self) -> bool:
        """Whether there are enough independent samples to say so."""
        return self.samples >= LEAST_SAMPLES


def equilibration(time: np.ndarray, values: np.ndarray) -> Equilibration | None:
    """The part of a series, equally spaced in time, that makes most of independent samples.

    ``time`` and ``values``: (n,). None for fewer than eight values, for values that do not change, or are no numbers.

    >>> rng = np.random.default_rng(1)
    >>> found = equilibration(np.arange(1000.0), np.exp(-np.arange(1000) / 40) * 20 + rng.normal(size=1000))
    >>> 80 < found.start < 300 and abs(found.mean) < 4 * found.error and found.is_reached
    True
    """
    stride = max(1, -(-len(values) // MOST_SAMPLES))
    time, values = np.asarray(time)[::stride], np.asarray(values, float)[::stride]
    n = len(values)
    if n < 8 or not np.isfinite(values).all() or np.ptp(values) == 0:
        return None
    timeseries = _pymbar()
    start, inefficiency, samples = timeseries.detect_equilibration(values, fast=n > 1000, nskip=max(1, n // _STARTS))
    rest = values[start:]
    if np.ptp(rest) == 0:
        return None
    spacing = (time[-1] - time[0]) / (n - 1)
    return Equilibration(float(time[start]), float(rest.mean()), block_error(rest, float(inefficiency)), float(samples),
                         float(inefficiency * spacing))


def block_error(values: np.ndarray, inefficiency: float) -> float | None:
    """Standard error of the mean from means of equal blocks, each at least two statistical inefficiencies long.

    ``values``: (n,), at rest; ``inefficiency`` counts values. None where that leaves fewer than five blocks.
    """
    blocks = min(_BLOCKS[1], int(len(values) / (2 * max(1.0, inefficiency))))
    if blocks < _BLOCKS[0]:
        return None
    length = len(values) // blocks
    means = values[len(values) - blocks * length:].reshape(blocks, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(blocks))


def _pymbar() -> ModuleType:
    """pymbar's time series. It warns at import that other parts of it could be faster."""
    logger = logging.getLogger("pymbar")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        from pymbar import timeseries
    finally:
        logger.setLevel(level)
    return timeseries
