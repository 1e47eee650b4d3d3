"""Reference geometry of the sugar-phosphate backbone and the distances that count as contact.

Bonds and angles, with their standard deviations, are those against which the backbone closure builds: one table,
templates/backbone_restraints.json. Glycosidic bonds depend on the base and ring angles on the pucker, which crystals
are free to choose: neither is judged.
"""

import json
from functools import cache

import numpy as np

from chromabuild.base.files import template_path
from chromabuild.molecule.geometry import cross, measure_torsion
from chromabuild.sterics.atoms import KINDS, POLAR_HYDROGEN, POLAR_NITROGEN, POLAR_OXYGEN, POLAR_SULFUR

_RING = {"C1'", "C2'", "C3'", "C4'", "O4'"}


def _judged(kind: str) -> dict[str, tuple[float, float]]:
    """Target and standard deviation by atom names; the atom's residue follows from its neighbours."""
    table = json.loads(template_path("backbone_restraints.json").read_text())[kind]
    entries = {key.replace("-", ""): tuple(value) for key, value in table.items() if "N" not in key.split()}
    return {key: value for key, value in entries.items() if len(key.split()) == 2 or not set(key.split()) <= _RING}


BACKBONE_BONDS = _judged("bonds")  # angstrom
BACKBONE_ANGLES = _judged("angles")  # degree
# Everything else is compared with itself before a move.
OTHER_BOND_DEVIATION = 0.02
OTHER_ANGLE_DEVIATION = 2.0
MAX_Z = 4.0

# Half the distance at which two atoms start to be uncomfortable, by kind: somewhat inside van der Waals contact, so
# that normal packing costs nothing. A hydrogen bond is comfortable down to 1.65 A from hydrogen to acceptor.
CONTACT_RADIUS = np.array([0.95, 0.95, 0.80, 1.60, 1.60, 1.40, 1.35, 1.70, 1.70, 1.50])
HYDROGEN_BOND_CONTACT = 1.65
LARGEST_CONTACT = 3.4

# Below these a minimiser starts from a steep wall; correction aims above them. No two non-bonded heavy atoms are nearer
# in the crystal 1KX5 (2.205 A, a phosphate's oxygen and an arginine's nitrogen).
SEVERE_HEAVY, SEVERE_HYDROGEN = 2.2, 1.3
LARGEST_THRESHOLD = 2.0


@cache
def severe_distance() -> np.ndarray:
    """(k, k) severe distance of two kinds of atom, angstrom."""
    hydrogen = np.arange(len(KINDS)) <= POLAR_HYDROGEN
    return np.where(hydrogen[:, None] | hydrogen[None], SEVERE_HYDROGEN, SEVERE_HEAVY)


@cache
def contact_distance() -> np.ndarray:
    """(k, k) smallest comfortable distance of two kinds of atom, angstrom."""
    polar = np.isin(np.arange(len(KINDS)), (POLAR_NITROGEN, POLAR_OXYGEN, POLAR_SULFUR))
    donor = np.arange(len(KINDS)) == POLAR_HYDROGEN
    bond = (donor[:, None] & polar[None]) | (polar[:, None] & donor[None])
    return np.where(bond, HYDROGEN_BOND_CONTACT, CONTACT_RADIUS[:, None] + CONTACT_RADIUS[None])


def backbone_bond(a: str, b: str) -> tuple[float, float] | None:
    """Reference length and deviation of a DNA backbone bond by atom names, in either order."""
    return BACKBONE_BONDS.get(f"{a} {b}") or BACKBONE_BONDS.get(f"{b} {a}")


def backbone_angle(a: str, b: str, c: str) -> tuple[float, float] | None:
    """Reference angle and deviation of a DNA backbone angle by atom names, in either order."""
    return BACKBONE_ANGLES.get(f"{a} {b} {c}") or BACKBONE_ANGLES.get(f"{c} {b} {a}")


def length_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(m,) distances of (m, 3) positions."""
    return np.linalg.norm(a - b, axis=1)


def angle_between(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(m,) angles a-b-c in degree of (m, 3) positions."""
    u, v = a - b, c - b
    return np.degrees(np.arctan2(np.linalg.norm(cross(u, v), axis=1), (u * v).sum(axis=1)))


def angles(position: np.ndarray, triples: np.ndarray) -> np.ndarray:
    """(m,) angles in degree of (m, 3) atom triples."""
    return angle_between(*(position[triples[:, k]] for k in range(3)))


def dihedrals(position: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """(m,) dihedral angles in degree, IUPAC sign, of (m, 4) atom quadruples."""
    return np.degrees(measure_torsion(*(position[quads[:, k]] for k in range(4))))
