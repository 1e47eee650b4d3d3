"""What force fields know of modified residues: the residue and patches of their own data that describe each.

Read off the data that OpenMM carries (amber14, amber19: none of these residues; charmm36_2024.xml) and, where the file
says so, off the public CHARMM toppar set. Nothing stands here by analogy: methyl-lysines and methyl-arginines have no
parameters in any of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import modifications
from chromabuild.nucleosome.mark_names import HistoneMark, parse_mark

OPENMM_CHARMM, TOPPAR = "charmm36_2024.xml", "toppar_all36_prot_modify_res.str"


@dataclass(frozen=True)
class Description:
    """How a force field spells a modified residue."""

    residue: str
    """Residue in its data, or the parent that the patches change."""
    patches: tuple[str, ...]
    """Applied in this order; without the number that OpenMM puts behind a patch's name."""
    file: str
    """Of OpenMM's data, or of the toppar set."""
    atoms: dict[str, str] = field(default_factory=dict)
    """Our names of atoms that the modification brings (modified_residues.json) and that have another name there."""


_BASE_HYDROGENS = {"HN41": "H41", "HN42": "H42"}
DESCRIPTIONS: dict[str, dict[str, Description]] = {
    "amber14": {},
    "amber19": {},
    "amber-bsc1": {},
    "charmm36m": {
        "ALY": Description("ALY", (), TOPPAR, {"HZ": "HZ1"}),
        "SEP": Description("SER", ("SP2",), OPENMM_CHARMM, {"O3P": "OT"}),
        "TPO": Description("THR", ("THPB",), OPENMM_CHARMM, {"O3P": "OT"}),
        "PTR": Description("TYR", ("TP2",), OPENMM_CHARMM, {"P": "P1", "O1P": "O2", "O2P": "O3", "O3P": "O4"}),
        "SAC": Description("SER", ("ACE",), OPENMM_CHARMM, {
            "H": "HN", "C1A": "CY", "OAC": "OY", "C2A": "CAY", "H2A1": "HY1", "H2A2": "HY2", "H2A3": "HY3"}),
        "AYA": Description("ALA", ("ACE",), OPENMM_CHARMM, {
            "H": "HN", "CT": "CY", "OT": "OY", "CM": "CAY", "HM1": "HY1", "HM2": "HY2", "HM3": "HY3"}),
        "5CM": Description("5MC", ("DEOX",), OPENMM_CHARMM, _BASE_HYDROGENS | {
            "C5A": "CM5", "H5A1": "H51", "H5A2": "H52", "H5A3": "H53"}),
        "5HC": Description("HMC", ("DEOX",), OPENMM_CHARMM, _BASE_HYDROGENS | {
            "C5M": "C7", "H5M1": "H71", "H5M2": "H72", "O5": "O7", "HO5": "H7O"}),
        "5FC": Description("5FC", ("DEOX",), OPENMM_CHARMM, _BASE_HYDROGENS | {
            "C5A": "C7", "H5A": "H7", "O5A": "O7"}),
    },
}
"""Force field, then library name of the residue inside a chain."""


def force_fields_with(residue: str) -> list[str]:
    """The force fields that describe a modified residue (its library name inside a chain)."""
    return [name for name, known in DESCRIPTIONS.items() if residue in known]


def check_parameters(marks: Iterable[str], bases: Iterable[str], force_field: str,
                     selectable: Iterable[str] | None = None) -> None:
    """Raise BadInputError for the first modification that a force field has no parameters for.

    Args:
        marks: histone modifications as recipes hold them (``H3K27ac``).
        bases: modified cytosines (``5mC``).
        force_field: its name in the settings.
        selectable: force fields that the settings can choose; those that have parameters but are not among them are
            named as ones for another program. None: all of ``DESCRIPTIONS``.

    The sentence names the force fields that have the parameters, and the nearest stand-in.
    """
    known = DESCRIPTIONS.get(force_field, {})
    offered = set(DESCRIPTIONS if selectable is None else selectable)
    carried = [(mark.name, mark.residue_name, mark) for mark in map(parse_mark, sorted(set(marks)))]
    of_base = {change.mark: name for name, change in modifications().items()}
    carried += [(base, of_base[base], None) for base in sorted(set(bases))]
    for name, residue, mark in carried:
        if residue not in known:
            raise BadInputError(f"force field {force_field} has no parameters for {name} "
                                f"({modifications()[residue].title}, {residue}): {_remedy(residue, mark, offered)}")


def check_residues(residues: Iterable[str], force_field: str) -> None:
    """The same for modified residues by their library names inside a chain, where no marks are known any more."""
    for residue in residues:
        if residue not in DESCRIPTIONS.get(force_field, {}):
            change = modifications()[residue]
            raise BadInputError(f"force field {force_field} has no parameters for {residue} ({change.title}): "
                                f"{_remedy(residue, None, set(DESCRIPTIONS))}")


def _remedy(residue: str, mark: HistoneMark | None, offered: set[str]) -> str:
    having = force_fields_with(residue)
    remedies = [f"set dynamics.force_field to {' or '.join(name for name in having if name in offered)}"
                ] if offered & set(having) else []
    if mark is not None and mark.stand_in:
        remedies.append(f"write {mark.stand_in}, the nearest stand-in")
    remedies.append("leave it out")
    others = [name for name in having if name not in offered]
    source = f"{' and '.join(others)} has them" if others else "no force field here has them" if not having else ""
    text = ", or ".join(remedies)
    return f"{source}: {text}" if source else text
