"""What stands in the files of the viewer is what scaffold, solute, settings and BED files say."""

import json
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.view_pages import atoms_of, page_parts

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import residue_library
from chromabuild.pipeline.view import view_results
from chromabuild.view.binary import packed, unpacked
from mesoscale.scaffold import Scaffold


@pytest.fixture(scope="module")
def shown(built, tmp_path_factory):
    """The viewer's folder, with a track."""
    folder = tmp_path_factory.mktemp("shown") / "view"
    bed = folder.parent / "genes.bed"
    bed.write_text("chrS\t4000\t5100\tABC1 <b>\t0\t-\nchrS\t5200\t5300\n"
                   "chrT\t5200\t5300\tother\nchrS\t9000\t9001\tfar\n")
    summary = view_results(built.settings, folder, [bed])
    assert summary["nucleosomes"] == 2 and summary["contacts"] == 1 and summary["frames"] == 0
    return folder


def test_arrays_survive_the_page():
    random = np.random.default_rng(1)
    arrays = {"a": random.integers(0, 255, 5).astype(np.uint8), "b": random.normal(size=(3, 2)).astype(np.float32),
              "c": np.zeros((0, 4), np.int32), "d": random.integers(-9, 9, (2, 2, 3)).astype(np.int16)}
    table, text = packed(arrays)
    found = unpacked(json.loads(json.dumps(table)), text)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype and table[name]["at"] % array.itemsize == 0


def test_path_and_cores_are_right_within_half_a_step(built, shown):
    facts, arrays = page_parts(shown)
    scaffold = built.scaffold
    for name, position in (("path", scaffold.origin), ("core", scaffold.core_origin)):
        found = arrays[name] * facts["step"] + facts["centre"]
        assert np.abs(found - position).max() <= facts["step"] / 2 + 1e-9
    assert facts["step"] <= np.ptp(scaffold.origin, axis=0).max() / 60_000 + 0.001
    turned = Rotation.from_quat(arrays["core_turn"]).as_matrix()
    np.testing.assert_allclose(turned, scaffold.core_frame, atol=2e-4)
    assert bytes(arrays["base"]) == bytes(scaffold.base)
    for name in ("dyad", "first_bp", "last_bp"):
        np.testing.assert_array_equal(arrays[name], getattr(scaffold, name))


def test_marks_contacts_tracks_and_moved_dyads(built, shown):
    facts, arrays = page_parts(shown)
    assert facts["marks"] == ["H2A.Z, H3:K56Q"] and arrays["mark"].tolist() == [255, 0]
    assert arrays["contact"].tolist() == [[10, 40, 300, 340]] and arrays["contact_weight"].tolist() == [3.0]
    assert facts["tracks"] == [{"name": "genes", "features": [[4000, 5100, "ABC1 <b>", "-"], [5200, 5300, "", "."]]}]
    assert (arrays["mapped"] - arrays["dyad"]).tolist() == [0, -9]
    assert facts["dropped"] == [5000 + int(built.scaffold.dyad[1]) + 40] and facts["start"] == 5000


def test_all_atoms_are_there_once(built, shown):
    """Atoms of all places, told by molecule, residue number and name, are those of the solute, where it has them."""
    facts, _ = page_parts(shown)
    solute, library = built.solute, list(residue_library().values())
    molecule = np.repeat(np.arange(len(solute.molecule_name)), np.diff(solute.molecule_first_residue))
    expected = {}
    for row in range(solute.n_residues):
        first, beyond = solute.residue_first_atom[row:row + 2]
        key = (solute.segment_name[solute.residue_segment[row]], int(solute.residue_number[row]))
        assert key not in expected
        template = library[solute.residue_template[row]]
        expected[key] = (template.pdb_name, " ".join(template.atoms), solute.molecule_name[molecule[row]],
                         solute.position[first:beyond])
    files = sorted((shown / "atoms").iterdir())
    assert len(files) == len(facts["atoms"]["places"])
    for number, path in enumerate(files):
        named, header, position, (template, residue_number) = atoms_of(path)
        assert named == number and header["step"] <= 0.01
        starts = [entry["residue"] for entry in header["molecules"]]
        at = 0
        for row in range(header["residues"]):
            entry = header["molecules"][np.searchsorted(starts, row, side="right") - 1]
            own = facts["atoms"]["templates"][template[row]]
            size = len(own["atoms"].split())
            name, atoms, molecule_name, there = expected.pop((entry["segment"], int(residue_number[row])))
            assert (own["name"], own["atoms"], entry["name"]) == (name, atoms, molecule_name)
            assert np.abs(position[at:at + size] - there).max() <= header["step"] / 2 + 1e-4
            if entry["name"].startswith("DNA"):
                bp = entry["bp"] + entry["strand"] * (row - entry["residue"])
                first, last, _ = facts["atoms"]["places"][number]
                letter = chr(built.scaffold.base[bp])
                own_letter = letter if entry["strand"] > 0 else dict(zip("ACGT", "TGCA", strict=True))[letter]
                assert first <= bp <= last and own["name"] == "D" + own_letter
            at += size
        assert at == header["atoms"]
    assert not expected


def test_places_cover_the_dna_and_name_its_nucleosomes(built, shown):
    facts, _ = page_parts(shown)
    places = facts["atoms"]["places"]
    covered = [bp for first, last, _ in places for bp in range(first, last + 1)]
    assert covered == list(range(len(built.scaffold.base)))
    assert [(a, b) for a, b, k in places if k >= 0] == list(zip(
        built.scaffold.first_bp.tolist(), built.scaffold.last_bp.tolist(), strict=True))


def test_same_input_same_bytes(built, shown, tmp_path):
    view_results(built.settings, tmp_path / "again", [shown.parent / "genes.bed"])
    files = {path.relative_to(shown): path.read_bytes() for path in shown.rglob("*") if path.is_file()}
    again = {path.relative_to(tmp_path / "again"): path.read_bytes() for path in (tmp_path / "again").rglob("*")
             if path.is_file()}
    assert files == again


def test_page_is_whole_and_cannot_ask_a_network(shown):
    text = (shown / "index.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'") and "connect-src" not in policy and "http" not in policy
    assert text.count("<script") == text.count("</script>") == 4 and "{{" not in text.split("<script>")[0]
    assert "ABC1 <b>" not in text and "ABC1 \\u003cb>" in text
    assert "import " not in re.sub(r"//.*|`[^`]*`", "", text.split('<script type="module">')[1])


def test_scaffold_alone_is_enough(built, tmp_path):
    built.scaffold.write(tmp_path / "scaffold.h5")
    settings = built.settings.model_copy(update={"output": str(tmp_path)})
    summary = view_results(settings)
    facts, _ = page_parts(tmp_path / "view")
    assert facts["atoms"] is None and "chromabuild build" in summary["atoms"]
    assert not (tmp_path / "view" / "atoms").exists()


@pytest.mark.parametrize("text,sentence", [
    ("chrT\t5000\t5100\n", "holds no feature of the locus"), ("chrS\t5100\t5000\n", "line 1: end 5000"),
    ("chrS 5000\n", "line 1"), ("", "empty")])
def test_a_track_that_cannot_be_used_is_told(built, tmp_path, text, sentence):
    bed = tmp_path / "bad.bed"
    bed.write_text(text)
    with pytest.raises(BadInputError, match=sentence) as told:
        view_results(built.settings, tmp_path / "view", [bed])
    assert "bad.bed" in str(told.value) and not (tmp_path / "view").exists()


def test_nothing_is_replaced_unasked(built, shown, tmp_path):
    with pytest.raises(BadInputError, match="--force"):
        view_results(built.settings, shown)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="is a file"):
        view_results(built.settings, tmp_path / "file")


def test_fewer_places_leave_no_old_files(built, tmp_path):
    (tmp_path / "atoms").mkdir()
    for name in ("9999.js", "mine.js"):
        (tmp_path / "atoms" / name).write_text("")
    view_results(built.settings, tmp_path, force=True)
    assert not (tmp_path / "atoms" / "9999.js").exists() and (tmp_path / "atoms" / "mine.js").exists()


def test_results_that_do_not_fit_are_told(built, tmp_path):
    settings = built.settings.model_copy(update={"output": str(tmp_path)})
    with pytest.raises(BadInputError, match="chromabuild scaffold"):
        view_results(settings)
    (tmp_path / "scaffold.h5").write_text("nothing")
    with pytest.raises(BadInputError, match=r"scaffold\.h5"):
        view_results(settings)
    from support.synthetic_scaffold import synthetic_scaffold

    other = synthetic_scaffold(2, 60, 12)
    other.chromosome, other.position = "chrS", built.scaffold.position[:len(other.base)]
    other.dyad = built.scaffold.dyad  # where the marks are
    other.write(tmp_path / "scaffold.h5")
    Scaffold.read(tmp_path / "scaffold.h5")
    built.solute.write(tmp_path / "solute.h5")
    with pytest.raises(BadInputError, match="not of the scaffold"):
        view_results(settings, tmp_path / "other")
    assert not (tmp_path / "other" / "index.html").exists()
