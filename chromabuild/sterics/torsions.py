"""Rotatable bonds of the residue library: side chains and groups of hydrogens."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from chromabuild.molecule.residues import ResidueTemplate, residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.sterics.bond_graph import BondGraph

STAGGERED = (-60.0, 60.0, 180.0)


@dataclass(frozen=True)
class Torsion:
    """A rotatable bond of a residue; atoms are numbered within the residue (or globally, after ``shifted``)."""

    quad: tuple[int, int, int, int]
    """The dihedral; the last atom is on the turned side."""
    turned: tuple[int, ...]
    """Atoms that turn about the bond quad[1]-quad[2]."""
    planar: bool
    """The outer atom is flat (three neighbours): no staggered minima."""
    period: float
    """Turning by this many degrees only exchanges like atoms."""

    @cached_property
    def turned_atoms(self) -> np.ndarray:
        """``turned`` as ascending int32, for the kernels."""
        return np.array(sorted(self.turned), dtype=np.int32)

    def turns(self, atoms: np.ndarray) -> np.ndarray:
        """(n,) bool: which of some atoms it turns."""
        place = np.minimum(np.searchsorted(self.turned_atoms, atoms), len(self.turned_atoms) - 1)
        return self.turned_atoms[place] == atoms

    def shifted(self, first: int) -> "Torsion":
        """The same with ``first`` added to every atom number."""
        return Torsion(tuple(q + first for q in self.quad), tuple(t + first for t in self.turned), self.planar,
                       self.period)


@dataclass(frozen=True)
class ResidueTorsions:
    """chi1, chi2, ... and the rotors: methyl, ammonium and hydroxyl hydrogens."""

    chi: tuple[Torsion, ...]
    rotors: tuple[Torsion, ...]


TWO_FOLD = {("PHE", 2), ("TYR", 2), ("ASP", 2), ("GLU", 3)}
THREE_FOLD = {("CD", "CE", "NZ", "CM1"), ("CB", "OG", "P", "O1P"), ("CB", "OG1", "P", "O1P"), ("CZ", "OH", "P", "O1P")}
"""Trimethyl-ammonium and phosphate groups."""


def derive(template: ResidueTemplate) -> ResidueTorsions:
    """Torsions of one residue template, from its bonds; a side chain that is linked holds its place."""
    graph = BondGraph(len(template.atoms), template.bonds)
    degree = np.diff(graph.first)
    # N has a bond to the residue before it.
    index = template.index
    if template.kind == "amino acid" and "H1" not in index and "N" in index and not template.is_acylated:
        degree[index["N"]] += 1
    chi = []
    for number, names in enumerate(() if template.link else template.chi, start=1):
        quad = tuple(index[name] for name in names)
        turned = graph.beyond(quad[1], quad[2])
        if turned:
            period = 120.0 if names in THREE_FOLD else 180.0 if (template.parent, number) in TWO_FOLD else 360.0
            chi.append(Torsion(quad, tuple(turned), bool(degree[quad[2]] == 3), period))
    rotors = []
    for x, y in [tuple(pair) for bond in template.bonds.tolist() for pair in (bond, bond[::-1])]:
        others = [k for k in graph.neighbours(y).tolist() if k != x]
        inner = [k for k in graph.neighbours(x).tolist() if k != y and template.elements[k] != "H"]
        free = degree[y] == 4 or template.elements[y] in ("O", "S")
        if template.elements[x] == "H" or not others or not inner or not free or \
                any(template.elements[k] != "H" for k in others):
            continue
        rotors.append(Torsion((inner[0], x, y, others[0]), tuple(others), False, 360.0 / len(others)))
    return ResidueTorsions(tuple(chi), tuple(rotors))


@cache
def library_torsions() -> tuple[ResidueTorsions, ...]:
    """Torsions of every residue template, in library order."""
    return tuple(derive(template) for template in residue_library().values())


def side_chain_torsions(solute: Solute, residue: int) -> list[Torsion]:
    """chi1, chi2, ... of a residue, by atoms of the solute; none of one that binds a metal."""
    if residue in solute.held_residues:
        return []
    first = int(solute.residue_first_atom[residue])
    return [t.shifted(first) for t in library_torsions()[solute.residue_template[residue]].chi]


def hydrogen_rotors(solute: Solute, residue: int) -> list[Torsion]:
    """Rotors of a residue, by atoms of the solute."""
    first = int(solute.residue_first_atom[residue])
    return [t.shifted(first) for t in library_torsions()[solute.residue_template[residue]].rotors]


def targets(torsion: Torsion, spread: tuple[float, ...]) -> np.ndarray:
    """Dihedral values worth trying, degree: staggered with a spread about them, or every 30 degrees."""
    if torsion.planar:
        return np.arange(-180.0, -180.0 + torsion.period, 30.0)
    return (np.array(STAGGERED)[:, None] + np.array(spread)[None]).ravel()
