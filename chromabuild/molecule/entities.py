"""Entities and chains of PDBx/mmCIF: what molecules are instances of, and their names."""

import numpy as np

from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def chain_name(number: int) -> str:
    """A, B, ..., Z, AA, AB, ... of molecules from 0.

    >>> chain_name(0), chain_name(25), chain_name(26), chain_name(701), chain_name(702)
    ('A', 'Z', 'AA', 'ZZ', 'AAA')
    """
    text, number = "", number + 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = _LETTERS[digit] + text
    return text


def entity_of_molecules(solute: Solute) -> list[int]:
    """Entity of each molecule, from 1: molecules of one sequence and name are instances of the same."""
    known: dict[tuple[str, bytes], int] = {}
    first = solute.molecule_first_residue
    names = np.array([template.pdb_name for template in residue_library().values()])
    _, kind = np.unique(names, return_inverse=True)  # ends and protonation states are the same residue
    return [known.setdefault((name, kind[solute.residue_template[a:b]].tobytes()), len(known) + 1)
            for name, a, b in zip(solute.molecule_name, first[:-1], first[1:], strict=True)]


def place_in_molecule(solute: Solute) -> tuple[np.ndarray, np.ndarray]:
    """(r,) molecule of each residue, and (r,) its place there from 1: ``label_seq_id``."""
    first = solute.molecule_first_residue
    molecule = np.repeat(np.arange(len(first) - 1), np.diff(first))
    return molecule, np.arange(solute.n_residues) - first[molecule] + 1
