"""PDB and mmCIF files of a solute, written by another program than ours."""

from collections.abc import Iterable
from pathlib import Path

import gemmi

from chromabuild.molecule.solute import Solute
from chromabuild.sterics.atoms import Atoms


def write_structure(solute: Solute, path: Path, molecules: Iterable[int]) -> None:
    """The given molecules as PDB or mmCIF, written by gemmi."""
    atoms = Atoms.from_solute(solute)
    model = gemmi.Model("1")
    for number, molecule in enumerate(molecules):
        chain = gemmi.Chain("ABCDEFGH"[number])
        for r in range(solute.molecule_first_residue[molecule], solute.molecule_first_residue[molecule + 1]):
            residue = gemmi.Residue()
            residue.name = atoms.residue_label[r].split(":")[1]
            residue.seqid = gemmi.SeqId(str(solute.residue_number[r]))
            for k in range(solute.residue_first_atom[r], solute.residue_first_atom[r + 1]):
                atom = gemmi.Atom()
                atom.name = str(atoms.name[k])
                atom.element = gemmi.Element(int(atoms.element[k]))
                atom.pos = gemmi.Position(*map(float, solute.position[k]))
                residue.add_atom(atom)
            chain.add_residue(residue)
        model.add_chain(chain)
    structure = gemmi.Structure()
    structure.add_model(model)
    structure.setup_entities()
    if path.suffix == ".pdb":
        structure.write_pdb(str(path))
    else:
        structure.make_mmcif_document().write_file(str(path))
