"""Cut a peptide and a DNA duplex out of a copy of PDB entry 1KX5, add hydrogens, write them in solute order.

    python tests/support/data/make_fixtures.py 1kx5.pdb

The peptide is H3 residues 125-135 (chain A, with its own C terminus); the duplex is base pairs -4..3 of chains I and J.
Each file: the residue names of the library per molecule, and positions in angstrom of all atoms in solute order.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
from openmm import LangevinMiddleIntegrator, Platform, app, unit

from chromabuild.molecule.residues import residue_library

NOT_POLYMER = ("HOH", "MN", "CL")
FOLDER = Path(__file__).parent


def cut(source: app.PDBFile, parts: dict[str, range]) -> app.Modeller:
    modeller = app.Modeller(source.topology, source.positions)
    remove = []
    for residue in modeller.topology.residues():
        numbers = parts.get(residue.chain.id, range(0))
        if int(residue.id) not in numbers or residue.name in NOT_POLYMER:
            remove.append(residue)
        elif int(residue.id) == numbers[0]:  # a 5' end has no phosphate
            remove += [atom for atom in residue.atoms() if atom.name in ("P", "OP1", "OP2")]
    modeller.delete(remove)
    return modeller


def write(name: str, modeller: app.Modeller, rules: app.ForceField) -> None:
    random.seed(1)  # OpenMM places hydrogens at random before it minimises them
    modeller.addHydrogens(rules, platform=Platform.getPlatformByName("Reference"))
    system = rules.createSystem(modeller.topology, nonbondedMethod=app.NoCutoff)
    simulation = app.Simulation(modeller.topology, system, LangevinMiddleIntegrator(300, 1, 0.001),
                                Platform.getPlatformByName("Reference"))
    simulation.context.setPositions(modeller.positions)
    simulation.minimizeEnergy(maxIterations=200)
    position = simulation.context.getState(getPositions=True).getPositions(asNumpy=True).value_in_unit(unit.angstrom)
    library = residue_library()
    matched = rules.getMatchingTemplates(modeller.topology)
    molecules, ordered = [], []
    for chain in modeller.topology.chains():
        names = []
        for residue in chain.residues():
            template = library[matched[residue.index].name]
            names.append(template.name)
            atom_index = {atom.name: atom.index for atom in residue.atoms()}
            if "H1" in template.index and "H" in atom_index:  # OpenMM names the hydrogens of an N terminus H, H2, H3
                atom_index["H1"] = atom_index["H"]
            ordered += [position[atom_index[atom]] for atom in template.atoms]
        molecules.append(names)
    rows = np.round(np.array(ordered) - np.mean(ordered, axis=0), 3)
    content = {"source": "PDB entry 1KX5, hydrogens and 200 minimisation steps by OpenMM", "molecules": molecules,
               "position": rows.ravel().tolist()}
    (FOLDER / f"{name}.json").write_text(json.dumps(content) + "\n")


def main() -> None:
    source = app.PDBFile(sys.argv[1])
    rules = app.ForceField("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml")
    write("peptide", cut(source, {"A": range(125, 136)}), rules)
    write("duplex", cut(source, {"I": range(-4, 4), "J": range(-3, 5)}), rules)


if __name__ == "__main__":
    main()
