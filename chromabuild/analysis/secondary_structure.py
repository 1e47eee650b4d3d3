"""Helices and strands of proteins, by hydrogen bonds of the backbone (DSSP: Kabsch and Sander, Biopolymers 22, 2577
(1983)), as MDAnalysis finds them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute

_BACKBONE = ("N", "CA", "C", "O")
_SHORTEST = 3


@dataclass(frozen=True)
class Stretch:
    """Residues of one kind of secondary structure."""

    kind: Literal["helix", "strand"]
    first: int
    """From 0 in the molecule."""
    last: int


def stretches(solute: Solute, molecule: int) -> Iterator[Stretch]:
    """Those of a protein of at least three residues, in order of the sequence."""
    from MDAnalysis.analysis.dssp import assign

    first, last = solute.molecule_first_residue[molecule:molecule + 2].tolist()
    if last - first < 6:  # DSSP looks for partners five residues away
        return
    library = list(residue_library().values())
    places = np.array([[library[kind].index.get(name, library[kind].index.get("OXT", 0)) for name in _BACKBONE]
                       for kind in solute.residue_template[first:last].tolist()])
    atoms = solute.residue_first_atom[first:last, None] + places
    backbone = np.asarray(solute.position[int(atoms[0, 0]):int(solute.residue_first_atom[last])], dtype=float)
    found = assign(backbone[atoms - atoms[0, 0]])  # (residues, 3) bool: loop, helix, strand
    code = np.argmax(found, axis=1)
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(code)) + 1, [len(code)]]).tolist()
    for start, end in zip(cuts[:-1], cuts[1:], strict=True):
        if code[start] and end - start >= _SHORTEST:
            yield Stretch("helix" if code[start] == 1 else "strand", start, end - 1)
