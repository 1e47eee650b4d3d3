"""Atoms as the clash stage sees them: position, element, role, bonds and a name to show; from a Solute or any file."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gemmi
import numpy as np

from chromabuild import _kernels
from chromabuild.errors import BadInputError
from chromabuild.residues import ResidueTemplate, residue_library
from chromabuild.solute import Solute

PARTS = ("other", "DNA backbone", "sugar", "base", "protein backbone", "side chain")
OTHER, DNA_BACKBONE, SUGAR, BASE, PROTEIN_BACKBONE, SIDE_CHAIN = range(len(PARTS))

# The source's phosphate class (P, O5', C5', C4', C3', O3'), with the phosphate's oxygens and all their hydrogens.
DNA_BACKBONE_ATOMS = frozenset(
    "P OP1 OP2 OP3 O1P O2P O5' C5' C4' C3' O3' H5' H5'' H4' H3' HO5' HO3' H5T H3T HOP2 HOP3".split())
SUGAR_ATOMS = frozenset("C1' C2' O4' O2' H1' H2' H2'' HO2'".split())
PROTEIN_BACKBONE_ATOMS = frozenset("N H H1 H2 H3 HN CA HA HA2 HA3 C O OXT".split())

HYDROGEN, CARBON, NITROGEN, OXYGEN, PHOSPHORUS, SULFUR = 1, 6, 7, 8, 15, 16


def part_of(kind: str, atom: str) -> int:
    """Role of an atom (index into PARTS) from the kind of its residue and its name."""
    if kind == "nucleotide":
        return DNA_BACKBONE if atom in DNA_BACKBONE_ATOMS else SUGAR if atom in SUGAR_ATOMS else BASE
    if kind == "amino acid":
        return PROTEIN_BACKBONE if atom in PROTEIN_BACKBONE_ATOMS else SIDE_CHAIN
    return OTHER


@dataclass(frozen=True)
class LibraryTable:
    """The residue library flattened: row of atom k of template t is ``first[t] + k``."""

    first: np.ndarray
    size: np.ndarray
    name: np.ndarray
    element: np.ndarray
    part: np.ndarray


@cache
def library_table() -> LibraryTable:
    """Atom properties of every residue template, in library order."""
    templates = list(residue_library().values())
    size = np.array([len(t.atoms) for t in templates])
    return LibraryTable(
        first=np.concatenate([[0], np.cumsum(size)[:-1]]),
        size=size,
        name=np.array([name for t in templates for name in t.atoms]),
        element=np.array([gemmi.Element(e).atomic_number for t in templates for e in t.elements], dtype=np.uint8),
        part=np.array([part_of(t.kind, name) for t in templates for name in t.atoms], dtype=np.uint8),
    )


class BondGraph:
    """Covalent bonds as compressed rows: neighbours of atom i are ``neighbour[first[i]:first[i+1]]``."""

    def __init__(self, n_atoms: int, bonds: np.ndarray) -> None:
        """``bonds`` is (b, 2), each bond once."""
        self.bonds = np.ascontiguousarray(bonds, dtype=np.int32).reshape(-1, 2)
        self.first = np.zeros(n_atoms + 1, dtype=np.int32)
        self.neighbour = np.zeros(max(2 * len(self.bonds), 1), dtype=np.int32)
        if len(self.bonds):
            _kernels.cell_list.bond_graph(self.bonds.T, self.first, self.neighbour)

    def neighbours(self, atom: int) -> np.ndarray:
        """Atoms bonded to one atom."""
        return self.neighbour[self.first[atom]:self.first[atom + 1]]

    def bonded(self, pairs: np.ndarray) -> np.ndarray:
        """(m,) bool: whether one, two or three bonds join the atoms of each of the (m, 2) pairs."""
        mark = np.zeros(len(pairs), dtype=np.int32)
        if len(pairs):
            pairs = np.ascontiguousarray(pairs, dtype=np.int32)
            _kernels.cell_list.mark_bonded_pairs(self.first, self.neighbour, pairs.T, mark)
        return mark.astype(bool)

    def beyond(self, inner: int, outer: int) -> list[int] | None:
        """Atoms on the outer side of a bond, without ``outer`` itself; None when the bond is part of a ring."""
        seen, stack = {inner, outer}, [outer]
        while stack:
            atom = stack.pop()
            for other in self.neighbours(atom).tolist():
                if other == inner and atom != outer:
                    return None
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return sorted(seen - {inner, outer})


@dataclass
class Atoms:
    """All atoms of a structure."""

    position: np.ndarray
    """(n, 3) float32 or float64, angstrom."""
    element: np.ndarray
    """(n,) uint8, atomic numbers."""
    name: np.ndarray
    """(n,) atom names."""
    part: np.ndarray
    """(n,) uint8, index into PARTS."""
    residue: np.ndarray
    """(n,) int32, consecutive residues from 0."""
    residue_name: list[str]
    """Name of each residue as the library spells it (``HIE``), or as the file does when the library lacks it."""
    residue_label: list[str]
    """``segid:resname:resid`` of each residue."""
    graph: BondGraph

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.element)

    def identity(self, atom: int) -> str:
        """``segid:resname:resid:atom``."""
        return f"{self.residue_label[self.residue[atom]]}:{self.name[atom]}"

    def pair_class(self, a: int, b: int) -> str:
        """The roles of two atoms, e.g. ``DNA backbone / side chain``."""
        first, second = sorted((int(self.part[a]), int(self.part[b])))
        return f"{PARTS[first]} / {PARTS[second]}"

    @classmethod
    def from_solute(cls, solute: Solute) -> "Atoms":
        """Atoms of a Solute; the position array is shared, not copied."""
        table = library_table()
        templates = solute.residue_template
        shift = table.first[templates] - solute.residue_first_atom[:-1]
        row = np.arange(solute.n_atoms) + np.repeat(shift, table.size[templates])
        names = [t for t in residue_library()]
        pdb_names = [t.pdb_name for t in residue_library().values()]
        return cls(
            position=solute.position,
            element=table.element[row],
            name=table.name[row],
            part=table.part[row],
            residue=solute.atom_residue,
            residue_name=[names[t] for t in templates],
            residue_label=[f"{solute.segment_name[s]}:{pdb_names[t]}:{number}" for s, t, number
                           in zip(solute.residue_segment, templates, solute.residue_number, strict=True)],
            graph=BondGraph(solute.n_atoms, solute.bonds()),
        )

    @classmethod
    def from_structure_file(cls, path: str | Path) -> "Atoms":
        """The first model of a PDB or mmCIF file, first alternative locations only.

        Bonds come from the residue library by atom name, between consecutive residues of a chain by distance (C-N
        or O3'-P below 2.2 A), and for all other atoms by distance (covalent radii + 0.4 A).
        Raises BadInputError when the file cannot be read or holds no atoms.
        """
        try:
            structure = gemmi.read_structure(str(path))
        except (OSError, RuntimeError, ValueError, UnicodeDecodeError) as error:
            raise BadInputError(f"cannot read {path} as PDB or mmCIF ({error}): give a valid file") from error
        if len(structure) == 0 or structure[0].count_atom_sites() == 0:
            raise BadInputError(f"{path} holds no atoms: give a PDB, mmCIF or chromabuild solute file")
        structure.remove_alternative_conformations()
        position, element, name, part, residue = [], [], [], [], []
        residue_name, residue_label, residue_chain, complete = [], [], [], []
        for number, chain in enumerate(structure[0]):
            for item in chain:
                template = matching_template(item.name, {atom.name for atom in item})
                kind = template.kind if template else foreign_kind(item)
                residue_name.append(template.name if template else item.name)
                residue_label.append(f"{item.segment or chain.name}:{item.name}:{item.seqid}")
                residue_chain.append(number)
                complete.append(template)
                for atom in item:
                    position.append(atom.pos.tolist())
                    element.append(atom.element.atomic_number)
                    name.append(atom.name)
                    part.append(part_of(kind, atom.name))
                    residue.append(len(residue_name) - 1)
        position = np.array(position)
        element = np.array(element, dtype=np.uint8)
        residue = np.array(residue, dtype=np.int32)
        if not np.isfinite(position).all():
            raise BadInputError(f"{path} holds coordinates that are not numbers: correct the file")
        bonds = foreign_bonds(position, element, name, residue, residue_chain, complete)
        return cls(position, element, np.array(name), np.array(part, dtype=np.uint8), residue, residue_name,
                   residue_label, BondGraph(len(position), bonds))


def foreign_kind(residue: gemmi.Residue) -> str:
    """Kind of a residue that the library lacks."""
    info = gemmi.find_tabulated_residue(residue.name)
    return "amino acid" if info.is_amino_acid() else "nucleotide" if info.is_nucleic_acid() else "other"


@cache
def templates_by_pdb_name() -> dict[str, list[ResidueTemplate]]:
    """Every template under its own and its PDB name."""
    found: dict[str, list[ResidueTemplate]] = {}
    for template in residue_library().values():
        for name in {template.name, template.pdb_name}:
            found.setdefault(name, []).append(template)
    return found


def matching_template(name: str, atoms: set[str]) -> ResidueTemplate | None:
    """The template of this name that holds all given atoms and lacks fewest; None when a given atom is unknown."""
    fitting = [t for t in templates_by_pdb_name().get(name, []) if atoms <= set(t.atoms)]
    return min(fitting, key=lambda t: (len(t.atoms), t.name), default=None)


def foreign_bonds(position: np.ndarray, element: np.ndarray, name: list[str], residue: np.ndarray,
                  residue_chain: list[int], templates: list[ResidueTemplate | None]) -> np.ndarray:
    """(b, 2) bonds: by residue template where there is one, by distance elsewhere."""
    from chromabuild.clash.detect import close_pairs

    first = np.searchsorted(residue, np.arange(len(templates) + 1))
    bonds, by_name = [], []
    for k, template in enumerate(templates):
        here = {name[i]: i for i in range(first[k], first[k + 1])}
        by_name.append(here)
        if template is not None:
            for a, b in template.bonds.tolist():
                a, b = here.get(template.atoms[a]), here.get(template.atoms[b])
                if a is not None and b is not None:
                    bonds.append((min(a, b), max(a, b)))
    for k in range(len(templates) - 1):
        if residue_chain[k] == residue_chain[k + 1]:
            for tail, head in (("C", "N"), ("O3'", "P")):
                a, b = by_name[k].get(tail), by_name[k + 1].get(head)
                if a is not None and b is not None and np.linalg.norm(position[a] - position[b]) < 2.2:
                    bonds.append((a, b))
    unknown = np.array([template is None for template in templates])[residue]
    if unknown.any():
        covalent = np.array([gemmi.Element(int(z)).covalent_r for z in range(119)])[element]
        pairs, distance = close_pairs(position, min(2 * covalent.max() + 0.4, 3.0))
        a, b = pairs.T
        near = (distance < covalent[a] + covalent[b] + 0.4) & (distance > 0.4)
        near &= ~((element[a] == HYDROGEN) & (element[b] == HYDROGEN))
        # Only within a residue or between consecutive ones: elsewhere a short distance is a clash, not a bond.
        near &= (unknown[a] | unknown[b]) & (np.abs(residue[a] - residue[b]) <= 1)
        bonds += [tuple(pair) for pair in pairs[near].tolist()]
    return np.array(sorted(set(bonds)), dtype=np.int32).reshape(-1, 2)
