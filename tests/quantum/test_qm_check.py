"""`chromabuild qm check` as a user gives it, on a magnesium ion at a phosphate with five waters."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.command_line import chromabuild

FILE = Path(__file__).resolve().parents[2] / "docs/tutorials/files/magnesium_phosphate.pdb"
WATERS = ("--contact", "resid 4 and name O", "resid 5 and name O", "--radius", "0")
COARSE = ("--functional", "PZ", "--cutoff", "26")


def test_two_waters(tmp_path):
    """Two points: at this cutoff the curve means little, but that waters repel each other where they nearly touch."""
    command = ("qm", "check", FILE, *WATERS, *COARSE, "--scan", "2.2", "-o", "out", "--json")
    done = chromabuild(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads((tmp_path / "out/check.json").read_text())
    assert (found["atoms"], found["charge"], len(found["value"])) == (6, 0, 2)
    assert found["plane_waves"][0] > 3 and found["force_field"][0] > 3 and found["plane_waves"][1] == 0
    waves = np.array([piece["plane_waves"] for piece in found["pieces"]])
    np.testing.assert_allclose(waves.sum(axis=0), 0, atol=1e-6)
    page = (tmp_path / "out/check.html").read_text()
    assert all(f"<h2>{title}" in page or f">{title}</h2>" in page for title in ("Energies", "Forces", "Cluster"))

    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/points").iterdir()}
    again = chromabuild(*command, cwd=tmp_path)
    assert json.loads(again.stdout) == found
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out/points").iterdir()} == written


@pytest.mark.parametrize(("options", "sentence"), [
    ((), "give either --contact with two selections or --torsion with four"),
    (("--contact", "name XX", "name OP1"), '--contact "name XX" chooses no atom'),
    (("--contact", "nam OP1", "name OP1"), '--contact "nam OP1" is no selection of MDAnalysis'),
    (("--contact", "resname MG", "resid 1 and name H61"), "have no atoms within 8 angstrom of each other"),
    (("--contact", "resname MG", "name OP1", "--scan", "x"), "--scan x is neither numbers with commas between"),
    (("--contact", "name OP2", "name OP1"), "are of one piece, which cannot be pulled apart"),
    (("--torsion", "name P", "name P", "name OP1", "name OP2"), "--torsion names an atom twice"),
    (("--torsion", "name O", "name P", "name OP1", "name OP2"), '"name O" chooses 5 atoms, and one is wanted'),
    (("--contact", "resname MG", "name OP1", "--upf", "O=none"), "--upf O=none: there is no file none"),
    (("--contact", "resname MG", "name OP1", "--after", "heat"), "--after is of an output folder"),
    (("--contact", "resname MG", "name OP1", "--cutoff", "9000"), "cutoff = 9000 needs about"),
    (("--contact", "resname MG", "name OP1", "--cutoff", "5"), "cutoff = 5 is too low for the potential of"),
])
def test_refusals(tmp_path, options, sentence):
    done = chromabuild("qm", "check", FILE, *options, "-o", "out", cwd=tmp_path)
    assert done.returncode == 3 and done.stderr.count("error:") <= 1
    assert sentence in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "out/check.html").exists()
