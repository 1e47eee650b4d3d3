"""Helices and strands of proteins, by hydrogen bonds of the backbone (DSSP: Kabsch and Sander, Biopolymers 22, 2577
(1983)), as MDAnalysis finds them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute

LOOP, HELIX, STRAND = range(3)
_BACKBONE = ("N", "CA", "C", "O")
_LAST_OXYGEN = ("OT1", "O1", "OC1", "OXT")
"""What programs call the oxygen of a last residue that has no O."""
_SHORTEST = 3
_FEWEST = 6
"""Residues of a chain in which DSSP finds anything: it looks for partners five residues away."""


def backbone_rows(residue: np.ndarray, name: np.ndarray, residues: int) -> np.ndarray | None:
    """(residues, 4) places of N, CA, C and O among atoms of given ``residue`` (a,) and ``name`` (a,); None where a
    residue lacks one of them."""
    rows = np.full((residues, len(_BACKBONE)), -1)
    for column, wanted in enumerate(_BACKBONE):
        for one in (wanted, *_LAST_OXYGEN) if wanted == "O" else (wanted,):
            here = np.flatnonzero(name == one)
            here = here[rows[residue[here], column] < 0]
            rows[residue[here], column] = here
    return None if (rows < 0).any() else rows


def assigned(backbone: np.ndarray, is_proline: np.ndarray) -> np.ndarray:
    """(n,) ``LOOP``, ``HELIX`` or ``STRAND`` of each residue of one chain.

    ``backbone`` (n, 4, 3): N, CA, C and O, angstrom; ``is_proline`` (n,): residues without a hydrogen to give.
    """
    from MDAnalysis.analysis.dssp import assign

    if len(backbone) < _FEWEST:
        return np.full(len(backbone), LOOP)
    return np.argmax(assign(backbone, donor_mask=~is_proline), axis=1)


@dataclass(frozen=True)
class Stretch:
    """Residues of one kind of secondary structure."""

    kind: Literal["helix", "strand"]
    first: int
    """From 0 in the molecule."""
    last: int


def stretches(solute: Solute, molecule: int) -> Iterator[Stretch]:
    """Those of a protein of at least three residues, in order of the sequence."""
    first, last = solute.molecule_first_residue[molecule:molecule + 2].tolist()
    if last - first < _FEWEST:
        return
    library = list(residue_library().values())
    places = np.array([[library[kind].index.get(name, library[kind].index.get("OXT", 0)) for name in _BACKBONE]
                       for kind in solute.residue_template[first:last].tolist()])
    atoms = solute.residue_first_atom[first:last, None] + places
    backbone = np.asarray(solute.position[int(atoms[0, 0]):int(solute.residue_first_atom[last])], dtype=float)
    is_proline = np.array([library[kind].pdb_name == "PRO" for kind in solute.residue_template[first:last].tolist()])
    code = assigned(backbone[atoms - atoms[0, 0]], is_proline)
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(code)) + 1, [len(code)]]).tolist()
    for start, end in zip(cuts[:-1], cuts[1:], strict=True):
        if code[start] and end - start >= _SHORTEST:
            yield Stretch("helix" if code[start] == HELIX else "strand", start, end - 1)
