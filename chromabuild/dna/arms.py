"""Linker arms: the ten base pairs on either side of a nucleosome that a linker histone holds, as in PDB 4QLC."""

import json
from functools import cache

import numpy as np

from chromabuild.base.files import template_path
from chromabuild.dna.helix import DYAD, crystal_path
from chromabuild.dna.steps import orthonormalise
from chromabuild.genome.wrapping import ARM


@cache
def linker_arms() -> tuple[np.ndarray, np.ndarray]:
    """Origins (20, 3), angstrom, and frames (20, 3, 3) in the nucleosome's own frame: base pairs -83 to -74 from the
    dyad, then 74 to 83."""
    data = json.loads(template_path("chromatosome_arms_4qlc.json").read_text())
    origin, frame = (np.concatenate([np.array(data[end][part]) for end in ("entry", "exit")])
                     for part in ("origin", "frame"))
    return origin, orthonormalise(frame.reshape(-1, 3, 3))


def with_arms(path: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A path of wrapped DNA, origins (147, 3) and frames (147, 3, 3), and behind it the arms (20, ...) as
    ``linker_arms`` orders them. On another path than that of 1KX5 they go on from its ends as they do there."""
    origins, frames = [path[0]], [path[1]]
    crystal_origin, crystal_frame = crystal_path()
    origin, frame = linker_arms()
    for end, rows in ((0, slice(0, ARM)), (-1, slice(ARM, None))):
        turn = path[1][end] @ crystal_frame[end].T
        origins.append(path[0][end] + (origin[rows] - crystal_origin[end]) @ turn.T)
        frames.append(turn @ frame[rows])
    return np.concatenate(origins), np.concatenate(frames)


def rows_on_arms(position: np.ndarray) -> np.ndarray:
    """(k,) rows of ``with_arms`` for base pairs at (k,) positions from the dyad, -83..83."""
    position = np.asarray(position)
    row = position + DYAD
    row = np.where(position < -DYAD, 2 * DYAD + 1 + position + DYAD + ARM, row)
    return np.where(position > DYAD, 2 * DYAD + 1 + ARM + position - DYAD - 1, row)
