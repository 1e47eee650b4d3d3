"""Whether the force field of the settings describes what the build puts on nucleosomes and DNA."""

from collections.abc import Sequence

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.build.modified_bases import modified_bases
from chromabuild.forcefield.modified_residues import (
    analogy_note,
    check_parameters,
    force_fields_with,
    is_by_analogy,
)
from chromabuild.forcefield.rules import is_known
from chromabuild.genome.chromosomes import Chromosome
from chromabuild.genome.circle import Circle
from chromabuild.genome.methylation import MODIFIED
from chromabuild.molecule.residues import PHOSPHATE, PHOSPHATE_3
from chromabuild.nucleosome.marks import octamer_recipes
from chromabuild.nucleosome.recipe import OctamerRecipe
from chromabuild.solvate.bound_ions import KEYS
from mesoscale.fibre import Fibre, MissingDimer
from mesoscale.scaffold import Scaffold


def check_modifications(config: Settings, chromosome: str, position: np.ndarray, sequence: str, dyads: np.ndarray,
                        missing: Sequence[MissingDimer] = ()
                        ) -> tuple[list[OctamerRecipe], np.ndarray | None, str]:
    """The recipe of every nucleosome, codes (2n,) of modified bases (None without `build.methylation`), and a note.

    The note names modifications whose parameters are by analogy; it is empty where there are none.

    ``position`` (n,) holds the 0-based positions of the letters of the sequence, ``dyads`` (m,) are indices into it,
    ``missing`` (m,) the dimers that nucleosomes lack.
    Raises BadInputError for marks and methylation that do not fit, and for a modification that `dynamics.force_field`
    has no parameters for.
    """
    circle = Circle.around(position, config.locus)
    recipes = octamer_recipes(config.build, chromosome, position[np.asarray(dyads, dtype=int)], config.seed, missing,
                              circle)
    modified = modified_bases(config, chromosome, position, sequence, circle=circle)
    bases = [] if modified is None else [MODIFIED[code - 1] for code in np.unique(modified[modified > 0])]
    marks = {mark for recipe in set(recipes) for mark in recipe.modifications}
    alike = check_parameters(marks, bases, config.dynamics.force_field, config.dynamics.force_field_files)
    _check_ends(config)
    _check_bound_ions(config)
    return recipes, modified, analogy_note([*alike, *_ions_by_analogy(config)])


def _check_ends(config: Settings) -> None:
    """Raise BadInputError for phosphates at the ends of DNA that the force field has no parameters for."""
    dynamics = config.dynamics
    for key, end in (("five_prime", PHOSPHATE), ("three_prime", PHOSPHATE_3)):
        if getattr(config.build, key) == "phosphate" and not config.locus.circular and not is_known(
                f"DA{end}", dynamics.force_field, dynamics.force_field_files):
            raise BadInputError(f"force field {dynamics.force_field} has no parameters for build.{key} = phosphate: "
                                f"set dynamics.force_field to {' or '.join(force_fields_with(f'DA{end}'))}, or "
                                f"build.{key} to hydroxyl")


def _ions_by_analogy(config: Settings) -> list[str]:
    """Settings of ions whose parameters are by analogy."""
    dynamics = config.dynamics
    return [f"solvate.{key}" for key, residue in KEYS.items() if getattr(config.solvate, key)
            and is_by_analogy(residue, dynamics.force_field, dynamics.force_field_files)]


def _check_bound_ions(config: Settings) -> None:
    """Raise BadInputError for polyamines that the force field has no parameters for."""
    dynamics = config.dynamics
    for key, residue in KEYS.items():
        if getattr(config.solvate, key) and not is_known(residue, dynamics.force_field, dynamics.force_field_files):
            raise BadInputError(f"force field {dynamics.force_field} has no parameters for solvate.{key}, and none "
                                "here has published ones: set dynamics.force_field to "
                                f"{' or '.join(force_fields_with(residue))}, which describe it by analogy, name a file "
                                f"that has {residue} in dynamics.force_field_files, or set solvate.{key} to 0")


def check_fibre(config: Settings, fibre: Fibre) -> tuple[list[OctamerRecipe], np.ndarray | None, str]:
    """The same of a fibre, before the work."""
    return check_modifications(config, fibre.chromosome, fibre.position, fibre.sequence, np.array(fibre.dyads),
                               fibre.missing)


def check_scaffold(config: Settings, scaffold: Scaffold) -> None:
    """The same of a scaffold, before it is built."""
    chromosome = Chromosome.of_table(scaffold.chromosome, config.locus.chromosome_names)
    check_modifications(config, chromosome, scaffold.position, bytes(scaffold.base).decode(),
                        scaffold.dyad, scaffold.missing)
