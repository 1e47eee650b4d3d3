"""Equilibrium bonds and angles, residues and patches of the CHARMM36 file that OpenMM carries, an independent source.

The file is only parsed: making OpenMM's ForceField of it takes half a minute.
"""

import math
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

import openmm.app


@cache
def charmm36() -> ElementTree.Element:
    """The root of charmm36_2024.xml."""
    return ElementTree.parse(Path(openmm.app.__file__).parent / "data" / "charmm36_2024.xml").getroot()


@cache
def _terms(force: str) -> dict[tuple[str, ...], ElementTree.Element]:
    count = {"HarmonicBondForce": 2, "HarmonicAngleForce": 3}[force]
    found = {}
    for terms in charmm36().findall(force):
        for term in terms:
            key = tuple(term.get(f"class{k}") or term.get(f"type{k}") for k in range(1, count + 1))
            found[key] = found[key[::-1]] = term
    return found


def bond(*classes: str) -> float:
    """Equilibrium length of a bond between two classes of atom, angstrom."""
    return 10 * float(_terms("HarmonicBondForce")[classes].get("length"))


def angle(*classes: str) -> tuple[float, float]:
    """Equilibrium angle of three classes of atom, degree, and its force constant."""
    term = _terms("HarmonicAngleForce")[classes]
    return math.degrees(float(term.get("angle"))), float(term.get("k"))


def atoms_of(residue: str, patches: tuple[str, ...] = ()) -> dict[str, float]:
    """Charge by atom of a residue after patches; of several forms of a patch the first that fits the residue."""
    found = {atom.get("name"): float(atom.get("charge"))
             for atom in charmm36().find(f"Residues/Residue[@name='{residue}']").iter("Atom")}
    for patch in patches:
        forms = [form for form in charmm36().iter("Patch") if form.get("name").rsplit("_", 1)[0] == patch]
        form = next(form for form in forms
                    if {a.get("name") for tag in ("ChangeAtom", "RemoveAtom") for a in form.iter(tag)} <= set(found))
        for atom in form.iter("RemoveAtom"):
            del found[atom.get("name")]
        for tag in ("AddAtom", "ChangeAtom"):
            found |= {atom.get("name"): float(atom.get("charge")) for atom in form.iter(tag)}
    return found
