"""Write nucleosome.npz, the structure that the clash tests start from: PDB 1KX5 with all hydrogens.

    python tests/support/data/make_nucleosome.py 1kx5.pdb

Waters and ions are dropped, of alternative locations the first is kept, hydrogens are placed by OpenMM (Reference
platform). Coordinates are stored in steps of 0.003 A, atoms in the order of the residue library.
"""

import sys
from io import StringIO
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

from chromabuild.molecule.residues import residue_library

STEP = 0.003


def main(pdb_file: str) -> None:
    """Read, add hydrogens, write beside this script."""
    lines = []
    for line in Path(pdb_file).read_text().splitlines():
        if line.startswith("TER"):
            lines.append(line)
        elif line.startswith("ATOM") and line[16] in " A":
            lines.append(line[:16] + " " + line[17:])
    pdb = app.PDBFile(StringIO("\n".join([*lines, "END", ""])))
    model = app.Modeller(pdb.topology, pdb.positions)
    model.addHydrogens(app.ForceField("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml"),
                       platform=openmm.Platform.getPlatformByName("Reference"))
    everything = np.array(model.positions.value_in_unit(unit.angstrom))
    position, template, number, chain_of = [], [], [], []
    for chain in model.topology.chains():
        for residue in chain.residues():
            place = {atom.name: everything[atom.index] for atom in residue.atoms()}
            if {"H", "H2", "H3", "CA"} <= set(place):  # OpenMM calls the first hydrogen of an amino end H
                place["H1"] = place.pop("H")
            match = next(t for t in residue_library().values()
                         if t.pdb_name == residue.name and set(t.atoms) == set(place))
            template.append(match.name)
            number.append(int(residue.id) + (74 if chain.id in "IJ" else 0))
            chain_of.append(chain.id)
            position += [place[atom] for atom in match.atoms]
    steps = np.round((np.array(position) - np.mean(position, axis=0)) / STEP).astype(np.int32)
    np.savez_compressed(
        Path(__file__).with_name("nucleosome.npz"), steps=steps, template=np.array(template, dtype="S4"),
        number=np.array(number, dtype=np.int16), chain=np.array(chain_of, dtype="S1"))


if __name__ == "__main__":
    main(sys.argv[1])
