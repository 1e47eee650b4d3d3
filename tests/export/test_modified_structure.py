"""Modified residues in the files that a solute goes into: structures as gemmi reads them, shards, the solute itself."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gemmi
import h5py
import numpy as np
import pytest
from Bio.PDB.binary_cif import BinaryCIFParser
from support.marked_solute import SEQUENCE, marked_solute
from support.molecular_systems import make_solute

from chromabuild.base.settings import SolvateSection
from chromabuild.export.structure import _components, _monomers, write_structure
from chromabuild.molecule.binary_cif_file import read_categories
from chromabuild.molecule.from_structure import solute_of_structure
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.shards.manifest import Manifest
from chromabuild.solvate import solvate
from chromabuild.solvate.ions import formal_charges

COUNTS = {"ALY": 1, "M3L": 1, "SEP": 1, "5CM": 7, "5HC": 1, "5FC": 1, "AYA": 1}
LIBRARY = list(residue_library().values())


def test_gemmi_reads_back_every_modified_residue(tmp_path):
    solute = marked_solute()
    path = write_structure(solute, tmp_path / "marked.cif", "marked")
    structure = gemmi.read_structure(str(path))
    residues = [residue for chain in structure[0] for residue in chain]
    assert [residue.name for residue in residues] == [LIBRARY[k].pdb_name for k in solute.residue_template]
    assert [residue.het_flag == "H" for residue in residues] == [bool(LIBRARY[k].modification)
                                                                for k in solute.residue_template]
    assert dict(Counter(residue.name for residue in residues if residue.het_flag == "H")) == COUNTS
    position = np.array([list(cra.atom.pos) for cra in structure[0].all()])
    assert np.abs(position - solute.position).max() < 0.00051
    assert [cra.atom.name for cra in structure[0].all()] == solute.atom_names().tolist()
    assert [entity.entity_type for entity in structure.entities] == [gemmi.EntityType.Polymer] * 3
    block = gemmi.cif.read(str(path)).sole_block()
    rows = block.find("_entity_poly.", ["nstd_monomer", "pdbx_seq_one_letter_code", "pdbx_seq_one_letter_code_can"])
    assert [row.str(0) for row in rows] == ["yes"] * 3
    assert rows[2].str(1).replace("\n", "").startswith("(AYA)RT(M3L)QTAR(ALY)STGG")
    assert rows[2].str(2).startswith("ARTKQTARKSTGG") and rows[0].str(2) == "".join("ACGT"[k] for k in SEQUENCE)
    told = block.find("_pdbx_struct_mod_residue.", ["label_comp_id", "parent_comp_id", "auth_seq_id"])
    assert Counter((row.str(0), row.str(1)) for row in told) == {
        ("ALY", "LYS"): 1, ("M3L", "LYS"): 1, ("SEP", "SER"): 1, ("5CM", "DC"): 7, ("5HC", "DC"): 1, ("5FC", "DC"): 1,
        ("AYA", "ALA"): 1}
    assert [row.str(2) for row in told if row.str(0) == "SEP"] == ["28"]


def test_a_structure_comes_back_as_the_same_solute(tmp_path):
    """Names, atoms and bonds of the library from the file alone; the last residue of the tail has no OXT."""
    solute = marked_solute()
    found = solute_of_structure(write_structure(solute, tmp_path / "marked.cif", "marked")).solute
    assert found.modifications() == solute.modifications() == COUNTS
    assert (found.residue_template == solute.residue_template).all()
    assert (found.bonds() == solute.bonds()).all()


def test_the_file_names_modified_residues_only_where_it_holds_them(tmp_path):
    solute = marked_solute()
    solute.write(tmp_path / "marked.h5")
    assert (Solute.read(tmp_path / "marked.h5").residue_template == solute.residue_template).all()
    with h5py.File(tmp_path / "marked.h5") as file:
        assert b"5FC" in list(file["residue/template_name"])
    plain = Solute(**{key: getattr(solute, key) for key in solute.__dataclass_fields__} | {
        "residue_template": np.zeros_like(solute.residue_template)})
    plain.position = np.zeros((len(plain.residue_template) * len(LIBRARY[0].atoms), 3), np.float32)
    plain.write(tmp_path / "plain.h5")
    with h5py.File(tmp_path / "plain.h5") as file:
        assert [name.decode() for name in file["residue/template_name"]] == list(residue_names()[:83])


DICTIONARY = Path("/usr/share/libcifpp/mmcif_pdbx.dic")


@pytest.mark.skipif(not DICTIONARY.is_file(), reason="no PDBx dictionary: apt install libcifpp-data")
def test_the_pdbx_dictionary_knows_all_of_it(tmp_path):
    """Names, types, choices, keys and parents of items, but for our own category. The dictionary wants residue names
    twice for one pointer; its own links are at fault in two groups, as gemmi says ("Bad DDL2")."""
    said: list[str] = []
    dictionary = gemmi.cif.Ddl(logger=(said.append, 8))
    dictionary.read_ddl(gemmi.cif.read(str(DICTIONARY)))
    assert all(line.startswith("Bad DDL2") for line in said)
    for change in (None, ("DNA linking", "DNA")):
        path = write_structure(marked_solute(), tmp_path / "marked.cif", "marked", {"stage": "build"})
        said.clear()
        if change:
            path.write_text(path.read_text().replace(*change))
        assert dictionary.validate_cif(gemmi.cif.read(str(path))) == (change is None)
        if change is None:
            assert [line.partition("] ")[2] for line in said] == [
                "unknown tag _chromabuild_provenance.entry_id", "unknown tag _chromabuild_provenance.json",
                "parent tag of _pdbx_struct_mod_residue.auth_comp_id is absent: _atom_site.auth_comp_id"]


def test_every_component_is_described_once():
    """Of the whole library: ends of chains, protonation states and linked side chains bear the name of their parent."""
    polymers = [k for k, template in enumerate(LIBRARY) if template.kind in ("amino acid", "nucleotide")]
    rows = _components(_monomers(SimpleNamespace(residue_template=np.array(polymers))))
    names = [row[0] for row in rows["chem_comp"]]
    assert len(set(names)) == len(names) and set(names) == {LIBRARY[k].pdb_name for k in polymers}
    atoms = [row[:2] for row in rows["chem_comp_atom"]]
    assert len(set(atoms)) == len(atoms)


def test_a_disulphide_is_a_connection(tmp_path):
    made = make_solute([["NALA", "CYX", "ALA", "CALA"], ["NALA", "CYX", "CALA"]])
    made = replace(made, links=((1, 5),), position=np.random.default_rng(2).uniform(0, 30, (made.n_atoms, 3)))
    (bond,) = gemmi.read_structure(str(write_structure(made, tmp_path / "a.cif", "two"))).connections
    assert bond.type == gemmi.ConnectionType.Disulf
    assert [(one.res_id.name, one.atom_name) for one in (bond.partner1, bond.partner2)] == [("CYS", "SG")] * 2
    assert bond.partner1.chain_name != bond.partner2.chain_name


def test_binary_and_text_hold_the_same(tmp_path):
    """Every category, item and value; numbers as numbers."""
    text, binary = (write_structure(marked_solute(), tmp_path / f"marked.{suffix}", "marked", {"stage": "build"})
                    for suffix in ("cif", "bcif"))
    block = gemmi.cif.read(str(text)).sole_block()
    names = tuple(dict.fromkeys(name.split(".")[0] for name in block.get_mmcif_category_names()))
    found = read_categories(binary.read_bytes(), names)
    assert set(found) == set(names)
    for category, columns in found.items():
        table = block.get_mmcif_category(f"{category}.")
        assert set(table) == set(columns)
        for item, values in columns.items():
            wanted = ["" if value in (None, False) else value for value in table[item]]
            if np.issubdtype(values.dtype, np.number):
                np.testing.assert_allclose(values, np.array(wanted, dtype=float), atol=1e-9)
            else:
                plain = [value.replace("\n", "") if len(value) > 80 and " " not in value else value for value in wanted]
                assert ["" if value in "?." else value for value in values.tolist()] == plain, item


def renumbered():
    """The marked solute with residue numbers from -2."""
    solute = marked_solute()
    return replace(solute, residue_number=solute.residue_number - 3)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    solvate(renumbered(), SolvateSection(padding=3.0, salt=0.1, compress=False, brick_edge=200.0), 1, 1, folder)
    return folder


def test_shards_label_atoms_as_the_whole_structure(shards, tmp_path):
    """Entity, and place in its sequence from 1, whatever the residue numbers."""
    solute = renumbered()
    assert solute.residue_number.min() == -2
    whole = gemmi.cif.read(str(write_structure(solute, tmp_path / "marked.cif", "marked"))).sole_block()
    rows = {row.str(0): tuple(row.str(k) for k in (1, 2, 3, 4, 5)) for row in whole.find(
        "_atom_site.", ["id", "label_entity_id", "label_seq_id", "label_atom_id", "label_comp_id", "auth_seq_id"])}
    seen = 0
    for path in sorted(shards.glob("*.bcif")):
        columns = read_categories(path.read_bytes(), ("_atom_site",))["_atom_site"]
        names = ("id", "label_entity_id", "label_seq_id", "label_atom_id", "label_comp_id", "auth_seq_id")
        for number, *labels in zip(*(columns[name].astype(str).tolist() for name in names), strict=True):
            if number in rows:
                assert tuple(labels) == rows[number]
                seen += 1
            else:
                assert labels[1] == "" and int(labels[0]) > 3  # water and ions: entities without a sequence
    assert seen == solute.n_atoms


def test_shards_and_manifest_carry_them(shards):
    solute = marked_solute()
    manifest = Manifest.read(shards)
    assert manifest.modifications == COUNTS and manifest.net_charge == 0
    own = int(formal_charges()[solute.residue_template].sum())
    # 22 phosphates; of the tail R and K but the acetylated one, less its phosphate; its end is acetylated, too.
    letters = "ARTKQTARKSTGGKAPRKQLATKAARKSAPATGGVK"
    assert own == -22 + letters.count("R") + letters.count("K") - 1 - 2
    ions = sum({"sodium": 1, "chloride": -1}.get(key, 0) * count for key, count in manifest.counts.items())
    assert own + ions == 0
    for name in sorted(shards.glob("brick_*.pdb")):
        structure = gemmi.read_structure(str(name))
        flags = {(residue.name, residue.het_flag) for chain in structure[0] for residue in chain
                 if residue.name in COUNTS or residue.name in ("LYS", "DC")}
        assert flags == {(name, "H") for name in COUNTS} | {("LYS", "A")}
        binary = BinaryCIFParser().get_structure("brick", str(name.with_suffix(".bcif")))
        assert Counter(residue.resname for residue in binary.get_residues() if residue.resname in COUNTS) == COUNTS
