"""Groups of atoms that restraints hold or an exchange makes hotter: as expressions of chromamd's [SELECTION], and as
masks of a molecule's atoms.

Both follow from the same conditions: names of molecules, ranges of residue numbers, names of atoms, and weight.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.histone_tails import TAILS
from chromabuild.molecule.residues import SOLVENT, modifications

BACKBONE = {"dna": ("P", "OP1", "OP2", "O5'", "C5'", "C4'", "C3'", "O3'"), "protein": ("N", "CA", "C", "O")}
NUCLEOTIDES = ("DA", "DC", "DG", "DT")
LONGEST_NAME = 8
"""Letters of a name in a selection."""
HEAVIEST_HYDROGEN = 4.2
"""Atomic mass units; as in the engine, where heavy hydrogens weigh up to 4.1."""


@dataclass(frozen=True)
class Condition:
    """Atoms of one kind of molecule."""

    molecule: str
    residues: tuple[tuple[int, int], ...] = ()
    """Ranges of residue numbers; none: all residues."""
    outside: bool = False
    """The residues outside these ranges instead."""
    atoms: tuple[str, ...] = ()
    """Names; none: all atoms."""

    def expression(self) -> str:
        """For chromamd."""
        name = self.molecule
        parts = [f"mname:{name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME - 1] + '*'}"]
        if self.residues:
            ranges = " or ".join(f"rno:{first}-{last}" for first, last in self.residues)
            parts.append(f"{'not ' if self.outside else ''}({ranges})")
        if self.atoms:
            parts.append("(" + " or ".join(f"an:{name}" for name in self.atoms) + ")")
        return " and ".join(parts)

    def mask(self, template: MoleculeTemplate) -> np.ndarray:
        """(atoms,) bool for the atoms of a molecule."""
        chosen = np.full(template.n_atoms, template.name == self.molecule)
        if self.residues:
            number = template.residue_number[template.atom_residue]
            inside = np.any([(number >= first) & (number <= last) for first, last in self.residues], axis=0)
            chosen &= inside != self.outside
        if self.atoms:
            chosen &= np.isin(template.atom_name, np.array(self.atoms, dtype="S"))
        return chosen


def _conditions(group: str, molecules: Mapping[str, str]) -> list[Condition]:
    """The conditions of which an atom of the group meets one, for molecules by name and first residue."""
    found = []
    for name, residue in molecules.items():
        if name in SOLVENT.values():
            continue
        modification = modifications().get(residue)
        kind = "dna" if (modification.parent if modification else residue)[:2] in NUCLEOTIDES else "protein"
        if group in ("solute", "heavy", kind):
            found.append(Condition(name))
        elif group == "backbone":
            found.append(Condition(name, atoms=BACKBONE[kind]))
        elif group in ("tails", "histone-core") and name in TAILS:
            found.append(Condition(name, tuple(TAILS[name]), outside=group == "histone-core"))
    return found


def expression(group: str, molecules: Mapping[str, str]) -> str:
    """The group in chromamd's selection syntax; empty when none of the molecules has atoms in it.

    ``molecules``: name to name of the first residue.

    >>> expression("tails", {"DNA-I": "DA", "H4": "SER", "HOH": "HOH"})
    'heavy and (mname:H4 and (rno:1-23))'
    """
    text = _any_of(group, molecules)
    return text if not text or group == "solute" else f"heavy and ({text})"


def hotter_expression(phase: str, group: str, molecules: Mapping[str, str]) -> str:
    """The same with hydrogens, of a group whose temperatures a phase exchanges. Raises BadInputError when it has no
    atom."""
    text = _any_of(group, molecules)
    if not text:
        raise BadInputError(f"phase {phase} exchanges temperatures of {group}, and the system has no atom of it: "
                            "remove exchange.solute")
    return text


def _any_of(group: str, molecules: Mapping[str, str]) -> str:
    return " or ".join(condition.expression() for condition in _conditions(group, molecules))


def mask(group: str, template: MoleculeTemplate) -> np.ndarray:
    """(atoms,) bool: which atoms of a molecule belong to the group."""
    chosen = np.zeros(template.n_atoms, dtype=bool)
    for condition in _conditions(group, {template.name: template.residue_name[0].decode()}):
        chosen |= condition.mask(template)
    return chosen if group == "solute" else chosen & (template.mass > HEAVIEST_HYDROGEN)


def atoms_of_group(group: str, topology: Topology) -> np.ndarray:
    """Atoms of a system in the group, ascending from 0."""
    pieces = [np.zeros(0, dtype=np.int64)]
    masks = [mask(group, template) for template in topology.templates]
    for t, count, first in zip(topology.run_template.tolist(), topology.run_count.tolist(),
                               topology.run_first_atom.tolist(), strict=False):
        if masks[t].any():
            starts = first + len(masks[t]) * np.arange(count, dtype=np.int64)
            pieces.append((starts[:, None] + np.flatnonzero(masks[t])).ravel())
    return np.concatenate(pieces)


def held_atoms(phase: str, group: str, topology: Topology) -> np.ndarray:
    """The same of a group that a phase restrains. Raises BadInputError when there are none."""
    atoms = atoms_of_group(group, topology)
    if not len(atoms):
        raise BadInputError(nothing_held(phase, group))
    return atoms


def nothing_held(phase: str, group: str) -> str:
    """What is wrong with a restraint on a group without atoms."""
    return f"phase {phase} restrains {group}, and the system has no atom of it: remove the restraint"
