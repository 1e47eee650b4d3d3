"""Which particles a contact ties together, and how well contacts are kept."""

import numpy as np
from numpy.typing import NDArray

from mesoscale.fibre import Contact

# Partners closer than this along the chain are near each other anyway.
SMALLEST_GAP = 3


def contact_partners(contacts: tuple[Contact, ...], bp: NDArray[np.float64]) -> list[tuple[Contact, int, int]]:
    """For each contact that can restrain something, the particles nearest to the middles of its two stretches.

    `bp` (n,) is the base pair of every particle. Contacts whose partners are the same or nearly neighbours along the
    chain are left out.
    """
    found = []
    for contact in contacts:
        first, second = (int(np.argmin(np.abs(bp - (a + b - 1) / 2))) for a, b in (contact.first, contact.second))
        if abs(first - second) >= SMALLEST_GAP:
            found.append((contact, first, second))
    return found


def contact_report(
    contacts: tuple[Contact, ...], bp: NDArray[np.float64], position: NDArray[np.float64], distance: float
) -> list[dict]:
    """One entry a contact: its stretches, the final distance of its partners (nm) and whether it is kept.

    A contact that cannot restrain anything has distance None. A contact counts as kept within 1.5 times the distance
    at which its restraint begins.
    """
    used = {id(contact): (a, b) for contact, a, b in contact_partners(contacts, bp)}
    report = []
    for contact in contacts:
        entry = {"first": list(contact.first), "second": list(contact.second), "weight": contact.weight}
        pair = used.get(id(contact))
        d = None if pair is None else float(np.linalg.norm(position[pair[0]] - position[pair[1]]))
        report.append({**entry, "distance": d, "kept": None if d is None else d <= 1.5 * distance})
    return report
