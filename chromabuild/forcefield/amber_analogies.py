"""Parameters by analogy for residues that AMBER's files lack: those of `amber14-analogy` and its like.

Such a residue is one of the force field with atoms of other residues (templates/amber_analogies.json): all terms
between their types stand in the force field, and the table has no numbers but charges.
"""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from chromabuild.base.files import template_path


@cache
def amber_analogies() -> dict[str, dict]:
    """The table's residues by library name."""
    return json.loads(template_path("amber_analogies.json").read_text())["residues"]


def residues_by_analogy(names: Iterable[str], paths: Iterable[str | Path]) -> str:
    """A force-field file of OpenMM with those of some residues that the table has; ``paths``: the force field's."""
    root = ElementTree.Element("ForceField")
    residues = ElementTree.SubElement(root, "Residues")
    known = [residue for path in paths for residue in ElementTree.parse(path).getroot().findall("Residues/Residue")]
    for name in names:
        entry = amber_analogies().get(name)
        if entry is None:
            continue
        like = next(residue for residue in known if residue.get("name") == entry["like"])
        made = ElementTree.SubElement(residues, "Residue", name=name)
        for one in like:
            atoms = [one.get(key) for key in ("name", "atomName", "atomName1", "atomName2") if one.get(key)]
            if set(atoms) & set(entry["remove"]):
                continue
            copied = ElementTree.SubElement(made, one.tag, {
                key: entry["rename"].get(value, value) for key, value in one.attrib.items()})
            if one.tag == "Atom" and copied.get("name") in entry["change"]:
                kind, charge = entry["change"][copied.get("name")]
                copied.attrib.update(type=kind, charge=str(charge))
        for atom in entry["external"]:
            ElementTree.SubElement(made, "ExternalBond", atomName=atom)
    return ElementTree.tostring(root, encoding="unicode")
