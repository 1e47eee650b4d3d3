"""Which chains of a universe are linker histones, and how their models lie on a nucleosome."""

import json
from functools import cache
from typing import TYPE_CHECKING

import h5py
import numpy as np

from chromabuild.analysis.histones import HistoneChain, matched, protein_chains, word_share
from chromabuild.base.files import template_path
from chromabuild.molecule.residues import heavy_atoms

if TYPE_CHECKING:
    import MDAnalysis

FAMILY = "H1"
_ALIKE = 0.3
"""Least share of the words of a globular domain that a chain has: linker histones of other kinds and species have 0.35
and more, other histones below 0.1."""


@cache
def _table() -> dict[str, dict]:
    table = json.loads(template_path("linker_histones.json").read_text())
    return {name: entry for name, entry in table.items() if name != "source"}


def _domain(entry: dict) -> slice:
    """Places of the globular domain in its sequence."""
    return slice(entry["domain"][0] - entry["first"], entry["domain"][1] - entry["first"] + 1)


@cache
def domain_on_nucleosome(name: str) -> np.ndarray:
    """(k, 3) C-alpha atoms of the globular domain of a modelled linker histone as it lies on the dyad in PDB 4QLC, in
    the nucleosome's own frame, angstrom."""
    with h5py.File(template_path("linker_histones.h5")) as file:
        names = [residue.decode() for residue in file[name]["residue_name"][...]]
        position = 0.001 * file[name]["heavy_atom_position"][...]
    ends = ["N", *[""] * (len(names) - 2), "C"]
    first, alpha = 0, []
    for end, residue in zip(ends, names, strict=True):
        heavy = heavy_atoms(residue, end)
        alpha.append(position[first + heavy.index("CA")])
        first += len(heavy)
    return np.array(alpha)[_domain(_table()[name])]


@cache
def linker_histone_name(sequence: str) -> str:
    """Name of the linker histone whose globular domain a sequence of one-letter codes has; "" for other chains."""
    share, name = max((word_share(entry["sequence"][_domain(entry)], sequence), name)
                      for name, entry in _table().items())
    return name if share >= _ALIKE else ""


def find_linker_histones(universe: "MDAnalysis.Universe") -> list[HistoneChain]:
    """Linker histones of a universe in the order of their residues; residues are counted from 1, and ``crystal`` counts
    those of the globular domain of the model of that name."""
    found = []
    for chain in protein_chains(universe):
        name = linker_histone_name(chain.sequence)
        if name:
            number = np.arange(1, len(chain.residues) + 1)
            entry = _table()[name]
            found.append(HistoneChain(name, FAMILY, chain.label, chain.residues, chain.alpha, number,
                                      matched(chain.sequence, entry["sequence"][_domain(entry)]), chain.heavy,
                                      chain.heavy_residue))
    return found
