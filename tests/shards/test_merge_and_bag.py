"""Merged selections against MDAnalysis' own selections of the parts; the bag against RFC 8493 and hashlib."""

import hashlib
import warnings

import gemmi
import MDAnalysis
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.settings import SolvateSection
from chromabuild.shards import StoredVectors, read_shards, verify_shards
from chromabuild.shards.bag import write_bag
from chromabuild.shards.merge import LineAtoms, merge_shards
from chromabuild.shards.selection import KEYWORDS, parse_selection
from chromabuild.solvate import solvate

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def whole(shards, tmp_path_factory):
    """Everything as one file, and as MDAnalysis sees it."""
    path = tmp_path_factory.mktemp("merged") / "all.pdb"
    assert merge_shards(shards[0], "all", path) == shards[1].atoms
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return path, MDAnalysis.Universe(str(path))


def test_everything_is_in_global_order(shards, whole):
    path, universe = whole
    _, position = read_shards(shards[0])
    assert np.abs(universe.atoms.positions - position).max() < 1e-3  # MDAnalysis: single precision
    assert universe.dimensions[:3] == pytest.approx(shards[1].box, abs=1e-3)
    with open(path) as lines:
        assert {len(line) for line in lines} == {81}
    assert gemmi.read_pdb(str(path))[0].count_atom_sites() == shards[1].atoms


@pytest.mark.parametrize(("ours", "theirs"), [
    ("protein", "protein"), ("dna", "nucleic"), ("solute", "protein or nucleic"), ("water", "resname HOH"),
    ("ions", "resname NA CL"), ("not water", "not resname HOH"), ("name P CA", "name P CA"),
    ("segid W000", "segid W000"), ("resname DA and name P or resid 30:40 50 and protein",
                                   "(resname DA and name P) or (resid 30:40 50 and protein)"),
    ("not (protein or dna) and not water", "resname NA CL"),
    ("box 0 0 0 60 40.5 35 and solute", "(protein or nucleic) and prop x >= 0 and prop x < 60 and prop y < 40.5 "
                                        "and prop y >= 0 and prop z < 35 and prop z >= 0"),
])
def test_selections_are_mdanalysis(shards, whole, tmp_path, ours, theirs):
    expected = whole[1].select_atoms(theirs)
    n = merge_shards(shards[0], ours, tmp_path / "part.pdb.zst")
    text = zstandard.ZstdDecompressor().decompress((tmp_path / "part.pdb.zst").read_bytes()).decode().splitlines()
    atoms = [line for line in text[1:-1] if not line.startswith("TER")]
    assert n == len(expected) == len(atoms) > 0
    assert [int(line[6:11]) for line in atoms] == [i + 1 for i in expected.indices]
    assert [line[12:16].strip() for line in atoms] == expected.names.tolist()


def test_surroundings_are_mdanalysis(shards, whole, tmp_path):
    """Whole residues, and distances to the nearest images of the periodic box."""
    near = whole[1].select_atoms("around 4 nucleic", periodic=True).residues.atoms
    expected = near.select_atoms("resname HOH")
    n = merge_shards(shards[0], "water and within 4 of dna", tmp_path / "near.pdb")
    assert n == len(expected) > 0
    n = merge_shards(shards[0], "water and not within 4 of (dna or within 2 of protein)", tmp_path / "far.pdb")
    assert 0 < n < len(whole[1].select_atoms("resname HOH")) - len(expected)


def test_mmcif_is_the_pdb_file(shards, whole, tmp_path):
    n = merge_shards(shards[0], "solute or ions", tmp_path / "all.cif")
    merge_shards(shards[0], "solute or ions", tmp_path / "all.pdb")
    one, other = (gemmi.read_structure(str(tmp_path / f"all.{suffix}")) for suffix in ("cif", "pdb"))
    rows = [[(cra.atom.name, cra.residue.name, cra.residue.seqid.num, cra.atom.element.name, cra.atom.pos.tolist())
             for cra in each[0].all()] for each in (one, other)]
    assert sorted(rows[0]) == sorted(rows[1]) and len(rows[0]) == n
    assert one.cell.parameters[:3] == pytest.approx(shards[1].box, abs=1e-3)
    assert {chain.name for chain in one[0]} == set(whole[1].select_atoms("not resname HOH").segids)


def test_positions_may_be_those_of_a_phase(shards, tmp_path):
    box, position = read_shards(shards[0])
    moved = StoredVectors(len(position), tmp_path)
    moved.put(0, np.mod(position + [1.0, -2.0, 3.0], box))
    merge_shards(shards[0], "ions", tmp_path / "moved.pdb", (moved, box))
    merge_shards(shards[0], "ions", tmp_path / "kept.pdb")
    a, b = (np.array([atom.pos.tolist() for chain in gemmi.read_pdb(str(tmp_path / f"{name}.pdb"))[0]
                      for residue in chain for atom in residue]) for name in ("moved", "kept"))
    assert np.abs(a - np.mod(b + [1.0, -2.0, 3.0], box)).max() < 2e-3


def test_ter_stands_behind_every_polymer(whole):
    with open(whole[0]) as lines:
        text = list(lines)
    after = {}
    for line, following in zip(text, text[1:], strict=False):
        if line.startswith("TER"):
            after[line[72:76]] = following[72:76]
    polymers = {atom.segid for atom in whole[1].select_atoms("protein or nucleic")}
    assert {name.strip() for name in after} == polymers
    assert all(name != next_name for name, next_name in after.items())


def test_a_segment_has_one_chain_letter(whole):
    for segment in whole[1].segments:
        assert len(set(segment.atoms.chainIDs)) == 1


@pytest.mark.parametrize("text", ["", "and", "protein or", "(water", "water)", "resname", "name and water", "resid a:b",
                                  "box 1 2 3", "not", "protein water", "resid 1:x", "within 3 dna",
                                  "within -1 of dna", "within of dna", "within 3 of"])
def test_bad_selections_are_refused(text):
    with pytest.raises(BadInputError, match="cannot be understood at"):
        parse_selection(text)


@given(st.lists(st.sampled_from([*KEYWORDS, "and", "or", "not", "(", ")", "NA", "1:3", "7", "x"]), max_size=12))
def test_any_words_are_understood_or_refused(words):
    lines = np.frombuffer(b"HETATM    1  O   HOH W   7      10.000  10.000  10.000  1.00  0.00      W000 O  \n",
                          dtype=np.uint8).reshape(1, 81)
    try:
        assert parse_selection(" ".join(words))(LineAtoms(lines)).shape == (1,)
    except BadInputError:
        pass


def test_bad_merges_are_refused(shards, tmp_path):
    with pytest.raises(BadInputError, match="neither .pdb nor .cif"):
        merge_shards(shards[0], "all", tmp_path / "x.gro")
    with pytest.raises(BadInputError, match="is selected by 'resname XYZ'"):
        merge_shards(shards[0], "resname XYZ", tmp_path / "x.pdb")
    with pytest.raises(IntegrityError):
        merge_shards(tmp_path, "all", tmp_path / "x.pdb")
    assert not list(tmp_path.iterdir())


def test_bag(solute, tmp_path):
    """Payload, manifests and oxum as RFC 8493 wants them; the bag is itself a shard set; damage stops the export."""
    folder, bag = tmp_path / "shards", tmp_path / "bag"
    manifest = solvate(solute, SolvateSection(brick_edge=60.0), 1, 1, folder)
    n = write_bag(folder, bag)
    assert (bag / "bagit.txt").read_text() == "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    listed = dict(line.split("  ", 1)[::-1] for line in (bag / "manifest-sha256.txt").read_text().splitlines())
    payload = {f"data/{path.name}": path.read_bytes() for path in (bag / "data").iterdir()}
    assert listed == {name: hashlib.sha256(content).hexdigest() for name, content in payload.items()}
    assert n == len(payload) == 3 * len(manifest.shards) + 2
    tags = dict(line.split("  ", 1)[::-1] for line in (bag / "tagmanifest-sha256.txt").read_text().splitlines())
    assert tags == {name: hashlib.sha256((bag / name).read_bytes()).hexdigest()
                    for name in ("bagit.txt", "bag-info.txt", "manifest-sha256.txt")}
    assert f"Payload-Oxum: {sum(map(len, payload.values()))}.{n}\n" in (bag / "bag-info.txt").read_text()
    assert verify_shards(bag / "data") == manifest
    with pytest.raises(BadInputError, match="exists"):
        write_bag(folder, bag)
    (folder / "brick_00000.cbb").unlink()
    with pytest.raises(IntegrityError):
        write_bag(folder, tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bag", "shards"]
