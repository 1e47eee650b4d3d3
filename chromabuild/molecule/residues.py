"""The residue library: atoms, bonds and side-chain torsions of every residue that can be built.

It is read from templates/residues.json.

Residues are named as the AMBER force field names them: ``NALA`` is an N-terminal alanine, ``HIE`` a histidine with its
hydrogen on NE2, ``DA5`` a 5'-terminal adenosine. ``pdb_name`` is what goes into files for other programs.
"""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild.base.files import template_path

SOLVENT = {"water": "HOH", "sodium": "NA", "potassium": "K", "magnesium": "MG", "chloride": "CL"}
"""Residues of solvent by their key in the counts of a manifest, in global atom order."""
SITE = "EP"
"""In place of the element of an atom without mass: OpenMM's and AMBER's name of an extra point."""


@dataclass(frozen=True)
class ResidueTemplate:
    """One residue of the library; atoms are in the order in which every file of ours holds them."""

    name: str
    pdb_name: str
    kind: str
    """One of ``amino acid``, ``nucleotide``, ``water``, ``ion``."""
    atoms: tuple[str, ...]
    elements: tuple[str, ...]
    bonds: np.ndarray
    """(b, 2) int32, indices into ``atoms``."""
    chi: tuple[tuple[str, str, str, str], ...]
    """Rotatable side-chain torsions chi1, chi2, ..."""

    @property
    def index(self) -> dict[str, int]:
        """Atom name to position in the residue."""
        return {name: i for i, name in enumerate(self.atoms)}


@cache
def residue_library() -> dict[str, ResidueTemplate]:
    """Every residue by name; the order of the keys defines the residue ids stored in solute files."""
    entries = json.loads(template_path("residues.json").read_text())
    return {
        name: ResidueTemplate(
            name=name,
            pdb_name=entry["pdb_name"],
            kind=entry["kind"],
            atoms=tuple(entry["atoms"]),
            elements=tuple(entry["elements"]),
            bonds=np.array(entry["bonds"], dtype=np.int32).reshape(-1, 2),
            chi=tuple(tuple(torsion) for torsion in entry["chi"]),
        )
        for name, entry in entries.items()
    }


@cache
def residue_names() -> tuple[str, ...]:
    """Residue names in library order: ``residue_names()[id]``."""
    return tuple(residue_library())
