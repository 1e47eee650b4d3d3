"""What `chromabuild qm check` refuses before electrons are computed: files that are a little wrong, and options."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.molecular_systems import make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.pipeline.quantum_check import check_contact, refuse_torn_chains, system_of
from chromabuild.quantum import chromaqm
from chromabuild.quantum.points import Method, PointRun, compute_all

FILES = Path(__file__).resolve().parents[2] / "docs/tutorials/files"
WHOLE = (FILES / "magnesium_phosphate.pdb").read_text().splitlines(keepends=True)
OXYGEN = next(line for line in WHOLE if line[12:26].split() == ["OP1", "DA", "A", "2"])
CONTACT = ("resname MG", "resid 2 and name OP1")


@pytest.fixture
def no_run(monkeypatch):
    """Electrons of such a cluster would take minutes."""
    monkeypatch.setattr(chromaqm, "run", lambda *_, **__: pytest.fail("chromaqm was started"))


@pytest.fixture(scope="module")
def matter():
    return system_of(FILES / "magnesium_phosphate.pdb", None, "amber14")


def without(is_gone: Callable[[str], bool]) -> list[str]:
    return [line for line in WHOLE if not is_gone(line)]


def magnesium(change: Callable[[str], str]) -> list[str]:
    return [change(line) if line[17:20] == " MG" else line for line in WHOLE]


@pytest.mark.parametrize(("lines", "contact", "sentence"), [
    (without(lambda line: line[22:26] == "   1"), CONTACT,
     "residue A:DA:2 begins with a phosphate that lacks OP3: if a residue is missing there, complete the structure"),
    (without(lambda line: line[17:20] == "HOH" and line[76:78] == " H"), CONTACT,
     "HOH:4 is 2.08 angstrom from the contact and cannot be taken: a water needs both hydrogens"),
    (magnesium(lambda line: line.replace(" MG", " ZN").replace("MG ", "ZN ")), ("resname ZN", "name OP1"),
     '"resname ZN" chooses no atom: look at names, residues and segments of the system, for instance with '
     "chromabuild export structure; left out are"),
    (magnesium(lambda line: line[:30] + OXYGEN[30:54] + line[54:]), CONTACT, "are 0.00 angstrom apart: move or remove"),
    (magnesium(lambda line: line * 2), CONTACT, "MG and M000:MG:2:MG are 0.00 angstrom apart: move or remove"),
    (magnesium(lambda line: line.replace(" MG", " CA").replace("MG ", "CA ")), ("resname CA", CONTACT[1]),
     "there is no built-in potential of Ca for BLYP: name a UPF file of it by --upf Ca=FILE"),
])
def test_files(tmp_path, no_run, lines, contact, sentence):
    path = tmp_path / "wrong.pdb"
    path.write_text("".join(lines))
    with pytest.raises(BadInputError, match=re.escape(sentence)):
        check_contact(system_of(path, None, "amber14"), tmp_path / "out", Method(), contact, radius=2.5)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("method", "sentence"), [
    (Method(potentials=("upf1 = Xx /none.UPF",)), "--upf Xx=...: the cluster holds no Xx, but H, Mg, O"),
    (Method(potentials=("upf1 = O /a.UPF", "upf2 = O /b.UPF")), "--upf O=... is there 2 times"),
    (Method("PBE"), "there is no built-in potential of O for PBE"),
    (Method("PZ", with_dispersion=True), "--dispersion"),  # the library is missing, or has no parameters for it
])
def test_methods(tmp_path, no_run, matter, method, sentence):
    waters = ("resname MG", "resid 4 and name O")
    with pytest.raises(BadInputError, match=f"^{re.escape(sentence)}"):
        check_contact(matter, tmp_path / "out", method, waters, scan="2.1", radius=0.0)
    assert not (tmp_path / "out").exists()


def test_what_the_program_refuses_leaves_nothing(tmp_path, matter):
    """In its words, but of the option, not of a control file that the user did not write."""
    with pytest.raises(BadInputError, match="^cutoff = 5 is too low for the potential of O"):
        check_contact(matter, tmp_path / "out", Method(cutoff=5.0), ("resname MG", "resid 4 and name O"), radius=0.0)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("left", ['{"converged": false, "total": 0, "forces": [[0, 0, 0]]}', '{"converged": tr'])
def test_a_point_without_minimum_is_computed_again(tmp_path, monkeypatch, left):
    """Of a run that ended before its minimum, or whose file is damaged."""
    result, runs = tmp_path / "point.json", []

    def run(control, *_, **__):
        runs.append(control)
        result.write_text('{"converged": true, "total": -1, "forces": [[0, 0, 0]]}')

    monkeypatch.setattr(chromaqm, "run", run)
    point = PointRun(tmp_path, "point", ["H"], np.zeros((1, 3)), np.full(3, 8.0), 0, Method())

    def energy() -> float:
        compute_all([point], lambda _: None)
        return point.point().energy

    energy()
    result.write_text(left)
    assert energy() < -600 and len(runs) == 2
    energy()
    assert len(runs) == 2


@pytest.mark.parametrize("chain", [["NALA", "GLY", "CALA"], ["AYA", "CALA"], ["DA5", "DC", "DG3"], ["DA5P", "DG3P"]])
def test_whole_chains(chain):
    refuse_torn_chains(make_solute([chain]), Path("file.pdb"))


@pytest.mark.parametrize(("chain", "sentence"), [
    (["ALA", "CGLY"], "ALA:1 begins its chain with the hydrogens of a residue inside"),
    (["NALA", "GLY"], "GLY:2 ends its chain without OXT"),
    (["DA", "DG3"], "DA:1 begins with a phosphate that lacks OP3"),
    (["DA5"], "DA:1 has no 3' end"),
])
def test_torn_chains(chain, sentence):
    with pytest.raises(BadInputError, match=f"^file.pdb: residue .*{sentence}: if a residue is missing there"):
        refuse_torn_chains(make_solute([chain]), Path("file.pdb"))
