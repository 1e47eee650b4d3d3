"""A small solute through phases by the command line: one after the other, one alone, a longer protocol later, more of
the last one, and replicas."""

import json
import os
import shutil
from typing import get_args

import numpy as np
import pytest
from support.command_line import chromabuild, refusal, result_of
from support.solvated_example import SOLUTE

from chromabuild.base.errors import IntegrityError
from chromabuild.base.in_use import in_use
from chromabuild.base.settings import load_config
from chromabuild.pipeline.chain import is_current, stage_named
from chromabuild.pipeline.export import Program
from chromabuild.pipeline.results import open_results
from chromabuild.pipeline.verify import verify_outputs
from chromabuild.simulate.replicas import replica_seed
from chromabuild.simulate.restart_file import read_restart
from chromabuild.simulate.result import Run

PHASES = [
    {"name": "minimise", "kind": "minimise", "steps": 10, "restraints": [{"group": "heavy", "constant": 5}]},
    {"name": "heat", "steps": 10, "temperature": [50, 100], "output_period": 5, "trajectory_period": 5,
     "restraints": [{"group": "solute", "constant": [5, 0]}]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A solute in water with its force field, and two phases."""
    folder = tmp_path_factory.mktemp("phases")
    (folder / "results").mkdir()
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    write_settings(folder, PHASES)
    result_of("solvate", cwd=folder)
    result_of("topology", cwd=folder)
    return folder


def write_settings(folder, phases, **simulate):
    settings = {"solvate": {"padding": 5.0, "brick_edge": 40.0},
                "simulate": {"protocol": None, "phases": phases, **simulate}}
    (folder / "locus.yaml").write_text(json.dumps(settings))  # JSON is YAML


@pytest.mark.mpi
def test_phases_by_the_command_line(folder):
    md = folder / "results" / "md"
    for name, told in (("heat", "run `chromabuild run --phase minimise` first"),
                       ("tea", "tea is not a phase: choose from minimise, heat")):
        assert told in refusal(chromabuild("run", "--phase", name, cwd=folder), 3)
    result_of("run", "--phase", "minimise", cwd=folder)
    assert (md / "01-minimise.json").is_file() and not (md / "phases.json").exists()
    first = (md / "01-minimise.log").stat().st_mtime_ns
    summary = result_of("run", cwd=folder)["summary"]
    assert summary["phases"] == "minimise, heat" and summary["steps"] == 10 and summary["simulated_ps"] == 0.02
    assert summary["trajectory"] == "md/02-heat.dcd" and summary["temperature"] == 100
    assert (md / "01-minimise.log").stat().st_mtime_ns == first
    # Both logs and the trajectory are recorded, and a further phase runs alone.
    record = json.loads((folder / "results" / "provenance.json").read_text())["stages"]["run"]
    assert set(record["outputs"]) == {"md/phases.json", "md/01-minimise.log", "md/02-heat.log", "md/02-heat.dcd"}
    write_settings(folder, [*PHASES, {"name": "more", "steps": 5, "output_period": 5, "trajectory_period": 5}])
    second = (md / "02-heat.log").stat().st_mtime_ns
    assert result_of("run", cwd=folder)["summary"]["steps"] == 15
    assert (md / "02-heat.log").stat().st_mtime_ns == second
    result_of("report", cwd=folder)
    page = (folder / "results" / "report.html").read_text(encoding="utf-8")
    assert "Minimisation and dynamics" in page and "minimise, heat, more" in page
    exported = folder / "exported"
    assert "tea is not a phase that is done: choose from minimise, heat, more" in refusal(
        chromabuild("export", "gromacs", "--after", "tea", cwd=folder), 3)
    result_of("export", "gromacs", "--after", "heat", "--output", exported, cwd=folder)
    n_atoms = summary["atoms"]
    end = read_restart(md / "restart" / "02-heat_().rst", n_atoms)
    _, _, *atoms, edges = (exported / "system.gro").read_text().splitlines()
    box = end.box / 10
    assert [float(word) for word in edges.split()] == pytest.approx(box, abs=1e-5)
    columns = np.loadtxt([line[20:] for line in atoms])
    away = columns[:, :3] - end.position / 10
    # Molecules are whole: atoms are where they are in the file of the engine but for edges of the box.
    assert np.abs(away - np.round(away / box) * box).max() < 0.51e-4
    assert np.abs(columns[:, 3:] - end.velocity / 10).max() < 0.51e-5
    assert sorted(path.name for path in exported.glob("*.mdp")) == ["03-more.mdp", "energy.mdp"]
    assert "gen-vel              = no" in (exported / "03-more.mdp").read_text()
    for program in get_args(Program):
        made = result_of("export", program, "--after", "heat", "--output", folder / program, cwd=folder)
        assert made["atoms"] == n_atoms and all((folder / program / name).is_file() for name in made["files"])
        assert made["coordinates"] == "heat"
    assert result_of("verify", cwd=folder)


@pytest.mark.mpi
def test_a_run_goes_on_and_is_taken_for_current(folder):
    """After test_phases_by_the_command_line: the phase `more` has 5 steps of 2 fs."""
    md = folder / "results" / "md"
    for arguments, told in ((("--extend", "10 weeks"), "--extend '10 weeks' is not a positive number"),
                            (("--extend", "10 fs", "--replica", 2), "replica 2 is not one of simulate.replicas: 1"),
                            (("--extend", "10 fs", "--set", "seed=3"), "phase minimise is not done")):
        assert told in refusal(chromabuild("run", *arguments, cwd=folder), 3)
    run, settings = stage_named("run"), load_config(folder / "locus.yaml")
    assert is_current(run, settings)  # refusals have left the record alone
    before = (md / "02-heat.log").stat().st_mtime_ns
    summary = result_of("run", "--extend", "20 fs", cwd=folder)["summary"]
    assert summary["steps"] == 25 and summary["simulated_ps"] == pytest.approx(0.05)
    log = Run.read(md).phases[-1].energies
    assert log["STEP"].tolist() == [10, 15, 20, 25] and (md / "02-heat.log").stat().st_mtime_ns == before
    assert is_current(run, settings)
    checks = {check["what"]: check["result"] for check in result_of("verify", cwd=folder)["checks"]}
    assert checks["md/extended.json"] == checks["md/03-more.dcd"] == "ok"
    after = (md / "03-more.log").stat().st_mtime_ns
    assert result_of("run", cwd=folder)["summary"]["steps"] == 25  # nothing is left to do, and it is not undone
    assert (md / "03-more.log").stat().st_mtime_ns == after


@pytest.mark.mpi
def test_replicas(folder):
    """Replica 1 is the run as it was; the second has a seed, a folder and a summary of its own."""
    md = folder / "results" / "md"
    phases = [*PHASES, {"name": "more", "steps": 5, "output_period": 5, "trajectory_period": 5}]
    before = (md / "03-more.log").stat().st_mtime_ns
    write_settings(folder, phases, replicas=2)
    result_of("run", "--replica", 2, cwd=folder)
    assert not is_current(stage_named("run"), load_config(folder / "locus.yaml"))
    summary = result_of("run", cwd=folder)["summary"]
    assert [(one["replica"], one["seed"]) for one in summary["replica_runs"]] == [(1, 1), (2, replica_seed(1, 2))]
    assert [one["trajectory"] for one in summary["replica_runs"]] == ["md/03-more.dcd", "md/replica-2/03-more.dcd"]
    assert (md / "03-more.log").stat().st_mtime_ns == before
    first, second = open_results(folder / "results").replicas
    assert first.minimisation["POTENTIAL_ENE"][-1] == second.minimisation["POTENTIAL_ENE"][-1]
    assert first.energies["TOTAL_ENE"][0] != second.energies["TOTAL_ENE"][0]
    assert is_current(stage_named("run"), load_config(folder / "locus.yaml"))
    result_of("run", "--extend", "10 fs", "--replica", 2, cwd=folder)
    assert [one["steps"] for one in result_of("run", cwd=folder)["summary"]["replica_runs"]] == [25, 20]
    result_of("report", cwd=folder)
    page = (folder / "results" / "report.html").read_text(encoding="utf-8")
    assert "Replica 1, seed 1" in page and f"Replica 2, seed {replica_seed(1, 2)}" in page


def test_one_flipped_bit_in_any_file_is_found(folder, monkeypatch):
    """After test_replicas: of every file in the output folder but locks and what was put there from elsewhere."""
    monkeypatch.chdir(folder)
    config, random = load_config("locus.yaml"), np.random.default_rng(8)
    assert all(check["result"] == "ok" for check in verify_outputs(config)["checks"])
    files = [path for path in (folder / "results").rglob("*")
             if path.is_file() and path.name != "solute_clean.h5" and path.stat().st_size]
    assert len(files) > 50
    for path in files:
        content = bytearray(path.read_bytes())
        place, bit = random.integers(len(content)), 1 << random.integers(8)
        content[place] ^= bit
        path.write_bytes(content)
        try:
            found = [check["what"] for check in verify_outputs(config)["checks"] if check["result"] != "ok"]
        except IntegrityError as error:
            found = [str(error)]
        assert found, f"{path}: bit {bit} of byte {place}"
        content[place] ^= bit
        path.write_bytes(content)


def test_one_process_works_in_a_folder(folder):
    """`run` and `all` are refused while another process is at work there, also before the dynamics."""
    md = folder / "results" / "md"
    with in_use(md):
        for command in ("run", "all"):
            told = refusal(chromabuild(command, cwd=folder), 9)
            assert f"another chromabuild is at work in {md} (process {os.getpid()} on " in told
