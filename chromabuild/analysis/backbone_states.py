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
_WITHIN = {"beta": ("P", "O5'", "C5'", "C4'"), "gamma": ("O5'", "C5'", "C4'", "C3'"),
           "delta": ("C5'", "C4'", "C3'", "O3'")}
_RING = (("C4'", "O4'", "C1'", "C2'"), ("O4'", "C1'", "C2'", "C3'"), ("C1'", "C2'", "C3'", "C4'"),
         ("C2'", "C3'", "C4'", "O4'"), ("C3'", "C4'", "O4'", "C1'"))


def dihedral(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Torsion angles in -180..180 degree of four points, (..., 3) each."""
    u, v, w = b - a, c - b, d - c
    normal, other = np.cross(u, v), np.cross(v, w)
    length = np.linalg.norm(v, axis=-1)
    return np.degrees(np.arctan2(length * np.sum(u * other, axis=-1), np.sum(normal * other, axis=-1)))


def backbone_torsions(nucleotides: Nucleotides, place: np.ndarray) -> np.ndarray:
    """(r, 7) torsions ``TORSIONS`` of every nucleotide in degree, NaN where an atom is missing.

    ``place`` (r, 27, 3) as ``Nucleotides.positions`` gives it.
    """
    here = {name: place[:, column] for name, column in PLACE.items()}
    known = nucleotides.following >= 0
    after = np.where(known[:, None, None], place[nucleotides.following], np.nan)
    before = np.full_like(place, np.nan)
    before[nucleotides.following[known]] = place[known]
    torsion = {name: dihedral(*(here[atom] for atom in atoms)) for name, atoms in _WITHIN.items()}
    torsion["alpha"] = dihedral(before[:, PLACE["O3'"]], here["P"], here["O5'"], here["C5'"])
    torsion["epsilon"] = dihedral(here["C4'"], here["C3'"], here["O3'"], after[:, PLACE["P"]])
    torsion["zeta"] = dihedral(here["C3'"], here["O3'"], after[:, PLACE["P"]], after[:, PLACE["O5'"]])
    purine = np.isin(nucleotides.letter, ("A", "G"))[:, None]
    torsion["chi"] = dihedral(here["O4'"], here["C1'"], np.where(purine, here["N9"], here["N1"]),
                              np.where(purine, here["C4"], here["C2"]))
    return np.stack([torsion[name] for name in TORSIONS], axis=1)


def sugar_pucker(place: np.ndarray) -> np.ndarray:
    """(r, 2) phase (0..360 degree) and amplitude (degree) of the sugar rings of nucleotides (r, 27, 3)."""
    ring = np.stack([dihedral(*(place[:, PLACE[name]] for name in atoms)) for atoms in _RING])
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
