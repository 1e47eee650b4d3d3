"""`clash fix FILE`: structures of any origin become solutes, and lose their clashes as a solute of ours does."""

import json

import gemmi
import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.command_line import chromabuild
from support.structure_files import write_structure

from chromabuild.clash import check, correct_clashes
from chromabuild.molecule.from_structure import solute_of_structure
from chromabuild.molecule.residues import residue_names
from chromabuild.pipeline.fix_structure import name_histones


def without_hydrogens(path, target):
    """A copy of a structure file that has heavy atoms only."""
    structure = gemmi.read_structure(str(path))
    structure.remove_hydrogens()
    structure.write_pdb(str(target))
    return target


@pytest.fixture(scope="module")
def file(tmp_path_factory, shifted_octamer):
    """DNA and six histones of a nucleosome with its octamer displaced."""
    path = tmp_path_factory.mktemp("foreign") / "shifted.pdb"
    write_structure(shifted_octamer, path, range(8))
    return path


@pytest.mark.release
def test_solute_of_a_file_is_the_one_that_was_written(file, shifted_octamer):
    found = solute_of_structure(file)
    name_histones(found.solute)
    n = int(shifted_octamer.molecule_first_residue[8])
    atoms = int(shifted_octamer.molecule_first_atom[8])
    assert found.left_out == "" and found.hydrogens_placed == 0 and found.solute.n_atoms == atoms
    np.testing.assert_array_equal(found.solute.residue_template, shifted_octamer.residue_template[:n])
    np.testing.assert_array_equal(found.solute.residue_number, shifted_octamer.residue_number[:n])
    np.testing.assert_array_equal(found.solute.molecule_first_residue, shifted_octamer.molecule_first_residue[:9])
    np.testing.assert_allclose(found.solute.position, shifted_octamer.position[:atoms], atol=6e-4)
    assert found.solute.molecule_name[2:] == shifted_octamer.molecule_name[2:8]


@pytest.mark.release
def test_missing_hydrogens_are_placed(file, tmp_path, nucleosome):
    """All of a nucleosome's, most within 0.3 A of where the builder has them: hydroxyls and methyls rotate freely."""
    write_structure(nucleosome, tmp_path / "whole.pdb", range(8))
    found = solute_of_structure(without_hydrogens(tmp_path / "whole.pdb", tmp_path / "heavy.pdb"))
    atoms = int(nucleosome.molecule_first_atom[8])
    assert found.hydrogens_placed == found.solute.n_residues and found.solute.n_atoms == atoms
    # A histidine of unknown state is HIE here, and HID there.
    histidine = np.isin(found.solute.residue_template, [k for k, name in enumerate(residue_names()) if "HI" in name])
    compared = ~histidine[found.solute.atom_residue]
    off = np.linalg.norm(found.solute.position - nucleosome.position[:atoms], axis=1)
    heavy = nucleosome.elements()[:atoms] != "H"
    assert off[compared & heavy].max() < 1e-3
    # Hydrogens of one carbon may bear each other's names.
    placed = cKDTree(found.solute.position[compared & ~heavy])
    distance, _ = placed.query(nucleosome.position[:atoms][compared & ~heavy])
    assert np.median(distance) < 0.1 and np.mean(distance < 0.3) > 0.85


@pytest.mark.release
def test_corrected_file_has_no_clash_and_matches_the_solute(file, tmp_path, shifted_octamer):
    before = check(file)
    outcome = chromabuild("clash", "fix", file, "-o", "fixed.cif", "--threads", "2", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    after = check(tmp_path / "fixed.cif")
    assert before.fatal > 0 and after.fatal == 0
    assert after.data["before"]["atoms"] == before.data["before"]["atoms"]
    assert after.data["before"]["chirality_errors"]["count"] == 0
    report = json.loads((tmp_path / "fixed_clashes.json").read_text())
    assert report["before"]["pairs_below_threshold"]["count"] == before.data["before"]["pairs_below_threshold"]["count"]
    assert (tmp_path / "fixed_clashes.html").stat().st_size > 10000
    # The same molecules as a Solute: as many pairs solved, as the corrector sees the same atoms.
    found = solute_of_structure(file)
    name_histones(found.solute)
    again, _ = correct_clashes(found.solute, threads=1)
    written = solute_of_structure(tmp_path / "fixed.cif").solute
    np.testing.assert_allclose(written.position, again.position, atol=6e-4)


@pytest.mark.parametrize(("edit", "said"), [
    (lambda text: "\n".join(line for line in text.splitlines() if line[12:16].strip() != "CG"), "lacks CG"),
    (lambda text: text.replace(" LYS ", " SEP "), "SEP"),
    (lambda text: "\n".join(line for line in text.splitlines() if line[17:20] == "HOH") + "\n"
     "HETATM    1  O   HOH W   1       0.000   0.000   0.000  1.00  0.00           O\n", "no protein and no DNA"),
])
def test_what_cannot_be_corrected_is_refused(file, tmp_path, edit, said):
    path = tmp_path / "bad.pdb"
    path.write_text(edit(file.read_text()))
    outcome = chromabuild("clash", "fix", path, cwd=tmp_path)
    assert outcome.returncode == 3 and said in outcome.stderr and "bad.pdb" in outcome.stderr
    assert "Traceback" not in outcome.stderr and sorted(p.name for p in tmp_path.iterdir()) == ["bad.pdb"]


def test_solvent_and_ligands_are_left_out_and_counted(file, tmp_path):
    waters = [f"HETATM    1  O   HOH W   {k}      90.000   0.000   0.000  1.00  0.00           O" for k in (1, 2)]
    path = tmp_path / "wet.pdb"
    atoms = [line for line in file.read_text().splitlines() if line.startswith(("ATOM", "TER"))]
    path.write_text("\n".join([*atoms, *waters, "END", ""]))
    assert solute_of_structure(path).left_out == "2 HOH"


def test_names_of_charmm_are_understood(file, tmp_path):
    """Histidines HSE, amide hydrogens HN, phosphate oxygens O1P: the same residues of the library."""
    text = file.read_text().replace(" H   ", " HN  ").replace("OP1", "O1P").replace("OP2", "O2P").replace("HIS", "HSE")
    path = tmp_path / "charmm.pdb"
    path.write_text(text)
    plain, other = solute_of_structure(file), solute_of_structure(path)
    names = [residue_names()[k] for k in other.solute.residue_template]
    assert names == [residue_names()[k] for k in plain.solute.residue_template]
    np.testing.assert_array_equal(other.solute.position, plain.solute.position)
