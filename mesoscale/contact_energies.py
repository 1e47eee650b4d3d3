"""Energies of contacts that bring each to the frequency that it shall have."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RAREST = 0.01
"""Frequencies are kept between this and one less it: none was seen often enough to say more."""
STRONGEST = 15.0  # kBT


def update(energies: Array, simulated: Array, target: Array, *, step: float = 1.0) -> Array:
    """New energies (c,) of contacts, kBT, positive where a contact is favoured, from those that gave the frequencies
    ``simulated`` (c,), towards the frequencies ``target`` (c,).

    A contact that two states, open and closed, describe has the logarithm of its odds shifted by its energy: the
    difference of these logarithms is the correction. ``step`` takes a part of it. Energies stay within STRONGEST.
    """
    odds = [np.log(f / (1 - f)) for f in (np.clip(values, RAREST, 1 - RAREST) for values in (simulated, target))]
    return np.clip(np.asarray(energies, float) + step * (odds[1] - odds[0]), -STRONGEST, STRONGEST)
