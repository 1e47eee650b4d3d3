"""Parameters by analogy for residues that CHARMM's files lack: those of `charmm36m-analogy`.

A residue is its parent with a patch, whose atoms have types of other molecules of CHARMM. Where such a type is bonded
to one that CHARMM does not combine it with, the terms are copies of those between like types: no number stands in the
table (templates/charmm_analogies.json) but charges.
"""

import copy
import json
import xml.etree.ElementTree as ElementTree
from functools import cache

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path

_FORCES = {2: ("HarmonicBondForce",), 3: ("HarmonicAngleForce", "AmoebaUreyBradleyForce"), 4: ("PeriodicTorsionForce",)}
"""By the number of atoms, where OpenMM's file has its terms."""


@cache
def analogies() -> dict:
    """The table: ``residues`` (CHARMM residue and patch by library name), ``patches`` and ``terms``."""
    return json.loads(template_path("charmm_analogies.json").read_text())


def add_like_terms(root: ElementTree.Element) -> None:
    """Give a force field of OpenMM, which is changed, the terms between types that its file does not combine.

    Raises BadInputError where the file lacks what a term is taken from.
    """
    for types, like in analogies()["terms"]:
        target, source = types.split(), like.split()
        copies = [(force, _renamed(entry, target, source)) for tag in _FORCES[len(source)]
                  for force in root.findall(tag) for entry in force if _classes(entry) in (source, source[::-1])]
        if not copies:
            raise BadInputError(f"templates/charmm_analogies.json takes {types} from {like}, which the force field "
                                "does not have: correct the table")
        for force, entry in copies:
            force.append(entry)


def _classes(entry: ElementTree.Element) -> list[str | None]:
    count = sum(key.startswith("class") for key in entry.attrib)
    return [entry.get(f"class{k}") for k in range(1, count + 1)]


def _renamed(entry: ElementTree.Element, target: list[str], source: list[str]) -> ElementTree.Element:
    """A copy of a term for other types, in the direction that it has."""
    result = copy.deepcopy(entry)
    for k, name in enumerate(target if _classes(entry) == source else target[::-1], start=1):
        result.set(f"class{k}", name)
    return result
