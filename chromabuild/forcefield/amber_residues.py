"""Residues that AMBER's files of OpenMM lack: published ones, and by analogy those of `amber14-analogy` and its like.

Such a residue is one of the force field with atoms of other residues (templates/amber_residues.json and
amber_analogies.json): all terms between their types stand in the force field, and the tables have no numbers but
charges.
"""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from chromabuild.base.files import template_path
from chromabuild.forcefield.polyamines import polyamine_residue
from chromabuild.forcefield.zinc_terms import add_zinc_terms
from chromabuild.molecule.residues import POLYAMINES


@cache
def _table(name: str) -> dict[str, dict]:
    return json.loads(template_path(f"amber_{name}.json").read_text())["residues"]


def amber_residues(by_analogy: bool) -> frozenset[str]:
    """Library names of the residues that are added, those by analogy among them where asked for."""
    return frozenset(_table("residues")) | (amber_analogies() if by_analogy else frozenset())


def amber_analogies() -> frozenset[str]:
    """Library names of residues by analogy."""
    return frozenset(_table("analogies")) | frozenset(POLYAMINES)


def added_residues(names: Iterable[str], paths: Iterable[str | Path], by_analogy: bool) -> str:
    """A force-field file of OpenMM with those of some residues that are added; ``paths``: the force field's."""
    root = ElementTree.Element("ForceField")
    residues = ElementTree.SubElement(root, "Residues")
    names = [name for name in names if name in amber_residues(by_analogy)]
    known = [residue for path in paths for residue in ElementTree.parse(path).getroot().findall("Residues/Residue")
             ] if names else []
    table = _table("residues") | _table("analogies")
    for name in names:
        if name in POLYAMINES:
            residues.append(polyamine_residue(name, is_charmm=False))
            continue
        like = next(residue for residue in known if residue.get("name") == table[name]["like"])
        residues.append(_made(name, like, table[name]))
    zinc = next((residue for residue in known if residue.get("name") == "ZN"), None)
    if any("@" in name for name in names):
        for tag in ("HarmonicBondForce", "HarmonicAngleForce"):
            ElementTree.SubElement(root, tag)
        add_zinc_terms(root, zinc.find("Atom").get("type"))
    return ElementTree.tostring(root, encoding="unicode")


def _made(name: str, like: ElementTree.Element, entry: dict) -> ElementTree.Element:
    """A residue of the table from the one that it is like."""
    made = ElementTree.Element("Residue", name=name)
    rename, removed, inner = entry.get("rename", {}), set(entry.get("remove", ())), entry.get("internal", ())
    for one in like:
        atoms = [one.get(key) for key in ("name", "atomName", "atomName1", "atomName2") if one.get(key)]
        if set(atoms) & removed or (one.tag == "ExternalBond" and set(atoms) & set(inner)):
            continue
        copied = ElementTree.SubElement(made, one.tag, {
            key: rename.get(value, value) for key, value in one.attrib.items()})
        if one.tag == "Atom" and copied.get("name") in entry.get("change", {}):
            kind, charge = entry["change"][copied.get("name")]
            copied.attrib.update(type=kind, charge=str(charge))
    for atom, (kind, charge) in entry.get("add", {}).items():
        ElementTree.SubElement(made, "Atom", name=atom, type=kind, charge=str(charge))
    for first, second in entry.get("bonds", ()):
        ElementTree.SubElement(made, "Bond", atomName1=first, atomName2=second)
    for atom in entry.get("external", ()):
        ElementTree.SubElement(made, "ExternalBond", atomName=atom)
    return made
