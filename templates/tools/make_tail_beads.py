"""Write tail_beads_1kx5.json: where the model's histone tails and linker histone sit on the core, and their charges.

    python templates/tools/make_tail_beads.py 1kx5.pdb 4qlc.pdb

Needs pdb2pqr (PyPI) and apbs (see mesoscale/disco.py). Coordinates in angstrom in the nucleosome's own frame.

- tails: ten chains of beads, five residues a bead, ordered from the core to the tip; the formal charge of a bead at
  pH 7 (Lys, Arg +1; Asp, Glu -1; termini). `anchor` is the C-alpha of the first bead's middle residue in the crystal,
  moved outward to the envelope of the core where it lies inside, so that a chain can leave the core. `rest` are the
  beads of tails that do not move: the C-alpha atoms of histone_tails_compact.h5.
- charge scale: what the formal charges are multiplied with at each salt. Relative to 150 mmol/L, where 1.12 is
  published, it is that of the one factor with which the formal charges, where the crystal has the tails, and the core's
  own charges come nearest to the Poisson-Boltzmann field of the whole particle.
- linker histone: the globular domain of H5 in the chromatosome 4QLC (Zhou et al. 2015), superposed by the C-alpha atoms
  of H3 and H4; six clusters of its residues with the charges whose Debye-Hueckel field is nearest to the domain's
  Poisson-Boltzmann field; the C-alpha of its last residue, where the C-terminal domain begins.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import gemmi
import numpy as np
from make_core_charges import SALTS
from make_nucleosome_core import HISTONES, compact_residues, fit, nucleosome_frame
from scipy.cluster.vq import kmeans2

from mesoscale.core_charges import core_charges
from mesoscale.disco import (
    SHELL,
    ChargedAtoms,
    Envelope,
    debye_hueckel_field,
    field_points,
    optimise,
    read_pqr,
    solve_poisson_boltzmann,
)
from mesoscale.model import Parameters

CHAINS = [
    ("H3", "AE", 1, 40),
    ("H4", "BF", 1, 25),
    ("H2A", "CG", 1, 20),
    ("H2B", "DH", 1, 25),
    ("H2A C", "CG", 114, 128),
]
RESIDUES_PER_BEAD = 5
CHARGE = {"LYS": 1, "ARG": 1, "ASP": -1, "GLU": -1}
C_ALPHA = 1  # second of the heavy atoms of a residue
HEAD_BEADS = 6
PUBLISHED_SCALE, PUBLISHED_SALT = 1.12, 0.15  # of the tails' formal charges
# Residues of H3 and H4 in the folded core, in both entries.
FOLDED = {"A": range(60, 132), "E": range(60, 132), "B": range(30, 95), "F": range(30, 95)}


# First and last residue of what the tails' beads stand for.
BEADS = {"H3": [(1, 40)], "H4": [(1, 25)], "H2A": [(1, 20), (114, 128)], "H2B": [(1, 25)]}


def without_tails(structure: gemmi.Structure) -> gemmi.Structure:
    """The structure with neither water nor the residues that the tails' beads stand for."""
    structure.remove_ligands_and_waters()
    for chain in structure[0]:
        ranges = BEADS.get(HISTONES.get(chain.name, ""), [])
        for k in reversed(range(len(chain))):
            if any(first <= chain[k].seqid.num <= last for first, last in ranges):
                del chain[k]
    return structure


def protonated(pdb: Path, folder: Path) -> ChargedAtoms:
    """The atoms that pdb2pqr makes of a PDB file: hydrogens, AMBER charges and radii."""
    command = ["pdb2pqr", "--ff=AMBER", "--noopt", "--whitespace", str(pdb.resolve()), "molecule.pqr"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return read_pqr(folder / "molecule.pqr")


def c_alpha(chain: gemmi.Chain) -> dict[int, np.ndarray]:
    """Position of the C-alpha atom by residue number."""
    return {r.seqid.num: np.array(r["CA"][0].pos.tolist()) for r in chain if "CA" in r and r.het_flag == "A"}


def lifted(point: np.ndarray, envelope: Envelope) -> np.ndarray:
    """The point (nm), moved to the envelope along its steepest way out when it is inside."""
    step = np.eye(3) * 0.05
    for _ in range(200):
        depth = envelope.distance(point[None])[0]
        if depth >= 0:
            break
        gradient = envelope.distance(point + step) - envelope.distance(point - step)
        point = point + min(-depth, 0.05) * gradient / np.linalg.norm(gradient)
    return point


def charge_scales(structure: gemmi.Structure, place: np.ndarray, charge: np.ndarray) -> list[float]:
    """The factors of formal charges (50,) at places (50, 3), nm, at each of SALTS.

    The structure is the whole particle in the nucleosome's own frame.
    """
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        structure.write_pdb(str(folder / "particle.pdb"))
        atoms = protonated(folder / "particle.pdb", folder)
        envelope = Envelope.around(atoms.position, SHELL[1])
        for salt in SALTS:
            parameters = Parameters(salt=salt)
            points, field = field_points(envelope, solve_poisson_boltzmann(atoms, parameters, folder))
            screened = (parameters.bjerrum_length, parameters.kappa)
            site, core = core_charges(salt)
            weight = 1 / np.linalg.norm(field, axis=1)[:, None]
            missing = weight * (field - debye_hueckel_field(site, points, *screened) @ core)
            tails = weight * (debye_hueckel_field(place, points, *screened) @ charge)
            found.append(float((missing * tails).sum() / (tails**2).sum()))
            print(f"{1000 * salt:4.0f} mmol/L: formal charges of tails times {found[-1]:.3f}")
    return [PUBLISHED_SCALE * scale / found[SALTS.index(PUBLISHED_SALT)] for scale in found]


def main(pdb: str, chromatosome: str) -> None:
    """Read the PDB files and write the template beside this script."""
    structure = gemmi.read_structure(pdb)
    model = structure[0]
    rotation, shift = nucleosome_frame(model)
    core = without_tails(gemmi.read_structure(pdb))
    atoms = [rotation @ a.pos.tolist() + shift for chain in core[0] for r in chain for a in r]
    envelope = Envelope.around(np.array(atoms) / 10, SHELL[1])

    compact = compact_residues(Path(__file__).resolve().parents[1])
    tails, middles = [], []
    for name, copies, first, last in CHAINS:
        for copy in copies:
            chain = model[copy]
            residues = {r.seqid.num: r for r in chain if r.het_flag == "A"}
            position = {k: rotation @ p + shift for k, p in c_alpha(chain).items()}
            starts = list(range(first, last + 1, RESIDUES_PER_BEAD))
            if name != "H2A C":
                starts.reverse()  # the chain's N-terminus is the tip
            charge = [
                sum(
                    CHARGE.get(residues[k].name, 0) + (k == min(residues)) - (k == max(residues))
                    for k in range(start, start + RESIDUES_PER_BEAD)
                )
                for start in starts
            ]
            middle = [start + RESIDUES_PER_BEAD // 2 for start in starts]
            middles.extend(position[k] for k in middle)
            anchor = 10 * lifted(position[middle[0]] / 10, envelope)
            moved = np.linalg.norm(anchor - position[middle[0]])
            print(f"{name:6s} {copy} charges from the core {charge}, anchor moved by {moved:.1f} angstrom")
            tails.append(
                {
                    "tail": name,
                    "charge": charge,
                    "anchor": np.round(anchor, 2).tolist(),
                    "rest": np.round([compact[copy, k][C_ALPHA] for k in middle], 2).tolist(),
                }
            )

    whole = gemmi.read_structure(pdb)
    whole.remove_ligands_and_waters()
    for atom in (a for chain in whole[0] for r in chain for a in r):
        atom.pos = gemmi.Position(*(rotation @ atom.pos.tolist() + shift))
    formal = np.concatenate([tail["charge"] for tail in tails])
    scales = charge_scales(whole, np.array(middles) / 10, formal)

    other = gemmi.read_structure(chromatosome)[0]
    pairs = [
        (theirs[k], ours[k])
        for name, numbers in FOLDED.items()
        for theirs, ours in [(c_alpha(other[name]), c_alpha(model[name]))]
        for k in numbers
        if k in theirs and k in ours
    ]
    turn, move, rms = fit(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))
    print(f"chromatosome on the crystal: {len(pairs)} C-alpha atoms, rms {rms:.2f} angstrom")
    domain = gemmi.Structure()
    domain.add_model(gemmi.Model(1))
    domain[0].add_chain(other["U"])
    for residue in domain[0]["U"]:
        for atom in residue:
            atom.pos = gemmi.Position(*(rotation @ (turn @ atom.pos.tolist() + move) + shift))
    centres = np.array([np.mean([a.pos.tolist() for a in r], axis=0) for r in domain[0]["U"]])
    _, label = kmeans2(centres, HEAD_BEADS, minit="++", seed=1, iter=100)
    heads = np.array([centres[label == k].mean(axis=0) for k in range(HEAD_BEADS)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "domain.pdb"
        domain.write_pdb(str(path))
        atoms = protonated(path, Path(folder))
        total, fits = atoms.charge.sum(), optimise(atoms, SALTS, heads / 10)
    for salt, found in zip(SALTS, fits, strict=True):
        print(
            f"{1000 * salt:4.0f} mmol/L: globular domain {np.round(found.charge, 2)} e of {total:.0f} e, "
            f"held-out field error {found.mean_error:.1%}"
        )
    last = max(c_alpha(domain[0]["U"]).items())[1]
    content = {
        "source": "PDB 1KX5 (Davey, Sargent, Luger, Maeder & Richmond 2002), 1.94 angstrom; "
        "PDB 4QLC (Zhou et al. 2015), 3.50 angstrom; PDB archive data are CC0 1.0",
        "about": "angstrom, e; written by make_tail_beads.py; beads from the core to the tip",
        "salt": SALTS,
        "head": np.round(heads, 2).tolist(),
        "head_charge": np.round([found.charge for found in fits], 3).tolist(),
        "head_field_error": [round(found.mean_error, 3) for found in fits],
        "charge_scale": np.round(scales, 3).tolist(),
        "tail_of_linker_histone": np.round(last, 2).tolist(),
        "tails": tails,
    }
    lines = []
    for key, value in content.items():
        if key == "tails":
            value = "[\n  " + ",\n  ".join(json.dumps(tail) for tail in value) + "\n ]"
            lines.append(f' "{key}": {value}')
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    (Path(__file__).resolve().parents[1] / "tail_beads_1kx5.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
