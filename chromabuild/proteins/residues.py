"""Amino acids of a structure file as residues that can be modelled further."""

import gemmi
import numpy as np

from chromabuild.molecule.residues import heavy_atoms
from chromabuild.nucleosome.homology import BACKBONE, Residue
from chromabuild.nucleosome.peptide import plain_name, three_letters

STANDARD = "ACDEFGHIKLMNPQRSTVWY"


def complete_residues(chain: gemmi.Chain) -> list[Residue]:
    """Amino acids with a complete backbone; a side chain that is not complete waits to be built."""
    return [found for residue in chain if (found := complete_residue(residue)) is not None]


def complete_residue(residue: gemmi.Residue) -> Residue | None:
    """An amino acid with a complete backbone, as the standard one that it is or was made of; None for all others."""
    letter = standard_letter(residue)
    if letter is None:
        return None
    name = three_letters(letter)
    atoms = {}
    for wanted in heavy_atoms(name):
        atom = residue.find_atom(wanted, "*")
        if atom:
            atoms[wanted] = np.array(atom.pos.tolist())
    if not all(a in atoms for a in BACKBONE):
        return None
    if set(atoms) == set(heavy_atoms(name)):
        return Residue(name, residue.seqid.num, atoms)
    return Residue(name, residue.seqid.num, {a: atoms[a] for a in BACKBONE}, atoms, plain_name(name))


def standard_letter(residue: gemmi.Residue) -> str | None:
    """One-letter code of an amino acid, of its parent where it is modified; None for what has none."""
    table = gemmi.find_tabulated_residue(residue.name)
    letter = table.one_letter_code.upper()
    return letter if table.is_amino_acid() and letter in STANDARD else None
