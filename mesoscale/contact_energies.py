"""Energies of contacts: wells that hold two places of a fibre together as often as they were seen together.

A restraint keeps a contact in every conformation. A well of a few kBT keeps it in a share of them, so that an ensemble
of folds can have each contact at the frequency of the data. The energies that do this while they leave everything else
as random as the polymer is are those of maximum entropy (Jaynes, Phys. Rev. 106:620, 1957; for chromosomes Di Pierro,
Zhang, Lieberman Aiden, Wolynes & Onuchic, PNAS 113:12168, 2016): the energy of a conformation has a term e f(r) for
each contact, of which f is 1 where its partners are together and 0 where they are apart, and e is corrected in rounds
until the mean of f is the frequency that was seen.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# nm: a contact is whole up to the first, which is that of restraints, and gone from the second on. Halfway, at 30 nm,
# two stretches of 2 kb interpenetrate: their own radius of gyration is 20 nm.
FLAT, REACH = 12.0, 48.0
RAREST = 1e-4  # targets nearer to 0 or 1 count as this near: no finite energy meets 0 or 1
LARGEST_CHANGE = 2.0  # kBT in one round


@dataclass(frozen=True)
class ContactEnergy:
    """Two stretches of the fibre, first and end base pair (half open), the frequency of their contact, and its energy
    in kBT: negative where it attracts."""

    first: tuple[int, int]
    second: tuple[int, int]
    target: float
    energy: float


@dataclass(frozen=True, eq=False)
class Wells:
    """Contact energies between particles: pair (w, 2), energy (w,) in kBT, flat part and reach in nm."""

    pair: NDArray[np.int32]
    energy: Array
    flat: float = FLAT
    reach: float = REACH


def closeness(distance: Array, flat: float = FLAT, reach: float = REACH) -> Array:
    """The contact f of partners at distances (...) in nm: 1 up to `flat`, 0 from `reach` on, 1 - 3 t^2 + 2 t^3 between.
    """
    t = np.clip((np.asarray(distance) - flat) / (reach - flat), 0.0, 1.0)
    return 1 - t * t * (3 - 2 * t)


def update(energies: Array, simulated: Array, target: Array, *, step: float = 1.0) -> Array:
    """Energies (c,) in kBT for the next round, from frequencies (c,) of contacts that were simulated with `energies`
    and those that are wanted, 0 to 1.

    The frequency p of a contact changes with its energy e by dp/de = -p (1 - p), where it is made or not. With `step` 1
    this is Newton's step toward the target, from the variance that it has there; as the mean of the change is right
    however few conformations were sampled, smaller steps in many rounds average their noise out. No energy changes by
    more than LARGEST_CHANGE. Raises ValueError for frequencies beyond 0 to 1 and arrays of different shapes.
    """
    energies, simulated, target = (np.asarray(values, float) for values in (energies, simulated, target))
    if not energies.shape == simulated.shape == target.shape:
        raise ValueError(f"{energies.shape} energies cannot be corrected by {simulated.shape} simulated and "
                         f"{target.shape} wanted frequencies")
    for values in (simulated, target):
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            raise ValueError("frequencies of contacts lie between 0 and 1")
    bounded = np.clip(target, RAREST, 1 - RAREST)
    change = (simulated - bounded) / (bounded * (1 - bounded))
    return energies + np.clip(step * change, -LARGEST_CHANGE, LARGEST_CHANGE)


def nearest_particle(bp: Array, stretch: tuple[int, int], circle: int | None = None) -> int:
    """The particle nearest to the middle of a stretch, first and end base pair (half open).

    `bp` (n,) is the base pair of every particle, of a circle of `circle` base pairs or of a linear fibre."""
    away = np.abs(bp - (stretch[0] + stretch[1] - 1) / 2)
    return int(np.argmin(away if circle is None else np.minimum(away % circle, -away % circle)))


def wells_of(energies: tuple[ContactEnergy, ...], bp: Array, circle: int | None = None) -> Wells | None:
    """Wells between the particles nearest to the middles of the stretches, or None when there is nothing to hold;
    `bp` and `circle` as of `nearest_particle`."""
    found = {}
    for contact in energies:
        pair = tuple(sorted(nearest_particle(bp, stretch, circle) for stretch in (contact.first, contact.second)))
        if pair[0] != pair[1]:
            found[pair] = found.get(pair, 0.0) + contact.energy
    if not found:
        return None
    return Wells(np.array(list(found), np.int32), np.array(list(found.values())))
