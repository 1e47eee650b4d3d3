"""DNA along a trajectory, as an analysis of MDAnalysis."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chromabuild.analysis.backbone_states import backbone_torsions, sugar_pucker
from chromabuild.analysis.frame_analysis import FrameAnalysis
from chromabuild.analysis.helix_shape import groove_widths, helix_axes, hydrogen_bonds, local_bends
from chromabuild.analysis.nucleotides import Helix, Nucleotides, find_nucleotides, helix_of
from chromabuild.dna.knot import knot_determinant
from chromabuild.dna.linking import twist, writhe

if TYPE_CHECKING:
    import MDAnalysis


class DnaAnalysis(FrameAnalysis):
    """Base pairs, steps, grooves, hydrogen bonds and backbone of all duplexes of a universe.

    Base pairs are found in the frame that the universe shows when the analysis is made, and kept. All duplexes stand in
    one row: ``pairs`` and ``steps`` of the first, then those of the next. Results, single precision, with f frames,
    n base pairs and m steps:

    - ``pair`` (f, n, 6): shear, stretch, stagger (angstrom), buckle, propeller, opening (degree);
    - ``step`` (f, m, 6): shift, slide, rise (angstrom), tilt, roll, twist (degree);
    - ``groove`` (f, m, 4): widths ``GROOVES``, angstrom; ``bend`` (f, m): degree over about two turns;
    - ``hydrogen_bond`` (f, n, 3): distances of heavy atoms, angstrom;
    - ``torsion`` (f, 2, n, 7): ``TORSIONS`` of strand I and of the partners, degree;
    - ``pucker`` (f, 2, n, 2): phase and amplitude of the sugars, degree;
    - ``circle`` (f, c, 4): of the c closed duplexes the linking number, twist and writhe in turns, and the determinant
      of the knot (1: none).

    Raises BadInputError where the universe has no duplex.

    >>> import MDAnalysis
    >>> universe = MDAnalysis.Universe("1kx5.pdb")
    >>> found = DnaAnalysis(universe).run()
    >>> found.results.step.shape
    (1, 146, 6)
    """

    MEASURES: ClassVar[dict[str, type]] = dict.fromkeys(
        ("pair", "step", "groove", "bend", "hydrogen_bond", "torsion", "pucker", "circle"), np.float32)

    def __init__(self, universe: "MDAnalysis.Universe", nucleotides: Nucleotides | None = None,
                 verbose: bool = False) -> None:
        super().__init__(universe, verbose)
        self.nucleotides = nucleotides or find_nucleotides(universe)

    @property
    def pair_names(self) -> list[tuple[str, str]]:
        """(n,) segment and residue of both bases of every pair."""
        name = self.nucleotides.name
        return [(name[a], name[b]) for pairs in self.nucleotides.duplexes
                for a, b in zip(pairs.first, pairs.second, strict=True)]

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What is kept of one frame, from all atoms (n, 3) and the box of the universe."""
        place = self.nucleotides.positions(position, box)
        origin, frame = self.nucleotides.base_frames(place)
        torsion, pucker = backbone_torsions(self.nucleotides, place), sugar_pucker(place)
        found: dict[str, list[np.ndarray]] = {measure: [] for measure in self.MEASURES}
        found["circle"].append(np.empty((0, 4)))
        for pairs in self.nucleotides.duplexes:
            helix = helix_of(pairs, origin, frame)
            if pairs.closed:
                found["circle"].append(_of_circle(helix))
            both = np.stack([pairs.first, pairs.second])
            for measure, values in (
                ("pair", helix.pair), ("step", helix.step), ("groove", groove_widths(pairs, place)),
                ("bend", local_bends(helix_axes(helix.frame, pairs.closed), pairs.closed)),
                ("hydrogen_bond", hydrogen_bonds(self.nucleotides, pairs, place)),
                ("torsion", torsion[both]), ("pucker", pucker[both]),
            ):
                found[measure].append(values)
        return {measure: np.concatenate(values, axis=1 if measure in ("torsion", "pucker") else 0)
                for measure, values in found.items()}


def _of_circle(helix: Helix) -> np.ndarray:
    """(1, 4) linking number, twist, writhe and determinant of the knot."""
    turns, coiled = twist(helix.origin, helix.frame, closed=True), writhe(helix.origin, closed=True)
    return np.array([[turns + coiled, turns, coiled, knot_determinant(helix.origin)]])
