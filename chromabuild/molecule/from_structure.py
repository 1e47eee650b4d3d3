"""A Solute of a PDB or mmCIF file of any origin, as far as it is protein and DNA of the residue library.

Heavy atoms must all be there: this is no program that completes structures. Hydrogens that are missing, or that have
names which the library does not know, are placed by geometry.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gemmi
import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.hydrogens import place_hydrogens
from chromabuild.molecule.residues import (
    PHOSPHATE,
    PHOSPHATE_3,
    ResidueTemplate,
    residue_library,
    residue_names,
)
from chromabuild.molecule.solute import CHAIN_LETTERS, LEAST_RESIDUE_NUMBER, MAX_RESIDUES_PER_SEGMENT, Solute, base_36
from chromabuild.molecule.structure_file import StructureFile

PEPTIDE_BOND, PHOSPHODIESTER_BOND, DISULPHIDE_BOND, ISOPEPTIDE_BOND = 2.0, 2.2, 2.5, 1.7
"""Angstrom within which C and N, O3' and P, two sulphurs, and NZ and the end of a chain count as bonded."""
RESIDUE_ALIASES = {
    "HIS": "HIE", "HSD": "HID", "HSE": "HIE", "HSP": "HIP", "ADE": "DA", "CYT": "DC", "GUA": "DG", "THY": "DT",
    "A": "DA", "C": "DC", "G": "DG", "T": "DT", "CYX": "CYS", "LYN": "LYS", "ASH": "ASP", "GLH": "GLU",
}  # fmt: skip
"""Other programs' names. Protonation states that the library lacks become the usual ones."""
ATOM_ALIASES = {
    "O1P": "OP1", "O2P": "OP2", "HN": "H", "C5M": "C7", "OT1": "O", "OT2": "OXT", "HT1": "H1", "HT2": "H2", "HT3": "H3",
    "H5T": "HO5'", "H3T": "HO3'", "H5'1": "H5'", "H5'2": "H5''", "H2'1": "H2'", "H2'2": "H2''",
}  # fmt: skip


@dataclass
class Converted:
    """A structure as a Solute."""

    solute: Solute
    left_out: str
    """What of the file is not in it, as a phrase; empty when nothing is."""
    hydrogens_placed: int
    """Residues whose hydrogens were placed."""
    others: tuple[int, ...] = ()
    """Residues of the file, from 0, that are not in it."""


@dataclass
class _Residue:
    """A residue on its way into the solute."""

    label: str
    kind: str
    base: str
    """Its name in the library inside a chain."""
    atoms: dict[str, np.ndarray]
    number: str
    piece: int
    template: ResidueTemplate | None = None

    def distance(self, own: str, other: "_Residue", theirs: str) -> float:
        """Angstrom between two atoms; infinite where one is missing."""
        if own not in self.atoms or theirs not in other.atoms:
            return np.inf
        return float(np.linalg.norm(self.atoms[own] - other.atoms[theirs]))

    def followed_by(self, other: "_Residue") -> bool:
        """Whether a covalent bond of the backbone leads to the other residue."""
        if self.piece != other.piece or self.kind != other.kind:
            return False
        return (self.distance("C", other, "N") < PEPTIDE_BOND if self.kind == "amino acid"
                else self.distance("O3'", other, "P") < PHOSPHODIESTER_BOND)


def solute_of_structure(path: str | Path) -> Converted:
    """Protein and DNA of the first model; solvent and ions stay behind, and ``left_out`` counts them.

    A chain ends where the backbone is broken. Its first amino acid gets a charged end unless the file has all
    hydrogens of an inner one; its last one is an end where the file has OXT.
    Raises BadInputError for a file without protein and DNA, an unknown residue, a missing heavy atom, an atom with
    two bonds to other chains.
    """
    structure = StructureFile.read(path)
    residues, others = _polymer_residues(structure, path)
    left_out = [", ".join(f"{count} {name}" for name, count in
                          sorted(Counter(structure.residue_name[k] for k in others).items()))]
    if not residues:
        raise BadInputError(f"{path} holds no protein and no DNA: give a structure with a chain to correct")
    joined = [False, *(a.followed_by(b) for a, b in zip(residues, residues[1:], strict=False)), False]
    links = _join(residues, joined, path)
    surplus = 0
    for k, residue in enumerate(residues):
        residue.template = _template(residue, joined[k], joined[k + 1], path)
        surplus += sum(name not in residue.template.index and not name.startswith(("H", "D"))
                       for name in residue.atoms)
    if surplus:
        left_out.append(f"{surplus} atoms at chain ends that the library lacks")
    kinds = [residue.template for residue in residues]
    place = {name: k for k, name in enumerate(residue_names())}
    template = np.array([place[kind.name] for kind in kinds], dtype=np.uint16)
    first_atom = np.concatenate([[0], np.cumsum([len(kind.atoms) for kind in kinds])])
    position, placed = _positions(residues, template, first_atom, links)
    first = np.flatnonzero(~np.array(joined[:-1]))
    bounds = np.append(first, len(residues))
    segments = _segment_names([residues[k].label.split(":")[0] for k in first])
    solute = Solute(
        position=position.astype(np.float32), residue_template=template,
        residue_number=np.concatenate([_numbers(residues[a:b]) for a, b in zip(bounds, bounds[1:], strict=False)]),
        residue_segment=np.repeat(np.arange(len(first)), np.diff(bounds)).astype(np.uint16), segment_name=segments,
        segment_chain=[CHAIN_LETTERS[k % len(CHAIN_LETTERS)] for k in range(len(first))],
        molecule_first_residue=bounds.astype(np.int64),
        molecule_name=["DNA" if residues[k].kind == "nucleotide" else "protein" for k in first],
        molecule_nucleosome=np.full(len(first), -1, dtype=np.int32), provenance={"structure": Path(path).name},
        links=tuple(links))
    return Converted(solute, " and ".join(part for part in (structure.left_out, *left_out) if part), placed,
                     tuple(others))


def _polymer_residues(structure: StructureFile, path: str | Path) -> tuple[list[_Residue], list[int]]:
    """Amino acids and nucleotides under the library's names, and which residues of the file are others."""
    first = np.searchsorted(structure.residue, np.arange(len(structure.residue_name) + 1)).tolist()
    residues: list[_Residue] = []
    others: list[int] = []
    for k, (name, label) in enumerate(zip(structure.residue_name, structure.residue_label, strict=True)):
        atoms = {}
        own = residue_library()[name].index if name in residue_library() else {}
        for i in range(first[k], first[k + 1]):
            spelled = structure.name[i].replace("*", "'")
            atoms[spelled if spelled in own else ATOM_ALIASES.get(spelled, spelled)] = structure.position[i]
        base = _base_name(name, atoms)
        if base is None:
            info = gemmi.find_tabulated_residue(name)
            # A calcium ion is called CA as a central carbon is.
            if info.is_amino_acid() or info.is_nucleic_acid() or len(atoms) > 1 and not {"CA", "C1'"}.isdisjoint(atoms):
                raise BadInputError(f"{path}: residue {label} is not in the library of residues: replace it by a "
                                    "standard residue; only chromabuild clash check takes it as it is")
            others.append(k)
            continue
        kind = residue_library()[base].kind
        residues.append(_Residue(label, kind, base, atoms, label.rsplit(":", 1)[1], int(structure.piece[k])))
    return residues, others


def _base_name(name: str, atoms: dict[str, np.ndarray]) -> str | None:
    """The library's name of a residue inside a chain; None for what is neither amino acid nor DNA of the library."""
    if "O2'" in atoms:
        return None
    known = RESIDUE_ALIASES.get(name, name)
    if known in ("HID", "HIE", "HIP") and not {"HD1", "HE2"}.isdisjoint(atoms):
        return "HIP" if {"HD1", "HE2"} <= atoms.keys() else "HID" if "HD1" in atoms else "HIE"
    if known[:1] in "NC" and known[1:] in residue_library() and len(known) == 4:
        known = known[1:]
    elif known[:2] in ("DA", "DC", "DG", "DT") and known[2:] in ("3", "5", PHOSPHATE, PHOSPHATE_3):
        known = known[:2]
    template = residue_library().get(known)
    return known if template is not None and template.kind in ("amino acid", "nucleotide") else None


def _template(residue: _Residue, has_before: bool, has_after: bool, path: str | Path) -> ResidueTemplate:
    """The library's form of a residue by what it is joined to. Raises BadInputError when a heavy atom is missing."""
    name = residue.base
    if residue.kind == "amino acid":
        inside = "H" in residue_library()[name].index and set(residue_library()[name].atoms) <= residue.atoms.keys()
        if not has_before and not inside and not residue_library()[name].is_acylated:
            name = f"N{name}"
        elif not has_after and "OXT" in residue.atoms:
            name = f"C{name}"
    elif not has_before and not {"P", "OP3"} - residue.atoms.keys():
        name += PHOSPHATE
    elif not has_before and "P" not in residue.atoms:
        name += "5"
    elif not has_after:
        name += "3" if "P3" not in residue.atoms else PHOSPHATE_3
    if name not in residue_library():
        raise BadInputError(f"{path}: residue {residue.label} is {residue.base}, which cannot end a chain: complete "
                            "the structure first (PDBFixer does); only chromabuild clash check takes it as it is")
    template = residue_library()[name]
    missing = [atom for atom in _heavy_atoms(name) if atom not in residue.atoms]
    if missing:
        raise BadInputError(f"{path}: residue {residue.label} lacks {', '.join(missing)}: complete the structure first "
                            "(PDBFixer does); only chromabuild clash check takes it as it is")
    return template


@cache
def _heavy_atoms(name: str) -> tuple[str, ...]:
    template = residue_library()[name]
    return tuple(atom for atom, element in zip(template.atoms, template.elements, strict=True) if element != "H")


def _positions(residues: list[_Residue], template: np.ndarray, first_atom: np.ndarray, links: list[tuple[int, int]]
               ) -> tuple[np.ndarray, int]:
    """(n, 3) float64 of all atoms, and how many residues had to get hydrogens."""
    nowhere = np.full(3, np.nan)
    position = np.array([residue.atoms.get(name, nowhere) for residue in residues for name in residue.template.atoms])
    given = position.copy()
    place_hydrogens(position, template, first_atom, links)
    owner = np.repeat(np.arange(len(residues)), np.diff(first_atom))
    incomplete = np.zeros(len(residues), dtype=bool)
    incomplete[owner[np.isnan(given).any(axis=1)]] = True
    # All hydrogens of a residue come from one source: theirs and ours need not bear the same names.
    kept = ~incomplete[owner]
    position[kept] = given[kept]
    return position, int(incomplete.sum())


def _join(residues: list[_Residue], joined: list[bool], path: str | Path) -> list[tuple[int, int]]:
    """Pairs of residues that disulphides and isopeptide bonds join; their ``base`` becomes that of the linked form.

    Raises BadInputError for an atom with two such bonds.
    """
    pairs: list[tuple[int, int]] = []
    for base, linked, atom, partner, reach in (("CYS", "CYX", "SG", "SG", DISULPHIDE_BOND),
                                               ("LYS", "KUB", "NZ", "C", ISOPEPTIDE_BOND)):
        own = [k for k, one in enumerate(residues) if one.base == base and atom in one.atoms]
        theirs = own if atom == partner else [k for k, one in enumerate(residues) if not joined[k + 1]
                                              and one.kind == "amino acid" and partner in one.atoms
                                              and "OXT" not in one.atoms]
        if not own or not theirs:
            continue
        tree = cKDTree([residues[k].atoms[partner] for k in theirs])
        for k in own:
            for i in tree.query_ball_point(residues[k].atoms[atom], reach):
                if theirs[i] != k and (atom != partner or theirs[i] > k):
                    pairs.append((k, theirs[i]))
        for k in {k for pair in pairs for k in pair if residues[k].base == base}:
            residues[k].base = linked
    once = [k for pair in pairs for k in pair]
    twice = next((k for k in once if once.count(k) > 1), None)
    if twice is not None:
        raise BadInputError(f"{path}: {residues[twice].label} is bonded to two residues at once: correct the file; "
                            "only chromabuild clash check takes it as it is")
    return pairs


def _numbers(residues: list[_Residue]) -> np.ndarray:
    """(r,) int32: the numbers of the file where they ascend within what a Solute holds, else from 1 on."""
    if all(residue.number.removeprefix("-").isdigit() for residue in residues):
        numbers = np.array([int(residue.number) for residue in residues])
        held = numbers[0] >= LEAST_RESIDUE_NUMBER and numbers[-1] <= MAX_RESIDUES_PER_SEGMENT
        if held and (np.diff(numbers) > 0).all():
            return numbers.astype(np.int32)
    return np.arange(1, len(residues) + 1, dtype=np.int32)


def _segment_names(names: list[str]) -> list[str]:
    """Names of up to four characters, unique: those of the file, with a number where one comes again."""
    taken: set[str] = set()
    found = []
    for name in names:
        short, number = name[:4] or "A", 1
        while short in taken:
            number += 1
            short = f"{name[:1]}{base_36(number, 3)}"
        taken.add(short)
        found.append(short)
    return found
