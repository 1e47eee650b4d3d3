"""DNA beside ions and waters at given places."""

import MDAnalysis
import numpy as np

from chromabuild.dna.steps import rebuild
from support.universes import built_dna, universe_of


def solvated(ions, waters, frames, box):
    """DNA of 12 base pairs beside ions (names) and waters; ``frames`` of their places."""
    steps = np.tile([0.0, 0.0, 3.4, 0.0, 0.0, 36.0], (11, 1))
    dna = universe_of(built_dna("GATTACAGCCTG", *rebuild(steps)))
    n = len(ions) + waters
    extra = MDAnalysis.Universe.empty(n, n, 1, atom_resindex=np.arange(n), residue_segindex=np.zeros(n, int),
                                      trajectory=True)
    extra.add_TopologyAttr("names", [*ions, *["O"] * waters])
    extra.add_TopologyAttr("resnames", [*ions, *["HOH"] * waters])
    extra.add_TopologyAttr("resids", np.arange(1, n + 1))
    extra.add_TopologyAttr("segids", ["ION"])
    both = MDAnalysis.Merge(dna.atoms, extra.atoms)
    places = [np.concatenate([dna.atoms.positions, frame]) for frame in frames]
    both.load_new(np.array(places, np.float32), dimensions=np.tile(np.float32(box), (len(frames), 1)), dt=2.0)
    return both, dna
