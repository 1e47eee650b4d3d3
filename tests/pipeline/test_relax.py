"""The stage `relax`: when the chain has it, what it does with a small solute, which solute is then put into water."""

import json
import shutil

import numpy as np
import pytest
from support.command_line import chromabuild, refusal, result_of
from support.solvated_example import SOLUTE

from chromabuild.base.errors import ClashesRemainError, IntegrityError
from chromabuild.base.progress import silent
from chromabuild.base.settings import validated
from chromabuild.molecule.solute import Solute
from chromabuild.pipeline.chain import stage_named
from chromabuild.pipeline.stages import Job
from chromabuild.shards.brick_file import read_brick
from chromabuild.shards.lone_bricks import write_lone_bricks
from chromabuild.simulate import restart_file
from chromabuild.simulate.restart_file import read_restart, store_restart


def write_settings(folder, **relax: object) -> None:
    settings = {"relax": {"minimise_steps": 30, "length": "0.02 ps", **relax}, "dynamics": {"ranks": 2},
                "solvate": {"padding": 5.0, "brick_edge": 40.0}}
    (folder / "locus.yaml").write_text(json.dumps(settings))  # JSON is YAML


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small solute after the correction of its clashes."""
    folder = tmp_path_factory.mktemp("relax")
    (folder / "results").mkdir()
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    return folder


@pytest.mark.mpi
@pytest.mark.release
def test_a_solute_is_relaxed_and_then_put_into_water(folder):
    results = folder / "results"
    write_settings(folder)
    assert "relax.enabled is false: set it to true" in refusal(chromabuild("relax", cwd=folder), 3)
    write_settings(folder, enabled=True)
    assert "run `chromabuild relax` first" in refusal(chromabuild("solvate", cwd=folder), 3)
    summary = result_of("relax", "--threads", 2, cwd=folder)["summary"]
    assert summary["energy_after_kcal_per_mol"] < summary["energy_before_kcal_per_mol"]
    assert summary["steps"] == 35 and summary["simulated_ps"] == pytest.approx(0.02)
    assert 0.01 < summary["moved_rms_angstrom"] < summary["moved_most_angstrom"] < 3
    assert summary["pairs_after"] == 0
    before, after = Solute.read(results / "solute_clean.h5"), Solute.read(results / "solute_relaxed.h5")
    assert np.array_equal(before.residue_template, after.residue_template)
    apart = np.linalg.norm(after.position - before.position, axis=1)
    assert apart.max() == pytest.approx(summary["moved_most_angstrom"], abs=2e-3)
    bonds = after.bonds()
    length = np.linalg.norm(after.position[bonds[:, 0]] - after.position[bonds[:, 1]], axis=1)
    assert length.max() < 2.3
    assert sorted(path.name for path in (results / "relax").iterdir()) == ["01-minimise.log", "02-relax.log"]
    result_of("solvate", cwd=folder)
    taken = json.loads((results / "provenance.json").read_text())["stages"]["solvate"]["provenance"]["inputs"]
    assert taken["solute"]["file"] == "solute_relaxed.h5"


def test_what_came_too_close_is_not_handed_on(tmp_path, monkeypatch):
    """Nothing is written, and what an earlier run wrote is gone."""
    solute = Solute.read(SOLUTE)
    solute.position[solute.molecule_first_atom[-2]] = solute.position[0] + 0.3
    monkeypatch.setattr("chromabuild.api.relax_solute", lambda *given, **keys: (solute, {}))
    shutil.copy(SOLUTE, tmp_path / "solute_clean.h5")
    shutil.copy(SOLUTE, tmp_path / "solute_relaxed.h5")
    config = validated({}, {"relax.enabled": True, "output": str(tmp_path)}, "test")
    with pytest.raises(ClashesRemainError, match="1 pairs closer than 0.9 angstrom .* came up in the relaxation"):
        stage_named("relax").run(Job(config, 1, silent, {}))
    assert not (tmp_path / "solute_relaxed.h5").exists()


def test_bricks_hold_every_atom_once(tmp_path, monkeypatch):
    monkeypatch.setattr("chromabuild.shards.lone_bricks.EDGE", 20.0)
    solute = Solute.read(SOLUTE)
    path, corner = write_lone_bricks(solute.position, solute.residue_first_atom, tmp_path)
    lines = path.read_text().splitlines()
    files = [read_brick(tmp_path / line.split()[0]) for line in lines[4:]]
    assert len(files) > 8
    ids = np.concatenate([file.global_id for file in files])
    assert np.array_equal(np.sort(ids), np.arange(solute.n_atoms))
    position = np.concatenate([file.position for file in files])[np.argsort(ids)] / 1000 + corner
    np.testing.assert_allclose(position, solute.position, atol=6e-4)
    # Whole residues, where their first atom is.
    start = solute.residue_first_atom
    for file in files:
        residues = np.unique(solute.atom_residue[file.global_id])
        assert len(file.global_id) == (start[residues + 1] - start[residues]).sum()
        first = file.position[np.searchsorted(file.global_id, start[residues])] / 1000
        assert (first >= file.lower - 1e-3).all() and (first <= file.upper + 1e-3).all()


def test_damaged_restart_files_are_told(tmp_path):
    with pytest.raises(IntegrityError, match="cannot read"):
        read_restart(tmp_path / "x_().rst", 5)
    (tmp_path / "x_0.rst").write_bytes(b"CMDRST02" + bytes(900))
    with pytest.raises(IntegrityError, match="not a whole restart file of 5 atoms"):
        read_restart(tmp_path / "x_().rst", 5)


def test_restart_files_are_stored_as_they_are_read(tmp_path):
    """Atoms of two ranks in any order; one that is there twice in place of another is told."""
    random = np.random.default_rng(4)
    order, values = random.permutation(9), random.normal(size=(2, 9, 3))

    def write(rank, atoms):
        words = np.zeros(16, dtype="<i8")
        words[[0, 1, 2, 6, 7]] = 2, rank, 2, len(atoms), 9
        words[11:14] = np.array([10.0, 11.0, 12.0]).view("<i8")
        content = b"CMDRST02" + words.tobytes() + bytes(8 * 48) + np.asarray(atoms, "<i8").tobytes()
        (tmp_path / f"x_{rank}.rst").write_bytes(content + values[:, atoms].astype("<f8").tobytes() + bytes(8))

    write(0, order[:5])
    write(1, order[5:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restart_file, "engine_states", lambda paths: [(path, "ok") for path in paths])
        for found in (read_restart(tmp_path / "x_().rst", 9), store_restart(tmp_path / "x_().rst", 9, tmp_path)):
            assert np.array_equal(np.asarray(found.position), values[0]) and found.box.tolist() == [10, 11, 12]
            assert np.array_equal(np.asarray(found.velocity), values[1])
        write(1, [*order[5:8], order[0]])
        with pytest.raises(IntegrityError, match="does not hold all 9 atoms"):
            store_restart(tmp_path / "x_().rst", 9, tmp_path)
