"""Write linker_histones.h5: linker histones on the nucleosome of 1KX5, from a PDB file of entry 4QLC.

    python templates/tools/make_linker_histones.py 4qlc.pdb [--missing]

The globular domain of H5 stands where the chromatosome 4QLC (Zhou et al. 2015) has it, superposed by the folds of the
octamers; the sequences of linker_histones.json are threaded through it. Tails are grown as coils that keep clear of
the octamer with compact tails, of DNA and of straight linkers. OpenMM minimises all without charges, DNA and octamer
held where they are. Run it again after make_compact_tails.py. With --missing what the file holds is kept.
"""

import sys
from pathlib import Path

import h5py
import numpy as np
from make_histones import DNA_TIED, as_solute, minimised
from scipy.spatial import cKDTree

from chromabuild.build.duplex import build_dna
from chromabuild.dna.helix import crystal_path
from chromabuild.dna.steps import rotation_about_z
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.homology import build_side_chains, chains_of, octamer_of, remodel
from chromabuild.nucleosome.octamer import FAMILIES, LINKER_CHAIN, octamer
from chromabuild.nucleosome.recipe import linker_histone_table
from chromabuild.proteins.residues import complete_residues
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.template_import.structure import octamer_chains, own_frame, read_model

LINKER = 20  # base pairs that go straight on at either end
TIED = 5.0  # kcal/mol/angstrom^2 on atoms that 4QLC has: at 3.5 angstrom its side chains are not exact


def dna_with_linkers() -> tuple[np.ndarray, np.ndarray]:
    """Atoms and library indices of the crystal's path and straight linkers."""
    origin, frame = crystal_path()
    steps = np.arange(1, LINKER + 1)
    turn = np.radians(34.3)
    ends = []
    for sign, o, f in ((-1, origin[0], frame[0]), (1, origin[-1], frame[-1])):
        ends.append((o + sign * 3.4 * steps[:, None] * f[:, 2], f @ rotation_about_z(sign * turn * steps)))
    origin = np.concatenate([ends[0][0][::-1], origin, ends[1][0]])
    frame = np.concatenate([ends[0][1][::-1], frame, ends[1][1]])
    return build_dna((np.arange(len(origin)) + 1) % 4, origin, frame)[:2]


def main(chromatosome: str) -> None:
    """Write the file beside this script."""
    library = list(residue_library().values())
    dna, kinds = dna_with_linkers()
    core = octamer("compact")
    element, core_element = (np.concatenate([library[k].elements for k in t]) for t in (kinds, core.residue_template))
    fixed = np.concatenate([dna[element != "H"], core.position[core_element != "H"]])
    polar = np.isin(np.concatenate([element[element != "H"], core_element[core_element != "H"]]), ("N", "O"))

    model = read_model(chromatosome)
    matrix, shift, deviation, _ = own_frame(chromatosome, octamer_chains(chromatosome, model))
    print(f"folds superposed to {deviation:.2f} angstrom")
    domain = complete_residues(model["U"])
    for residue in domain:
        residue.atoms = {a: matrix @ x + shift for a, x in residue.atoms.items()}
    placed = np.array([x for r in domain for x in r.atoms.values()])
    nearest = cKDTree(fixed[:int(np.sum(element != "H"))]).query(placed)[0].min()
    print(f"{len(domain)} residues, nearest to DNA {nearest:.2f} angstrom")

    with h5py.File(Path(__file__).resolve().parents[1] / "linker_histones.h5",
                   "a" if "--missing" in sys.argv[2:] else "w") as file:
        file.attrs["source"] = "modelled on PDB 4QLC and 1KX5 (CC0 1.0) with the sequences of linker_histones.json"
        file.attrs["unit"] = "0.001 angstrom, residues without OXT"
        for name, entry in linker_histone_table().items():
            if name in file:
                continue
            random = np.random.Generator(np.random.Philox(key=np.array([len(entry["sequence"]), 0], dtype=np.uint64)))
            chain = remodel(domain, "H1", entry, fixed, random)
            build_side_chains([chain], fixed, polar)
            whole = octamer_of([*chains_of(core), chain], (*core.chain, LINKER_CHAIN), (*FAMILIES, name))
            solute = as_solute((dna, kinds), whole)
            elements = solute.elements()
            first = int(solute.molecule_first_atom[-2])
            kept = {tuple(np.round(x, 3)) for r in domain for x in r.atoms.values()}
            tied = np.where(elements == "H", 0.0, DNA_TIED)
            tied[first:] = [TIED if tuple(np.round(x, 3)) in kept and e != "H" else 0.0
                            for x, e in zip(whole.position[-(solute.n_atoms - first):], elements[first:], strict=True)]
            position = minimised(solute, tied)[first:]
            moved = np.linalg.norm(position - solute.position[first:], axis=1)[tied[first:] > 0]
            solute.position[first:] = position
            heavy = elements != "H"
            distance = cKDTree(solute.position[:first][heavy[:first]]).query(position[heavy[first:]])[0]
            found = audit(Atoms.from_solute(solute))
            print(f"{name}: {len(chain)} residues, kept atoms moved {np.sqrt(np.mean(moved**2)):.2f} angstrom rms, "
                  f"nearest heavy atoms {distance.min():.2f}, below 3.0: {int(np.sum(distance < 3.0))}, chirality "
                  f"{len(found.chirality_errors)}, cis {len(found.cis_peptides)}, pierced rings {len(found.piercings)}",
                  flush=True)
            minimum = chains_of(type(whole)(
                solute.position[solute.molecule_first_atom[2]:].astype(float), whole.residue_template,
                whole.residue_number, whole.residue_chain, whole.chain, whole.histone))[-1]
            group = file.create_group(name)
            group.attrs["first_number"] = minimum[0].number
            group["residue_name"] = np.array([r.name for r in minimum], dtype="S4")
            group.create_dataset("heavy_atom_position", compression="gzip", shuffle=True, data=np.rint(1000 * np.array(
                [x for r in minimum for x in r.atoms.values()])).astype(np.int32))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
