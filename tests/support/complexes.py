"""A protein on bent DNA in a structure file: a part of nucleosome 1KX5, whose path and histones are measured."""

from pathlib import Path

import gemmi
import numpy as np

from chromabuild.build.duplex import build_dna
from chromabuild.dna.helix import DYAD, crystal_path
from chromabuild.dna.sequence import BASES
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.octamer import octamer

SEQUENCE = "ATGCAAGCTTGCATG"
FIRST = DYAD - 51
"""Where on the path of 1KX5 its first base pair lies: H2B of chain D holds the middle."""
CHAIN, RESIDUES = 3, (31, 100)


def write_complex(path: Path, sequence: str = SEQUENCE, with_dna: bool = True, with_protein: bool = True,
                  hydrogens: bool = False) -> Path:
    """Write PDB or mmCIF, by the name of the file, turned and shifted away from the frame of 1KX5."""
    model = gemmi.Model(1)
    library = list(residue_library().values())

    def add(name: str, number: int, template: int, atoms: np.ndarray, chain: gemmi.Chain) -> None:
        residue = gemmi.Residue()
        residue.name, residue.seqid = name, gemmi.SeqId(number, " ")
        for label, element, x in zip(library[template].atoms, library[template].elements, atoms, strict=True):
            if element == "H" and not hydrogens:
                continue
            atom = gemmi.Atom()
            atom.name, atom.element, atom.pos = label, gemmi.Element(element), gemmi.Position(*(x[[1, 2, 0]] + 20.0))
            residue.add_atom(atom)
        chain.add_residue(residue)

    if with_dna:
        origin, frame = crystal_path()
        part = slice(FIRST, FIRST + len(sequence))
        position, template, _ = build_dna(np.array([BASES.index(base) for base in sequence]), origin[part], frame[part])
        at, n = 0, len(sequence)
        for name, rows in (("I", range(n)), ("J", range(n, 2 * n))):
            chain = gemmi.Chain(name)
            for number, k in enumerate(rows, 1):
                size = len(library[template[k]].atoms)
                add(library[template[k]].pdb_name, number, template[k], position[at:at + size], chain)
                at += size
            model.add_chain(chain)
    if with_protein:
        core, chain = octamer("crystal"), gemmi.Chain("P")
        for k in np.flatnonzero((core.residue_chain == CHAIN) & (core.residue_number >= RESIDUES[0])
                                & (core.residue_number <= RESIDUES[1])):
            add(library[core.residue_template[k]].pdb_name, int(core.residue_number[k]), core.residue_template[k],
                core.position[core.first_atom[k]:core.first_atom[k + 1]], chain)
        model.add_chain(chain)
    structure = gemmi.Structure()
    structure.add_model(model)
    structure.setup_entities()
    if path.suffix == ".cif":
        structure.make_mmcif_document().write_file(str(path))
    else:
        structure.write_pdb(str(path))
    return path
