"""Contact energies of maximum entropy: found in rounds on the binned polymer, whose ensemble then has given frequencies
of contacts and is as random as it can be otherwise."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mesoscale.binned_polymer import BinnedPolymer, contact_frequencies
from mesoscale.contact_energies import update

Array = NDArray[np.float64]
ROUNDS = 16
WALKS, SAMPLES = 64, 40  # conformations of a round: 2,560
# Steps become smaller, so that the noise of a round's few conformations averages out (Robbins & Monro 1951).
FIRST_STEP, HALVED_BY = 0.5, 4
MOST_OFTEN = 0.95  # the highest frequency that is asked for


def scaled_targets(
    polymer: BinnedPolymer, pair: NDArray[np.int64], relative: Array, seed: int, samples: int = 4 * SAMPLES
) -> Array:
    """Frequencies (c,) of pairs of beads (c, 2) in proportion to `relative` (c,), which together are as frequent as in
    the polymer without energies: a contact map has no scale of its own."""
    random = np.random.Generator(np.random.Philox(key=[seed, ROUNDS]))
    place = polymer.start(WALKS, random)
    found = contact_frequencies(polymer.sample(place, samples, random)[0])[pair[:, 0], pair[:, 1]]
    return np.minimum(relative * found.sum() / relative.sum(), MOST_OFTEN)


def fit_energies(
    polymer: BinnedPolymer, pair: NDArray[np.int64], target: Array, seed: int, rounds: int = ROUNDS,
    progress: Callable[[float, str], None] | None = None,
) -> Array:
    """Energies (c,) in kBT of the contacts of pairs of beads (c, 2) that give them the frequencies `target` (c,).

    The walks go on from round to round. The same arguments give the same result.
    """
    energy = np.zeros(len(target))
    place = polymer.start(WALKS, np.random.Generator(np.random.Philox(key=[seed, rounds])))
    for k in range(rounds):
        random = np.random.Generator(np.random.Philox(key=[seed, k]))
        samples, _ = polymer.with_energies(pair, energy).sample(place, SAMPLES, random)
        found = contact_frequencies(samples)[pair[:, 0], pair[:, 1]]
        energy = update(energy, found, target, step=FIRST_STEP / (1 + k / HALVED_BY))
        if progress is not None:
            off = float(np.sqrt(((found - target) ** 2 / target).sum() / target.sum()))
            progress((k + 1) / rounds, f"round {k + 1}, frequencies off by {off:.0%}")
    return energy
