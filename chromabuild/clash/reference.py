"""Reference geometry of the sugar-phosphate backbone and the distances that count as contact.

Bonds and angles of the phosphate: Gelbin et al. 1996 and Parkinson et al. 1996; values and standard deviations are
those against which backbone closure is built and judged in this project.
"""

import numpy as np

from chromabuild.clash.atoms import CARBON, HYDROGEN, NITROGEN, OXYGEN, PHOSPHORUS, SULFUR

# Length and standard deviation, angstrom.
BACKBONE_BONDS = {
    "O3' P": (1.607, 0.012), "P O5'": (1.593, 0.010), "P OP1": (1.485, 0.017), "P OP2": (1.485, 0.017),
    "O5' C5'": (1.440, 0.016), "C5' C4'": (1.509, 0.010), "C4' O4'": (1.446, 0.011), "C4' C3'": (1.526, 0.0115),
    "O4' C1'": (1.420, 0.013), "C3' O3'": (1.431, 0.013), "C3' C2'": (1.518, 0.012), "C2' C1'": (1.521, 0.012),
}
# Angle and standard deviation, degree.
BACKBONE_ANGLES = {
    "C3' O3' P": (119.7, 1.2), "O3' P O5'": (104.0, 1.9), "O3' P OP1": (107.4, 3.2), "O3' P OP2": (108.3, 3.2),
    "OP1 P OP2": (119.6, 1.5), "O5' P OP1": (108.1, 2.9), "O5' P OP2": (108.1, 2.9), "P O5' C5'": (120.9, 1.6),
    "O5' C5' C4'": (110.2, 1.4), "C5' C4' C3'": (114.7, 1.5), "C5' C4' O4'": (109.4, 1.6),
    "C4' C3' O3'": (110.3, 2.4), "O3' C3' C2'": (110.8, 2.5),
}
# Everything else is compared with itself before a move.
OTHER_BOND_DEVIATION = 0.02
OTHER_ANGLE_DEVIATION = 2.0
MAX_Z = 4.0

# Half the distance at which two atoms start to be uncomfortable: somewhat inside van der Waals contact, so that normal
# packing costs nothing. A hydrogen bond is comfortable down to 1.65 A from hydrogen to acceptor.
CONTACT_RADIUS = {HYDROGEN: 0.95, CARBON: 1.60, NITROGEN: 1.40, OXYGEN: 1.35, PHOSPHORUS: 1.70, SULFUR: 1.70}
OTHER_CONTACT_RADIUS = 1.5
POLAR_HYDROGEN_CONTACT = 0.80
HYDROGEN_BOND_CONTACT = 1.65
LARGEST_CONTACT = 3.4

# Below these a minimiser starts from a steep wall; correction aims above them.
SEVERE_HEAVY = 2.0
SEVERE_HYDROGEN = 1.3


def backbone_bond(a: str, b: str) -> tuple[float, float] | None:
    """Reference length and deviation of a DNA backbone bond by atom names, in either order."""
    return BACKBONE_BONDS.get(f"{a} {b}") or BACKBONE_BONDS.get(f"{b} {a}")


def backbone_angle(a: str, b: str, c: str) -> tuple[float, float] | None:
    """Reference angle and deviation of a DNA backbone angle by atom names, in either order."""
    return BACKBONE_ANGLES.get(f"{a} {b} {c}") or BACKBONE_ANGLES.get(f"{c} {b} {a}")


def angles(position: np.ndarray, triples: np.ndarray) -> np.ndarray:
    """(m,) angles in degree of (m, 3) atom triples."""
    u = position[triples[:, 0]] - position[triples[:, 1]]
    v = position[triples[:, 2]] - position[triples[:, 1]]
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(u, v), axis=1), (u * v).sum(axis=1)))


def dihedrals(position: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """(m,) dihedral angles in degree, IUPAC sign, of (m, 4) atom quadruples."""
    a, b, c, d = (position[quads[:, k]] for k in range(4))
    u, v, w = b - a, c - b, d - c
    n1, n2 = np.cross(u, v), np.cross(v, w)
    return np.degrees(np.arctan2((np.cross(n1, n2) * v).sum(axis=1) / np.linalg.norm(v, axis=1), (n1 * n2).sum(axis=1)))
