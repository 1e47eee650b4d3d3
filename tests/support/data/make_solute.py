"""Write solute.h5: histone H4 24-102 and 12 base pairs of DNA from 1KX5, hydrogens by OpenMM.

    python tests/support/data/make_solute.py 1kx5.pdb
"""

import sys
from pathlib import Path

import numpy as np
import openmm
import openmm.app as app
from openmm import unit

from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute

CHOICE = {"B": (24, 102), "I": (8, 19), "J": (-19, -8)}


def with_hydrogens(path, keep):
    """Chosen residues (chain -> first, last number) with all hydrogens at pH 7, in file order."""
    pdb = app.PDBFile(str(path))
    modeller = app.Modeller(pdb.topology, pdb.positions)
    amino_or_base = {t.pdb_name for t in residue_library().values() if t.kind in ("amino acid", "nucleotide")}
    doomed = []
    for residue in modeller.topology.residues():
        first, last = keep.get(residue.chain.id, (1, 0))
        if residue.name not in amino_or_base or not first <= int(residue.id) <= last:
            doomed.append(residue)
        elif int(residue.id) == first and residue.name.startswith("D"):
            doomed += [atom for atom in residue.atoms() if atom.name in ("P", "OP1", "OP2")]
    modeller.delete(doomed)
    modeller.addHydrogens(app.ForceField("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml"), pH=7.0,
                          platform=openmm.Platform.getPlatformByName("CPU"))
    return modeller


def to_solute(modeller):
    """Match every residue to the library by its atom names."""
    by_atoms = {(t.pdb_name, frozenset(t.atoms)): name for name, t in residue_library().items()}
    xyz = np.array(modeller.positions.value_in_unit(unit.angstrom))
    position, template, number, segment, chains, first = [], [], [], [], [], []
    for k, chain in enumerate(modeller.topology.chains()):
        first.append(len(template))
        chains.append(chain.id)
        residues = list(chain.residues())
        for residue in residues:
            atoms = {atom.name: atom.index for atom in residue.atoms()}
            if "H3" in atoms and "N" in atoms:  # OpenMM's name for the first hydrogen of an amino terminus
                atoms["H1"] = atoms.pop("H")
            name = by_atoms[residue.name, frozenset(atoms)]
            position += [xyz[atoms[a]] for a in residue_library()[name].atoms]
            template.append(residue_names().index(name))
            number.append(int(residue.id) - min(0, int(residues[0].id) - 1))
            segment.append(k)
    return Solute(
        position=np.array(position, dtype=np.float32), residue_template=np.array(template, dtype=np.uint16),
        residue_number=np.array(number, dtype=np.int32), residue_segment=np.array(segment, dtype=np.uint16),
        segment_name=[f"{'D' if c in 'IJ' else 'P'}00{c}" for c in chains], segment_chain=chains,
        molecule_first_residue=np.array([*first, len(template)]),
        molecule_name=[f"DNA-{c}" if c in "IJ" else "H4" for c in chains],
        molecule_nucleosome=np.array([-1 if c in "IJ" else 0 for c in chains], dtype=np.int32),
        provenance={"source": "PDB 1KX5, hydrogens added by OpenMM"})


if __name__ == "__main__":
    to_solute(with_hydrogens(sys.argv[1], CHOICE)).write(Path(__file__).with_name("solute.h5"))
