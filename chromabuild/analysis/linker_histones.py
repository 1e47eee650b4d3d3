"""Which chains of a universe are linker histones."""

import json
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.analysis.histones import HistoneChain, protein_chains, word_share
from chromabuild.base.files import template_path

if TYPE_CHECKING:
    import MDAnalysis

FAMILY = "H1"
_ALIKE = 0.3
"""Least share of the words of a globular domain that a chain has: linker histones of other kinds and species have 0.35
and more, other histones below 0.1."""


@cache
def _domains() -> dict[str, str]:
    """Sequences of the globular domains by name."""
    table = json.loads(template_path("linker_histones.json").read_text())
    return {name: entry["sequence"][entry["domain"][0] - entry["first"]:entry["domain"][1] - entry["first"] + 1]
            for name, entry in table.items() if name != "source"}


@cache
def linker_histone_name(sequence: str) -> str:
    """Name of the linker histone whose globular domain a sequence of one-letter codes has; "" for other chains."""
    share, name = max((word_share(domain, sequence), name) for name, domain in _domains().items())
    return name if share >= _ALIKE else ""


def find_linker_histones(universe: "MDAnalysis.Universe") -> list[HistoneChain]:
    """Linker histones of a universe in the order of their residues; residues are counted from 1."""
    found = []
    for chain in protein_chains(universe):
        name = linker_histone_name(chain.sequence)
        if name:
            number = np.arange(1, len(chain.residues) + 1)
            found.append(HistoneChain(name, FAMILY, chain.label, chain.residues, chain.alpha, number,
                                      np.zeros_like(number), chain.heavy, chain.heavy_residue))
    return found
