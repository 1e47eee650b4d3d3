"""Write nucleotide_start.json and nucleotide_library.npz: where the backbone closure starts.

    python templates/tools/make_nucleotides.py 1kx5.pdb

nucleotide_start.json: the sugar-phosphate of each nucleotide in its base frame, in ideal B-DNA. The conformation is
where the closure itself goes in the middle of a straight duplex when it starts from the mean BI, C2'-endo nucleotide of
PDB entry 1KX5. nucleotide_library.npz: quadratics in the steps to the neighbouring bases (``chromabuild.dna.start``),
fitted to what the closure makes of nucleosomes, superhelices and thermally bent duplexes of random sequence, twice: the
second time from backbones that were closed from the first fit.
"""

import json
import sys
from pathlib import Path

import gemmi
import numpy as np

from chromabuild.build.duplex import base_frames
from chromabuild.dna.backbone import close_backbone, measure_backbone, place_bases
from chromabuild.dna.helix import crystal_path, superhelix_path
from chromabuild.dna.sequence import BASES, both_strands, step_name
from chromabuild.dna.start import SUGAR, neighbour_steps, placed_conformation, quadratic_terms
from chromabuild.dna.steps import dna_parameters, fit_frames, rebuild, split_pair

LENGTH = 13
ROUNDS = 3
NUCLEOSOMES, SUPERHELICES, BENT, BENT_LENGTH = 100, 25, 40, 150
THERMAL = 0.7  # of the step parameters' standard deviations: steps are drawn one by one, as real ones are not
RIDGE = 3.0
STRAINED = 3.5  # standard deviations: such nucleotides do not teach


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
        sugar, _ = close_backbone(bases, origins, frames, start=placed_conformation(start, bases, origins, frames))
        result.append((sugar[LENGTH // 2] - origins[LENGTH // 2]) @ frames[LENGTH // 2])
    return np.array(result)


def training_duplexes() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Bases, base origins and base frames of duplexes of random sequence."""
    random, table, result = np.random.Generator(np.random.Philox(key=7)), dna_parameters().step, []
    for path, count in ((crystal_path(), NUCLEOSOMES), (superhelix_path(), SUPERHELICES)):
        result += [base_frames(random.integers(0, 4, len(path[0])), *path) for _ in range(count)]
    for _ in range(BENT):
        sequence = random.integers(0, 4, BENT_LENGTH)
        steps = [table[step_name(*pair)] for pair in zip(sequence[:-1], sequence[1:], strict=True)]
        drawn = [step.mean + THERMAL * step.deviation * random.standard_normal(6) for step in steps]
        result.append(base_frames(sequence, *rebuild(np.array(drawn))))
    return result


def fit_library(start: np.ndarray) -> dict[str, np.ndarray]:
    """Mean, deviation and coefficients of ``ConformationLibrary``, from the ideal conformations (4, 11, 3)."""
    duplexes = training_duplexes()
    steps = np.concatenate([neighbour_steps(*duplex[1:]) for duplex in duplexes])
    library = {"mean": steps.mean(axis=0), "deviation": steps.std(axis=0)}
    for taught in (False, True):
        kind, terms, local = [], [], []
        for bases, origin, frame in duplexes:
            term = quadratic_terms(neighbour_steps(origin, frame), library["mean"], library["deviation"])
            begin = placed_conformation(start, bases, origin, frame)
            if taught:
                guess = np.einsum("kt,ktc->kc", term, library["coefficient"][bases]).reshape(-1, 11, 3)
                begin = origin[:, None] + guess @ np.swapaxes(frame, 1, 2)
            sugar, _ = close_backbone(bases, origin, frame, start=begin)
            sugar, _ = close_backbone(bases, origin, frame, start=sugar)
            geometry = measure_backbone(bases, sugar, place_bases(bases, origin, frame)[0])
            good = np.nanmax(np.abs(np.concatenate([geometry.bond_z, geometry.angle_z], axis=1)), axis=1) < STRAINED
            good[[0, len(bases) // 2 - 1, len(bases) // 2, -1]] = False
            kind.append(bases[good])
            terms.append(term[good])
            local.append(((sugar - origin[:, None]) @ frame)[good].reshape(-1, 33))
        kind, terms, local = (np.concatenate(part) for part in (kind, terms, local))
        coefficient = []
        for base in range(4):
            x, y = terms[kind == base], local[kind == base]
            coefficient.append(np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ y))
        library["coefficient"] = np.array(coefficient)
        error = np.concatenate([terms[kind == b] @ coefficient[b] - local[kind == b] for b in range(4)])
        print(f"{len(kind)} nucleotides, rms error {np.sqrt(3 * np.mean(error**2)):.3f} angstrom an atom")
    return library


def main() -> None:
    """Read the PDB file named on the command line and write both files beside this script."""
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
    folder = Path(__file__).resolve().parents[1]
    (folder / "nucleotide_start.json").write_text("\n".join(lines) + "\n")
    library = {name: values.astype(np.float32) for name, values in fit_library(start).items()}
    np.savez(folder / "nucleotide_library.npz", **library)


if __name__ == "__main__":
    main()
