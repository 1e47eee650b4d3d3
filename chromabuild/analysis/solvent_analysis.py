"""Ions and water around DNA along a trajectory, as an analysis of MDAnalysis."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chromabuild.analysis.frame_analysis import FrameAnalysis
from chromabuild.analysis.nucleotides import Nucleotides, find_nucleotides
from chromabuild.analysis.solvent import BOUND, DIRECT, SITES, find_solvent, nearest_atoms, shells, site_of_atoms
from chromabuild.base.errors import BadInputError

if TYPE_CHECKING:
    import MDAnalysis


class SolventAnalysis(FrameAnalysis):
    """Counts of ions at the sites of DNA, profiles of ions and water around it, and who is bound.

    Distances are from the nearest heavy atom of DNA. Results with f frames, i ions (``solvent.ions``), k kinds
    (``solvent.kinds``) and s shells of 0.5 angstrom:

    - ``at_site`` (f, k, 4, 2): ions whose nearest atom of DNA is of each of ``SITES``, within 6 and within 3.5
      angstrom;
    - ``bound`` (f, i): whether an ion is within 6 angstrom;
    - ``ions`` (f, k, 4, s) and ``water`` (f, 4, s): numbers in the shells, by the site of the nearest atom.

    Raises BadInputError where the universe has no DNA, or no ions.
    """

    MEASURES: ClassVar[dict[str, type]] = {"at_site": np.int32, "bound": bool, "ions": np.int32, "water": np.int32}

    def __init__(self, universe: "MDAnalysis.Universe", nucleotides: Nucleotides | None = None,
                 whose: str = "the topology", verbose: bool = False) -> None:
        super().__init__(universe, verbose)
        self.nucleotides = nucleotides or find_nucleotides(universe, whose)
        self.solvent = find_solvent(universe)
        if not len(self.solvent.ions):
            raise BadInputError(f"{whose} holds no ions (residues such as NA, K, MG, CL): leave out the measure "
                                "solvent or write them to the trajectory (dynamics.trajectory_selection)")
        self._flat, self._site = site_of_atoms(self.nucleotides)

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What is kept of one frame, from all atoms (n, 3) and the box of the universe."""
        dna = position[self.nucleotides.atoms.ravel()[self._flat]].astype(float)
        solvent = self.solvent
        points = position[np.concatenate([solvent.ions, solvent.water])].astype(float)
        distance, atom = nearest_atoms(points, dna, box)
        of_ions, of_water = np.split(distance, [len(solvent.ions)])
        nearest = np.append(self._site, len(SITES))[np.minimum(atom, len(self._site))]
        site, of_oxygen = np.split(nearest, [len(solvent.ions)])
        at_site = [[[np.sum((solvent.kind == kind) & (site == k) & (of_ions <= reach)) for reach in (BOUND, DIRECT)]
                    for k in range(len(SITES))] for kind in solvent.kinds]
        return {"at_site": np.array(at_site), "bound": of_ions <= BOUND, "water": _by_site(of_water, of_oxygen),
                "ions": np.array([_by_site(of_ions[solvent.kind == kind], site[solvent.kind == kind])
                                  for kind in solvent.kinds])}


def _by_site(distance: np.ndarray, site: np.ndarray) -> np.ndarray:
    """(4, s) how many of distances (p,) fall into each shell, by site (p,)."""
    return np.stack([shells(distance[site == k]) for k in range(len(SITES))])
