"""Write core_charges_1kx5.json: Debye-Hueckel charges of the nucleosome core at six salts.

    python templates/tools/make_core_charges.py 1kx5.pdb [--sites 300] [--whole] [--salt 0.01 ...] [--output FILE]

Needs pdb2pqr and apbs (see mesoscale/disco.py). The core is the histone octamer of PDB 1KX5 without the parts of the
tails that the model's 50 beads stand for, and all 147 base pairs, in the nucleosome's own frame
(docs/reference/file-formats.md). Each
site on DNA also has the number of its base pair, so that a core with fewer wrapped base pairs can leave it out. With
--whole the tails stay where the crystal has them, as benchmarks/sun_2005.py wants them.
"""

import argparse
import tempfile
from pathlib import Path

import gemmi
import numpy as np
from make_nucleosome_core import HISTONES, nucleosome_frame

from mesoscale.disco import optimise, write_charges

SALTS = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2]  # mol/L
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


def main() -> None:
    """Read the PDB file and write the template beside this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdb")
    parser.add_argument("--sites", type=int, default=300)
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parents[1] / "core_charges_1kx5.json")
    parser.add_argument("--whole", action="store_true", help="with the tails")
    parser.add_argument("--salt", type=float, nargs="+", default=SALTS, help="mol/L")
    given = parser.parse_args()
    structure = gemmi.read_structure(given.pdb)
    rotation, shift = nucleosome_frame(structure[0])
    if given.whole:
        structure.remove_ligands_and_waters()
    else:
        without_tails(structure)
    atoms, base_pair = [], []
    for chain in structure[0]:
        sense = {"I": 1, "J": -1}.get(chain.name)
        for residue in chain:
            for atom in residue:
                atom.pos = gemmi.Position(*(rotation @ atom.pos.tolist() + shift))
                atoms.append(atom.pos.tolist())
                base_pair.append(-1 if sense is None else 73 + sense * residue.seqid.num)

    with tempfile.TemporaryDirectory() as folder:
        core = Path(folder) / "core.pdb"
        structure.write_pdb(str(core))
        total, fits = optimise(core, given.salt, given.sites)
    for salt, found in zip(given.salt, fits, strict=True):
        print(
            f"{1000 * salt:4.0f} mmol/L: net {found.charge.sum():7.1f} e, largest {np.abs(found.charge).max():.2f} e, "
            f"held-out field error {found.mean_error:.2%} (95th percentile {found.high_error:.2%}), "
            f"ridge {found.ridge:.0e}"
        )
    apart = np.linalg.norm(10 * fits[0].site[:, None] - np.array(atoms)[None], axis=2)
    nearest = np.array(base_pair)[np.argmin(apart, axis=1)]
    write_charges(
        given.output,
        given.salt,
        total,
        fits,
        source="PDB 1KX5 (Davey, Sargent, Luger, Maeder & Richmond 2002), 1.94 angstrom; PDB archive data are CC0 1.0",
        base_pair=nearest.tolist(),
    )


if __name__ == "__main__":
    main()
