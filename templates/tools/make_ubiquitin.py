"""Write ubiquitin.json: sequence and heavy atoms of ubiquitin from a file of PDB 1UBI.

    python templates/tools/make_ubiquitin.py 1ubi.pdb
"""

import json
import sys
from pathlib import Path

import gemmi

from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.peptide import one_letter


def main(path: str) -> None:
    """Read chain A and write ubiquitin.json beside this folder."""
    chain = gemmi.read_structure(path)[0]["A"]
    residues = [residue for residue in chain if gemmi.find_tabulated_residue(residue.name).is_amino_acid()]
    names = [residue.name if residue.name != "HIS" else "HIE" for residue in residues]
    rows = []
    for name, residue in zip(names, residues, strict=True):
        entry = residue_library()[name]
        rows += [[round(1000 * x) for x in residue.find_atom(atom, "*").pos.tolist()]
                 for atom, element in zip(entry.atoms, entry.elements, strict=True) if element != "H"]
    table = {"source": "PDB 1UBI, 1.8 angstrom: Ramage et al., Biochem. J. 299:151 (1994); heavy atoms in 0.001 "
                       "angstrom, in the order of the residue library",
             "sequence": "".join(map(one_letter, names)), "residues": names, "heavy_atom_position": rows}
    (Path(__file__).resolve().parents[1] / "ubiquitin.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
