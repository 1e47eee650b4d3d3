"""A fibre of nucleosomes along a trajectory, as an analysis of MDAnalysis."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chromabuild.analysis.frame_analysis import FrameAnalysis
from chromabuild.analysis.helix_shape import WINDOW, end_to_end_bend, helix_axes
from chromabuild.analysis.nucleotides import Helix, helix_of
from chromabuild.analysis.whole_nucleosomes import SITES, Core, WholeNucleosomes, core_of
from chromabuild.dna.knot import knot_determinant
from chromabuild.dna.linking import twist, writhe
from mesoscale.observables import NEAR, radius_of_gyration, sedimentation_coefficient

if TYPE_CHECKING:
    import MDAnalysis

STACKED = 80.0
"""Angstrom between the centres of two nucleosomes that lie face to face, at most: a core is 57 angstrom thick."""
PATH_STEP = 5
"""Base pairs from one point of a path, whose writhe and knot are looked for, to the next: 16 points go around a
nucleosome."""
_FAR = 100.0
"""Sizes of the fibre to where its ends are joined."""
TILTED = 45.0
"""Degree between their superhelix axes, and between an axis and the line of centres, at most."""


@dataclass(frozen=True)
class Linker:
    """DNA between two nucleosomes that follow each other on a duplex."""

    before: int
    """Number of the nucleosome that it leaves."""
    first: int
    """Its first base pair in the duplex."""
    last: int
    """Its last base pair; one less than ``first`` where the nucleosomes touch."""

    @property
    def length(self) -> int:
        """Base pairs."""
        return self.last - self.first + 1


class FibreAnalysis(FrameAnalysis):
    """Distances, stacking, linkers and size of a fibre of nucleosomes.

    Results with f frames, m nucleosomes and l linkers (``linkers``):

    - ``next`` (f, m - 1) and ``second`` (f, m - 2): angstrom between the centres of nucleosomes one and two apart;
    - ``stacked`` (f,): pairs that lie face to face;
    - ``entry_exit`` (f, m): degree between the DNA that enters and the DNA that leaves, seen from the nucleosome; NaN
      where a linker is shorter than 10 base pairs or missing;
    - ``linker`` (f, l, 2): degree by which a linker bends from end to end, and twist of all its steps;
    - ``gyration`` (f,): radius of gyration of the base pairs, angstrom;
    - ``sedimentation`` (f,): coefficient, svedberg (Kirkwood's sum over nucleosomes);
    - ``path`` (f, 3): ``path_topology`` of the longest duplex: twist, writhe, determinant of the knot;
    - ``near`` (f, b): whether two centres are within 120 angstrom, the pairs above the diagonal as bits; ``contacts``
      counts them.

    Raises BadInputError where the universe has no DNA or no nucleosome.

    >>> import MDAnalysis
    >>> FibreAnalysis(MDAnalysis.Universe("1zbb.pdb")).run().results.next.round(0).tolist()
    [[148.0]]
    """

    MEASURES: ClassVar[dict[str, type]] = dict.fromkeys(
        ("next", "second", "entry_exit", "linker", "gyration", "sedimentation", "path"), np.float32
    ) | {"stacked": np.int32, "near": np.uint8}

    def __init__(self, universe: "MDAnalysis.Universe", whole: WholeNucleosomes | None = None,
                 verbose: bool = False) -> None:
        super().__init__(universe, verbose)
        self.whole = whole or WholeNucleosomes(universe)
        self.linkers = list(_linkers(self.whole))

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What is kept of one frame, from all atoms (n, 3) and the box of the universe."""
        whole = self.whole
        dna = whole.nucleotides.positions(position, box)
        chains = whole.chains(position, dna, box)
        bases = whole.nucleotides.base_frames(dna)
        helices = [helix_of(pairs, *bases) for pairs in whole.nucleotides.duplexes]
        axes = [helix_axes(helix.frame, pairs.closed)
                for helix, pairs in zip(helices, whole.nucleotides.duplexes, strict=True)]
        cores = [core_of(nucleosome.octamer, chains) for nucleosome in whole.nucleosomes]
        longest = max(range(len(helices)), key=lambda k: len(helices[k].origin))
        centre = np.array([core.origin for core in cores])
        apart = np.linalg.norm(centre[:, None] - centre[None], axis=2)
        near = (apart < 10 * NEAR)[np.triu_indices(len(cores), 1)]
        return {
            "next": np.diagonal(apart, 1), "second": np.diagonal(apart, 2),
            "stacked": stacked_pairs(cores).sum() // 2,
            "entry_exit": np.array([self._entry_exit(nucleosome.duplex, nucleosome.dyad, axes)
                                    for nucleosome in whole.nucleosomes]),
            "linker": np.array([self._linker(linker, helices, axes) for linker in self.linkers]).reshape(-1, 2),
            "gyration": radius_of_gyration(np.concatenate([helix.origin for helix in helices])),
            "sedimentation": sedimentation_coefficient(0.1 * centre) if len(centre) > 1 else np.nan,
            "path": path_topology(helices[longest].origin, helices[longest].frame,
                                  whole.nucleotides.duplexes[longest].closed),
            "near": np.packbits(near)}

    def contacts(self, first: int = 0) -> np.ndarray:
        """(m, m) in how many frames, from number ``first`` on, two centres are within 120 angstrom; ``run`` before."""
        m = len(self.whole.nucleosomes)
        total = np.zeros((m, m), dtype=np.int64)
        above = np.triu_indices(m, 1)
        for bits in self.results.near[first:]:
            total[above] += np.unpackbits(bits, count=len(above[0]))
        return total + total.T

    def _entry_exit(self, duplex: int, dyad: int, axes: list[np.ndarray]) -> float:
        """Degree between the mean axes of ten steps on either side of a nucleosome, both seen as leaving it."""
        first, last = dyad - SITES // 2, dyad + SITES // 2
        if duplex < 0:
            return float("nan")
        closed = self.whole.nucleotides.duplexes[duplex].closed
        if not closed and (first < WINDOW or last + WINDOW > len(axes[duplex])):
            return float("nan")
        entry, leave = (axes[duplex].take(np.arange(rows, rows + WINDOW), axis=0, mode="wrap").sum(axis=0)
                        for rows in (first - WINDOW, last))
        return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(entry, leave)), -(entry @ leave))))

    def _linker(self, linker: Linker, helices: list[Helix], axes: list[np.ndarray]) -> tuple[float, float]:
        duplex = self.whole.nucleosomes[linker.before].duplex
        steps = helices[duplex].step
        # From the last wrapped pair to the next one; across the seam of a circle too.
        rows = np.arange(max(linker.first - 1, 0), linker.last + 1) % len(steps)
        return end_to_end_bend(axes[duplex][rows]), float(steps[rows, 5].sum())


def _linkers(whole: WholeNucleosomes) -> list[Linker]:
    """Between nucleosomes that follow each other on the same duplex; in a circle the first follows the last, and the
    last base pair of that linker is counted on beyond the seam."""
    half, found = SITES // 2, []
    for k, (one, other) in enumerate(zip(whole.nucleosomes[:-1], whole.nucleosomes[1:], strict=True)):
        if one.duplex == other.duplex >= 0:
            found.append(Linker(k, one.dyad + half + 1, max(other.dyad - half - 1, one.dyad + half)))
    for duplex, pairs in enumerate(whole.nucleotides.duplexes):
        on = [k for k, one in enumerate(whole.nucleosomes) if one.duplex == duplex]
        if pairs.closed and on:
            first, last = whole.nucleosomes[on[0]].dyad + len(pairs.first), whole.nucleosomes[on[-1]].dyad
            found.append(Linker(on[-1], last + half + 1, max(first - half - 1, last + half)))
    return found


def path_topology(origin: np.ndarray, frame: np.ndarray, closed: bool = False) -> tuple[float, float, int]:
    """Twist and writhe of a duplex in turns, and the determinant of its knot, from base pairs (n, 3) and (n, 3, 3).

    Writhe and knot of an open path are those of every fifth base pair. Its writhe is Gauss' integral; for its knot the
    ends are led straight out from the middle and joined far away.
    """
    if closed:
        return twist(origin, frame, closed=True), writhe(origin, closed=True), knot_determinant(origin)
    path = origin[::PATH_STEP]
    middle = origin.mean(axis=0)
    ends = origin[[0, -1]] - middle
    beside = np.cross(*ends)
    beside = beside if np.linalg.norm(beside) > 0 else np.cross(ends[0], np.roll(ends[0], 1) + [1.0, 2.0, 3.0])
    out = np.array([ends[1], beside, ends[0]])
    out *= _FAR * np.linalg.norm(origin - middle, axis=1).max() / np.linalg.norm(out, axis=1)[:, None]
    return twist(origin, frame), writhe(path), knot_determinant(np.concatenate([path, origin[-1:], middle + out]))


def stacked_pairs(cores: list[Core]) -> np.ndarray:
    """(m, m) whether two nucleosomes lie face to face: near, parallel, and above each other."""
    centre = np.array([core.origin for core in cores])
    axis = np.array([core.frame[:, 2] for core in cores])
    line = centre[:, None] - centre[None]
    apart = np.linalg.norm(line, axis=2)
    least = np.cos(np.radians(TILTED))
    along = np.abs(np.einsum("abk,ak->ab", line, axis)) / np.maximum(apart, 1e-9)
    above = (along >= least) & (along.T >= least)
    found = (apart <= STACKED) & (np.abs(axis @ axis.T) >= least) & above
    np.fill_diagonal(found, False)
    return found


def in_order(whole: WholeNucleosomes, duplex: int = 0, turn: int = 0) -> list[int]:
    """The nucleosomes of a duplex by their place on the chromosome, on which the first base pair of a circle may lie
    ``turn`` base pairs after the locus begins."""
    return sorted((k for k, one in enumerate(whole.nucleosomes) if one.duplex == duplex),
                  key=lambda k: _from_start(whole, k, turn))


def _from_start(whole: WholeNucleosomes, k: int, turn: int) -> int:
    """Base pairs from where the locus begins on the chromosome to a dyad."""
    one = whole.nucleosomes[k]
    return (one.dyad + turn) % len(whole.nucleotides.duplexes[one.duplex].first)


def nucleosome_bins(whole: WholeNucleosomes, duplex: int = 0, start: int = 0, turn: int = 0) -> np.ndarray:
    """(m + 1,) where the bins of a map of nucleosomes ``in_order`` end: half way along the linkers, and where the locus
    does; ``start``: where it begins on the chromosome."""
    dyads = [_from_start(whole, k, turn) for k in in_order(whole, duplex, turn)]
    middle = [(a + b + 1) // 2 for a, b in zip(dyads[:-1], dyads[1:], strict=True)]
    return start + np.array([0, *middle, len(whole.nucleotides.duplexes[duplex].first)])
