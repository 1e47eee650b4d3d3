"""Whatever a file holds, `clash check` finds or refuses; it never falls over."""

import gemmi
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chromabuild.base.errors import BadInputError
from chromabuild.clash import check
from chromabuild.sterics.atoms import Atoms

pytestmark = pytest.mark.release

RECORDS = """\
CRYST1   40.000   40.000   40.000  90.00  90.00  90.00 P 1           1
ATOM      1  N   ALA A   1      11.104  13.207   2.100  1.00 20.00           N
ATOM      2  CA  ALA A   1      11.639  11.849   2.100  1.00 20.00           C
ATOM      3  C   ALA A   1      13.160  11.849   2.100  1.00 20.00           C
ATOM      4  O   ALA A   1      13.800  12.900   2.100  1.00 20.00           O
ATOM      5  CB  ALA A   1      11.100  11.100   3.320  1.00 20.00           C
ATOM      6  P    DA B   1      13.160  12.849   2.100  1.00 20.00           P
ATOM      7  OP1  DA B   1      14.160  12.849   3.100  1.00 20.00           O
ATOM      8  O5'  DA B   1      12.160  13.849   1.100  1.00 20.00           O
HETATM    9  C1  LIG C   1      13.400  12.100   2.900  1.00 20.00           C
HETATM   10 MG    MG C   2      20.000  20.000  20.000  1.00 20.00          MG
TER
END
""".splitlines()

edits = st.lists(st.tuples(st.integers(0, len(RECORDS) - 1), st.integers(0, 79), st.text(
    st.characters(min_codepoint=32, max_codepoint=255), min_size=0, max_size=8)), max_size=6)


@given(edits=edits, drop=st.sets(st.integers(0, len(RECORDS) - 1), max_size=6), repeat=st.integers(1, 3),
       tail=st.binary(max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_pdb(tmp_path, edits, drop, repeat, tail):
    """Columns overwritten, lines dropped and repeated, bytes appended."""
    lines = list(RECORDS)
    for line, column, text in edits:
        lines[line] = lines[line].ljust(80)[:column] + text + lines[line].ljust(80)[column + len(text):]
    text = "\n".join(line for k, line in enumerate(lines) if k not in drop for _ in range(repeat))
    path = tmp_path / "model.pdb"
    path.write_bytes(text.encode("latin-1") + tail)
    try:
        report = check(path)
    except BadInputError as error:
        assert "model.pdb" in str(error) and "\n" not in str(error)
        return
    assert report.data["before"]["atoms"] > 0 and report.to_tsv() and report.to_text() and report.to_json()


@pytest.mark.parametrize("content", [
    b"data_x\nloop_\n_atom_site.id\n_atom_site.Cartn_x\n1 abc\n", b"data_x\n_cell.length_a ?\n", b"\x28\xb5\x2f\xfd",
    b"data_", b"\x00" * 100, b"{}"])
def test_damaged_mmcif_and_archives(tmp_path, content):
    for name in ("model.cif", "model.pdb.zst", "model.pdb.gz", "model.xyz"):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(BadInputError, match=name.replace(".", r"\.")):
            check(path)


def test_compressed_shard_equals_plain(tmp_path):
    import zstandard

    (tmp_path / "model.pdb").write_text("\n".join(RECORDS) + "\n")
    (tmp_path / "model.pdb.zst").write_bytes(zstandard.compress((tmp_path / "model.pdb").read_bytes()))
    plain, packed = (check(tmp_path / name).data for name in ("model.pdb", "model.pdb.zst"))
    assert plain == packed and plain["before"]["pairs_below_threshold"]["count"] > 0


def test_contacts_across_the_box(tmp_path):
    """Two argon atoms 1 A apart through a face of the periodic box of a P 1 file."""
    structure = gemmi.Structure()
    structure.cell = gemmi.UnitCell(30, 30, 30, 90, 90, 90)
    structure.spacegroup_hm = "P 1"
    chain = gemmi.Chain("A")
    for k, x in enumerate((0.2, 29.5)):
        residue = gemmi.Residue()
        residue.name, residue.seqid = "AR", gemmi.SeqId(str(k + 1))
        atom = gemmi.Atom()
        atom.name, atom.element, atom.pos = "AR", gemmi.Element("Ar"), gemmi.Position(x, 5, 5)
        residue.add_atom(atom)
        chain.add_residue(residue)
    model = gemmi.Model("1")
    model.add_chain(chain)
    structure.add_model(model)
    structure.setup_entities()
    structure.write_pdb(str(tmp_path / "box.pdb"))
    atoms = Atoms.from_structure_file(tmp_path / "box.pdb")
    np.testing.assert_allclose(atoms.box, 30.0)
    found = check(tmp_path / "box.pdb").data["before"]["pairs_below_threshold"]["items"]
    assert len(found) == 1 and abs(found[0]["distance"] - 0.7) < 2e-3
