"""The path of the DNA in a structure file, its ends completed as in 1KX5."""

from pathlib import Path
from typing import NamedTuple

import gemmi
import numpy as np

from chromabuild.analysis.duplex import Duplex, duplexes_of
from chromabuild.base.errors import BadInputError
from chromabuild.dna.helix import DYAD, crystal_path
from chromabuild.dna.steps import FLIP

LARGEST_PATH_DEVIATION = 6.0  # angstrom rms of base-pair origins around the dyad
COMPARED_HALF = 40  # base pairs on either side of the dyad that find it
LEAST_HALF = 50  # base pairs that must be there on either side
BRIDGED = 3  # consecutive base pairs of poor geometry that do not end a duplex


def dna_path(path: str | Path, model: gemmi.Model, matrix: np.ndarray, shift: np.ndarray
             ) -> tuple[np.ndarray, np.ndarray, dict]:
    """Origins (147, 3) and frames (147, 3, 3) around the dyad, ends completed as in 1KX5, and what was found."""
    found = duplex_around_dyad(path, model, matrix, shift)
    origin, frame, dyad = found.origin, found.frame, found.dyad
    crystal_origin, crystal_frame = crystal_path()
    before, after = min(dyad, DYAD), min(len(origin) - 1 - dyad, DYAD)
    origins, frames = np.empty((2 * DYAD + 1, 3)), np.empty((2 * DYAD + 1, 3, 3))
    observed = slice(DYAD - before, DYAD + after + 1)
    origins[observed], frames[observed] = (x[dyad - before:dyad + after + 1] for x in (origin, frame))
    for here, neighbour in [*((k, k + 1) for k in range(DYAD - before - 1, -1, -1)),
                            *((k, k - 1) for k in range(DYAD + after + 1, 2 * DYAD + 1))]:
        turn = frames[neighbour] @ crystal_frame[neighbour].T
        origins[here] = origins[neighbour] + turn @ (crystal_origin[here] - crystal_origin[neighbour])
        frames[here] = turn @ crystal_frame[here]
    return origins, frames, {"dna_deviation": round(found.deviation, 3), "dyad": found.names[dyad],
                             "base_pairs": before + after + 1, "base_pairs_completed": 2 * DYAD - before - after}


class Found(NamedTuple):
    """The duplex of a structure that is wrapped as on 1KX5: n base pairs in the nucleosome's own frame."""

    origin: np.ndarray
    """(n, 3) angstrom."""
    frame: np.ndarray
    """(n, 3, 3)."""
    dyad: int
    deviation: float
    """Angstrom rms from 1KX5 around the dyad."""
    names: list[str]
    """Of the residues of strand I."""


def duplex_around_dyad(path: str | Path, model: gemmi.Model, matrix: np.ndarray, shift: np.ndarray) -> Found:
    """All base pairs of the DNA that lies on the path of 1KX5; ``matrix`` and ``shift`` lead to the own frame.

    Raises BadInputError where there is none.
    """
    crystal_origin, _ = crystal_path()
    best, longest = None, 0
    for duplex in duplexes_of(model, BRIDGED):
        longest = max(longest, len(duplex.sequence))
        for turned in (False, True):
            origin, frame = _pair_frames(duplex, turned)
            origin, frame = origin @ matrix.T + shift, matrix @ frame
            for dyad in range(LEAST_HALF, len(origin) - LEAST_HALF):
                part = slice(dyad - COMPARED_HALF, dyad + COMPARED_HALF + 1)
                middle = crystal_origin[DYAD - COMPARED_HALF:DYAD + COMPARED_HALF + 1]
                deviation = float(np.sqrt(np.mean(np.sum((origin[part] - middle) ** 2, axis=1))))
                if best is None or deviation < best[0]:
                    best = deviation, dyad, origin, frame, duplex, turned
    if best is None:
        raise BadInputError(f"the longest DNA duplex of {path} has {longest} base pairs without a break, a template "
                            f"needs {2 * LEAST_HALF + 1} around its dyad: give a structure with complete DNA")
    deviation, dyad, origin, frame, duplex, turned = best
    if deviation > LARGEST_PATH_DEVIATION:
        raise BadInputError(f"the DNA of {path} is not wrapped as on a nucleosome ({deviation:.1f} angstrom rms from "
                            "1KX5 around the dyad): give another structure")
    names = duplex.second[::-1] if turned else duplex.first
    return Found(origin, frame, dyad, deviation, names)


def _pair_frames(duplex: Duplex, turned: bool) -> tuple[np.ndarray, np.ndarray]:
    """Origins and frames of the base pairs along strand I or, turned over, along strand II."""
    origin, frame = duplex.pair_frames
    return (origin[::-1], frame[::-1] @ FLIP) if turned else (origin, frame)
