"""The octamers of a fibre: one for each recipe, tails along the scaffold's beads, atoms beside wrapped DNA."""

from dataclasses import replace
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.build.duplex import build_dna
from chromabuild.dna.arms import rows_on_arms, with_arms
from chromabuild.dna.backbone import ATOM_CLASS
from chromabuild.dna.helix import DYAD, RelaxedPath, crystal_path
from chromabuild.genome.wrapping import ARM
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.octamer import LINKER_CHAIN, Octamer
from chromabuild.nucleosome.protonation import CHARGED
from chromabuild.nucleosome.recipe import OctamerRecipe, build_octamer, unusual_protonation
from chromabuild.nucleosome.scaffold_tails import BEADS, follow_beads
from mesoscale.scaffold import Scaffold

BESIDE_DNA = 7.0  # angstrom: farther from wrapped DNA, an atom of an octamer does not bother any backbone
BEAD_TOLERANCE = 3.0  # angstrom rms from a tail's beads


@cache
def octamer_of_recipe(recipe: OctamerRecipe) -> Octamer:
    """The octamer of a recipe; new side chains keep clear of DNA on the crystal's path, A, C, G, T in turn."""
    if not (recipe.mutations or recipe.modifications):
        return build_octamer(recipe, np.zeros((0, 3)), np.zeros(0, dtype=bool))
    return build_octamer(recipe, *wrapped_dna())


def with_scaffold_tails(octamers: list[Octamer], scaffold: Scaffold, seed: int) -> tuple[list[Octamer], dict]:
    """Octamers whose tails follow the scaffold's beads, and how closely (angstrom) for the build report; DNA alone has
    nothing to report."""
    if not octamers:
        return octamers, {}
    if scaffold.tails is None:
        raise BadInputError("the scaffold holds no tail beads for build.tails = scaffold: run chromabuild scaffold")
    beads = np.einsum("mji,mkj->mki", scaffold.core_frame, scaffold.tails - scaffold.core_origin[:, None])
    surroundings, _ = wrapped_dna()
    result, deviation = list(octamers), np.full(beads.shape[:2], np.nan)
    # Nucleosomes of one recipe share one octamer: each kind is followed along all its rows of beads at once.
    for kind in dict.fromkeys(id(octamer) for octamer in octamers):
        rows = np.flatnonzero([id(octamer) == kind for octamer in octamers])
        positions, deviation[rows] = follow_beads(octamers[rows[0]], beads[rows], surroundings, seed)
        for row, position in zip(rows, positions, strict=True):
            result[row] = replace(octamers[row], position=position)
    start = np.concatenate([[0], np.cumsum(BEADS)[:-1]])
    square = np.add.reduceat(np.nan_to_num(deviation) ** 2, start, axis=1)
    count = np.add.reduceat(np.isfinite(deviation).astype(int), start, axis=1)
    rms = np.sqrt(square / np.maximum(count, 1))
    return result, {"tail_beads_followed": int(count.sum()),
                    "tail_bead_rms": round(float(np.sqrt(square.sum() / max(count.sum(), 1))), 3),
                    "tail_bead_rms_largest": round(float(rms.max()), 3),
                    "tails_beyond_3_angstrom": int(np.sum(rms > BEAD_TOLERANCE))}


def atoms_beside_dna(octamers: list[Octamer], proteins: list[Octamer], path: RelaxedPath
                     ) -> tuple[np.ndarray, np.ndarray] | None:
    """Heavy atoms (k, 3; angstrom) of placed octamers and other proteins that their DNA can touch, and their
    ``ATOM_CLASS`` (k,); None where there are neither."""
    if not octamers and not proteins:
        return None
    library, beside = list(residue_library().values()), {}
    for octamer in (*octamers, *proteins):
        if id(octamer) not in beside:
            element = np.concatenate([library[k].elements for k in octamer.residue_template])
            near = np.ones(len(element), dtype=bool)
            if all(octamer is not one for one in proteins):
                wrapped = cKDTree(wrapped_dna(arms=LINKER_CHAIN in octamer.chain)[0])
                near = wrapped.query(octamer.position, distance_upper_bound=BESIDE_DNA)[0] < BESIDE_DNA
            rows = np.flatnonzero(near & (element != "H"))
            kind = np.array([ATOM_CLASS.get(e, ATOM_CLASS["C"]) for e in element[rows]], dtype=np.int32)
            beside[id(octamer)] = octamer.position[rows], kind
    last = len(path.core_origin) - len(proteins)  # a superhelix leaves its octamers out
    cores = [*range(len(octamers)), *range(last, len(path.core_origin))]
    position = [path.core_origin[k] + beside[id(one)][0] @ path.core_frame[k].T
                for k, one in zip(cores, (*octamers, *proteins), strict=True)]
    return np.concatenate(position), np.concatenate([beside[id(one)][1] for one in (*octamers, *proteins)])


def octamer_counts(recipes: list[OctamerRecipe]) -> list[dict]:
    """How many nucleosomes carry which histones."""
    lacking = any(recipe.missing for recipe in recipes)
    return [{"histones": "template" if recipe.template else recipe.species,
             "marks": ", ".join(recipe.marks) or "none",
             "linker_histone": recipe.linker_histone or "none",
             **({"missing_dimers": recipe.missing or "none"} if lacking else {}),
             "nucleosomes": recipes.count(recipe)} for recipe in sorted(set(recipes))]


def protonation_report(recipes: list[OctamerRecipe]) -> dict:
    """Charged histidines of all nucleosomes, and side chains in a state that the build does not give them; by `ph`."""
    if all(recipe.ph is None for recipe in recipes):
        return {}
    names, charged, others = list(residue_library().values()), 0, set()
    for recipe in set(recipes):
        core = octamer_of_recipe(recipe)
        charged += recipes.count(recipe) * sum(names[k].inner_name == CHARGED for k in core.residue_template)
        others |= set(unusual_protonation(recipe, core))
    return {"protonation": {"ph": recipes[0].ph, "charged_histidines": charged,
                            "as_usual_in_spite_of_pka": sorted(others)}}


@cache
def wrapped_dna(arms: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Heavy atoms (n, 3; angstrom) of DNA on the crystal's path, A, C, G, T in turn, and which are polar (n,).

    ``arms``: with those that a linker histone holds.
    """
    origin, frame = crystal_path()
    if arms:
        order = rows_on_arms(np.arange(-DYAD - ARM, DYAD + ARM + 1))
        origin, frame = (part[order] for part in with_arms((origin, frame)))
    position, template, _ = build_dna(np.arange(len(origin)) % 4, origin, frame)
    library = list(residue_library().values())
    element = np.concatenate([library[kind].elements for kind in template])
    heavy = element != "H"
    return position[heavy], np.isin(element[heavy], ("N", "O"))
