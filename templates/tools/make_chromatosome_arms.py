"""Write chromatosome_arms_4qlc.json: ten base pairs beyond either end of 1KX5's path, held by a linker histone.

    python templates/tools/make_chromatosome_arms.py 4qlc.pdb

PDB 4QLC (Zhou et al., Mol. Cell 59:628, 2015; 3.5 angstrom) has 165 base pairs of 601 DNA with the globular domain of
H5 on the dyad. It is superposed on 1KX5 by the folds of the histones. 601 has 145 base pairs where 1KX5 has 147, one
fewer in either half: the base pair 72 beyond its dyad lies at site 73, which the tool finds by the frames of the last
turn, and ten more follow. Step parameters of single base pairs are not exact at this resolution. The arms here continue
1KX5's path by ten steps that minimise the elastic energy of steps (Olson et al. 1998, mean of all dinucleotides) and
the squared deviations of base pairs from 4QLC's, over those of ``TETHER``.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from chromabuild.dna.helix import crystal_path, step_elasticity
from chromabuild.dna.steps import FLIP, rebuild
from chromabuild.template_import.dna_path import duplex_around_dyad
from chromabuild.template_import.structure import octamer_chains, own_frame, read_model

ARM = 10  # base pairs
TETHER = (1.0, 10.0)  # angstrom, degree


def arm(start: tuple[np.ndarray, np.ndarray], target: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Base pairs (10, 3) and (10, 3, 3) that go on from ``start`` (3,), (3, 3) near ``target``; says how near."""
    rest, deviation = (part[0] for part in step_elasticity(np.zeros(2, dtype=int), "generic"))

    def path(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        origin, frame = rebuild(values.reshape(ARM, 6))
        return start[0] + origin[1:] @ start[1].T, start[1] @ frame[1:]

    def residual(values: np.ndarray) -> np.ndarray:
        origin, frame = path(values)
        turned = Rotation.from_matrix(np.swapaxes(target[1], 1, 2) @ frame).as_rotvec(degrees=True)
        return np.concatenate([((values.reshape(ARM, 6) - rest) / deviation).ravel(),
                               (origin - target[0]).ravel() / TETHER[0], turned.ravel() / TETHER[1]])

    found = least_squares(residual, np.tile(rest, ARM)).x
    origin, frame = path(found)
    z = (found.reshape(ARM, 6) - rest) / deviation
    print(f"rms from the structure {np.sqrt(np.mean(np.sum((origin - target[0]) ** 2, axis=1))):.2f} angstrom, largest "
          f"deviation of a step {np.abs(z).max():.2f} standard deviations, {0.5 * np.sum(z**2):.1f} kT")
    return origin, frame


def register(found: tuple[np.ndarray, np.ndarray], dyad: int, side: int) -> int:
    """Base pairs by which the structure is shorter than 1KX5 from the dyad to one end: 0 or 1."""
    origin, frame = crystal_path()
    sites = len(origin) // 2 + side * np.arange(64, 74)

    def apart(shorter: int) -> float:
        here = dyad + side * (np.arange(64, 74) - shorter)
        turned = Rotation.from_matrix(np.swapaxes(frame[sites], 1, 2) @ found[1][here]).magnitude()
        return float(np.mean(np.linalg.norm(found[0][here] - origin[sites], axis=1)) + np.degrees(np.mean(turned)))

    return min((0, 1), key=apart)


def main(pdb: str) -> None:
    """Read the structure and write the template beside this script."""
    model = read_model(pdb)
    matrix, shift, deviation, _ = own_frame(pdb, octamer_chains(pdb, model))
    found = duplex_around_dyad(pdb, model, matrix, shift)
    print(f"folds superposed to {deviation:.2f} angstrom, {len(found.origin)} base pairs")
    crystal_origin, crystal_frame = crystal_path()
    data: dict = {
        "source": "PDB 4QLC (Zhou, Feng, Kato, Dai, Yang, Zhou & Bai 2015), 3.5 angstrom; PDB archive data are CC0 1.0",
        "about": "written by make_chromatosome_arms.py: base pairs -83 to -74 and 74 to 83 from the dyad, angstrom, in "
                 "the nucleosome's own frame; `observed` are those of the entry",
    }
    for name, side, end in (("entry", -1, 0), ("exit", 1, -1)):
        begin = found.dyad + side * (73 - register(found[:2], found.dyad, side))
        rows = begin + side * np.arange(1, ARM + 1)
        turn = FLIP if side < 0 else np.eye(3)
        origin, frame = arm((crystal_origin[end], crystal_frame[end] @ turn),
                            (found.origin[rows], found.frame[rows] @ turn))
        order = slice(None, None, side)
        data[name] = {"origin": np.round(origin[order], 6).tolist(),
                      "frame": np.round((frame @ turn)[order].reshape(-1, 9), 8).tolist(),
                      "observed": np.round(found.origin[rows[order]], 3).tolist()}
    rows = {key: value if isinstance(value, str) else {
        part: [json.dumps(row) for row in table] for part, table in value.items()} for key, value in data.items()}
    target = Path(__file__).resolve().parents[1] / "chromatosome_arms_4qlc.json"
    target.write_text(re.sub(r'"(\[.*\])"', r"\1", json.dumps(rows, indent=1)) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
