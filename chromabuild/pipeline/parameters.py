"""Whether the force field of the settings describes what the build puts on nucleosomes and DNA."""

import numpy as np

from chromabuild.base.settings import Settings
from chromabuild.build.modified_bases import modified_bases
from chromabuild.forcefield.modified_residues import check_parameters
from chromabuild.genome.locus import load_locus
from chromabuild.genome.methylation import MODIFIED
from chromabuild.nucleosome.marks import octamer_recipes
from chromabuild.nucleosome.recipe import OctamerRecipe
from mesoscale.fibre import Fibre
from mesoscale.scaffold import Scaffold


def check_modifications(config: Settings, chromosome: str, start: int, sequence: str, dyads: np.ndarray
                        ) -> tuple[list[OctamerRecipe], np.ndarray | None]:
    """The recipe of every nucleosome, and codes (2n,) of modified bases, None without `build.methylation`.

    ``start`` is the 0-based position of the first letter of the sequence (n,), ``dyads`` (m,) are indices into it.
    Raises BadInputError for marks and methylation that do not fit, and for a modification that `dynamics.force_field`
    has no parameters for.
    """
    recipes = octamer_recipes(config.build, chromosome, start + np.asarray(dyads), config.seed)
    modified = modified_bases(config, chromosome, start, sequence)
    bases = [] if modified is None else [MODIFIED[code - 1] for code in np.unique(modified[modified > 0])]
    marks = {mark for recipe in set(recipes) for mark in recipe.modifications}
    check_parameters(marks, bases, config.dynamics.force_field, config.dynamics.force_field_files)
    return recipes, modified


def check_fibre(config: Settings, fibre: Fibre) -> tuple[list[OctamerRecipe], np.ndarray | None]:
    """The same of a fibre."""
    return check_modifications(config, fibre.chromosome, fibre.start, fibre.sequence, np.array(fibre.dyads))


def check_scaffold(config: Settings, scaffold: Scaffold) -> None:
    """The same of a scaffold, before it is built."""
    check_modifications(config, scaffold.chromosome, int(scaffold.position[0]), bytes(scaffold.base).decode(),
                        scaffold.dyad)


def check_before_work(config: Settings) -> None:
    """The same for the locus of the settings, where they ask for anything that could be a modification."""
    section = config.build
    if section.marks or section.methylation or section.variants:
        check_fibre(config, load_locus(config.locus, config.seed).fibre())
