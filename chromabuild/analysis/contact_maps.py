"""Contacts along the DNA of a fibre, summed over frames: between base pairs, and between cores and beads of linkers."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.analysis.base_pair_map import base_pair_bin, base_pair_contacts
from chromabuild.analysis.frame_analysis import FrameAnalysis
from chromabuild.analysis.whole_nucleosomes import WholeNucleosomes, core_of
from chromabuild.genome.contact_map import sorted_pixels, upper_pixels, write_pixels
from mesoscale.observables import map_along, map_resolution

if TYPE_CHECKING:
    import MDAnalysis

BEAD = 9
"""Base pairs a bead of a linker: 3 nm, as in the mesoscale model."""
_NM = 0.1


class ContactMaps(FrameAnalysis):
    """Contact maps of one duplex at the scale of base pairs and of beads, as `chromabuild ensemble` makes of folds.

    Results, both summed over frames, ``n_frames`` of them:

    - ``base_pairs``: sparse (b, b), ``base_pair_contacts`` of the duplex;
    - ``beads`` (k, k): pairs of particles within 25 nm, which are the cores, at their dyads, and every ninth base pair
      of what is not wrapped in the first frame; in bins of ``resolution`` base pairs.

    ``start`` is where the locus begins on its chromosome; a circle is counted ``turn`` base pairs after that.

    Raises BadInputError where the universe has no DNA or no nucleosome.
    """

    TOTALS = ("base_pairs", "beads")

    def __init__(self, universe: "MDAnalysis.Universe", whole: WholeNucleosomes | None = None, duplex: int = 0,
                 start: int = 0, turn: int = 0, verbose: bool = False) -> None:
        super().__init__(universe, verbose)
        self.whole = whole or WholeNucleosomes(universe)
        self._pairs = self.whole.nucleotides.duplexes[duplex]
        self._cores = [one for one in self.whole.nucleosomes if one.duplex == duplex]
        self._length, self._start, self._turn = len(self._pairs.first), start, turn
        self._position = start + (np.arange(self._length) + turn) % self._length
        is_free = np.ones(self._length, dtype=bool)
        for one in self._cores:
            site = one.sites(self.whole.nucleotides)
            is_free[site[site >= 0]] = False
        self._beads = np.flatnonzero(is_free)[BEAD // 2::BEAD]
        """The middle one of every ``BEAD`` base pairs in a row that are in no core."""
        self._place = np.array([*(one.dyad for one in self._cores), *self._beads])
        self.resolution = map_resolution(self._length)

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What one frame adds to the sums, from all atoms (n, 3) and the box of the universe."""
        dna = self.whole.nucleotides.positions(position, box)
        chains = self.whole.chains(position, dna, box)
        bases, _ = self.whole.nucleotides.base_frames(dna)
        origin = _NM * 0.5 * (bases[self._pairs.first] + bases[self._pairs.second])
        cores = [_NM * core_of(one.octamer, chains).origin for one in self._cores]
        particles = np.concatenate([np.reshape(cores, (-1, 3)), origin[self._beads]])
        return {"base_pairs": base_pair_contacts(origin, self._position),
                "beads": map_along(self._length, self._start, self._turn, self._place, [particles])[0]}

    def write(self, folder: Path, chromosome: str) -> list[str]:
        """Write means of a frame as .cool files, and return their names; ``run`` before."""
        found, names = self.results, ["fibre_map_base_pairs.cool", "fibre_map_beads.cool"]
        write_pixels(sorted_pixels(found.base_pairs / self.n_frames), found.base_pairs.shape[0],
                     base_pair_bin(self._length), chromosome, self._start, folder / names[0])
        write_pixels(upper_pixels(found.beads / self.n_frames), len(found.beads), self.resolution, chromosome,
                     self._start, folder / names[1])
        return names
