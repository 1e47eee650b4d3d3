"""Bonds and angles about zinc in CHARMM's bonded model, which OpenMM's file lacks (templates/zinc_sites.json)."""

import json
import xml.etree.ElementTree as ElementTree
from functools import cache

import numpy as np

from chromabuild.base.constants import ANGSTROM_PER_NM, KJ_PER_KCAL
from chromabuild.base.files import template_path


@cache
def _terms() -> dict[str, list[list]]:
    return json.loads(template_path("zinc_sites.json").read_text())


def add_zinc_terms(root: ElementTree.Element) -> None:
    """Give a force field of OpenMM, which is changed, the bonds and angles about zinc."""
    for tag, count, value, unit in (("HarmonicBondForce", 2, "length", 1 / ANGSTROM_PER_NM),
                                    ("HarmonicAngleForce", 3, "angle", np.pi / 180)):
        stiffness = 2 * KJ_PER_KCAL * (ANGSTROM_PER_NM**2 if count == 2 else 1)
        for classes, k, rest in _terms()["bonds" if count == 2 else "angles"]:
            named = {f"class{n}": name for n, name in enumerate(classes.split(), start=1)}
            ElementTree.SubElement(root.find(tag), "Bond" if count == 2 else "Angle",
                                   named | {"k": repr(stiffness * k), value: repr(float(unit * rest))})
