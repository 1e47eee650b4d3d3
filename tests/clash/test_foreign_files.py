"""Every atom of a PDB or mmCIF file of any origin is read, or counted among what is left out. gemmi is the judge."""

import gzip

import gemmi
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import chromabuild
from support.structure_files import write_structure

from chromabuild.base.errors import BadInputError
from chromabuild.clash import check
from chromabuild.molecule.structure_file import StructureFile


def atom_line(serial, name, residue, chain, number, xyz, alternative=" ", element="C", segment="    "):
    """An ATOM record of wwPDB's format."""
    x, y, z = xyz
    padded = f" {name:<3s}" if len(name) < 4 else name
    return (f"ATOM  {serial % 100000:5d} {padded}{alternative}{residue:>3s} {chain}{number:>4}    "
            f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00      {segment}{element:>2s}")


def write(path, lines):
    """A file of these lines with its END."""
    path.write_text("\n".join([*lines, "END", ""]))
    return path


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
@pytest.mark.release
def test_regular_file_is_read_as_gemmi_reads_it(tmp_path, nucleosome, suffix):
    path = tmp_path / f"model{suffix}"
    write_structure(nucleosome, path, range(8))
    judge = [(atom, residue) for chain in gemmi.read_structure(str(path))[0] for residue in chain for atom in residue]
    found = StructureFile.read(path)
    assert found.left_out == "" and len(found.name) == nucleosome.molecule_first_atom[8] == len(judge)
    assert found.name == [atom.name for atom, _ in judge]
    assert found.element.tolist() == [atom.element.atomic_number for atom, _ in judge]
    np.testing.assert_allclose(found.position, [atom.pos.tolist() for atom, _ in judge], atol=1e-9)
    assert [found.residue_name[k] for k in found.residue] == [residue.name for _, residue in judge]
    np.testing.assert_array_equal(np.diff(found.residue) != 0, np.diff(nucleosome.atom_residue[:len(judge)]) != 0)
    (tmp_path / f"model{suffix}.gz").write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(StructureFile.read(tmp_path / f"model{suffix}.gz").position, found.position)


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
@pytest.mark.release
def test_copies_under_the_same_chain_ids_are_all_read(tmp_path, nucleosome, suffix):
    """Three copies of a nucleosome, one after the other, 200 A apart: three times the atoms, no clash between them."""
    path = tmp_path / f"one{suffix}"
    write_structure(nucleosome, path, range(8))
    structure, rows = gemmi.read_structure(str(path)), []
    serial = 0
    for copy in range(3):
        for chain in structure[0]:
            for residue in chain:
                for atom in residue:
                    serial += 1
                    rows.append((serial, atom.name, residue.name, chain.name[0], residue.seqid.num,
                                 (atom.pos.x + 200 * copy, atom.pos.y, atom.pos.z), atom.element.name))
    path = tmp_path / f"three{suffix}"
    if suffix == ".pdb":
        write(path, [atom_line(*row[:6], element=row[6]) for row in rows])
    else:
        items = ("group_PDB id type_symbol label_atom_id label_alt_id auth_comp_id auth_asym_id auth_seq_id "
                 "Cartn_x Cartn_y Cartn_z").split()
        path.write_text("data_three\n#\nloop_\n" + "".join(f"_atom_site.{item}\n" for item in items) + "".join(
            f'ATOM {number} {element} "{name}" . {residue} {chain} {place} {x:.3f} {y:.3f} {z:.3f}\n'
            for number, name, residue, chain, place, (x, y, z), element in rows) + "#\n")
    one, three = check(tmp_path / f"one{suffix}").data["before"], check(path).data
    assert three["before"]["atoms"] == 3 * nucleosome.molecule_first_atom[8] and three["left_out"] == ""
    # Coordinates of three decimals on another grid: a pair may cross a threshold by that.
    assert abs(three["before"]["overlaps"] - 3 * one["overlaps"]) <= 0.02 * 3 * one["overlaps"]


def test_waters_with_wrapped_numbers_are_all_read(tmp_path):
    """12,000 waters, numbered modulo 10,000 as simulation programs do, and 20 that all have the number 1."""
    lines = []
    for k in range(12020):
        x, y, z = 4.0 * (k % 23), 4.0 * (k // 23 % 23), 4.0 * (k // 529)
        number = (k + 1) % 10000 if k < 12000 else 1
        lines += [atom_line(3 * k, "O", "HOH", "W", number, (x, y, z), element="O"),
                  atom_line(3 * k + 1, "H1", "HOH", "W", number, (x + 0.957, y, z), element="H"),
                  atom_line(3 * k + 2, "H2", "HOH", "W", number, (x - 0.24, y + 0.927, z), element="H")]
    found = StructureFile.read(write(tmp_path / "water.pdb", lines))
    assert len(found.name) == 36060 and len(found.residue_name) == 12020 and found.left_out == ""
    np.testing.assert_array_equal(found.residue, np.repeat(np.arange(12020), 3))
    report = check(tmp_path / "water.pdb")
    assert report.data["before"]["atoms"] == 36060 and report.fatal == 0


def test_alternative_locations_are_left_out_and_counted(tmp_path):
    """One location of a side chain stays, and of a residue that is serine here and alanine there; gemmi agrees."""
    lines = [
        atom_line(1, "N", "SER", "A", 1, (0, 0, 0), element="N"), atom_line(2, "CA", "SER", "A", 1, (1.5, 0, 0)),
        atom_line(3, "CB", "SER", "A", 1, (2, 1.4, 0), "A"), atom_line(4, "CB", "SER", "A", 1, (2, 1.2, 0.5), "B"),
        atom_line(5, "OG", "SER", "A", 1, (3.4, 1.4, 0), "A", "O"),
        atom_line(6, "OG", "SER", "A", 1, (3.4, 1.2, 0.6), "B", "O"),
        atom_line(7, "CA", "SER", "A", 2, (9, 0, 0), "A"), atom_line(8, "CB", "SER", "A", 2, (9, 1.5, 0), "A"),
        atom_line(9, "CA", "ALA", "A", 2, (9.2, 0, 0), "B"), atom_line(10, "CB", "ALA", "A", 2, (9.2, 1.5, 0), "B"),
        atom_line(11, "CA", "GLY", "A", 3, (15, 0, 0))]
    path = write(tmp_path / "two.pdb", lines)
    found = StructureFile.read(path)
    assert found.left_out == "4 atoms in further alternative locations"
    assert found.name == ["N", "CA", "CB", "OG", "CA", "CB", "CA"] and found.residue_name == ["SER", "SER", "GLY"]
    judge = gemmi.read_structure(str(path))
    judge.remove_alternative_conformations()
    np.testing.assert_allclose(found.position, [site.atom.pos.tolist() for site in judge[0].all()])
    assert "4 atoms in further alternative locations" in check(path).to_text()


def test_further_models_are_left_out_and_counted(tmp_path):
    atom = atom_line(1, "CA", "ALA", "A", 1, (0, 0, 0))
    path = write(tmp_path / "models.pdb", ["MODEL        1", atom, "ENDMDL", "MODEL        2", atom, "ENDMDL",
                                           "MODEL        3", atom, "ENDMDL"])
    found = StructureFile.read(path)
    assert len(found.name) == 1 and found.left_out == "2 further models"


@settings(max_examples=60, deadline=None)
@given(runs=st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 3), st.integers(1, 3), st.booleans()),
                     min_size=1, max_size=12))
def test_no_arrangement_of_chains_and_numbers_loses_an_atom(tmp_path_factory, runs):
    """Residues of one to three atoms under few names, so that chains and numbers repeat in all ways."""
    lines, names = [], []
    for chain, number, atoms, ended in runs:
        for name in ("CA", "CB", "C")[:atoms]:
            lines.append(atom_line(len(names) + 1, name, "ALA", chain, number, (3.0 * len(names), 0, 0)))
            names.append(name)
        if ended:
            lines.append("TER")
    path = write(tmp_path_factory.mktemp("runs") / "runs.pdb", lines)
    found = StructureFile.read(path)
    assert found.name == names and found.left_out == ""
    places = list(zip(found.residue.tolist(), found.name, strict=True))
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(("line", "said"), [
    ("ATOM      2  CA  ALA A   1    ********   1.000   2.000  1.00  0.00           C", "line 2: x = '********'"),
    ("ATOM      2  CA  ALA A   1       1.000     nan   2.000  1.00  0.00           C", "line 2: y = 'nan'"),
    ("ATOM      2  CA  ALA A   1       1.000   1.000", "line 2: the line ends at column 46"),
])
def test_damaged_coordinates_are_refused(tmp_path, line, said):
    path = write(tmp_path / "damaged.pdb", [atom_line(1, "N", "ALA", "A", 1, (0, 0, 0), element="N"), line])
    with pytest.raises(BadInputError) as error:
        StructureFile.read(path)
    assert said in str(error.value) and "damaged.pdb" in str(error.value)
    outcome = chromabuild("clash", "check", path, cwd=tmp_path)
    assert outcome.returncode == 3 and "Traceback" not in outcome.stderr


def test_files_that_are_cut_are_refused(tmp_path, nucleosome):
    pdb, cif = tmp_path / "model.pdb", tmp_path / "model.cif"
    write_structure(nucleosome, pdb, range(2))
    lines = [line for line in pdb.read_text().splitlines() if line.startswith("ATOM")]
    pdb.write_text("\n".join(lines)[:-15])
    with pytest.raises(BadInputError, match=f"line {len(lines)}: the line ends at column"):
        StructureFile.read(pdb)
    atoms = "".join(f"ATOM {k} C CA ALA A {k} {k}.0 0.0 0.0\n" for k in range(1, 50))
    items = "group_PDB id type_symbol auth_atom_id auth_comp_id auth_asym_id auth_seq_id Cartn_x Cartn_y Cartn_z"
    text = "data_x\n#\n_entry.id x\n#\nloop_\n" + "".join(f"_atom_site.{i}\n" for i in items.split()) + atoms + "#\n"
    cif.write_text(text)
    assert len(StructureFile.read(cif).name) == 49
    for cut in (len(text) - 2, len(text) - 40, len(text) - 33 * 20):
        cif.write_text(text[:cut])
        with pytest.raises(BadInputError, match="model.cif"):
            StructureFile.read(cif)


def test_files_that_are_cut_between_two_atoms_are_refused(tmp_path, nucleosome):
    """Entries end with END, and gemmi's mmCIF, which closes no table, lists its chains first."""
    pdb, cif = tmp_path / "model.pdb", tmp_path / "model.cif"
    write_structure(nucleosome, pdb, range(2))
    lines = [line for line in pdb.read_text().splitlines() if line.startswith("ATOM")]
    pdb.write_text("SEQRES   1 A    1  ALA\n" + "\n".join(lines) + "\nEND\n")
    assert len(StructureFile.read(pdb).name) == len(lines)
    pdb.write_text("SEQRES   1 A    1  ALA\n" + "\n".join(lines[:-9]) + "\n")
    with pytest.raises(BadInputError, match=f"line {len(lines) - 8}: the file ends with an atom"):
        StructureFile.read(pdb)
    rows = [f"ATOM {k} C CA ALA {'AB'[k > 20]} {k} {k}.0 0.0 0.0\n" for k in range(1, 50)]
    items = "group_PDB id type_symbol label_atom_id label_comp_id label_asym_id label_seq_id Cartn_x Cartn_y Cartn_z"
    text = "data_x\n\nloop_\n_struct_asym.id\nA\nB\n\nloop_\n" + "".join(f"_atom_site.{i}\n" for i in items.split())
    cif.write_text(text + "".join(rows))
    assert len(StructureFile.read(cif).name) == 49
    cif.write_text(text + "".join(rows[:15]))
    with pytest.raises(BadInputError, match="lacks chain B"):
        StructureFile.read(cif)
