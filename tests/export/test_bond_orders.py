"""Double bonds of residues, beside those that chemistry books draw, and by the valence of every atom."""

import gemmi
import pytest
from support.molecular_systems import make_solute

from chromabuild.export.structure import write_structure
from chromabuild.molecule.bond_orders import VALENCE, double_bonds
from chromabuild.molecule.residues import residue_library

LIBRARY = residue_library()
POLYMERS = [name for name, template in LIBRARY.items() if template.kind in ("amino acid", "nucleotide")]
DRAWN = {"ALA": 1, "ARG": 2, "ASN": 2, "ASP": 2, "HID": 3, "HIE": 3, "HIP": 3, "PHE": 4, "TYR": 4, "TRP": 5, "LYS": 1,
         "MET": 1, "PRO": 1, "ALY": 2, "KCR": 3, "M3L": 1, "SEP": 2, "PTR": 5, "AYA": 2,
         "DA": 5, "DC": 4, "DG": 5, "DT": 4, "5CM": 4, "5FC": 5}
"""Double bonds of a residue with the one of its carbonyl or phosphate: four in a purine with or without its oxygen,
three in a pyrimidine, three in benzene, four in indole, two in imidazole and one in guanidinium."""


def drawn(name: str) -> set[frozenset[str]]:
    template = LIBRARY[name]
    return {frozenset(template.atoms[k] for k in template.bonds[row]) for row in double_bonds(name)}


@pytest.mark.parametrize(("name", "count"), DRAWN.items())
def test_counts(name, count):
    assert len(double_bonds(name)) == count


def test_bonds_that_have_no_alternative():
    assert {frozenset(pair) for pair in (("C", "O"), ("CE1", "NE2"), ("CG", "CD2"))} == drawn("HID")
    assert {frozenset(pair) for pair in (("C", "O"), ("CE1", "ND1"), ("CG", "CD2"))} == drawn("HIE")
    assert {frozenset(pair) for pair in (("P", "OP1"), ("C2", "O2"), ("C4", "N3"), ("C5", "C6"))} == drawn("DC")
    assert {frozenset(pair) for pair in (("P", "OP1"), ("C2", "O2"), ("C4", "O4"), ("C5", "C6"))} == drawn("DT")
    assert {frozenset(("CX", "CY")), frozenset(("CH", "OH"))} < drawn("KCR")


@pytest.mark.parametrize("name", POLYMERS)
def test_valences(name):
    """No atom has two double bonds, nor more bonds than its valence; of nitrogens one may have four."""
    template, rows = LIBRARY[name], double_bonds(name)
    order = [0] * len(template.atoms)
    doubles = [0] * len(template.atoms)
    for row, bond in enumerate(template.bonds.tolist()):
        for atom in bond:
            order[atom] += 2 if row in rows else 1
            doubles[atom] += row in rows
    assert max(doubles) == 1
    for element, n in zip(template.elements, order, strict=True):
        assert n <= VALENCE.get(element, {"H": 1, "S": 2}.get(element, 1)) + (element == "N")


def test_a_file_tells_the_bonds_of_its_residues(tmp_path):
    """Each once, whatever ends and protonation states there are, and between atoms that it tells."""
    made = make_solute([["NALA", "HID", "HIE", "CVAL"], ["DA5", "DC", "5CM", "DG3"]])
    block = gemmi.cif.read(str(write_structure(made, tmp_path / "a.cif", "two"))).sole_block()
    bonds = [tuple(map(gemmi.cif.as_string, row)) for row in
             block.find("_chem_comp_bond.", ["comp_id", "atom_id_1", "atom_id_2", "value_order"])]
    assert {row[0] for row in bonds} == {"ALA", "HIS", "VAL", "DA", "DC", "DG", "5CM"}
    assert len({(row[0], frozenset(row[1:3])) for row in bonds}) == len(bonds)
    atoms = {tuple(map(gemmi.cif.as_string, row)) for row in block.find("_chem_comp_atom.", ["comp_id", "atom_id"])}
    assert {(row[0], atom) for row in bonds for atom in row[1:3]} == atoms
    assert {row[3] for row in bonds} == {"sing", "doub"}
    template, told = LIBRARY["DC"], {row[:3] for row in bonds}
    assert {("DC", template.atoms[a], template.atoms[b]) for a, b in template.bonds.tolist()} <= told
