"""Room for a fibre that is given none: a cube with soft walls, with its DNA as dense as in a metaphase chromosome; for
DNA alone a channel.

Without walls a fibre of many nucleosomes is a coil, and the box around it is nearly all water: 12 nucleosomes have a
million atoms each, 45 many times more, and 1,000 base pairs of DNA alone 46 million.
"""

import numpy as np

from mesoscale.fibre import Fibre

VOLUME_PER_BP = 6.5
"""nm^3, 0.166 g/mL of DNA: somatic metaphase chromosomes of man have 0.141, those of plants 0.182 (Bennett et al.,
J. Cell Sci. 63:173, 1983). With a repeat of 190 base pairs it is 1240 nm^3 a nucleosome."""


CHANNEL = 2.0
"""nm between the walls that keep the axis of DNA alone near a line."""

Edges = tuple[float, float, float]


def packed_walls(fibre: Fibre, rise: float, persistence_length: float) -> Edges | None:
    """Edges (nm) of the walls for a fibre; None for one that is left free.

    Of two nucleosomes and more a cube. DNA between nucleosomes and at the ends must not have to bend for the walls:
    what is straight by nature, a linker of up to one persistence length, fits along the cube's diagonal. DNA alone that
    is longer than this lies in a channel of its own length, unless it has contacts, is closed or is bent by other
    proteins. ``rise`` and ``persistence_length`` are of DNA, nm.
    """
    length = rise * len(fibre.sequence)
    if not fibre.places and not fibre.contacts and not fibre.circular and length > persistence_length:
        return (length, CHANNEL, CHANNEL)
    if len(fibre.dyads) < 2:
        return None
    bare = max(fibre.first_bp[0], len(fibre.sequence) - 1 - fibre.last_bp[-1], *fibre.linkers)
    dense = (VOLUME_PER_BP * len(fibre.sequence)) ** (1 / 3)
    edge = float(max(dense, min(bare * rise, persistence_length) / np.sqrt(3)))
    return (edge, edge, edge)
