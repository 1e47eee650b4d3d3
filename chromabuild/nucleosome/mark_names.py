"""Histone modifications in the language of the field: ``H3K27ac``, ``H4K16ac``, ``H2A.ZK7ac``, ``H3K4me3@1``."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import modifications
from chromabuild.nucleosome.homology import histone_table
from chromabuild.nucleosome.octamer import FAMILIES
from chromabuild.nucleosome.peptide import one_letter

_SHAPE = re.compile(r"^(?P<histone>H\d\S*?|CENP-A|Cse4):?(?P<residue>[A-Z])(?P<number>\d+)(?P<kind>[a-z]\w*)"
                    r"(@(?P<copy>\w*))?$")
STAND_IN = {"ALY": "Q", "KCR": "Q", "SEP": "E", "TPO": "E", "PTR": "E"}
"""One-letter code of the standard residue nearest in charge and size; the others have none."""


@dataclass(frozen=True)
class HistoneMark:
    """A modified residue of a histone."""

    histone: str
    """A family (``H3``), or a variant that must be there (``H3.3``)."""
    residue: str
    """One-letter code of what is modified."""
    number: int
    kind: str
    """``ac``, ``me1``, ``me2``, ``me3``, ``me2a``, ``me2s``, ``ph``, ``cr``, ``nac``."""
    copy: int = 0
    """1 or 2: of that copy in the nucleosome alone; 0: of both."""

    @property
    def name(self) -> str:
        """As it is written: ``H3K27ac``, ``H3K27ac@1``."""
        return f"{self.histone}{self.residue}{self.number}{self.kind}" + (f"@{self.copy}" if self.copy else "")

    @property
    def family(self) -> str:
        """H3, H4, H2A or H2B."""
        return family_of()[self.histone]

    @property
    def residue_name(self) -> str:
        """Library name of the modified residue inside a chain."""
        return modified_residues()[self.residue][self.kind]

    @property
    def stand_in(self) -> str:
        """The mutation that comes nearest, as the settings write it; empty where none does."""
        letter = STAND_IN.get(self.residue_name)
        return f"{self.family}:{self.residue}{self.number}{letter}" if letter else ""


@cache
def modified_residues() -> dict[str, dict[str, str]]:
    """Library name by one-letter code of the parent and kind of mark: ``["K"]["ac"]`` is ``ALY``."""
    found: dict[str, dict[str, str]] = {}
    for name, change in modifications().items():
        if not change.parent.startswith("D"):  # nucleotides; no amino acid that is modified begins so
            found.setdefault(one_letter(change.parent), {})[change.mark] = name
    return found


@cache
def family_of() -> dict[str, str]:
    """Family of every histone and variant by name."""
    return {name: name for name in FAMILIES} | {
        name: entry["family"] for table in histone_table().values() for name, entry in table.items()}


@cache
def parse_mark(text: str) -> HistoneMark | None:
    """The modification that a text names; None for what has another form (a variant, a mutation).

    Raises BadInputError, with the nearest that is known, for a modification of this form that is not.
    """
    shape = _SHAPE.match(text)
    if shape is None:
        return None
    kinds = modified_residues().get(shape["residue"], {})
    if shape["histone"] not in family_of() or shape["kind"] not in kinds:
        raise BadInputError(f"{text} is no modification that is known: the nearest is {nearest_mark(text)} (lysine: "
                            f"{_kinds('K')}; arginine: {_kinds('R')}; serine, threonine, tyrosine: {_kinds('T')}; "
                            f"amino end: {_kinds('A')})")
    if shape["copy"] not in (None, "1", "2"):
        raise BadInputError(f"{text}: a nucleosome has two copies of {shape['histone']}: write @1 or @2 for one of "
                            "them, or nothing for both")
    return HistoneMark(shape["histone"], shape["residue"], int(shape["number"]), shape["kind"], int(shape["copy"] or 0))


def _kinds(letter: str) -> str:
    return " ".join(modified_residues()[letter])


def nearest_mark(text: str) -> str:
    """The modification that comes nearest to a misspelt one: another kind at its residue, or another histone."""
    shape = _SHAPE.match(text)
    histone = nearest_name(shape["histone"], list(family_of()))
    kinds = modified_residues().get(shape["residue"])
    if kinds is None:
        return nearest_name(text, [f"{histone}{letter}{shape['number']}{kind}" for letter, known in
                               modified_residues().items() for kind in known])
    return f"{histone}{shape['residue']}{shape['number']}{nearest_name(shape['kind'], list(kinds))}"


def nearest_name(text: str, known: list[str]) -> str:
    """Of some names the one that a misspelt ``text`` comes nearest to, e.g. ``H2AZ`` to ``H2A.Z``."""
    lower = {name.lower(): name for name in known}
    return lower[get_close_matches(text.lower(), lower, n=1, cutoff=0.0)[0]]
