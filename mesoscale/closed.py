"""The scaffold of a circle of DNA without nucleosomes, on a path that is given: nothing is sampled."""

import numpy as np
from numpy.typing import NDArray

from mesoscale.fibre import Fibre
from mesoscale.observables import fibre_observables, map_of
from mesoscale.scaffold import NM, Scaffold, box_axes

BETWEEN_POINTS = 9  # base pairs between the points that count for sizes and contacts, about as between beads of linkers


def closed_scaffold(fibre: Fibre, origin: NDArray[np.float64], frame: NDArray[np.float64]) -> Scaffold:
    """The fibre's base pairs at ``origin`` (n, 3; angstrom) with ``frame`` (n, 3, 3; columns x, y, z).

    The circle is turned so that the box around it is small. Raises ValueError for a fibre with nucleosomes or other
    proteins.
    """
    if fibre.places:
        raise ValueError("a circle with nucleosomes or other proteins is folded, not laid on a path")
    n = len(fibre.sequence)
    turn, centre = box_axes(origin), origin.mean(axis=0)
    places = np.arange(0, n, BETWEEN_POINTS)
    points = (origin[places] - centre) / NM
    counts, resolution = map_of(fibre, places, [points])
    none = np.zeros(0, np.int32)
    return Scaffold(
        name=fibre.name,
        chromosome=str(fibre.chromosome),  # one that knows its other names, as text
        origin=(origin - centre) @ turn,
        frame=turn.T @ frame,
        base=np.frombuffer(fibre.sequence.encode("ascii"), np.uint8).copy(),
        nucleosome=np.full(n, -1, np.int32),
        position=fibre.position,
        core_origin=np.zeros((0, 3)),
        core_frame=np.zeros((0, 3, 3)),
        dyad=none,
        first_bp=none,
        last_bp=none,
        observables=fibre_observables(points, np.zeros((0, 3))),
        contact_map=counts,
        contact_resolution=resolution,
        circular=True,
    )
