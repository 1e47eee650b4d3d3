"""What OpenMM needs to assign a force field to residues of the library: its rules, and the residues' names in them."""

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from openmm import app

from chromabuild.base.errors import BadInputError
from chromabuild.base.force_fields import FORCE_FIELDS, WaterName, force_field_files
from chromabuild.forcefield.amber_residues import added_residues, amber_residues
from chromabuild.forcefield.charmm import charmm_recipe, keep_classes, keep_residues
from chromabuild.forcefield.zinc_terms import add_zinc_terms
from chromabuild.molecule.residues import residue_library

DATA = Path(app.__file__).parent / "data"


@dataclass(frozen=True)
class Rules:
    """A force field, ready to be assigned."""

    force_field: app.ForceField
    template_name: dict[str, str]
    """By residue of the library, the name of its template."""
    label: dict[str, str]
    """By atom type its class, without the prefix that names the file (``protein-CX`` -> ``CX``)."""


def rules_for(residues: Iterable[str], force_field: str, files: Sequence[str | Path] = (),
              water: WaterName = "tip3p") -> Rules:
    """The rules for some residues of the library; ``files``: the user's own, read after those of the force field.

    Raises BadInputError for an unknown force field, a residue that it does not know, and a file that is no force-field
    file of OpenMM.
    """
    residues = sorted(set(residues))
    check_residues(residues, force_field, files, water)
    own = [_own_file(path) for path in files]
    paths = [str(DATA / name) for name in force_field_files(force_field, water)]
    names = {residue: _own_name(residue) for residue in residues}
    sources: list[str | io.StringIO] = list(paths)
    form = FORCE_FIELDS[force_field]
    if form.is_charmm:
        roots = [ElementTree.parse(path).getroot() for path in paths]
        names_of_own = {one.get("name") for root in own for one in root.findall("Residues/Residue")}
        also = frozenset(value for root in own for one in root.iter() for key, value in one.attrib.items()
                         if key.rstrip("12345") in ("class", "type") and value)
        for root, path in zip(roots, paths, strict=True):
            known = set(_residues_of(path))
            recipes = {name: charmm_recipe(name, known, form.by_analogy) for name in residues
                       if name not in names_of_own}
            recipes = {name: recipe for name, recipe in recipes.items() if recipe}
            made = keep_residues(root, recipes.values(), also)
            names |= {name: made[recipe] for name, recipe in recipes.items()}
        classes = {one.get("class") for root in roots for one in root.find("AtomTypes")} | also
        if any("@" in residue for residue in residues):
            add_zinc_terms(roots[0])
        for root in roots:
            keep_classes(root, classes)
        sources = [io.StringIO(ElementTree.tostring(root, encoding="unicode")) for root in roots]
    else:
        own_residues = {one.get("name") for root in own for one in root.findall("Residues/Residue")}
        more = [name for name in residues if name not in own_residues]
        sources.append(io.StringIO(added_residues(more, paths, form.by_analogy)))
    try:
        rules = app.ForceField(*sources, *map(str, files))
    except Exception as error:  # whatever OpenMM makes of a bad file
        if not files:
            raise
        raise BadInputError(f"dynamics.force_field_files: OpenMM cannot read {', '.join(map(str, files))} beside "
                            f"{force_field} ({error}): correct the file") from error
    # OpenMM has no public way to tell the class of a type.
    label = {name: one.atomClass.split("-", 1)[-1] for name, one in rules._atomTypes.items()}
    return Rules(rules, names, label)


def check_residues(residues: Iterable[str], force_field: str, files: Sequence[str | Path] = (),
                   water: WaterName = "tip3p") -> None:
    """Raise BadInputError where a force field, with the user's ``files``, does not know all residues of the library.

    And for an unknown force field, or a water model that it lacks.
    """
    force_field_files(force_field, water)
    missing = [name for name in dict.fromkeys(residues) if not is_known(name, force_field, files)]
    if missing:
        others = [other for other in FORCE_FIELDS if all(is_known(name, other, files) for name in missing)]
        remedy = f"set dynamics.force_field to {' or '.join(others)}, or " if others else ""
        raise BadInputError(f"force field {force_field} does not know {', '.join(missing)}: {remedy}name a file with "
                            "their parameters in dynamics.force_field_files")


def is_known(residue: str, force_field: str, files: Sequence[str | Path] = ()) -> bool:
    """Whether a force field has a residue of the library. Raises BadInputError for an own file that is none."""
    if any(one.get("name") == residue for path in files for one in _own_file(path).findall("Residues/Residue")):
        return True
    known = {name for file in force_field_files(force_field) for name in _residues_of(str(DATA / file))}
    if FORCE_FIELDS[force_field].is_charmm:
        return charmm_recipe(residue, known, FORCE_FIELDS[force_field].by_analogy) is not None
    return _own_name(residue) in known or residue in amber_residues(FORCE_FIELDS[force_field].by_analogy)


def _own_name(residue: str) -> str:
    """What AMBER's files call a residue of the library: all waters HOH."""
    template = residue_library().get(residue)
    return template.pdb_name if template is not None and template.kind == "water" else residue


@cache
def _residues_of(path: str) -> tuple[str, ...]:
    return tuple(re.findall(r'<Residue\b[^>]*\bname="([^"]+)"', Path(path).read_text()))


def _own_file(path: str | Path) -> ElementTree.Element:
    """A force-field file of the user's. Raises BadInputError for any other."""
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise BadInputError(f"dynamics.force_field_files: {path} cannot be read ({error.strerror}): correct its "
                            "name") from None
    except ElementTree.ParseError as error:
        what = {".str": "a CHARMM", ".rtf": "a CHARMM", ".prm": "a CHARMM", ".frcmod": "an AMBER"}.get(
            Path(path).suffix.lower())
        said = f"is {what} file" if what else f"is no XML ({error})"
        raise BadInputError(f"dynamics.force_field_files: {path} {said}, and only OpenMM's force-field files are "
                            "read: convert it, for instance with ParmEd's openmm.OpenMMParameterSet") from None
    if root.tag != "ForceField":
        raise BadInputError(f"dynamics.force_field_files: {path} holds <{root.tag}>, not <ForceField>: name a "
                            "force-field file of OpenMM")
    return root
