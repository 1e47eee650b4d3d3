"""Bonds and angles about zinc in CHARMM's bonded model, which OpenMM's file lacks (templates/zinc_sites.json).

AMBER's force fields by analogy take the same terms, between the types that AMBER has of these atoms.
"""

import itertools
import json
import xml.etree.ElementTree as ElementTree
from functools import cache

import numpy as np

from chromabuild.base.constants import ANGSTROM_PER_NM, KJ_PER_KCAL
from chromabuild.base.files import template_path

_AMBER = {"SS": ("protein-SH",), "CS": ("protein-CT",), "NR2": ("protein-NB",), "CPH2": ("protein-CR",),
          "CPH1": ("protein-CV", "protein-CC")}
"""Types of ff14SB and ff19SB by the class in CHARMM; CPH1 is either carbon beside the nitrogen that carries none."""


@cache
def _terms() -> dict[str, list[list]]:
    return json.loads(template_path("zinc_sites.json").read_text())


def add_zinc_terms(root: ElementTree.Element, zinc: str | None = None) -> None:
    """Give a force field of OpenMM, which is changed, the bonds and angles about zinc.

    ``zinc``: type of the ion in a force field of AMBER; None: the classes are CHARMM's.
    """
    for tag, count, value, unit in (("HarmonicBondForce", 2, "length", 1 / ANGSTROM_PER_NM),
                                    ("HarmonicAngleForce", 3, "angle", np.pi / 180)):
        stiffness = 2 * KJ_PER_KCAL * (ANGSTROM_PER_NM**2 if count == 2 else 1)
        for classes, k, rest in _terms()["bonds" if count == 2 else "angles"]:
            values = {"k": repr(stiffness * k), value: repr(float(unit * rest))}
            theirs = [(name,) if zinc is None else _AMBER.get(name, (zinc,)) for name in classes.split()]
            for names in itertools.product(*theirs):
                key = "class" if zinc is None else "type"
                ElementTree.SubElement(root.find(tag), "Bond" if count == 2 else "Angle",
                                       {f"{key}{n}": name for n, name in enumerate(names, start=1)} | values)
