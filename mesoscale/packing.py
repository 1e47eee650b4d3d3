"""Room for a fibre that is given none: a cube with soft walls, with its DNA as dense as in a metaphase chromosome.

Without walls a fibre of many nucleosomes is a coil, and the box around it is nearly all water: 12 nucleosomes have a
million atoms each, 45 many times more.
"""

import numpy as np

from mesoscale.fibre import Fibre

VOLUME_PER_BP = 6.5
"""nm^3, 0.166 g/mL of DNA: somatic metaphase chromosomes of man have 0.141, those of plants 0.182 (Bennett et al.,
J. Cell Sci. 63:173, 1983). With a repeat of 190 base pairs it is 1240 nm^3 a nucleosome."""


def packed_edge(fibre: Fibre, rise: float, persistence_length: float) -> float | None:
    """Edge (nm) of the cube for a fibre; None for one that is left free, of a nucleosome at most.

    DNA between nucleosomes and at the ends must not have to bend for the walls: what is straight by nature, a linker of
    up to one persistence length, fits along the cube's diagonal. ``rise`` and ``persistence_length`` are of DNA, nm.
    """
    if len(fibre.dyads) < 2:
        return None
    bare = max(fibre.first_bp[0], len(fibre.sequence) - 1 - fibre.last_bp[-1], *fibre.linkers)
    dense = (VOLUME_PER_BP * len(fibre.sequence)) ** (1 / 3)
    return float(max(dense, min(bare * rise, persistence_length) / np.sqrt(3)))
