"""Where a sugar-phosphate will lie, foretold from the steps to the neighbouring bases: the start of the closure.

The library (templates/nucleotide_library.npz) holds, for each base, a quadratic in the twelve parameters of the steps
between successive bases of a strand, from the base before and to the base after. It was fitted to closed backbones of
nucleosomes, superhelices and thermally bent DNA (templates/tools/make_nucleotides.py).
"""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild.base.files import template_path
from chromabuild.dna.sequence import BASES
from chromabuild.dna.steps import analyse

SUGAR = ("P", "OP1", "OP2", "O5'", "C5'", "O4'", "C1'", "C2'", "C4'", "C3'", "O3'")
"""The unknown atoms of a nucleotide in the order of the kernel."""
FARTHEST = 3.0  # standard deviations: a quadratic knows nothing beyond what it was fitted to


@cache
def ideal_conformation() -> np.ndarray:
    """(4, 11, 3) sugar-phosphate of A, C, G, T of ideal B-DNA in the base frame (templates/nucleotide_start.json)."""
    data = json.loads(template_path("nucleotide_start.json").read_text())
    return np.array([[data["position"][base][atom] for atom in SUGAR] for base in BASES])


@dataclass(frozen=True)
class ConformationLibrary:
    """The quadratics of all four bases."""

    mean: np.ndarray
    """(12,) of the parameters, angstrom and degree."""
    deviation: np.ndarray
    coefficient: np.ndarray
    """(4, 91, 33): for each base and term a sugar-phosphate in the base frame, angstrom."""


@cache
def conformation_library() -> ConformationLibrary:
    """Read templates/nucleotide_library.npz."""
    with np.load(template_path("nucleotide_library.npz")) as data:
        return ConformationLibrary(*(data[name].astype(float) for name in ("mean", "deviation", "coefficient")))


def neighbour_steps(origin: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """(2n, 12) parameters of the steps from the base before and to the base after, along either strand.

    Args:
        origin: (2n, 3) base origins; strand I, then strand J, each 5' to 3'.
        frame: (2n, 3, 3) base frames, each in its own strand's sense.

    At an end the one step that exists stands for both.
    """
    both = []
    for strand in np.split(np.arange(len(origin)), 2):
        a, b = strand[:-1], strand[1:]
        step = analyse(origin[a], frame[a], origin[b], frame[b])
        both.append(np.concatenate([step[[0, *range(len(step))]], step[[*range(len(step)), -1]]], axis=1))
    return np.concatenate(both)


def quadratic_terms(steps: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """(m, 91) one, the standardised parameters, and their products, from ``neighbour_steps`` (m, 12)."""
    z = np.clip((steps - mean) / deviation, -FARTHEST, FARTHEST)
    first, second = np.triu_indices(z.shape[1])
    return np.concatenate([np.ones((len(z), 1)), z, z[:, first] * z[:, second]], axis=1)


def foretold_conformation(base_index: np.ndarray, origin: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """(2n, 11, 3) likely positions of the atoms ``SUGAR``, angstrom; arguments as of ``close_backbone``."""
    if len(base_index) < 4:  # a single base pair has no steps
        return placed_conformation(ideal_conformation(), base_index, origin, frame)
    library = conformation_library()
    steps, local = neighbour_steps(origin, frame), np.empty((len(base_index), 33))
    for base in range(4):
        which = np.flatnonzero(base_index == base)
        local[which] = quadratic_terms(steps[which], library.mean, library.deviation) @ library.coefficient[base]
    return origin[:, None] + local.reshape(-1, 11, 3) @ np.swapaxes(frame, 1, 2)


def placed_conformation(
    conformation: np.ndarray, base_index: np.ndarray, origin: np.ndarray, frame: np.ndarray
) -> np.ndarray:
    """(2n, 11, 3) one conformation (4, 11, 3) of each base, placed in every base's frame."""
    return origin[:, None] + conformation[base_index] @ np.swapaxes(frame, 1, 2)
