"""Spermine and spermidine, which no force field here has published parameters of: residues by analogy.

Both are chains of five kinds of groups. The table (templates/polyamines.json) gives types and charges of each; terms
between the types stand in the force field, or are copies of those between like types (``analogies``).
"""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from functools import cache

from chromabuild.base.files import template_path
from chromabuild.molecule.residues import residue_library

Element = ElementTree.Element


@cache
def _table() -> dict[str, dict]:
    return json.loads(template_path("polyamines.json").read_text())


def polyamine_residue(name: str, is_charmm: bool) -> Element:
    """The residue of a force-field file of OpenMM. ``name`` is one of ``residues.POLYAMINES``."""
    template, groups = residue_library()[name], _table()["charmm" if is_charmm else "amber"]
    residue = Element("Residue", name=name)
    of_atom = {}
    for atom, group, hydrogens in _groups(name):
        kind, charge, kind_of_hydrogen, charge_of_hydrogen = groups[group]
        of_atom[atom] = kind, charge if isinstance(charge, float) else charge[name][atom]
        of_atom |= dict.fromkeys(hydrogens, (kind_of_hydrogen, charge_of_hydrogen))
    for atom in template.atoms:
        kind, charge = of_atom[atom]
        ElementTree.SubElement(residue, "Atom", name=atom, type=kind, charge=str(charge))
    for i, j in template.bonds.tolist():
        ElementTree.SubElement(residue, "Bond", atomName1=template.atoms[i], atomName2=template.atoms[j])
    return residue


def _groups(name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Each heavy atom along the chain, the kind of its group, and its hydrogens."""
    template = residue_library()[name]
    near: dict[int, list[int]] = {k: [] for k in range(len(template.atoms))}
    for i, j in template.bonds.tolist():
        near[i].append(j)
        near[j].append(i)
    group = {k: f"{element}H{sum(template.elements[i] == 'H' for i in near[k])}"
             for k, element in enumerate(template.elements) if element != "H"}
    for k, kind in group.items():
        nitrogen = [group[i] for i in near[k] if template.elements[i] == "N"]
        yield (template.atoms[k], f"{kind} at {nitrogen[0]}" if nitrogen else kind,
               [template.atoms[i] for i in near[k] if template.elements[i] == "H"])
