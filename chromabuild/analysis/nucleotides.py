"""DNA in a universe of MDAnalysis: which atoms belong to which base, which bases pair, and where they stand.

Nucleotides are found by their residue names, pairs by the geometry of the bases in the present frame. Atoms may stand
in any periodic image: whatever is bonded or paired is brought together first.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.analysis.duplex import FARTHEST_ORIGINS, LONGEST_LINK, NUCLEOTIDES, pair_runs, partners
from chromabuild.base.errors import BadInputError
from chromabuild.dna.steps import FLIP, analyse, dna_parameters, fit_frames, midframe

if TYPE_CHECKING:
    import MDAnalysis

BACKBONE = ("P", "OP1", "OP2", "O5'", "C5'", "C4'", "O4'", "C3'", "O3'", "C2'", "C1'")
BASE = ("N1", "C2", "N3", "C4", "C5", "C6", "N7", "C8", "N9", "N2", "N6", "O6", "O2", "O4", "N4", "C7")
NAMES = BACKBONE + BASE
PLACE = {name: k for k, name in enumerate(NAMES)}
"""Columns of ``Nucleotides.atoms``."""
_ANCHOR = PLACE["N1"]
_SAME = {"O1P": "OP1", "O2P": "OP2", "C5M": "C7"} | {name.replace("'", "*"): name for name in BACKBONE if "'" in name}
_RESIDUES = NUCLEOTIDES | {letter: letter for letter in "ACGT"} | {
    f"{name}{end}": letter for name, letter in zip(("ADE", "CYT", "GUA", "THY"), "ACGT", strict=True)
    for end in ("5", "3")}


@dataclass(frozen=True)
class Pairs:
    """Base pairs that follow each other: rows of ``Nucleotides``, in the 5'-3' order of strand I."""

    first: np.ndarray
    """(n,) bases of strand I."""
    second: np.ndarray
    """(n,) their partners."""
    closed: bool
    """Whether the last pair is followed by the first one: a circle."""

    @property
    def steps(self) -> int:
        """Steps from a pair to the next."""
        return len(self.first) - (not self.closed)


@dataclass(frozen=True)
class Nucleotides:
    """DNA bases that have all their ring atoms, and the duplexes that they make."""

    atoms: np.ndarray
    """(r, 27) atoms ``NAMES`` of the universe, -1 where there is none."""
    letter: np.ndarray
    """(r,) A, C, G, T."""
    name: list[str]
    """(r,) segment and residue, such as ``DI00:12``."""
    following: np.ndarray
    """(r,) the next nucleotide of the strand, or -1."""
    duplexes: tuple[Pairs, ...]

    @property
    def n_pairs(self) -> int:
        """Base pairs of all duplexes."""
        return sum(len(pairs.first) for pairs in self.duplexes)

    def positions(self, position: np.ndarray, box: np.ndarray | None) -> np.ndarray:
        """(r, 27, 3) atoms in angstrom, NaN where there is none; nucleotides and duplexes are whole.

        ``position`` (n, 3) are all atoms of the universe, ``box`` the six numbers of its periodic box, if any.
        """
        found = position[self.atoms].astype(float)
        found[self.atoms < 0] = np.nan
        if not has_box(box):
            return found
        anchor = found[:, _ANCHOR].copy()
        inside = nearest_image(found - anchor[:, None], box)
        for pairs in self.duplexes:
            first, second = pairs.first, pairs.second
            steps = nearest_image(np.diff(anchor[first], axis=0), box)
            across = nearest_image(anchor[second] - anchor[first], box)
            anchor[first] = anchor[first[0]] + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
            anchor[second] = anchor[first] + across
        return anchor[:, None] + inside

    def base_frames(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Origins (r, 3) and frames (r, 3, 3) of the bases, each in its own strand's sense, of ``positions``."""
        return base_frames(place, self.letter)


def has_box(box: np.ndarray | None) -> bool:
    """Whether there is a periodic box."""
    return box is not None and bool(np.all(np.asarray(box)[:3] > 0))


def nearest_image(vector: np.ndarray, box: np.ndarray | None) -> np.ndarray:
    """Vectors (..., 3) as the shortest of their periodic images; NaN stays. Any cell of MDAnalysis."""
    if not has_box(box):
        return vector
    box = np.asarray(box, dtype=float)
    if np.allclose(box[3:], 90.0):
        return vector - box[:3] * np.round(vector / box[:3])
    from MDAnalysis.lib.distances import minimize_vectors

    flat = np.ascontiguousarray(vector.reshape(-1, 3))
    known = np.isfinite(flat).all(axis=1)
    flat = flat.copy()
    flat[known] = minimize_vectors(flat[known], box.astype(np.float32))
    return flat.reshape(vector.shape)


def base_frames(place: np.ndarray, letter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares frames of bases: origins (r, 3), frames (r, 3, 3) from atoms ``NAMES`` (r, 27, 3)."""
    origin, frame = np.empty((len(letter), 3)), np.empty((len(letter), 3, 3))
    for kind, base in dna_parameters().base.items():
        rows = np.flatnonzero(letter == kind)
        ring = [PLACE[name] for name in base.ring]
        origin[rows], frame[rows] = fit_frames(place[rows][:, ring], base.ring_position)
    return origin, frame


@dataclass(frozen=True)
class Helix:
    """Base pairs of one duplex in one frame."""

    origin: np.ndarray
    """(n, 3) angstrom."""
    frame: np.ndarray
    """(n, 3, 3)."""
    pair: np.ndarray
    """(n, 6) shear, stretch, stagger, buckle, propeller, opening."""
    step: np.ndarray
    """(n - 1, 6), of a circle (n, 6): shift, slide, rise, tilt, roll, twist."""


def helix_of(pairs: Pairs, origin: np.ndarray, frame: np.ndarray) -> Helix:
    """Frames and parameters of the base pairs from those of all bases, (r, 3) and (r, 3, 3)."""
    one, two = (origin[pairs.second], frame[pairs.second] @ FLIP), (origin[pairs.first], frame[pairs.first])
    middle, turned = midframe(*one, *two)
    after = np.roll(middle, -1, axis=0), np.roll(turned, -1, axis=0)
    step = analyse(middle, turned, *after)[:pairs.steps]
    return Helix(middle, turned, analyse(*one, *two), step)


def find_nucleotides(universe: "MDAnalysis.Universe", whose: str = "the topology") -> Nucleotides:
    """DNA of a universe and its duplexes in the present frame.

    Raises BadInputError where there is no DNA, or none that is paired; ``whose`` names the input in the sentence.
    """
    residues = universe.residues
    letter_of = np.array([_RESIDUES.get(name, "") for name in residues.resnames])
    atom_names = np.array([_SAME.get(name, name) for name in universe.atoms.names])
    owner = universe.atoms.resindices
    letter_of[owner[(atom_names == "O2'")]] = ""  # RNA
    chosen = np.flatnonzero(letter_of != "")
    row_of = np.full(len(residues), -1)
    row_of[chosen] = np.arange(len(chosen))
    atoms = np.full((len(chosen), len(NAMES)), -1, dtype=np.int64)
    in_dna = np.flatnonzero(row_of[owner] >= 0)
    for column, name in enumerate(NAMES):
        here = in_dna[atom_names[in_dna] == name][::-1]  # of alternative positions the first stays
        atoms[row_of[owner[here]], column] = here
    letter = letter_of[chosen]
    whole = np.ones(len(chosen), dtype=bool)
    for kind, base in dna_parameters().base.items():
        rows = letter == kind
        whole[rows] = (atoms[np.ix_(rows, [PLACE[name] for name in base.ring])] >= 0).all(axis=1)
    atoms, letter, chosen = atoms[whole], letter[whole], chosen[whole]
    if not len(chosen):
        raise BadInputError(f"{whose} holds no DNA (no residue DA, DC, DG or DT with all ring atoms): give one that "
                            "names its nucleotides so")
    segments = residues.segids[chosen] if hasattr(residues, "segids") else [""] * len(chosen)
    names = [f"{segment}:{number}" for segment, number in zip(segments, residues.resids[chosen], strict=True)]
    made = Nucleotides(atoms, letter, names, np.full(len(chosen), -1), ())
    position, box = universe.atoms.positions, universe.dimensions
    following = _following(atoms, position, box)
    origin, frame = made.base_frames(made.positions(position, box))
    close = close_pairs(origin, origin, FARTHEST_ORIGINS, box)
    close = close[close[:, 0] < close[:, 1]]
    apart = np.linalg.norm(nearest_image(origin[close[:, 0]] - origin[close[:, 1]], box), axis=1)
    partner = partners(frame, letter, close, apart)
    duplexes = tuple(Pairs(*run) for run in pair_runs(partner, following))
    if not duplexes:
        raise BadInputError(f"{whose} holds {len(chosen)} DNA bases but no duplex of two base pairs in its first "
                            "frame: give paired DNA, or a frame in which it is paired")
    return Nucleotides(atoms, letter, names, following, duplexes)


def _following(atoms: np.ndarray, position: np.ndarray, box: np.ndarray | None) -> np.ndarray:
    """(r,) the nucleotide whose P is bonded to the O3' of each one, or -1."""
    following = np.full(len(atoms), -1)
    ends, starts = (np.flatnonzero(atoms[:, PLACE[name]] >= 0) for name in ("O3'", "P"))
    if len(ends) and len(starts):
        close = close_pairs(position[atoms[ends, PLACE["O3'"]]], position[atoms[starts, PLACE["P"]]], LONGEST_LINK, box)
        following[ends[close[:, 0]]] = starts[close[:, 1]]
    following[following == np.arange(len(atoms))] = -1
    return following


def close_pairs(one: np.ndarray, other: np.ndarray, cutoff: float, box: np.ndarray | None) -> np.ndarray:
    """(k, 2) rows of two sets of places within ``cutoff`` of each other, in any cell of MDAnalysis."""
    return capped_pairs(one, other, cutoff, box)[0]


def capped_pairs(one: np.ndarray, other: np.ndarray, cutoff: float, box: np.ndarray | None
                 ) -> tuple[np.ndarray, np.ndarray]:
    """``close_pairs`` and their distances (k,).

    By trees: a grid of cells as small as bonds would fill the memory along DNA of a thousand base pairs.
    """
    from MDAnalysis.lib.distances import capped_distance

    return capped_distance(one.astype(np.float32), other.astype(np.float32), cutoff, method="pkdtree",
                           box=np.asarray(box, np.float32) if has_box(box) else None)
