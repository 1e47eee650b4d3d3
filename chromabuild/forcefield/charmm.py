"""CHARMM residues from the force-field file of the OpenMM package: patches applied, and the rest of the file left out.

The file has 635 residues, 319 patches and a type for every atom of them. OpenMM tries all patches on a residue that it
does not know, and takes the first that fits: that is slow, and some residues fit two. Here each residue of the library
is made by the patches that templates/charmm_residues.json names, and only what these residues use is given to OpenMM.
The table also has patches of CHARMM that the file lacks; their atom types are those of other residues in the file.
"""

import copy
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from functools import cache

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.forcefield.analogies import add_like_terms, analogies
from chromabuild.forcefield.polyamines import polyamine_residue
from chromabuild.molecule.residues import POLYAMINES

Element = ElementTree.Element
_AWAY = tuple(range(1, 8))
"""Residues between the two ends of a link in capped chains, at most."""


@cache
def _table() -> dict[str, dict]:
    return json.loads(template_path("charmm_residues.json").read_text())


@cache
def _own_patches() -> dict[str, dict]:
    """Patches that OpenMM's file lacks, published and by analogy."""
    return _table()["patches"] | analogies()["patches"]


def charmm_recipe(name: str, known: Iterable[str] | None = None, by_analogy: bool = False) -> tuple[str, ...] | None:
    """CHARMM residue and patches of a residue of the library; None where ``known``, the residues, lack it.

    Without ``known``, what the table says; ``by_analogy``: with residues whose parameters are.

    A name that the table lacks is CHARMM's own, or that of an amino acid behind N (first of a protein) or C (last).

    >>> charmm_recipe("DA3", ["ADE"])
    ('ADE', 'DEOX', '3TER')
    >>> charmm_recipe("NGLY", ["GLY"])
    ('GLY', 'GLYP')
    """
    table = _table()
    alike = analogies()["residues"] | {name: [name] for name in POLYAMINES}
    residues = table["residues"] | (alike if by_analogy else {})
    if name in residues:
        recipe = tuple(residues[name])
        return recipe if known is None or recipe[0] in known or _is_made_with(recipe[0], known) else None
    if name in (known or ()):
        return (name,)
    ends = {"N": table["start of protein"], "C": table["end of protein"]}.get(name[:1])
    inner = charmm_recipe(name[1:], known, by_analogy) if ends and len(name) > 2 else None
    return (*inner, ends.get(inner[0], ends[""])) if inner else None


def _is_made_with(name: str, known: Iterable[str]) -> bool:
    """Whether a residue that is made here as a whole belongs to a file with these residues: that of the solute."""
    return name in POLYAMINES and "LYS" in known


def keep_residues(root: Element, recipes: Iterable[tuple[str, ...]],
                  also: frozenset[str] = frozenset()) -> dict[tuple[str, ...], str]:
    """Put the residues of some recipes in place of all others in a force field; gives the name of each.

    Atom types that they do not use are removed, but for ``also``, types and classes. Raises BadInputError for a patch
    that the residue does not allow.
    """
    recipes = tuple(dict.fromkeys(recipes))
    residues = {one.get("name"): one for one in root.find("Residues")}
    patches = {one.get("name"): one for one in root.findall("Patches/Patch")}
    own = {name for recipe in recipes for name in recipe[1:] if name in _own_patches()}
    for name in sorted(own):
        patches[name] = _own_patch(_own_patches()[name])
        _add_impropers(root, name, _own_patches()[name]["impropers"])
    whole = {recipe[0] for recipe in recipes} & POLYAMINES.keys()
    residues |= {name: polyamine_residue(name, is_charmm=True) for name in sorted(whole)}
    if whole or own & analogies()["patches"].keys():
        add_like_terms(root)
    made = {recipe: _patched(residues[recipe[0]], recipe[1:], patches) for recipe in recipes}
    root.find("Residues")[:] = made.values()
    if root.find("Patches") is not None:
        root.remove(root.find("Patches"))
    used = {atom.get("type") for residue in made.values() for atom in residue.iter("Atom")} | also
    types = root.find("AtomTypes")
    types[:] = [kind for kind in types if kind.get("name") in used or kind.get("class") in also]
    return {recipe: residue.get("name") for recipe, residue in made.items()}


def keep_classes(root: Element, classes: set[str]) -> None:
    """Remove all parameters that are not about these atom classes."""
    for force in root:
        if force.tag.endswith("Force"):
            force[:] = [entry for entry in force if _concerns(entry, classes)]


def _concerns(entry: Element, classes: set[str]) -> bool:
    """Whether an entry of a force is about atoms of these classes alone; an empty class is a wildcard."""
    named = {value for key, value in entry.attrib.items() if key.rstrip("12345") in ("class", "type") and value}
    return named <= classes


def _patched(residue: Element, wanted: tuple[str, ...], patches: dict[str, Element]) -> Element:
    """A copy of a residue with patches applied, named as OpenMM names it: ``ADE-DEOX_0-3TER_1``.

    A patch stands in the file in several forms; a residue lists those that fit it.
    """
    result = copy.deepcopy(residue)
    allowed = [one.get("name") for one in residue.findall("AllowPatch")]
    for name in wanted:
        forms = [form for form in allowed if form == name or form.rsplit("_", 1)[0] == name]
        if name in _own_patches():
            forms = [name]
        if not forms:
            raise BadInputError(f"templates/charmm_residues.json gives residue {residue.get('name')} the patch {name}, "
                                "which the force field does not allow there: correct the table")
        _apply(result, patches[forms[0]])
        result.set("name", f"{result.get('name')}-{forms[0]}")
    result[:] = [one for one in result if one.tag != "AllowPatch"]
    return result


def _own_patch(entry: dict) -> Element:
    """A patch of the table in the form of OpenMM's."""
    patch = Element("Patch")
    for name in entry["remove"]:
        ElementTree.SubElement(patch, "RemoveAtom", name=name)
    for tag, atoms in (("ChangeAtom", entry["change"]), ("AddAtom", entry["add"])):
        for name, (kind, charge) in atoms.items():
            ElementTree.SubElement(patch, tag, name=name, type=kind, charge=str(charge))
    for first, second in entry["bonds"]:
        ElementTree.SubElement(patch, "AddBond", atomName1=first, atomName2=second)
    for name in entry.get("external", ()):
        ElementTree.SubElement(patch, "AddExternalBond", atomName=name)
    for name in entry.get("internal", ()):
        ElementTree.SubElement(patch, "RemoveExternalBond", atomName=name)
    return patch


def _add_impropers(root: Element, name: str, impropers: list[list[str]]) -> None:
    """Impropers of a patch for the script of the file, which has a table of them; 0: of the residue itself.

    ``@C`` is an atom of the residue at the other end of a link. The script asks how many residues away that is, and
    leaves out what is not bonded: all that there are in a capped chain are named.
    """
    rows = tuple(tuple((away if atom.startswith("@") else 0, atom.removeprefix("@")) for atom in improper)
                 for improper in impropers
                 for away in (_AWAY if any(atom.startswith("@") for atom in improper) else (0,)))
    marker = "def extract_atom_name("
    for script in root.findall("Script"):
        if marker in script.text:
            more = f"patch_impropers[{name!r}] = {rows!r}\npatch_order[{name!r}] = len(patch_order)\n\n"
            script.text = script.text.replace(marker, more + marker, 1)


def _apply(residue: Element, patch: Element) -> None:
    """Apply a patch to a residue, which is changed."""
    atoms = {atom.get("name"): atom for atom in residue.findall("Atom")}
    for one in patch:
        name, pair = one.get("name") or one.get("atomName"), {one.get("atomName1"), one.get("atomName2")}
        if one.tag == "AddAtom":
            atoms[name] = ElementTree.SubElement(residue, "Atom", one.attrib)
        elif one.tag == "ChangeAtom":
            atoms[name].attrib.update(one.attrib)
        elif one.tag == "RemoveAtom":
            residue.remove(atoms.pop(name))
        elif one.tag in ("AddBond", "AddExternalBond"):
            ElementTree.SubElement(residue, one.tag.removeprefix("Add"), one.attrib)
        elif one.tag == "RemoveBond":
            residue[:] = [bond for bond in residue
                          if bond.tag != "Bond" or {bond.get("atomName1"), bond.get("atomName2")} != pair]
        elif one.tag == "RemoveExternalBond":
            residue[:] = [bond for bond in residue if bond.tag != "ExternalBond" or bond.get("atomName") != name]
    residue[:] = [one for one in residue
                  if all(one.get(key) in atoms for key in ("atomName1", "atomName2", "atomName") if one.get(key))]
