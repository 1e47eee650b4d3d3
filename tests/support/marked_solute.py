"""A small solute that carries modifications: twelve base pairs of methylated cytosines, a tail of H3 with marks."""

from functools import cache

import numpy as np

from chromabuild.build.duplex import build_dna
from chromabuild.build.octamers import octamer_of_recipe
from chromabuild.dna.helix import crystal_path
from chromabuild.dna.sequence import both_strands
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.recipe import OctamerRecipe

SEQUENCE = np.array([1, 2, 0, 1, 2, 3, 1, 1, 2, 0, 1, 2])  # CGACGTCCGACG
TAIL = 36
WHOLE = 135
MARKS = ("H3A1nac", "H3K4me3", "H3K9ac", "H3S28ph")


@cache
def marked_solute(marks: tuple[str, ...] = MARKS, length: int = TAIL) -> Solute:
    """Strands I and J, whose cytosines are 5mC but for the last two of J (5hmC, 5fC), and the first residues of H3."""
    modified = np.where(both_strands(SEQUENCE) == 1, 1, 0)
    modified[np.flatnonzero(modified)[-2:]] = 2, 3
    dna, kinds, _ = build_dna(SEQUENCE, *(x[68:80] for x in crystal_path()), modified=modified)
    recipe = OctamerRecipe()
    for mark in marks:
        recipe = recipe.with_mark(mark)
    core = octamer_of_recipe(recipe)
    tail = core.position[:core.first_atom[length]]
    n = len(SEQUENCE)
    return Solute(
        position=np.concatenate([dna, tail]).astype(np.float32),
        residue_template=np.concatenate([kinds, core.residue_template[:length]]).astype(np.uint16),
        residue_number=np.concatenate([np.tile(np.arange(n) + 1, 2), core.residue_number[:length]]).astype(np.int32),
        residue_segment=np.repeat([0, 1, 2], [n, n, length]).astype(np.uint16), segment_name=["DI00", "DJ00", "000A"],
        segment_chain=["A", "B", "C"], molecule_first_residue=np.array([0, n, 2 * n, 2 * n + length]),
        molecule_name=["DNA-I", "DNA-J", "H3"], molecule_nucleosome=np.array([-1, -1, 0], np.int32))
