"""From a contact map to contact energies: targets of the map, scaled and fitted on the binned polymer of a fibre."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from chromabuild.genome.circle import separation
from chromabuild.genome.contact_targets import NEAREST, BinnedCounts, regularised_ratios, visibilities
from mesoscale.binned_polymer import BinnedPolymer
from mesoscale.contact_energies import ContactEnergy
from mesoscale.fibre import Fibre
from mesoscale.maximum_entropy import fit_energies, scaled_targets
from mesoscale.model import Chain

Array = NDArray[np.float64]


def polymer_of(chain: Chain, fibre: Fibre, counts: BinnedCounts) -> BinnedPolymer:
    """The polymer of a fibre's chain, with a bead amid each bin."""
    return BinnedPolymer.of(chain, counts.middle - fibre.start - fibre.turn,
                            len(fibre.sequence) if fibre.circular else None)


def fit_map(
    polymer: BinnedPolymer, counts: BinnedCounts, seed: int, known: NDArray[np.bool_] | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> tuple[NDArray[np.int64], Array, Array]:
    """Pairs of bins (c, 2) at least NEAREST apart, their target frequencies and their energies (c,) in kBT.

    Of pixels that are not `known` (n, n) the count is not looked at: their target is that of their neighbours.
    """
    bins = len(counts.count)
    if known is None:
        known = np.ones((bins, bins), bool)
    apart = separation(bins, counts.around)
    pair = np.argwhere(np.triu(apart >= NEAREST))
    _, decay = visibilities(counts.count, known, counts.around)
    relative = (decay[apart] * regularised_ratios(counts.count, known, around=counts.around))[pair[:, 0], pair[:, 1]]
    target = scaled_targets(polymer, pair, relative, seed)
    return pair, target, fit_energies(polymer, pair, target, seed, progress=progress)


def entries_of(
    pair: NDArray[np.int64], target: Array, energy: Array, counts: BinnedCounts, start: int
) -> tuple[ContactEnergy, ...]:
    """The contacts of pairs of bins (c, 2), in base pairs from `start` on."""
    first = (counts.start - start + counts.size * pair).tolist()
    return tuple(ContactEnergy((a, a + counts.size), (b, b + counts.size), t, e)
                 for (a, b), t, e in zip(first, target.tolist(), energy.tolist(), strict=True))
