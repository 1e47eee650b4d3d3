"""Means of many time series at once, over their equilibrated part, with block errors."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chromabuild.analysis.equilibration import block_error, equilibration

_MOST_LAGS = 2000
_COLUMNS = 2048
"""Series whose correlations are computed together."""


@dataclass(frozen=True)
class Averages:
    """Of series (f, ...), by element; NaN where a series is no number somewhere."""

    mean: np.ndarray
    error: np.ndarray
    """Block standard error of the mean; NaN where a series is too short for independent blocks, or does not change."""
    deviation: np.ndarray
    """Standard deviation over the frames."""


def first_equilibrated(time: np.ndarray, series: Iterable[np.ndarray]) -> int:
    """The frame from which all of several series (f,) are equilibrated; 0 where none changes or all are short."""
    starts = [found.start for values in series if (found := equilibration(time, values)) is not None]
    return int(np.searchsorted(time, max(starts))) if starts else 0


def averages(values: np.ndarray, first: int = 0, period: float | None = None) -> Averages:
    """Means over frames ``first`` and later of (f, ...).

    ``period`` (360 of angles in degree): values are brought next to their circular mean first, and the mean lies in
    -period/2..period/2.
    """
    rest = np.asarray(values, dtype=float)[first:]
    shape, rest = rest.shape[1:], rest.reshape(len(rest), -1)
    if period is not None:
        angle = 2 * np.pi / period * rest
        centre = np.arctan2(np.sin(angle).mean(axis=0), np.cos(angle).mean(axis=0)) * period / (2 * np.pi)
        rest = centre + (rest - centre + period / 2) % period - period / 2
    mean, deviation = rest.mean(axis=0), rest.std(axis=0)
    if period is not None:
        mean = (mean + period / 2) % period - period / 2
    error = np.full(rest.shape[1], np.nan)
    moving = np.flatnonzero(np.isfinite(mean) & (np.ptp(rest, axis=0) > 0)) if len(rest) else np.zeros(0, int)
    for columns in np.array_split(moving, -(-len(moving) // _COLUMNS) or 1):
        for column, slowness in zip(columns, inefficiencies(rest[:, columns]), strict=True):
            found = block_error(rest[:, column], slowness)
            error[column] = np.nan if found is None else found
    return Averages(mean.reshape(shape), error.reshape(shape), deviation.reshape(shape))


def inefficiencies(values: np.ndarray) -> np.ndarray:
    """(k,) statistical inefficiency of series (f, k), in frames: 1 + 2 sum of (1 - t / f) C(t), up to where the
    correlation C first falls to zero (Chodera et al., J. Chem. Theory Comput. 3, 26 (2007))."""
    f = len(values)
    if f < 3 or not values.shape[1]:
        return np.ones(values.shape[1])
    moved = values - values.mean(axis=0)
    size = 1 << (2 * f - 1).bit_length()
    power = np.abs(np.fft.rfft(moved, size, axis=0)) ** 2
    lags = min(f - 1, _MOST_LAGS)
    correlation = np.fft.irfft(power, size, axis=0)[1:lags + 1] / (f - np.arange(1, lags + 1))[:, None]
    correlation /= np.maximum((moved**2).mean(axis=0), 1e-300)
    kept = np.cumprod(correlation > 0, axis=0)
    weight = 1 - np.arange(1, lags + 1)[:, None] / f
    return np.maximum(1.0, 1 + 2 * (kept * correlation * weight).sum(axis=0))
