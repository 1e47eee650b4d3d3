"""Write the nucleosome templates from a PDB file of entry 1KX5 (Davey et al. 2002, doi:10.1016/S0022-2836(02)00386-8).

    python templates/tools/make_nucleosome.py 1kx5.pdb

- nucleosome_path_1kx5.json: the 147 base-pair frames in the nucleosome's own frame (docs/reference/file-formats.md).
- nucleosome_1kx5.h5: the heavy atoms of the eight histones in that frame, with the protonation of every histidine.
"""

import json
import sys
from pathlib import Path

import gemmi
import h5py
import numpy as np
from scipy.optimize import least_squares

from chromabuild.dna.steps import FLIP, dna_parameters, fit_frames, midframe
from chromabuild.molecule.residues import residue_library

HALF = 73  # base pairs on either side of the dyad
FITTED_HALF = 66  # the helix is fitted to 133 bp: the last 7 on each side leave the superhelix
HISTONES = {"A": "H3", "B": "H4", "C": "H2A", "D": "H2B", "E": "H3", "F": "H4", "G": "H2A", "H": "H2B"}
SOURCE = "PDB 1KX5 (Davey, Sargent, Luger, Maeder & Richmond 2002), 1.94 angstrom; PDB archive data are CC0 1.0"
HYDROGEN_BOND_LENGTH = 3.5  # angstrom, donor to acceptor
SULFUR_METHYL = 1.791  # angstrom (Engh & Huber, Acta Cryst. A47:392, 1991); 1KX5 has up to 1.934 in methionine


def strand_bases(chain: gemmi.Chain) -> tuple[str, np.ndarray, np.ndarray]:
    """Sequence, base origins and frames of residues -73..73 of one strand, in the strand's own sense."""
    parameters = dna_parameters()
    letters, origins, frames = [], [], []
    for residue in sorted((r for r in chain if r.name in ("DA", "DC", "DG", "DT")), key=lambda r: r.seqid.num):
        standard = parameters.base[residue.name[1]]
        observed = np.array([residue[name][0].pos.tolist() for name in standard.ring])
        origin, frame = fit_frames(observed, standard.ring_position)
        letters.append(residue.name[1])
        origins.append(origin)
        frames.append(frame)
    return "".join(letters), np.array(origins), np.array(frames)


def base_pair_frames(model: gemmi.Model) -> tuple[str, np.ndarray, np.ndarray]:
    """Sequence of strand I, pair origins (147, 3) and frames (147, 3, 3); pair k holds residue k of I and -k of J."""
    sequence, origin_i, frame_i = strand_bases(model["I"])
    _, origin_j, frame_j = strand_bases(model["J"])
    origin, frame = midframe(origin_j[::-1], frame_j[::-1] @ FLIP, origin_i, frame_i)
    return sequence, origin, frame


def superhelix_frame(origin: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict]:
    """The nucleosome's own frame from a least-squares helix through the central 133 pair origins.

    Returns the centre (3,), the frame (3, 3) and what was fitted.
    """
    index = np.arange(-FITTED_HALF, FITTED_HALF + 1)
    points = origin[HALF + index]
    # First guess of the axis: the direction in which the path extends least, climbing from -73 to +73.
    start_axis = np.linalg.svd(points - points.mean(axis=0))[2][2]
    start_axis *= np.sign(start_axis @ (points[-1] - points[0]))
    start_x = np.cross(start_axis, [1.0, 0.0, 0.0])
    start_x /= np.linalg.norm(start_x)
    start = np.stack([start_x, np.cross(start_axis, start_x), start_axis], axis=1)

    def axes(tilt: np.ndarray) -> np.ndarray:
        z = start @ np.array([tilt[0], tilt[1], 1.0])
        z /= np.linalg.norm(z)
        x = start[:, 0] - z * (z @ start[:, 0])
        x /= np.linalg.norm(x)
        return np.stack([x, np.cross(z, x), z], axis=1)

    def residual(values: np.ndarray) -> np.ndarray:
        centre, tilt, (radius, turn, rise, phase) = values[:3], values[3:5], values[5:]
        angle = phase + turn * index
        helix = np.stack([radius * np.cos(angle), radius * np.sin(angle), rise * index], axis=1)
        return (centre + helix @ axes(tilt).T - points).ravel()

    local = (points - points.mean(axis=0)) @ start
    angle = np.unwrap(np.arctan2(local[:, 1], local[:, 0]))
    turn, phase = np.polyfit(index, angle, 1)
    first_guess = np.concatenate([points.mean(axis=0), [0.0, 0.0, 42.0, turn, 0.2, phase]])
    fit = least_squares(residual, first_guess, x_scale=np.array([1, 1, 1, 0.01, 0.01, 1, 1e-3, 1e-2, 0.1]))
    centre, z = fit.x[:3], axes(fit.x[3:5])[:, 2]
    x = origin[HALF] - centre
    x -= z * (z @ x)
    x /= np.linalg.norm(x)
    radius, turn, rise, _ = fit.x[5:]
    return centre, np.stack([x, np.cross(z, x), z], axis=1), {
        "radius": float(radius),
        "pitch": float(abs(2 * np.pi / turn) * rise),
        "turns_of_133_bp": float(abs(turn) * (len(index) - 1) / (2 * np.pi)),
        "left_handed": bool(turn < 0),
        "rms": float(np.sqrt(np.mean(fit.fun**2) * 3)),
    }


def histidine_name(residue: gemmi.Residue, search: gemmi.NeighborSearch, model: gemmi.Model) -> str:
    """HID or HIE: the hydrogen sits where an acceptor is near, or away from where a donor is.

    Each ring nitrogen collects +1 for an oxygen acceptor within hydrogen-bonding distance and -1 for a nitrogen donor
    or a metal, weighted by closeness; the nitrogen with the higher sum carries the hydrogen. Without any contact NE2
    does, the more stable tautomer in water.
    """
    score = {}
    for name in ("ND1", "NE2"):
        atom, total = residue[name][0], 0.0
        for mark in search.find_neighbors(atom, 0.1, HYDROGEN_BOND_LENGTH):
            other = mark.to_cra(model)
            if other.residue == residue:
                continue
            closeness = HYDROGEN_BOND_LENGTH - atom.pos.dist(other.atom.pos)
            is_water = other.residue.name == "HOH"
            backbone_nitrogen = other.atom.name == "N"
            if other.atom.element.name == "O" and not is_water:
                total += closeness
            elif backbone_nitrogen or other.residue.name in ("ARG", "LYS", "MN") and other.atom.element.name != "C":
                total -= closeness
        score[name] = total
    return "HID" if score["ND1"] > score["NE2"] else "HIE"


def place_of(residue: gemmi.Residue, atom: str) -> list[float]:
    """Where an atom is; the methyl of methionine at its length from the sulfur."""
    here = np.array(residue.find_atom(atom, "*").pos.tolist())
    if residue.name == "MET" and atom == "CE":
        sulfur = np.array(residue.find_atom("SD", "*").pos.tolist())
        here = sulfur + SULFUR_METHYL * (here - sulfur) / np.linalg.norm(here - sulfur)
    return here.tolist()


def octamer(model: gemmi.Model) -> dict:
    """Heavy atoms of the eight chains in library order, as parallel lists."""
    library = residue_library()
    search = gemmi.NeighborSearch(model, gemmi.UnitCell(), HYDROGEN_BOND_LENGTH).populate(include_h=False)
    result = {"chain": [], "number": [], "name": [], "position": [], "atom": []}
    for chain_name in HISTONES:
        residues = [r for r in model[chain_name] if r.find_atom("CA", "*", gemmi.Element("C")) and r.name != "PEP"]
        for k, residue in enumerate(residues):
            name = histidine_name(residue, search, model) if residue.name == "HIS" else residue.name
            name = ("N" if k == 0 else "C" if k == len(residues) - 1 else "") + name
            template = library[name]
            for atom, element in zip(template.atoms, template.elements, strict=True):
                if element != "H":
                    result["position"].append(place_of(residue, atom))
                    result["atom"].append(atom)
            result["chain"].append(chain_name)
            result["number"].append(residue.seqid.num)
            result["name"].append(name)
    return result


def main() -> None:
    """Read the PDB file named on the command line and write both templates beside this script."""
    folder = Path(__file__).resolve().parents[1]
    structure = gemmi.read_structure(sys.argv[1])
    model = structure[0]
    sequence, origin, frame = base_pair_frames(model)
    centre, own, fit = superhelix_frame(origin)

    path_origin, path_frame = (origin - centre) @ own, own.T @ frame
    lines = [
        "{",
        f' "source": {json.dumps(SOURCE)},',
        f' "sequence": {json.dumps(sequence)},',
        f' "superhelix_fit_133_bp": {json.dumps(fit)},',
        ' "origin": [',
        ",\n".join("  " + json.dumps([round(v, 6) for v in row]) for row in path_origin.tolist()),
        " ],",
        ' "frame": [',
        ",\n".join("  " + json.dumps([round(v, 12) for v in row]) for row in path_frame.reshape(-1, 9).tolist()),
        " ]",
        "}",
    ]
    (folder / "nucleosome_path_1kx5.json").write_text("\n".join(lines) + "\n")

    atoms = octamer(model)
    with h5py.File(folder / "nucleosome_1kx5.h5", "w") as file:
        file.attrs["source"] = SOURCE
        position = (np.array(atoms["position"]) - centre) @ own
        options = {"compression": "gzip", "shuffle": True}
        # Coordinates of the entry have three decimals: whole thousandths lose nothing that the crystal knows.
        thousandths = np.rint(1000 * position)
        file.create_dataset("heavy_atom_position", data=thousandths.astype(np.int32), **options)
        file["heavy_atom_position"].attrs["unit"] = "0.001 angstrom"
        file.create_dataset("residue_name", data=np.array(atoms["name"], dtype="S4"), **options)
        file.create_dataset("residue_number", data=np.array(atoms["number"], dtype=np.int16), **options)
        file.create_dataset("residue_chain", data=np.array(atoms["chain"], dtype="S1"), **options)
        file["chain"] = np.array(list(HISTONES), dtype="S1")
        file["histone"] = np.array(list(HISTONES.values()), dtype="S3")
    print(json.dumps(fit))
    histidines = [f"{c}{n}:{r[-3:]}" for c, n, r in zip(atoms["chain"], atoms["number"], atoms["name"], strict=True)
                  if r[-3:] in ("HID", "HIE")]
    print(len(histidines), "histidines:", " ".join(histidines))


if __name__ == "__main__":
    main()
