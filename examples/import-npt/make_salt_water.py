"""A small system in the files of CHARMM: 1,311 waters and 10 NaCl on a lattice in a cube of 34.1 angstrom.

    python make_salt_water.py

writes system.psf, system.crd and water_ions.prm (TIP3P of CHARMM and its ions, Beglov and Roux, J. Chem. Phys. 100,
9050 (1994); the pair Na-Cl by Luo and Roux, J. Phys. Chem. Lett. 1, 183 (2010)).
"""

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

SPACING, SITES, PAIRS = 3.1, 11, 10
WATER = [("OH2", "OT", -0.834, 15.9994), ("H1", "HT", 0.417, 1.008), ("H2", "HT", 0.417, 1.008)]
ION = {"SOD": [("SOD", "SOD", 1.0, 22.98977)], "CLA": [("CLA", "CLA", -1.0, 35.45)]}
PARAMETERS = """* TIP3P water of CHARMM and ions
*
ATOMS
MASS -1 OT 15.9994
MASS -1 HT 1.008
MASS -1 SOD 22.98977
MASS -1 CLA 35.45

BONDS
HT HT 0.0 1.5139
OT HT 450.0 0.9572

ANGLES
HT OT HT 55.0 104.52

NONBONDED nbxmod 5 atom cdiel fshift vatom vdistance vfswitch -
cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5
HT 0.0 -0.046 0.2245
OT 0.0 -0.1521 1.7682
SOD 0.0 -0.0469 1.41075
CLA 0.0 -0.150 2.27

NBFIX
SOD CLA -0.083875 3.731

END
"""


def main() -> None:
    rng = np.random.default_rng(1)
    axis = SPACING * (np.arange(SITES) + 0.5)
    site = rng.permutation(np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3))
    half = np.radians(104.52 / 2)
    shape = 0.9572 * np.array([[0, 0, 0], [np.sin(half), np.cos(half), 0], [-np.sin(half), np.cos(half), 0]])
    n_water = len(site) - 2 * PAIRS
    residues = [("TIP3", "WAT", WATER)] * n_water
    residues += [(name, "ION", ION[name]) for name in ION for _ in range(PAIRS)]
    turned = np.einsum("nij,kj->nki", Rotation.random(n_water, random_state=1).as_matrix(), shape)
    position = np.concatenate([(site[:n_water, None] + turned).reshape(-1, 3), site[n_water:]])

    atoms, crd = [], []
    for number, (residue, segment, members) in enumerate(residues, 1):
        for name, kind, charge, mass in members:
            k = len(atoms) + 1
            atoms.append(f"{k:10d} {segment:<8s} {number:<8d} {residue:<8s} {name:<8s} {kind:<6s} "
                         f"{charge:14.6f}{mass:14.4f} 0")
            x, y, z = position[k - 1]
            crd.append(f"{k:10d}{number:10d}  {residue:<8s}  {name:<8s}{x:20.10f}{y:20.10f}{z:20.10f}  {segment:<8s}  "
                       f"{number:<8d}{0.0:20.10f}")
    first = 3 * np.arange(n_water) + 1
    bonds = np.stack([first, first + 1, first, first + 2, first + 1, first + 2], axis=1).reshape(-1, 2)
    angles = np.stack([first + 1, first, first + 2], axis=1)

    def section(title: str, rows: np.ndarray, per_line: int) -> list[str]:
        flat = [f"{value:10d}" for value in rows.ravel()]
        return ["", f"{len(rows):10d} {title}", *("".join(flat[k:k + per_line]) for k in range(0, len(flat), per_line))]

    none = np.empty((0, 4), int)
    psf = ["PSF EXT CMAP XPLOR", "", f"{1:10d} !NTITLE", "* salt water", "", f"{len(atoms):10d} !NATOM", *atoms]
    psf += section("!NBOND: bonds", bonds, 8) + section("!NTHETA: angles", angles, 9)
    for title in ("!NPHI: dihedrals", "!NIMPHI: impropers", "!NDON: donors", "!NACC: acceptors"):
        psf += section(title, none, 8)
    psf += ["", f"{0:10d} !NNB", "", *("         0" * min(8, len(atoms) - k) for k in range(0, len(atoms), 8))]
    psf += ["", f"{1:10d}{0:10d} !NGRP NST2", f"{0:10d}{0:10d}{0:10d}", "", *section("!NCRTERM: cross-terms", none, 8)]
    Path("system.psf").write_text("\n".join(psf) + "\n")
    Path("system.crd").write_text("\n".join(["* salt water", "*", f"{len(atoms):10d}  EXT", *crd]) + "\n")
    Path("water_ions.prm").write_text(PARAMETERS)


if __name__ == "__main__":
    main()
