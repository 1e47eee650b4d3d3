"""`chromabuild clash check` and `audit` on every form of a structure: exit code 4 when something stands, --json."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.solvated_example import SOLUTE
from support.structure_files import write_structure
from typer.testing import CliRunner

from chromabuild.base.settings import SolvateSection
from chromabuild.cli import app
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import solvate
from chromabuild.sterics.atoms import Atoms


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def sound():
    """Histone H4 and 12 bp of DNA."""
    return Solute.read(SOLUTE)


def planted(solute):
    """One atom of the protein put 0.3 A from a phosphorus: one pair below 0.9 A at least."""
    atoms = Atoms.from_solute(solute)
    position = solute.position.copy()
    position[atoms.named("NZ")[0]] = position[atoms.named("P")[0]] + np.float32([0.3, 0.0, 0.0])
    return replace(solute, position=position)


def saved(solute, form, folder):
    """The structure as a file, or a folder of shards beside its solute."""
    if form == "shards":
        solute.write(folder / "solute_clean.h5")
        section = SolvateSection(brick_edge=40.0, padding=3.0, potassium_chloride=0.1, magnesium_chloride=0.1)
        solvate(solute, section, 1, 1, folder / "shards")
        return folder / "shards"
    path = folder / f"model{form}"
    if form == ".h5":
        solute.write(path)
    else:
        write_structure(solute, path, range(len(solute.molecule_name)))
    return path


@pytest.mark.parametrize("form", [".h5", ".pdb", ".cif", "shards"])
def test_check(sound, form, tmp_path):
    (tmp_path / "sound").mkdir()
    (tmp_path / "hit").mkdir()
    clean = invoke("clash", "check", saved(sound, form, tmp_path / "sound"), "--json")
    assert clean.exit_code == 0, clean.stderr
    assert json.loads(clean.stdout)["before"]["pairs_below_threshold"]["count"] == 0
    hit = saved(planted(sound), form, tmp_path / "hit")
    found = invoke("clash", "check", hit, "--json")
    assert found.exit_code == 4
    result = json.loads(found.stdout)
    pairs = result["before"]["pairs_below_threshold"]
    assert result["fatal"] >= pairs["count"] >= 1
    closest = pairs["items"][0]
    assert abs(closest["distance"] - 0.3) < 2e-3  # three decimals in a PDB file, 0.001 A in shards
    assert {closest[key].split(":")[-1] for key in ("atom_a", "atom_b")} == {"NZ", "P"}
    text = invoke("clash", "check", hit)
    assert text.exit_code == 4 and "pairs below 0.9 A" in text.stdout and "clashes" in text.stderr


def test_each_audit_is_a_command(sound, tmp_path):
    """A mirror image has every stereocentre wrong, and nothing else."""
    mirrored = saved(replace(sound, position=sound.position * np.float32([-1, 1, 1])), ".pdb", tmp_path)
    for subject, code in (("rings", 0), ("chirality", 4), ("peptides", 0), ("geometry", 0), ("molecules", 0),
                          ("strands", 0)):
        result = invoke("clash", "audit", mirrored, "--of", subject, "--json")
        assert result.exit_code == code, (subject, result.stdout)
        assert set(json.loads(result.stdout)) == {"file", "left_out", subject}
    found = json.loads(invoke("clash", "audit", mirrored, "--json").stdout)
    assert found["chirality"]["chirality_errors"]["count"] > 100
    assert found["strands"]["duplexes"][0]["base_pairs"] == 12
