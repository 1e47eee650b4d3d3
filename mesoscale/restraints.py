"""Which particles a contact ties together, and how well contacts are kept."""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from mesoscale.contact_energies import nearest_particle
from mesoscale.fibre import Contact

Array = NDArray[np.float64]


class ContactEntry(TypedDict):
    """What became of a contact. One that cannot restrain anything has no distance."""

    first: list[int]
    second: list[int]
    """First and end base pair of its stretches; one across the seam of a circle ends beyond its last base pair."""
    weight: float
    distance: float | None
    """Of its partners in the end, nm."""
    kept: bool | None
    """Whether that is within KEPT times the distance at which the restraint begins."""
    stiffness: float | None
    """Of the restraint, kBT/nm^2."""


# Partners closer than this along the chain are near each other anyway.
SMALLEST_GAP = 3
KEPT = 1.5  # times the distance at which its restraint begins: a contact within it counts as kept
# A restraint is made harder while the fibre is equilibrated, until its contact is well within what counts as kept.
WIDEST = 1.25  # times that distance
HARDER = 1.3  # at each look
HARDEST = 10.0  # kBT/nm^2


def contact_partners(contacts: tuple[Contact, ...], bp: Array, circle: int | None = None
                     ) -> list[tuple[Contact, int, int]]:
    """For each contact that can restrain something, the particles nearest to the middles of its two stretches.

    `bp` (n,) is the base pair of every particle. Contacts whose partners are the same or nearly neighbours along the
    chain, of a circle of `circle` base pairs the shorter way round, are left out.
    """
    found = []
    for contact in contacts:
        first, second = (nearest_particle(bp, stretch, circle) for stretch in (contact.first, contact.second))
        gap = abs(first - second)
        if min(gap, gap if circle is None else len(bp) - gap) >= SMALLEST_GAP:
            found.append((contact, first, second))
    return found


def shared_out(contacts: tuple[Contact, ...], replica: int, replicas: int) -> tuple[Contact, ...]:
    """The contacts of one of several replicas (1 to `replicas`) that share them by frequency.

    The strongest contact goes to all of N replicas, the weakest to one, others to 1 + (N - 1) (A - Amin)/(Amax - Amin),
    rounded: the rule published with Hi-BDiSCO. Which ones is drawn for each contact alone, the same for all replicas.
    """
    if replicas == 1 or not contacts:
        return contacts
    weights = np.array([contact.weight for contact in contacts])
    spread = np.ptp(weights)
    share = (weights - weights.min()) / spread if spread > 0 else np.ones(len(weights))
    count = np.round(1 + (replicas - 1) * share).astype(int)
    drawn = (np.random.Generator(np.random.Philox(key=k)).permutation(replicas) for k in range(len(contacts)))
    return tuple(
        contact for contact, n, order in zip(contacts, count, drawn, strict=True) if replica - 1 in order[:n]
    )


def contact_distances(contact: NDArray[np.int32], position: Array) -> Array:
    """Distances (c,) in nm of the partners (c, 2) among positions (n, 3)."""
    return np.linalg.norm(position[contact[:, 0]] - position[contact[:, 1]], axis=1)


def stiffened(contact_k: Array, distance: Array, rest: Array) -> Array:
    """Constants (c,) of the restraints for the next stretch of equilibration: those of contacts that stand wide open
    are raised, to HARDEST at most.

    A strength in proportion to the evidence leaves weak contacts to whatever pulls on them; of one conformation that
    shall keep all of them each needs as much as its pull demands. Strengths must stand still while anything is counted.
    """
    raised = np.maximum(contact_k, np.minimum(HARDER * contact_k, HARDEST))
    return np.where(distance > WIDEST * rest, raised, contact_k)


def contact_report(
    contacts: tuple[Contact, ...], bp: Array, position: Array, distance: float, contact_k: Array,
    circle: int | None = None,
) -> list[ContactEntry]:
    """One entry a contact, of `contact_k` (c,), constants of those that restrain something (kBT/nm^2), and `distance`,
    at which a restraint begins (nm); `bp` and `circle` as of `contact_partners`.
    """
    used = {id(one[0]): (*one[1:], k) for one, k in zip(contact_partners(contacts, bp, circle), contact_k, strict=True)}
    report: list[ContactEntry] = []
    for contact in contacts:
        d = k = None
        if id(contact) in used:
            a, b, k = used[id(contact)]
            d, k = float(np.linalg.norm(position[a] - position[b])), float(k)
        report.append({"first": list(contact.first), "second": list(contact.second), "weight": contact.weight,
                       "distance": d, "kept": None if d is None else d <= KEPT * distance, "stiffness": k})
    return report
