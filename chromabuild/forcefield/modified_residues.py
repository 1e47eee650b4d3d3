"""Whether a force field has parameters for the modifications of histones and DNA, and what to do where it has none.

Parameters by analogy are those of one force field alone, whose name says so: what it describes with them is told before
the work.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.forcefield.amber_residues import amber_analogies
from chromabuild.forcefield.analogies import analogies
from chromabuild.forcefield.rules import is_known
from chromabuild.molecule.residues import POLYAMINES, modification_counts, modifications, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.mark_names import HistoneMark, parse_mark


def force_fields_with(residue: str) -> list[str]:
    """The force fields that describe a modified residue (its library name inside a chain), by analogy or not."""
    return [name for name in FORCE_FIELDS if is_known(residue, name)]


def is_by_analogy(residue: str, force_field: str, files: Sequence[str] = ()) -> bool:
    """Whether a force field describes a modified residue by analogy, and none of the user's ``files`` does instead."""
    form = FORCE_FIELDS[force_field]
    table = analogies()["residues"].keys() | POLYAMINES if form.is_charmm else amber_analogies()
    return form.by_analogy and residue in table and not is_known(residue, force_field.removesuffix("-analogy"), files)


def counts_by_analogy(solute: Solute, force_field: str, files: Sequence[str] = ()) -> dict[str, int]:
    """How many residues of a solute a force field describes by analogy, by library name inside a chain.

    Zinc counts where AMBER's force field takes CHARMM's bonds for it.
    """
    counts = np.bincount(solute.residue_template, minlength=len(residue_names()))
    found = modification_counts(counts) | dict(zip(residue_names(), counts.tolist(), strict=True))
    form = FORCE_FIELDS[force_field]
    takes_bonds = form.by_analogy and not form.is_charmm and bool(solute.held_residues)
    return {name: count for name, count in found.items() if count and (
        is_by_analogy(name, force_field, files) or (takes_bonds and name == "ZN"))}


def check_parameters(marks: Iterable[str], bases: Iterable[str], force_field: str,
                     files: Sequence[str] = ()) -> list[str]:
    """Raise BadInputError for the first modification that a force field has no parameters for.

    Args:
        marks: histone modifications as recipes hold them (``H3K27ac``).
        bases: modified cytosines (``5mC``).
        force_field: its name in the settings.
        files: force-field files of the user's, which may have them.

    The sentence names the force fields that have the parameters, and the nearest stand-in. Gives the modifications
    whose parameters are by analogy, by name.
    """
    carried = [(mark.name, mark.residue_name, mark) for mark in map(parse_mark, sorted(set(marks)))]
    of_base = {change.mark: name for name, change in modifications().items()}
    carried += [(base, of_base[base], None) for base in sorted(set(bases))]
    for name, residue, mark in carried:
        if not is_known(residue, force_field, files):
            raise BadInputError(f"force field {force_field} has no parameters for {name} "
                                f"({modifications()[residue].title}, {residue}): {_remedy(residue, mark)}")
    return [name for name, residue, _ in carried if is_by_analogy(residue, force_field, files)]


def analogy_note(names: Sequence[str]) -> str:
    """What is said of modifications with parameters by analogy; nothing where there are none."""
    if not names:
        return ""
    return (f"parameters of {', '.join(names)} are by analogy (templates/SOURCES.md says with what), not published for "
            "these residues")


def _remedy(residue: str, mark: HistoneMark | None) -> str:
    having = force_fields_with(residue)
    published = [name for name in having if not FORCE_FIELDS[name].by_analogy]
    remedies = [f"set dynamics.force_field to {' or '.join(published)}"] if published else [
        *(f"set dynamics.force_field to {name}, which describes it by analogy" for name in having),
        "name a file that has them in dynamics.force_field_files"]
    if mark is not None and mark.stand_in:
        remedies.append(f"write {mark.stand_in}, the nearest stand-in")
    remedies.append("leave it out")
    text = ", or ".join(remedies)
    return text if published else f"no force field here has published ones: {text}"
