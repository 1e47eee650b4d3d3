"""Ions and water around DNA: who is who, how far from the nearest atom of DNA, and how long they stay."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.analysis.nucleotides import PLACE, Nucleotides, has_box

if TYPE_CHECKING:
    import MDAnalysis

IONS = {"NA": "Na+", "NA+": "Na+", "SOD": "Na+", "K": "K+", "K+": "K+", "POT": "K+", "MG": "Mg2+", "MG2+": "Mg2+",
        "CA": "Ca2+", "CA2+": "Ca2+", "CAL": "Ca2+", "CL": "Cl-", "CL-": "Cl-", "CLA": "Cl-"}
"""Names of residues of one heavy atom, by which ions are known."""
WATERS = ("HOH", "WAT", "SOL", "TIP3", "TP3", "SPC", "T3P")
FARTHEST = 20.0
"""Angstrom from DNA to which profiles reach."""
SHELL = 0.5
"""Angstrom, thickness of a shell."""
BOUND = 6.0
"""An ion within so many angstrom of an atom of DNA is bound: at it, or with one water between."""
DIRECT = 3.5
"""Angstrom: without a water between."""
WATER = 55.35
"""Mol/L of pure water at 298 K (0.99705 g/mL)."""
SITES = ("phosphate", "minor groove", "major groove", "elsewhere")
_SITE_ATOMS = {"phosphate": ("OP1", "OP2"), "minor groove": ("O2", "N3"), "major groove": ("N7", "O6", "O4")}


@dataclass(frozen=True)
class Solvent:
    """Ions and oxygens of water in a universe."""

    ions: np.ndarray
    """(i,) atoms."""
    kind: np.ndarray
    """(i,) ``Na+``, ..."""
    water: np.ndarray
    """(w,) oxygens."""

    @property
    def kinds(self) -> list[str]:
        """Ions that there are, in alphabetical order."""
        return sorted(set(self.kind.tolist()))


def find_solvent(universe: "MDAnalysis.Universe") -> Solvent:
    """By names of residues; hydrogens and virtual sites do not count."""
    names = np.char.upper(universe.residues.resnames.astype(str))
    owner, atom = universe.atoms.resindices, np.char.upper(universe.atoms.names.astype(str))
    oxygen = np.flatnonzero(np.isin(names, WATERS)[owner] & np.char.startswith(atom, "O"))
    single = np.bincount(owner, minlength=len(names)) == 1
    kinds = np.array([IONS.get(name, "") for name in names])
    ions = np.flatnonzero((single & (kinds != ""))[owner])
    return Solvent(ions, kinds[owner[ions]], oxygen)


def site_of_atoms(nucleotides: Nucleotides) -> tuple[np.ndarray, np.ndarray]:
    """Atoms of DNA (a,) as places in the flat table of atoms, and the site (a,) of ``SITES`` that each belongs to."""
    flat = np.flatnonzero(nucleotides.atoms.ravel() >= 0)
    column = flat % nucleotides.atoms.shape[1]
    letter = nucleotides.letter[flat // nucleotides.atoms.shape[1]]
    site = np.full(len(flat), SITES.index("elsewhere"))
    for name, atoms in _SITE_ATOMS.items():
        site[np.isin(column, [PLACE[atom] for atom in atoms])] = SITES.index(name)
    # N3 of pyrimidines is within the pair, O2 of them in the minor groove; O4 is thymine's, O6 and N7 are purines'.
    site[(column == PLACE["N3"]) & np.isin(letter, ("C", "T"))] = SITES.index("elsewhere")
    return flat, site


def nearest_atoms(points: np.ndarray, atoms: np.ndarray, box: np.ndarray | None,
                  reach: float = FARTHEST) -> tuple[np.ndarray, np.ndarray]:
    """Distances (p,) of points (p, 3) from the nearest of atoms (a, 3), and which one (p,).

    In any periodic cell by the nearest image; infinite and ``a`` beyond ``reach``.
    """
    number, beyond = np.arange(len(atoms)), len(atoms)
    if has_box(box):
        from MDAnalysis.lib.mdamath import triclinic_vectors

        cell = triclinic_vectors(np.asarray(box, dtype=np.float32)).astype(float)
        inverse = np.linalg.inv(cell)
        points = (points @ inverse % 1.0) @ cell
        inside = atoms @ inverse % 1.0
        margin = reach * np.linalg.norm(inverse, axis=0)  # in units of the cell: one over the heights
        shifts = np.array(np.meshgrid(*[np.arange(-np.ceil(m), np.ceil(m) + 1) for m in margin])).reshape(3, -1).T
        images = (inside[None] + shifts[:, None]).reshape(-1, 3)
        near = ((images > -margin) & (images < 1 + margin)).all(axis=1)
        atoms, number = images[near] @ cell, np.tile(number, len(shifts))[near]
    distance, which = cKDTree(atoms).query(points, distance_upper_bound=reach)
    return distance, np.append(number, beyond)[which]


def shells(distance: np.ndarray) -> np.ndarray:
    """(s,) how many of distances fall into each shell of ``SHELL`` angstrom up to ``FARTHEST``."""
    edge = np.arange(0, FARTHEST + SHELL / 2, SHELL)
    return np.histogram(distance[np.isfinite(distance)], edge)[0]


def concentration(ions: np.ndarray, water: np.ndarray) -> np.ndarray:
    """Mol/L in each shell, from numbers of ions and of waters there: 55.35 mol/L times their ratio; NaN without water.

    What a shell's volume is, between atoms of DNA and beside histones, need not be known.
    """
    return np.where(water > 0, WATER * ions / np.maximum(water, 1), np.nan)


@dataclass(frozen=True)
class Residence:
    """How long ions stay bound."""

    time: float
    """Mean residence in the units of the spacing; NaN where none was seen to leave."""
    error: float
    """Standard error, of independent departures."""
    departures: int
    """How often one was seen to leave."""


def residence(bound: np.ndarray, spacing: float) -> Residence:
    """Mean residence time from (f, i) whether each ion is bound in each frame.

    The time that ions were bound, divided by the number that were seen to leave: the most likely mean of exponential
    times of which those at either end of the trajectory are cut off. Shorter visits than a spacing are missed.
    """
    departures = int((bound[:-1] & ~bound[1:]).sum())
    held = float(bound[:-1].sum()) * spacing
    if not departures:
        return Residence(float("nan"), float("nan"), 0)
    return Residence(held / departures, held / departures**1.5, departures)
