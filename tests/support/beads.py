"""Solutes as beads, for tests of the coarse model."""

import numpy as np

from chromabuild.build.beads import Beads
from chromabuild.molecule.solute import Solute
from support.pieces import molecules_of
from support.spread_nucleosomes import one_nucleosome


def dna_of_nucleosome() -> Solute:
    """The DNA of the nucleosome of 177 base pairs."""
    return molecules_of(one_nucleosome(), [0, 1])


def displaced(beads: Beads, solute: Solute, by: float = 0.1) -> np.ndarray:
    """(b, 3) places of the beads, multiples of 0.001 angstrom, moved at random from those of the atoms."""
    moved = beads.place(solute.position) + by * np.random.default_rng(26).standard_normal((beads.n, 3))
    return np.round(moved - moved.mean(axis=0), 3)
