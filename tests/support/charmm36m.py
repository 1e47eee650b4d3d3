"""CHARMM36m from the file that OpenMM ships, cut down to the standard residues; OpenMM matches and patches them.

The whole file has 635 residues and 319 patches; OpenMM takes half a minute to try them on a peptide.
"""

import functools
import io
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from openmm import app

DATA = Path(app.__file__).parent / "data"
FILES = ("charmm36_2024.xml", "charmm36_2024/water.xml")
RESIDUES = tuple("ALA ARG ASN ASP CYS GLN GLU GLY HSD HSE HSP ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL "
                 "ADE CYT GUA THY".split())
PATCHES = ("NTER", "GLYP", "PROP", "CTER", "DEOX", "DEO5TER", "3TER", "DISU")


@functools.cache
def _content(file: str) -> ElementTree.Element:
    return ElementTree.parse(DATA / file).getroot()


@functools.cache
def charmm36m() -> app.ForceField:
    """Force field of proteins and DNA, CHARMM's TIP3P water and ions; NBFIX, CMAP and all."""
    root = _content(FILES[0])
    residues, patches, types = root.find("Residues"), root.find("Patches"), root.find("AtomTypes")
    for residue in list(residues):
        if residue.get("name") not in RESIDUES:
            residues.remove(residue)
    for patch in list(patches):
        if patch.get("name").split("_")[0] not in PATCHES:
            patches.remove(patch)
    kept = {patch.get("name") for patch in patches}
    for element in [*residues, *patches]:
        for allowed in element.findall("AllowPatch"):
            if allowed.get("name") not in kept:
                element.remove(allowed)
    used = {atom.get("type") for parent in (residues, patches) for atom in parent.iter() if atom.get("type")}
    types[:] = [kind for kind in types if kind.get("name") in used]
    classes = {kind.get("class") for kind in types}
    # OpenMM compares every angle with every entry of this force.
    for force in root.iter("AmoebaUreyBradleyForce"):
        force[:] = [entry for entry in force if {entry.get(f"class{k}") for k in (1, 2, 3)} <= classes]
    return app.ForceField(io.StringIO(ElementTree.tostring(root, encoding="unicode")), FILES[1])


def lennard_jones() -> tuple[dict[str, dict[str, float]], list[tuple[str, str, float, float]]]:
    """By atom class sigma, epsilon, sigma14 and epsilon14; and the NBFIX pairs: class, class, sigma, epsilon.

    In angstrom and kcal/mol, straight from the files.
    """
    classes, special = {}, []
    for file in FILES:
        for force in _content(file).iter("LennardJonesForce"):
            for entry in force:
                value = {key: float(text) * (10 if "sigma" in key else 1 / 4.184)
                         for key, text in entry.attrib.items() if "sigma" in key or "epsilon" in key}
                if entry.tag == "Atom":
                    value.setdefault("sigma14", value["sigma"])
                    value.setdefault("epsilon14", value["epsilon"])
                    classes[entry.get("class")] = value
                else:
                    special.append((entry.get("class1"), entry.get("class2"), value["sigma"], value["epsilon"]))
    return classes, special
