"""Formal charges of the mesoscale model's tail beads, and by how much they differ from those of 1KX5."""

from dataclasses import replace
from functools import cache

import numpy as np

from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.nucleosome.mark_names import parse_mark
from chromabuild.nucleosome.octamer import FAMILIES, Octamer
from chromabuild.nucleosome.recipe import MUTATION, OctamerRecipe, build_octamer
from chromabuild.nucleosome.scaffold_tails import BEADS, beads_of_residues

_CHARGE = {"LYS": 1, "ARG": 1, "ASP": -1, "GLU": -1, "HIP": 1}
_LETTER_CHARGE = {"K": 1, "R": 1, "D": -1, "E": -1}


def tail_charge_changes(recipes: list[OctamerRecipe]) -> tuple[tuple[float, ...], ...]:
    """Of every nucleosome by how much its 50 beads differ from those of 1KX5, elementary charges; empty where none do.

    Variants, species, templates, mutations and modifications count.
    """
    changes = tuple(_changes(replace(recipe, linker_histone="", missing="")) for recipe in recipes)
    return changes if any(map(any, changes)) else ()


@cache
def _changes(recipe: OctamerRecipe) -> tuple[float, ...]:
    plain = unmodified(recipe)
    change = _formal_charges(plain) - _formal_charges(unmodified(OctamerRecipe()))
    beads = {(int(chain), int(number)): bead for chain, number, bead in
             zip(plain.residue_chain, plain.residue_number, beads_of_residues(plain), strict=True) if bead >= 0}
    for family, number, copy, difference in charge_changes(recipe):
        for chain in (k for k, name in enumerate(FAMILIES) if name == family):
            if copy in (0, chain // 4 + 1) and (chain, number) in beads:
                change[beads[chain, number]] += difference
    return tuple(change.tolist())


def charge_changes(recipe: OctamerRecipe) -> list[tuple[str, int, int, int]]:
    """Family, number, copy (0: both) and change of formal charge of every mutation and modification of a recipe."""
    found = []
    for mark in map(parse_mark, recipe.modifications):
        modification = modifications()[mark.residue_name]
        difference = modification.charge - _CHARGE.get(modification.parent, 0) - modification.begins_chain
        found.append((mark.family, mark.number, mark.copy, difference))
    for parts in map(MUTATION.match, recipe.mutations):
        difference = _LETTER_CHARGE.get(parts["new"], 0) - _LETTER_CHARGE.get(parts["old"], 0)
        found.append((parts["histone"], int(parts["number"]), 0, difference))
    return found


@cache
def unmodified(recipe: OctamerRecipe) -> Octamer:
    """The octamer of a recipe without its linker histone, mutations and modifications, with no DNA beside it."""
    return build_octamer(replace(recipe, mutations=(), modifications=(), linker_histone="", missing=""),
                         np.zeros((0, 3)), np.zeros(0, dtype=bool))


def _formal_charges(core: Octamer) -> np.ndarray:
    """(50,) of the beads at pH 7: side chains and the ends of chains."""
    library = list(residue_library().values())
    entries = [library[kind] for kind in core.residue_template]
    charge = np.array([_CHARGE.get(entry.inner_name, 0) + (entry.name == f"N{entry.inner_name}")
                       - (entry.name == f"C{entry.inner_name}") for entry in entries], dtype=float)
    beads = beads_of_residues(core)
    return np.bincount(beads[beads >= 0], weights=charge[beads >= 0], minlength=sum(BEADS))
