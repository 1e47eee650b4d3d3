"""Whether a force field has parameters for the modifications of histones and DNA, and what to do where it has none.

Nothing stands here by analogy: methylated lysines and arginines and crotonyl-lysine have no parameters in any of them.
"""

from collections.abc import Iterable, Sequence

from chromabuild.base.errors import BadInputError
from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.forcefield.rules import is_known
from chromabuild.molecule.residues import modifications
from chromabuild.nucleosome.mark_names import HistoneMark, parse_mark


def force_fields_with(residue: str) -> list[str]:
    """The force fields that describe a modified residue (its library name inside a chain)."""
    return [name for name in FORCE_FIELDS if is_known(residue, name)]


def check_parameters(marks: Iterable[str], bases: Iterable[str], force_field: str, files: Sequence[str] = ()) -> None:
    """Raise BadInputError for the first modification that a force field has no parameters for.

    Args:
        marks: histone modifications as recipes hold them (``H3K27ac``).
        bases: modified cytosines (``5mC``).
        force_field: its name in the settings.
        files: force-field files of the user's, which may have them.

    The sentence names the force fields that have the parameters, and the nearest stand-in.
    """
    carried = [(mark.name, mark.residue_name, mark) for mark in map(parse_mark, sorted(set(marks)))]
    of_base = {change.mark: name for name, change in modifications().items()}
    carried += [(base, of_base[base], None) for base in sorted(set(bases))]
    for name, residue, mark in carried:
        if not is_known(residue, force_field, files):
            raise BadInputError(f"force field {force_field} has no parameters for {name} "
                                f"({modifications()[residue].title}, {residue}): {_remedy(residue, mark)}")


def _remedy(residue: str, mark: HistoneMark | None) -> str:
    having = force_fields_with(residue)
    remedies = [f"set dynamics.force_field to {' or '.join(having)}"] if having else [
        "name a file that has them in dynamics.force_field_files"]
    if mark is not None and mark.stand_in:
        remedies.append(f"write {mark.stand_in}, the nearest stand-in")
    remedies.append("leave it out")
    text = ", or ".join(remedies)
    return text if having else f"no force field here has them: {text}"
