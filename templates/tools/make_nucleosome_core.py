"""Write nucleosome_core_1kx5.json: what the mesoscale core needs to know of the histones.

    python templates/tools/make_nucleosome_core.py 1kx5.pdb

Charge sites: one per globular histone domain and one for each six residues of a tail, at the centroid of their heavy
atoms, with the formal charge at pH 7 (Lys, Arg +1; Asp, Glu -1; termini; His neutral). Spheres: the globular octamer
as 32 clusters of heavy atoms, each with the radius of the homogeneous ball of the same radius of gyration; every tail
as one sphere for each three residues. Tails lie as in histone_tails_compact.h5: in the crystal they reach far out,
between their neighbours in the lattice. Coordinates in angstrom in the nucleosome's own frame
(docs/reference/file-formats.md).
"""

import json
import sys
from pathlib import Path

import gemmi
import h5py
import numpy as np
from scipy.cluster.vq import kmeans2

from chromabuild.molecule.residues import residue_library

HISTONES = {"A": "H3", "B": "H4", "C": "H2A", "D": "H2B", "E": "H3", "F": "H4", "G": "H2A", "H": "H2B"}
# First and last residue of each tail: the parts that leave the folded octamer.
TAILS = {"H3": [(1, 38)], "H4": [(1, 23)], "H2A": [(1, 13), (119, 128)], "H2B": [(1, 27)]}
CHARGE = {"LYS": 1, "ARG": 1, "ASP": -1, "GLU": -1}
CLUSTERS = 32
RESIDUES_PER_TAIL_SPHERE = 3
RESIDUES_PER_TAIL_SITE = 6
SMALLEST_TAIL_RADIUS = 4.0  # angstrom: a chain with short side chains


def fit(moving: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Rotation (3, 3), translation (3,) and root mean square distance of the best superposition (Kabsch 1976)."""
    centre_m, centre_f = moving.mean(axis=0), fixed.mean(axis=0)
    u, _, vt = np.linalg.svd((moving - centre_m).T @ (fixed - centre_f))
    rotation = (u @ np.diag([1, 1, np.sign(np.linalg.det(u @ vt))]) @ vt).T
    shift = centre_f - rotation @ centre_m
    return rotation, shift, float(np.sqrt(((moving @ rotation.T + shift - fixed) ** 2).sum(axis=1).mean()))


def ball_radius(points: np.ndarray) -> float:
    """Radius of the homogeneous ball with the points' radius of gyration."""
    return float(np.sqrt(5 / 3 * ((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))


def compact_residues(folder: Path) -> dict[tuple[str, int], np.ndarray]:
    """Heavy atoms (n, 3) of each residue, by chain and number, with tails that lie on their own nucleosome."""
    with (
        h5py.File(folder / "nucleosome_1kx5.h5") as core,
        h5py.File(folder / "histone_tails_compact.h5") as tails,
    ):
        position = 0.001 * core["heavy_atom_position"][...]
        position[tails["heavy_atom"][...]] = 0.001 * tails["position"][...]
        names, numbers, chains = (core[f"residue_{key}"][...] for key in ("name", "number", "chain"))
    library = residue_library()
    ends = np.cumsum([sum(e != "H" for e in library[name.decode()].elements) for name in names])
    atoms = np.split(position, ends[:-1])
    return {(c.decode(), int(k)): a for c, k, a in zip(chains, numbers, atoms, strict=True)}


def nucleosome_frame(model: gemmi.Model) -> tuple[np.ndarray, np.ndarray]:
    """Rotation (3, 3) and translation (3,) from the coordinates of PDB 1KX5 to the nucleosome's own frame."""
    templates = Path(__file__).resolve().parents[1]
    path = np.array(json.loads((templates / "nucleosome_path_1kx5.json").read_text())["origin"])
    number = {c: {r.seqid.num: r for r in model[c] if r.name in ("DA", "DC", "DG", "DT")} for c in "IJ"}
    middle = [
        (np.array(number["I"][k]["C1'"][0].pos.tolist()) + number["J"][-k]["C1'"][0].pos.tolist()) / 2
        for k in range(-73, 74)
    ]
    rotation, shift, rms = fit(np.array(middle), path)
    print(f"C1' midpoints on the pair origins: rms {rms:.2f} angstrom")
    return rotation, shift


def main(pdb: str) -> None:
    """Read the PDB file and write the template beside this script."""
    folder = Path(__file__).resolve().parents[1]
    model = gemmi.read_structure(pdb)[0]
    rotation, shift = nucleosome_frame(model)

    compact = compact_residues(folder)
    sites, spheres, globular = [], [], []
    for name, histone in HISTONES.items():
        residues = [r for r in model[name] if gemmi.find_tabulated_residue(r.name).is_amino_acid()]
        first, last = residues[0].seqid.num, residues[-1].seqid.num
        parts: dict[str, list] = {}
        for residue in residues:
            k = residue.seqid.num
            tail = next((i for i, (a, b) in enumerate(TAILS[histone]) if a <= k <= b), None)
            atoms = np.array([a.pos.tolist() for a in residue if a.element.name != "H"]) @ rotation.T + shift
            charge = CHARGE.get(residue.name, 0) + (k == first) - (k == last)
            parts.setdefault("core" if tail is None else f"tail{tail}", []).append((atoms, charge, k))
        for part, content in parts.items():
            size = len(content) if part == "core" else RESIDUES_PER_TAIL_SITE
            for k in range(0, len(content), size):
                group = content[k : k + size]
                where = [a for a, *_ in group] if part == "core" else [compact[name, n] for *_, n in group]
                sites.append((np.concatenate(where).mean(axis=0), sum(q for _, q, _ in group)))
            if part == "core":
                globular.append(np.concatenate([a for a, *_ in content]))
                continue
            for k in range(0, len(content), RESIDUES_PER_TAIL_SPHERE):
                group = np.concatenate([compact[name, n] for *_, n in content[k : k + RESIDUES_PER_TAIL_SPHERE]])
                spheres.append((group.mean(axis=0), max(SMALLEST_TAIL_RADIUS, ball_radius(group))))
    atoms = np.concatenate(globular)
    _, label = kmeans2(atoms, CLUSTERS, minit="++", seed=1, iter=100)
    octamer = [(atoms[label == k].mean(axis=0), ball_radius(atoms[label == k])) for k in range(CLUSTERS)]
    print(f"{len(sites)} charge sites, net charge {sum(charge for _, charge in sites)}")

    def rows(items: list) -> str:
        return ",\n  ".join(json.dumps([round(float(x), 3) for x in [*centre, value]]) for centre, value in items)

    (folder / "nucleosome_core_1kx5.json").write_text(
        '{\n "source": "PDB 1KX5 (Davey, Sargent, Luger, Maeder & Richmond 2002), 1.94 angstrom;'
        ' PDB archive data are CC0 1.0",\n'
        ' "about": "angstrom; written by make_nucleosome_core.py; rows are x, y, z and charge or radius",\n'
        f' "charge_sites": [\n  {rows(sites)}\n ],\n "octamer_spheres": [\n  {rows(octamer)}\n ],\n'
        f' "tail_spheres": [\n  {rows(spheres)}\n ]\n}}\n'
    )


if __name__ == "__main__":
    main(sys.argv[1])
