"""Write nucleotide_start.json: the sugar-phosphate of each nucleotide in its base frame, in ideal B-DNA.

    python templates/make_nucleotides.py 1kx5.pdb

The conformation is where the closure itself goes in the middle of a straight duplex when it starts from the mean BI,
C2'-endo nucleotide of PDB entry 1KX5.
"""

import json
import sys
from pathlib import Path

import gemmi
import numpy as np

from chromabuild.dna.backbone import SUGAR, close_backbone
from chromabuild.dna.sequence import BASES, both_strands
from chromabuild.dna.steps import dna_parameters, fit_frames, rebuild, split_pair

LENGTH = 13
ROUNDS = 3


def crystal_mean(model: gemmi.Model) -> np.ndarray:
    """(4, 11, 3) mean positions in the base frame over nucleotides with O3' and P within 1 angstrom of the median."""
    parameters = dna_parameters()
    found = {base: [] for base in BASES}
    for chain in ("I", "J"):
        for residue in model[chain]:
            if residue.name not in ("DA", "DC", "DG", "DT") or not residue.find_atom("P", "*"):
                continue
            base = parameters.base[residue.name[1]]
            ring = np.array([residue[name][0].pos.tolist() for name in base.ring])
            origin, frame = fit_frames(ring, base.ring_position)
            atoms = np.array([residue[name][0].pos.tolist() for name in SUGAR])
            found[residue.name[1]].append((atoms - origin) @ frame)
    means = []
    for base in BASES:
        atoms = np.array(found[base])
        centre = np.median(atoms, axis=0)
        usual = (np.linalg.norm(atoms - centre, axis=-1)[:, [0, 10]] < 1.0).all(axis=1)
        means.append(atoms[usual].mean(axis=0))
    return np.array(means)


def idealise(start: np.ndarray) -> np.ndarray:
    """(4, 11, 3) the conformation of the middle nucleotide of straight duplexes X13, one for each base."""
    parameters = dna_parameters()
    result = []
    for index, letter in enumerate(BASES):
        bases = both_strands(np.full(LENGTH, index))
        origin, frame = rebuild(np.tile([0.0, 0.35, 3.32, 0.0, 1.4, 35.4], (LENGTH - 1, 1)))
        pair = np.tile(parameters.pair[letter], (LENGTH, 1))
        (origin_i, frame_i), (origin_j, frame_j) = split_pair(origin, frame, pair)
        origins = np.concatenate([origin_i, origin_j[::-1]])
        frames = np.concatenate([frame_i, frame_j[::-1]])
        sugar, _ = close_backbone(bases, origins, frames, start=start)
        result.append((sugar[LENGTH // 2] - origins[LENGTH // 2]) @ frames[LENGTH // 2])
    return np.array(result)


def main() -> None:
    """Read the PDB file named on the command line and write nucleotide_start.json beside this script."""
    start = crystal_mean(gemmi.read_structure(sys.argv[1])[0])
    for _ in range(ROUNDS):
        start = idealise(start)
    source = (
        "Ideal BI, C2'-endo nucleotides in the standard base frame, angstrom: our backbone closure in straight B-DNA "
        "(slide 0.35, rise 3.32, roll 1.4, twist 35.4; Olson et al. 1998), started from mean nucleotides of PDB 1KX5"
    )
    lines = ["{", f' "source": {json.dumps(source)},', ' "position": {']
    for k, base in enumerate(BASES):
        atoms = {name: [round(v, 4) for v in row] for name, row in zip(SUGAR, start[k].tolist(), strict=True)}
        lines.append(f'  "{base}": {json.dumps(atoms)}' + ("," if k < 3 else ""))
    lines += [" }", "}"]
    (Path(__file__).resolve().parent / "nucleotide_start.json").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
