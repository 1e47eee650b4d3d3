"""What force fields know of modified residues: the table against OpenMM's data, and the sentences that refuse."""

import numpy as np
import pytest
from support import charmm_xml

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.modified_residues import (
    DESCRIPTIONS,
    OPENMM_CHARMM,
    check_parameters,
    check_residues,
    force_fields_with,
)
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.molecule.solute import Solute


@pytest.mark.parametrize("name", [n for n, d in DESCRIPTIONS["charmm36m"].items() if d.file == OPENMM_CHARMM])
def test_openmm_has_what_the_table_names(name):
    """Residue and patches are there, their charge is the formal one, and every new atom has the name that is said."""
    told = DESCRIPTIONS["charmm36m"][name]
    charges = charmm_xml.atoms_of(told.residue, told.patches)
    assert sum(charges.values()) == pytest.approx(modifications()[name].charge, abs=1e-6)
    new = {atom for atom, _, _ in modifications()[name].added}
    assert {told.atoms.get(atom, atom) for atom in new} <= charges.keys()
    heavy = [e for e in residue_library()[name].elements if e != "H"]
    assert sum(not atom.startswith("H") for atom in charges) == len(heavy)
    assert len(charges) == len(residue_library()[name].atoms)


def test_the_others_are_in_none_of_openmms_files():
    names = {residue.get("name") for residue in charmm_xml.charmm36().iter("Residue")}
    assert not names & {"ALY", "MLZ", "MLY", "M3L", "2MR", "DA2"}
    assert DESCRIPTIONS["charmm36m"]["ALY"].file.endswith(".str")
    assert force_fields_with("M3L") == [] and force_fields_with("5CM") == ["charmm36m"]


@pytest.mark.parametrize(("marks", "bases", "force_field", "selectable", "sentence"), [
    (["H3K27ac"], [], "amber14", ("amber14",), "force field amber14 has no parameters for H3K27ac \\(N6-acetyl-lysine, "
     "ALY\\): charmm36m has them: write H3:K27Q, the nearest stand-in, or leave it out$"),
    (["H3K27ac"], [], "amber14", None, "set dynamics.force_field to charmm36m, or write H3:K27Q, the nearest stand-in"),
    (["H3S10ph"], [], "amber19", None, "field amber19 .* or write H3:S10E, the nearest stand-in, or leave it out$"),
    (["H3K4me3"], [], "charmm36m", None, "charmm36m has no parameters for H3K4me3 .*: no force field here has them: "
     "leave it out$"),
    ([], ["5mC"], "amber14", None, "no parameters for 5mC \\(5-methylcytosine, 5CM\\): set dynamics.force_field to "
     "charmm36m, or leave it out$"),
])
def test_what_has_no_parameters_is_refused_with_a_way_out(marks, bases, force_field, selectable, sentence):
    with pytest.raises(BadInputError, match=sentence):
        check_parameters(marks, bases, force_field, selectable)


def test_what_has_parameters_passes():
    check_parameters(["H3K27ac", "H4K16ac@1", "H3T3ph"], ["5mC", "5hmC", "5fC"], "charmm36m")
    check_parameters([], [], "amber14")
    check_residues(["ALY", "5CM"], "charmm36m")


def test_a_topology_of_a_modified_residue_is_refused_by_the_same_table():
    names = list(residue_library())
    kinds = np.array([names.index(name) for name in ("NALA", "ALY", "CALA")], dtype=np.uint16)
    atoms = sum(len(residue_library()[names[k]].atoms) for k in kinds)
    solute = Solute(np.zeros((atoms, 3), np.float32), kinds, np.arange(1, 4, dtype=np.int32), np.zeros(3, np.uint16),
                    ["PEPT"], ["A"], np.array([0, 3]), ["peptide"], np.array([-1], np.int32))
    with pytest.raises(BadInputError, match="amber14 has no parameters for ALY .*force_field to charmm36m"):
        make_topology(solute, {}, "amber14")
