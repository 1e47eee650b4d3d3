"""By how much modifications change the formal charges of the mesoscale model's tail beads."""

from dataclasses import replace
from functools import cache

import numpy as np

from chromabuild.molecule.residues import modifications
from chromabuild.nucleosome.mark_names import parse_mark
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.nucleosome.recipe import OctamerRecipe, build_octamer
from chromabuild.nucleosome.scaffold_tails import BEADS, bead_of_residue

_CHARGE = {"LYS": 1, "ARG": 1}  # of residues that can be modified; the others are neutral


def tail_charge_changes(recipes: list[OctamerRecipe]) -> tuple[tuple[float, ...], ...]:
    """Of every nucleosome the changes of its 50 beads, elementary charges; empty where no modification changes any."""
    changes = tuple(_changes(replace(recipe, linker_histone="", missing="")) for recipe in recipes)
    return changes if any(map(any, changes)) else ()


@cache
def _changes(recipe: OctamerRecipe) -> tuple[float, ...]:
    change = np.zeros(sum(BEADS))
    for mark in map(parse_mark, recipe.modifications):
        modification = modifications()[mark.residue_name]
        difference = modification.charge - _CHARGE.get(modification.parent, 0) - modification.begins_chain
        if difference:
            for copy in (0, 1) if mark.copy == 0 else (mark.copy - 1,):
                plain = _unmodified(replace(recipe, modifications=(), ph=None))
                bead = bead_of_residue(plain, mark.family, copy, mark.number)
                if bead is not None:
                    change[bead] += difference
    return tuple(change.tolist())


@cache
def _unmodified(recipe: OctamerRecipe) -> Octamer:
    return build_octamer(recipe, np.zeros((0, 3)), np.zeros(0, dtype=bool))
