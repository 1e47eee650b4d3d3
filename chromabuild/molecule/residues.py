"""The residue library: atoms, bonds and side-chain torsions of every residue that can be built.

It is read from templates/residues.json; how modified residues differ from their parents, from
templates/modified_residues.json.

Residues are named as the AMBER force field names them: ``NALA`` is an N-terminal alanine, ``HIE`` a histidine with its
hydrogen on NE2, ``DA5`` a 5'-terminal adenosine. ``pdb_name`` is what goes into files for other programs.
"""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild.base.files import template_path

SOLVENT = {"water": "HOH", "sodium": "NA", "potassium": "K", "magnesium": "MG", "chloride": "CL",
           "calcium": "CA"}
"""Residues of solvent by their key in the counts of a manifest, in global atom order; calcium stands
last, and only where there is some."""
SITE = "EP"
"""In place of the element of an atom without mass: OpenMM's and AMBER's name of an extra point."""

ZINC_LIGANDS = {"CYM": "SG", "HID": "NE2", "HIE": "ND1"}
"""Residues that bind zinc, and by which atom."""
POLYAMINES = {"SPM": 4, "SPD": 3}
"""Spermine and spermidine, and their charge."""
PHOSPHATE = "5P"
"""What the library's name of a nucleotide ends in that begins a strand with a phosphate."""
PHOSPHATE_3 = "3P"
"""And of one that ends a strand with a phosphate beyond its own."""


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
    modification: str = ""
    """Name in ``modifications()``; empty: unmodified."""
    link: str = ""
    """Atom of its side chain that is bonded to another chain or to a far residue of its own; empty: none is."""

    @property
    def index(self) -> dict[str, int]:
        """Atom name to position in the residue."""
        return {name: i for i, name in enumerate(self.atoms)}

    @property
    def inner_name(self) -> str:
        """Library name inside a chain: ``NLYS`` -> ``LYS``, ``DC5`` -> ``DC``, ``CALY`` -> ``ALY``."""
        if self.modification:
            return self.modification
        return self.name[:2] if self.kind == "nucleotide" else self.name[-3:]

    @property
    def parent(self) -> str:
        """Library name, inside a chain, of the residue without its modification: ``NLYS`` and ``CALY`` -> ``LYS``."""
        return modifications()[self.modification].parent if self.modification else self.inner_name

    @property
    def is_acylated(self) -> bool:
        """Whether its amino nitrogen is bound to an acyl group instead of the residue before it."""
        return bool(self.modification) and modifications()[self.modification].begins_chain

    @property
    def is_standard(self) -> bool:
        """Whether it is a standard residue of a polymer, whose atoms are ATOM records; all others are HETATM."""
        return self.kind in ("amino acid", "nucleotide") and (
            not self.modification or self.pdb_name == residue_library()[self.parent].pdb_name)

    @property
    def link_atom(self) -> str:
        """What a cross-link ends at: the atom of its side chain, or the carbonyl of a chain that ends in the link.

        Of zinc and its ligands, the ion itself and the atom that binds it.
        """
        return self.link or ("ZN" if self.name == "ZN" else ZINC_LIGANDS.get(self.inner_name, "C"))

    @property
    def base(self) -> str:
        """Letter of a nucleotide's base; a modified cytosine is a C."""
        return self.parent[1]


@dataclass(frozen=True)
class Modification:
    """How a modified residue differs from its parent (templates/modified_residues.json)."""

    name: str
    """Of the residue, as the Chemical Component Dictionary has it: ``ALY``."""
    title: str
    """Of the chemistry: ``N6-acetyl-lysine``."""
    parent: str
    """Library name, inside a chain: ``LYS``, ``DC``."""
    mark: str
    """What the field writes behind the residue's number (``ac``), or for the base (``5mC``)."""
    charge: int
    """Of the residue inside a chain, elementary charges; nucleotides with their phosphate."""
    charged_atom: str | None
    added: tuple[tuple[str, str, str], ...]
    """Atom, element, and the atom that it is bonded to."""
    begins_chain: bool
    """Whether it stands at the amino end of a chain only, and leaves no charge there."""
    place: dict[str, tuple[str, str, str, float, float, float]]
    """Of each new heavy atom: three atoms, length (angstrom), angle and torsion (degree)."""


@cache
def modifications() -> dict[str, Modification]:
    """Every modified residue by the name that it has inside a chain."""
    entries = json.loads(template_path("modified_residues.json").read_text())["residues"]
    return {name: Modification(name, entry["title"], entry["parent"], entry["mark"], entry["charge"],
                               entry["charged_atom"], tuple(tuple(atom) for atom in entry["add"]),
                               entry.get("begins_chain", False),
                               {atom: tuple(place) for atom, place in entry["place"].items()})
            for name, entry in entries.items()}


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
            modification=entry.get("modification", ""),
            link=entry.get("link", ""),
        )
        for name, entry in entries.items()
    }


@cache
def residue_names() -> tuple[str, ...]:
    """Residue names in library order: ``residue_names()[id]``."""
    return tuple(residue_library())


def heavy_atoms(name: str, end: str = "") -> list[str]:
    """Heavy atoms of a library residue in order, without OXT; ``end`` is N or C at the end of a chain."""
    entry = residue_library()[end + name]
    return [a for a, e in zip(entry.atoms, entry.elements, strict=True) if e != "H" and a != "OXT"]


def library_needed(residue_template: np.ndarray) -> list[ResidueTemplate]:
    """The unmodified residues, and modified ones up to the last that is among these library indices.

    What files say of the library does not change when it learns of modifications that they do not hold.
    """
    library = list(residue_library().values())
    unmodified = next((k for k, template in enumerate(library) if template.modification), len(library))
    highest = int(np.max(residue_template, initial=0))
    return library[:max(unmodified, highest + 1)]


def modification_counts(counts: np.ndarray) -> dict[str, int]:
    """Modified residues by name inside a chain, of how many (t,) there are of each residue of the library."""
    found: dict[str, int] = {}
    for template, count in zip(residue_library().values(), counts.tolist(), strict=True):
        if template.modification and count:
            found[template.modification] = found.get(template.modification, 0) + count
    return found
