"""Sugar-phosphate backbone of DNA: torsions, sugar pucker and the states that are named after them.

Torsions are those of IUPAC-IUB 1983 (doi:10.1111/j.1432-1033.1983.tb07225.x); pucker after Altona & Sundaralingam,
J. Am. Chem. Soc. 94, 8205 (1972).
"""

import numpy as np

from chromabuild.analysis.nucleotides import PLACE, Nucleotides

TORSIONS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "chi")
PUCKERS = ("C3'-endo", "C4'-exo", "O4'-endo", "C1'-exo", "C2'-endo", "C3'-exo", "C4'-endo", "O4'-exo", "C1'-endo",
           "C2'-exo")
"""By sectors of 36 degrees of the phase, from 0."""
_OF_OTHERS = {name: len(PLACE) + k for k, name in enumerate(("O3' before", "P after", "O5' after", "N", "C"))}
"""Columns behind those of ``PLACE``: atoms of the neighbours; N9 and C4 of purines, N1 and C2 of pyrimidines."""
_COLUMN = PLACE | _OF_OTHERS
_BACKBONE = np.array([[_COLUMN[name] for name in atoms] for atoms in (
    ("O3' before", "P", "O5'", "C5'"), ("P", "O5'", "C5'", "C4'"), ("O5'", "C5'", "C4'", "C3'"),
    ("C5'", "C4'", "C3'", "O3'"), ("C4'", "C3'", "O3'", "P after"), ("C3'", "O3'", "P after", "O5' after"),
    ("O4'", "C1'", "N", "C"))])
_RING = np.array([[PLACE[name] for name in atoms] for atoms in (
    ("C4'", "O4'", "C1'", "C2'"), ("O4'", "C1'", "C2'", "C3'"), ("C1'", "C2'", "C3'", "C4'"),
    ("C2'", "C3'", "C4'", "O4'"), ("C3'", "C4'", "O4'", "C1'"))])


def dihedral(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Torsion angles in -180..180 degree of four points, (..., 3) each."""
    u, v, w = (np.moveaxis(vector, -1, 0) for vector in (b - a, c - b, d - c))
    normal, other = _cross(u, v), _cross(v, w)
    length = np.sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    return np.degrees(np.arctan2(length * (u[0] * other[0] + u[1] * other[1] + u[2] * other[2]),
                                 normal[0] * other[0] + normal[1] * other[1] + normal[2] * other[2]))


def _cross(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By component: several times faster than numpy.cross for the last axis."""
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


def _torsions(place: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """(r, k) torsions over columns (k, 4) of (r, c, 3)."""
    return dihedral(*(place[:, column] for column in quads.T))


def backbone_torsions(nucleotides: Nucleotides, place: np.ndarray) -> np.ndarray:
    """(r, 7) torsions ``TORSIONS`` of every nucleotide in degree, NaN where an atom is missing.

    ``place`` (r, 27, 3) as ``Nucleotides.positions`` gives it.
    """
    known = nucleotides.following >= 0
    after = nucleotides.following[known]
    others = np.full((len(place), len(_OF_OTHERS), 3), np.nan)
    others[after, 0] = place[known, PLACE["O3'"]]
    others[known, 1], others[known, 2] = place[after, PLACE["P"]], place[after, PLACE["O5'"]]
    purine = np.isin(nucleotides.letter, ("A", "G"))[:, None]
    others[:, 3] = np.where(purine, place[:, PLACE["N9"]], place[:, PLACE["N1"]])
    others[:, 4] = np.where(purine, place[:, PLACE["C4"]], place[:, PLACE["C2"]])
    return _torsions(np.concatenate([place, others], axis=1), _BACKBONE)


def sugar_pucker(place: np.ndarray) -> np.ndarray:
    """(r, 2) phase (0..360 degree) and amplitude (degree) of the sugar rings of nucleotides (r, 27, 3)."""
    ring = _torsions(place, _RING).T
    along = ring[2]
    across = (ring[4] + ring[1] - ring[3] - ring[0]) / (2 * (np.sin(np.radians(36)) + np.sin(np.radians(72))))
    # tan P = across / along, amplitude = along / cos P: with the quadrant of both, and finite where along is zero.
    return np.stack([np.degrees(np.arctan2(across, along)) % 360.0, np.hypot(across, along)], axis=1)


def pucker_name(phase: float) -> str:
    """Name of the pucker with a phase in degree.

    >>> pucker_name(162.0), pucker_name(18.0)
    ("C2'-endo", "C3'-endo")
    """
    return PUCKERS[int(phase % 360.0 // 36)]


def is_south(phase: np.ndarray) -> np.ndarray:
    """Whether phases (degree) lie in the south of the pseudorotation circle (90 to 270), around C2'-endo."""
    return (phase >= 90) & (phase < 270)


def epsilon_minus_zeta(torsion: np.ndarray) -> np.ndarray:
    """Epsilon less zeta of torsions (..., 7), in -180..180 degree: about -90 for BI, +90 for BII."""
    return (torsion[..., 4] - torsion[..., 5] + 180.0) % 360.0 - 180.0


def is_bii(torsion: np.ndarray) -> np.ndarray:
    """Whether a phosphate is in BII: epsilon less zeta above zero."""
    return epsilon_minus_zeta(torsion) > 0


def is_canonical(torsion: np.ndarray) -> np.ndarray:
    """Whether alpha is gauche- (-120 to 0) and gamma gauche+ (0 to 120), as in B-DNA, of torsions (..., 7)."""
    alpha, gamma = torsion[..., 0], torsion[..., 2]
    return (alpha > -120) & (alpha < 0) & (gamma > 0) & (gamma < 120)
