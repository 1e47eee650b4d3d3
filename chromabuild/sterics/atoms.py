"""Atoms as the clash stage sees them: position, element, role, bonds and a name to show; from a Solute or any file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import gemmi
import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import SITE, ResidueTemplate, residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.molecule.structure_file import StructureFile
from chromabuild.sterics.bond_graph import BondGraph
from chromabuild.sterics.cell_list import CellList

PARTS = ("other", "DNA backbone", "sugar", "base", "protein backbone", "side chain")
OTHER, DNA_BACKBONE, SUGAR, BASE, PROTEIN_BACKBONE, SIDE_CHAIN = range(len(PARTS))

# The source's phosphate class (P, O5', C5', C4', C3', O3'), with the phosphate's oxygens and all their hydrogens.
DNA_BACKBONE_ATOMS = frozenset(
    "P OP1 OP2 OP3 O1P O2P O5' C5' C4' C3' O3' H5' H5'' H4' H3' HO5' HO3' H5T H3T HOP2 HOP3".split())
SUGAR_ATOMS = frozenset("C1' C2' O4' O2' H1' H2' H2'' HO2'".split())
PROTEIN_BACKBONE_ATOMS = frozenset("N H H1 H2 H3 HN CA HA HA2 HA3 C O OXT".split())

DISULPHIDE, ISOPEPTIDE = 2.5, 1.7
"""Angstrom within which two sulphurs, and the amine of a lysine and the end of a chain, count as bonded."""

HYDROGEN, CARBON, NITROGEN, OXYGEN, PHOSPHORUS, SULFUR = 1, 6, 7, 8, 15, 16

# Kinds of atom by how near others may come; the hydrogens stand first.
KINDS = ("apolar hydrogen", "hydrogen on a flat carbon", "polar hydrogen", "carbon", "carbonyl carbon", "nitrogen",
         "oxygen", "sulfur", "phosphorus", "other")
(APOLAR_HYDROGEN, FLAT_HYDROGEN, POLAR_HYDROGEN, CARBON_KIND, CARBONYL_CARBON, POLAR_NITROGEN, POLAR_OXYGEN,
 POLAR_SULFUR, PHOSPHORUS_KIND, OTHER_KIND) = range(len(KINDS))


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
    names: np.ndarray
    """Distinct atom names."""
    name_code: np.ndarray
    """Place in ``names`` of each row's name."""
    element: np.ndarray
    part: np.ndarray


@cache
def library_table() -> LibraryTable:
    """Atom properties of every residue template, in library order."""
    templates = list(residue_library().values())
    size = np.array([len(t.atoms) for t in templates])
    names, code = np.unique([name for t in templates for name in t.atoms], return_inverse=True)
    return LibraryTable(
        first=np.concatenate([[0], np.cumsum(size)[:-1]]),
        size=size,
        names=names,
        name_code=code.astype(np.uint16),
        element=np.array([gemmi.Element(e).atomic_number for t in templates for e in t.elements], dtype=np.uint8),
        part=np.array([part_of(t.kind, name) for t in templates for name in t.atoms], dtype=np.uint8),
    )


class Widened:
    """A float32 array that gives float64 when indexed: a wide copy of everything is never made."""

    def __init__(self, array: np.ndarray) -> None:
        """Nothing is copied."""
        self.array = array

    def __getitem__(self, index: int | slice | np.ndarray) -> np.ndarray:
        """The entries in float64."""
        return self.array[index].astype(np.float64)


class SoluteLabels(Sequence):
    """``segid:resname:resid`` of the residues of a Solute, made when asked for."""

    def __init__(self, solute: Solute) -> None:
        """Keeps a reference to the solute."""
        self.solute = solute

    def __len__(self) -> int:
        """Number of residues."""
        return self.solute.n_residues

    def __getitem__(self, residue: int) -> str:
        """The label of one residue."""
        s = self.solute
        name = residue_library()[residue_names()[s.residue_template[residue]]].pdb_name
        return f"{s.segment_name[s.residue_segment[residue]]}:{name}:{s.residue_number[residue]}"


@dataclass
class Atoms:
    """All atoms of a structure."""

    position: np.ndarray
    """(n, 3) float32 or float64, angstrom."""
    element: np.ndarray
    """(n,) uint8, atomic numbers."""
    names: np.ndarray
    """Distinct atom names."""
    name_code: np.ndarray
    """(n,) uint16, place of each atom's name in ``names``."""
    part: np.ndarray
    """(n,) uint8, index into PARTS."""
    residue: np.ndarray
    """(n,) int32, consecutive residues from 0."""
    residue_name: Sequence[str]
    """Name of each residue as the library spells it (``HIE``), or as the file does when the library lacks it."""
    residue_label: Sequence[str]
    """``segid:resname:resid`` of each residue."""
    graph: BondGraph
    residue_template: np.ndarray
    """(r,) int32 place in the library of residues whose atoms are all there and in its order; -1 for the others."""
    box: np.ndarray | None = None
    """(3,) edges of the periodic box, or (3, 3) vectors where they lean, angstrom; None when there is none."""
    left_out: str = ""
    """What of a file is not here, as a phrase; empty when nothing is."""

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.element)

    @property
    def name(self) -> np.ndarray:
        """(n,) atom names, made anew at each call: for one atom ask ``name_of``, for many of one name ``named``."""
        return self.names[self.name_code]

    def name_of(self, atom: int) -> str:
        """Name of one atom."""
        return str(self.names[self.name_code[atom]])

    def named(self, name: str) -> np.ndarray:
        """Ascending numbers of the atoms of this name."""
        code = np.flatnonzero(self.names == name)
        return np.flatnonzero(self.name_code == code[0]) if len(code) else np.zeros(0, dtype=np.int64)

    @cached_property
    def residue_first(self) -> np.ndarray:
        """(r + 1,) atoms of residue k are first[k] .. first[k+1]-1."""
        return np.searchsorted(self.residue, np.arange(len(self.residue_name) + 1))

    @cached_property
    def kind(self) -> np.ndarray:
        """(n,) int8, index into KINDS: what decides how near an atom may come."""
        kind = np.full(self.n_atoms, OTHER_KIND, dtype=np.int8)
        for element, value in ((HYDROGEN, APOLAR_HYDROGEN), (CARBON, CARBON_KIND), (NITROGEN, POLAR_NITROGEN),
                               (OXYGEN, POLAR_OXYGEN), (SULFUR, POLAR_SULFUR), (PHOSPHORUS, PHOSPHORUS_KIND)):
            kind[self.element == element] = value
        polar = (kind == POLAR_NITROGEN) | (kind == POLAR_OXYGEN) | (kind == POLAR_SULFUR)
        flat = (kind == CARBON_KIND) & (np.diff(self.graph.first).astype(np.int8) == 3)
        oxygen = self.element == OXYGEN
        bonds = self.graph.bonds
        for a, b in ((bonds[:, 0], bonds[:, 1]), (bonds[:, 1], bonds[:, 0])):
            hydrogen = kind[a] <= POLAR_HYDROGEN
            kind[a[hydrogen & flat[b]]] = FLAT_HYDROGEN
            kind[a[hydrogen & polar[b]]] = POLAR_HYDROGEN
            kind[a[flat[a] & oxygen[b]]] = CARBONYL_CARBON
        return kind

    def at(self, position: np.ndarray) -> "Atoms":
        """The same atoms elsewhere; what follows from their bonds is not worked out again."""
        moved = replace(self, position=position)
        known = {"kind", "residue_first"} & self.__dict__.keys()
        moved.__dict__.update({name: self.__dict__[name] for name in known})
        return moved

    def identity(self, atom: int) -> str:
        """``segid:resname:resid:atom``."""
        return f"{self.residue_label[self.residue[atom]]}:{self.name_of(atom)}"

    def pair_class(self, a: int, b: int) -> str:
        """The roles of two atoms, e.g. ``DNA backbone / side chain``."""
        first, second = sorted((int(self.part[a]), int(self.part[b])))
        return f"{PARTS[first]} / {PARTS[second]}"

    @classmethod
    def from_solute(cls, solute: Solute) -> "Atoms":
        """Atoms of a Solute; the position array is shared, not copied."""
        table = library_table()
        templates = solute.residue_template
        shift = (table.first[templates] - solute.residue_first_atom[:-1]).astype(np.int32)
        row = np.repeat(shift, table.size[templates])
        row += np.arange(solute.n_atoms, dtype=np.int32)
        return cls(
            position=solute.position,
            element=table.element[row],
            names=table.names,
            name_code=table.name_code[row],
            part=table.part[row],
            residue=solute.atom_residue,
            residue_name=np.array(residue_names(), dtype=object)[templates],
            residue_label=SoluteLabels(solute),
            graph=BondGraph(solute.n_atoms, np.concatenate([solute.bonds(), _sites(solute)])),
            residue_template=templates.astype(np.int32),
        )

    @classmethod
    def from_file(cls, path: str | Path) -> "Atoms":
        """Atoms of a file that we write: a solute (.h5), else what ``from_structure_file`` takes.

        Raises BadInputError when the file is missing, unreadable or empty.
        """
        if not Path(path).is_file():
            raise BadInputError(f"{path} does not exist: give a solute (.h5), PDB or mmCIF file")
        return cls.from_solute(Solute.read(path)) if Path(path).suffix == ".h5" else cls.from_structure_file(path)

    @classmethod
    def from_structure_file(cls, path: str | Path) -> "Atoms":
        """The first model of a PDB, mmCIF or BinaryCIF file, one location of every atom.

        ``left_out`` says what that leaves out. Raises BadInputError when the file cannot be read or holds no atoms.
        """
        return cls.from_structure(StructureFile.read(path))

    @classmethod
    def from_structure(cls, structure: StructureFile) -> "Atoms":
        """Atoms that have names but no topology.

        Bonds come from the residue library by atom name, between consecutive residues of a chain by distance (C-N
        or O3'-P below 2.2 A), and for all other atoms by distance (covalent radii + 0.4 A).
        """
        position, element, name = structure.position, structure.element, structure.name
        first = np.searchsorted(structure.residue, np.arange(len(structure.residue_name) + 1)).tolist()
        atoms_of = [name[a:b] for a, b in zip(first, first[1:], strict=False)]
        templates = [matching_template(residue, frozenset(atoms))
                     for residue, atoms in zip(structure.residue_name, atoms_of, strict=True)]
        residue_name = [t.name if t else residue for t, residue in zip(templates, structure.residue_name, strict=True)]
        kinds = [t.kind if t else foreign_kind(residue)
                 for t, residue in zip(templates, structure.residue_name, strict=True)]
        part = [part_of(kind, atom) for kind, atoms in zip(kinds, atoms_of, strict=True) for atom in atoms]
        bonds = foreign_bonds(position, element, name, structure.residue, structure.piece, templates)
        names, code = np.unique(name, return_inverse=True)
        place = {key: k for k, key in enumerate(residue_names())}
        complete = [place[t.name] if t is not None and t.atoms == tuple(atoms) else -1
                    for t, atoms in zip(templates, atoms_of, strict=True)]
        return cls(position, element, names, code.astype(np.uint16), np.array(part, dtype=np.uint8), structure.residue,
                   residue_name, structure.residue_label, BondGraph(len(position), bonds),
                   np.array(complete, dtype=np.int32), structure.box, structure.left_out)


@cache
def foreign_kind(name: str) -> str:
    """Kind of a residue that the library lacks."""
    info = gemmi.find_tabulated_residue(name)
    return "amino acid" if info.is_amino_acid() else "nucleotide" if info.is_nucleic_acid() else "other"


@cache
def templates_by_pdb_name() -> dict[str, list[ResidueTemplate]]:
    """Every template under its own and its PDB name."""
    found: dict[str, list[ResidueTemplate]] = {}
    for template in residue_library().values():
        for name in {template.name, template.pdb_name}:
            found.setdefault(name, []).append(template)
    return found


@cache
def matching_template(name: str, atoms: frozenset[str]) -> ResidueTemplate | None:
    """The template of this name that holds all given atoms and lacks fewest; None when a given atom is unknown."""
    fitting = [t for t in templates_by_pdb_name().get(name, []) if atoms.issubset(t.atoms)]
    return min(fitting, key=lambda t: (len(t.atoms), t.name), default=None)


def _bonds_of_links(position: np.ndarray, piece: np.ndarray, templates: list[ResidueTemplate | None],
                    by_name: list[dict[str, int]]) -> list[tuple[int, int]]:
    """Disulphides, of sulphurs without hydrogen, and isopeptide bonds of a lysine with the end of a chain."""
    sulphurs = [here["SG"] for here, template in zip(by_name, templates, strict=True)
                if template is not None and template.pdb_name == "CYS" and "SG" in here and "HG" not in here]
    amines = [here["NZ"] for here, template in zip(by_name, templates, strict=True)
              if template is not None and template.pdb_name == "LYS" and "NZ" in here]
    last = np.append(np.diff(piece) != 0, True)
    ends = [here["C"] for here, is_last in zip(by_name, last.tolist(), strict=True)
            if is_last and "C" in here and "N" in here and "OXT" not in here]
    found = []
    for one, other, reach in ((sulphurs, sulphurs, DISULPHIDE), (amines, ends, ISOPEPTIDE)):
        if one and other:
            near = cKDTree(position[one]).query_ball_tree(cKDTree(position[other]), reach)
            found += [(min(one[i], other[j]), max(one[i], other[j])) for i, row in enumerate(near) for j in row
                      if one[i] != other[j]]
    return found


def foreign_bonds(position: np.ndarray, element: np.ndarray, name: list[str], residue: np.ndarray,
                  piece: np.ndarray, templates: list[ResidueTemplate | None]) -> np.ndarray:
    """(b, 2) bonds: by residue template where there is one, by distance elsewhere and of links between chains."""
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
        if piece[k] == piece[k + 1]:
            for tail, head in (("C", "N"), ("O3'", "P")):
                a, b = by_name[k].get(tail), by_name[k + 1].get(head)
                if a is not None and b is not None and np.linalg.norm(position[a] - position[b]) < 2.2:
                    bonds.append((a, b))
    bonds += _bonds_of_links(position, piece, templates, by_name)
    unknown = np.array([template is None for template in templates])[residue]
    if unknown.any():
        covalent = np.array([gemmi.Element(int(z)).covalent_r for z in range(119)])[element]
        reach = min(2 * covalent.max() + 0.4, 3.0)
        pairs, distance = CellList(position, reach).pairs(reach)
        a, b = pairs.T
        near = (distance < covalent[a] + covalent[b] + 0.4) & (distance > 0.4)
        near &= ~((element[a] == HYDROGEN) & (element[b] == HYDROGEN))
        # Only within a residue or between consecutive ones: elsewhere a short distance is a clash, not a bond.
        near &= (unknown[a] | unknown[b]) & (np.abs(residue[a] - residue[b]) <= 1)
        bonds += [tuple(pair) for pair in pairs[near].tolist()]
    return np.array(sorted(set(bonds)), dtype=np.int32).reshape(-1, 2)


def _sites(solute: Solute) -> np.ndarray:
    """(k, 2) int32: sites without mass and the atom that they belong to, the first of their molecule."""
    found = [np.zeros((0, 2), dtype=np.int32)]
    for number, template in enumerate(residue_library().values()):
        if SITE in template.elements:
            first = solute.residue_first_atom[:-1][solute.residue_template == number]
            found.append(np.stack([first, first + template.elements.index(SITE)], axis=1))
    return np.concatenate(found).astype(np.int32)
