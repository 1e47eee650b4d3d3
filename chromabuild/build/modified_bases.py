"""Modified cytosines: which residue stands for which code, and atoms that stand out of the ring."""

from dataclasses import replace
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.settings import Settings
from chromabuild.dna.backbone import ATOM_CLASS, base_layout
from chromabuild.genome.circle import Circle
from chromabuild.genome.methylation import MODIFIED, read_methylation
from chromabuild.genome.records_used import RecordsUsed
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.nucleosome.mark_names import parse_mark
from chromabuild.nucleosome.peptide import place, rotate
from chromabuild.nucleosome.recipe import OctamerRecipe

GROUP = ("O5", "HO5", "H5M1", "H5M2")
"""What turns about the bond of the hydroxymethyl to the ring."""
TURNS = (0.0, 15.0, -15.0, 30.0, -30.0, 180.0, 165.0, -165.0, 150.0, -150.0)
"""Degree, from where the table puts the oxygen, at right angles to the ring."""
ROOM = np.array([[2.9, 2.4], [2.4, 2.1]])
"""Angstrom that heavy atoms and hydrogens need, by whether either is a hydrogen."""
THYMINE = 3
"""Index of the base that a substituted cytosine is like where bases stack: both have a carbon at C5."""


@cache
def residue_of_code(code: int) -> str:
    """Library name, inside a strand, of the cytosine with a code of ``genome.methylation``."""
    return next(name for name, change in modifications().items() if change.mark == MODIFIED[code - 1])


def modified_bases(config: Settings, chromosome: str, position: np.ndarray, sequence: str,
                   used: RecordsUsed | None = None, circle: Circle | None = None) -> np.ndarray | None:
    """(2n,) codes of strand I, then of strand J, each 5' to 3', by `build.methylation`; None where it is empty.

    ``position`` (n,) holds the 0-based positions of the letters of the sequence, which may begin anywhere in a circle;
    ``used``, ``circle`` and what is raised are those of ``read_methylation``.
    """
    section = config.build
    if not section.methylation:
        return None
    order = np.argsort(position)
    by_pair = np.empty((2, len(sequence)), np.int8)
    by_pair[:, order] = read_methylation(section.methylation, chromosome, int(position[order[0]]),
                                         "".join(sequence[k] for k in order), section.methylation_threshold,
                                         config.seed, used, circle)
    return np.concatenate([by_pair[0], by_pair[1, ::-1]])


def modification_table(recipes: list[OctamerRecipe], modified: np.ndarray | None) -> list[dict]:
    """How many residues carry each modification, and their formal charge: histone marks by name, then bases."""
    counts: dict[tuple[str, str], int] = {}
    for recipe in recipes:
        for mark in map(parse_mark, recipe.modifications):
            key = replace(mark, copy=0).name, mark.residue_name
            counts[key] = counts.get(key, 0) + (1 if mark.copy else 2)
    counts = dict(sorted(counts.items()))
    if modified is not None:
        counts |= {(name, residue_of_code(code)): int((modified == code).sum())
                   for code, name in enumerate(MODIFIED, start=1) if (modified == code).any()}
    return [{"modification": name, "residue": residue, "residues": count, "charge": modifications()[residue].charge}
            for (name, residue), count in counts.items()]


def added_atoms(name: str, base_atoms: np.ndarray) -> dict[str, np.ndarray]:
    """New heavy atoms (k, 3) of modified cytosines ``name`` by atom name, from their rings (k, 11, 3), kernel order."""
    known = dict(zip(base_layout().atoms["C"], np.moveaxis(base_atoms, 1, 0), strict=False))
    added = {}
    for atom, (a, b, c, length, angle, torsion) in modifications()[name].place.items():
        known[atom] = added[atom] = place(known[a], known[b], known[c], length, angle, torsion)
    return added


def substituents(modified: np.ndarray, base_atoms: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """New heavy atoms (k, 3) of all modified cytosines (2n,) and their ``ATOM_CLASS``; None where there are none.

    The backbone keeps clear of them as it does of thymine's methyl.
    """
    position, kind = [], []
    for code in np.unique(modified[modified > 0]).tolist():
        added = added_atoms(residue_of_code(code), base_atoms[modified == code])
        position += added.values()
        kind += [np.full(len(x), ATOM_CLASS["O" if atom.startswith("O") else "M"]) for atom, x in added.items()]
    return (np.concatenate(position), np.concatenate(kind).astype(np.int32)) if position else None


def settle_hydroxymethyls(position: np.ndarray, residue_template: np.ndarray, first_atom: np.ndarray) -> None:
    """Turn the hydroxymethyl of every 5-hydroxymethylcytosine, out of the ring's plane, to where it has most room.

    Args:
        position: (n, 3) of all atoms, hydrogens placed; oxygen and hydrogens of those groups are changed.
        residue_template: (r,) library index of every residue.
        first_atom: (r + 1,) first atom of every residue.
    """
    library = list(residue_library().values())
    which = [k for k, kind in enumerate(residue_template) if set(GROUP) <= set(library[kind].atoms)]
    if not which:
        return
    hydrogen = np.concatenate([library[kind].elements for kind in residue_template]) == "H"
    tree, owner = cKDTree(position), np.repeat(np.arange(len(residue_template)), np.diff(first_atom))
    for k in which:
        index = library[residue_template[k]].index
        group = first_atom[k] + np.array([index[atom] for atom in GROUP])
        joint, centre = (position[first_atom[k] + index[atom]] for atom in ("C5", "C5M"))
        near = [i for i in tree.query_ball_point(centre, 6.0) if owner[i] != k]
        room = ROOM[hydrogen[group].astype(int)[:, None], hydrogen[near].astype(int)[None]]
        axis = (centre - joint) / np.linalg.norm(centre - joint)
        turned = rotate(np.repeat(position[group][None], len(TURNS), axis=0), centre, axis, np.array(TURNS))
        apart = np.linalg.norm(turned[:, :, None] - position[near], axis=-1) - room
        position[group] = turned[int(np.argmax(apart.min(axis=(1, 2), initial=9.0)))]
