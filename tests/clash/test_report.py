"""The report comes back as it was written; foreign files are checked like our own."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.structure_files import write_structure

from chromabuild.base.errors import BadInputError
from chromabuild.clash import ClashReport, check, correct_clashes
from chromabuild.report.clash_page import clash_page
from chromabuild.sterics.atoms import Atoms

pytestmark = pytest.mark.release


def test_round_trip(tmp_path, shifted_octamer):
    _, report = correct_clashes(shifted_octamer)
    paths = report.write(tmp_path / "clash_report")
    assert [p.name for p in paths] == ["clash_report.json", "clash_report.tsv", "clash_report.txt"]
    again = ClashReport.read(paths[0])
    assert again.data == json.loads(report.to_json()) == report.data
    assert again.to_text() == report.to_text() == paths[2].read_text()
    rows = [line.split("\t") for line in paths[1].read_text().splitlines()]
    assert {len(row) for row in rows} == {6}
    assert sum(row[:2] == ["before", "pair"] for row in rows) == report.data["before"]["pairs_below_threshold"]["count"]


def test_what_is_worse_afterwards_is_said(shifted_octamer):
    _, report = correct_clashes(shifted_octamer)
    before, after = report.data["before"], report.data["after"]
    after["overlaps"], after["clashscore"] = before["overlaps"] + 3, before["clashscore"]
    after["severe_pairs"]["count"] = before["severe_pairs"]["count"] - 1
    line = next(line for line in report.to_text().splitlines() if line.startswith("Rose with the correction"))
    assert f"overlaps >= 0.4 A {before['overlaps']} to {before['overlaps'] + 3}" in line
    assert "clashscore" not in line and "1.3 A" not in line and "Rose with the correction" in clash_page(report, "x")
    report.data["after"] = before
    assert "Rose" not in report.to_text()


def test_identities_and_histogram(shifted_octamer):
    found = check(shifted_octamer).data["before"]
    pair = found["pairs_below_threshold"]["items"][0]
    assert pair["atom_a"].count(":") == 3 and " / " in pair["class"]
    assert sum(found["counts_by_class"].values()) == found["pairs_below_threshold"]["count"]
    edges, counts = found["short_distances"]["edges"], found["short_distances"]["counts"]
    assert sum(c for e, c in zip(edges[1:], counts, strict=True) if e <= 0.9) == found["pairs_below_threshold"]["count"]


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
def test_foreign_file_equals_solute(tmp_path, shifted_octamer, suffix):
    """The protein chains through a file: same pairs, same chirality, same number of bonds."""
    from support.placed_nucleosomes import place_nucleosomes
    shifted = place_nucleosomes([(np.eye(3), np.zeros(3)), (np.eye(3), np.array([0.5, 0.2, 0.0]))], keep="AB")
    path = tmp_path / f"model{suffix}"
    write_structure(shifted, path, range(4))
    ours, theirs = check(shifted), check(path)
    assert theirs.fatal > 0
    # A PDB file holds three decimals: a pair may cross the threshold by that.
    assert abs(theirs.fatal - ours.fatal) <= 2
    assert theirs.data["before"]["chirality_errors"]["count"] == 0
    assert len(Atoms.from_structure_file(path).graph.bonds) == len(Atoms.from_solute(shifted).graph.bonds)


def test_unknown_residues_are_bonded_by_distance(tmp_path):
    """A benzene ring under a name that the library lacks: six ring bonds, no clash."""
    lines = []
    for k in range(6):
        x, y = 1.39 * np.cos(k * np.pi / 3), 1.39 * np.sin(k * np.pi / 3)
        lines.append(f"HETATM{k + 1:5d}  C{k + 1}  ZZZ A   1    {x:8.3f}{y:8.3f}{0:8.3f}  1.00  0.00           C")
    path = tmp_path / "ring.pdb"
    path.write_text("\n".join([*lines, "END", ""]))
    assert len(Atoms.from_structure_file(path).graph.bonds) == 6
    assert check(path).fatal == 0


def test_solute_file(tmp_path, nucleosome):
    nucleosome.write(tmp_path / "solute.h5")
    assert check(tmp_path / "solute.h5").data == check(nucleosome).data


@pytest.mark.parametrize("content", ["", "not a structure\n", "ATOM      1  CA  ALA A   1      xx\n"])
def test_bad_files(tmp_path, content):
    path = tmp_path / "model.pdb"
    path.write_text(content)
    with pytest.raises(BadInputError, match="model.pdb"):
        check(path)
    with pytest.raises(BadInputError, match="does not exist"):
        check(tmp_path / "missing.pdb")
    with pytest.raises(BadInputError, match="clash report"):
        ClashReport.read(path)


def test_text_names_what_is_left(shifted_octamer):
    report = check(replace(shifted_octamer))
    assert "pairs below 0.9 A" in report.to_text() and "Closest contacts" in report.to_text()
