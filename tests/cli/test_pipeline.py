"""Resuming: what is run again, what is left out, what is recorded. The stages are stand-ins that write small files."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from blake3 import blake3
from support.command_line import ALWAYS
from typer.testing import CliRunner

from chromabuild.base.errors import IntegrityError
from chromabuild.base.files import file_hash
from chromabuild.base.settings import load_config
from chromabuild.cli import app
from chromabuild.pipeline import chain, limits, provenance, validation


@pytest.fixture
def ran(monkeypatch):
    """Names of the stages that were run, in order; each writes its outputs from its inputs."""
    names = []

    def stand_in(stage):
        def run(job):
            names.append(stage.name)
            inputs = blake3("".join(p.read_text() for p in stage.input_paths(job.config).values()).encode()).hexdigest()
            for path in [*stage.output_paths(job.config), *(job.folder / file for file in stage.optional_outputs)]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{stage.name} {job.provenance['settings']} {job.provenance['seed']} {inputs}")
            job.progress("standing in", 0.5)
            return {"trajectory": "md/trajectory.dcd", "atoms": 5} if stage.name == "run" else {}
        return replace(stage, run=run)

    monkeypatch.setattr(chain, "STAGES", tuple(map(stand_in, chain.STAGES)))
    monkeypatch.setattr(validation, "check_all", lambda *_: (None, SimpleNamespace(note="")))
    monkeypatch.setattr(limits, "refuse", lambda *_: True)
    return names


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "locus.fa").write_text(">x\nACGT\n")
    (tmp_path / "nucleosomes.bed").write_text("x\t1\t2\n")
    path = tmp_path / "locus.yaml"
    path.write_text("output: out\n")
    return path


def run_all(settings, *arguments):
    result = CliRunner().invoke(app, ["all", "--config", str(settings), "--threads", "1", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def test_second_run_has_nothing_to_do(settings, ran):
    run_all(settings)
    assert tuple(ran) == ALWAYS
    ran.clear()
    run_all(settings)
    assert ran == []


@pytest.mark.parametrize(("change", "first"), [
    (["--set", "scaffold.sweeps=5"], "scaffold"), (["--set", "clash.threshold=0.8"], "clash"),
    (["--set", "simulate.temperature=300"], "run"), (["--seed", "2"], "scaffold"),
])
def test_changed_settings_run_what_depends_on_them(settings, ran, change, first):
    run_all(settings)
    ran.clear()
    run_all(settings, *change)
    assert tuple(ran) == ALWAYS[ALWAYS.index(first):]
    assert ran[-1] == "report"


def test_changed_input_runs_everything_after_it(settings, ran):
    run_all(settings)
    ran.clear()
    (settings.parent / "locus.fa").write_text(">x\nACGTACGT\n")
    run_all(settings)
    assert tuple(ran) == ALWAYS


@pytest.mark.parametrize("harm", ["missing", "flipped"])
def test_harmed_output_is_made_again(settings, ran, harm):
    run_all(settings)
    ran.clear()
    path = settings.parent / "out" / "topology.psf"
    text = path.read_text()
    path.unlink() if harm == "missing" else path.write_text("T" + text[1:])
    assert CliRunner().invoke(app, ["verify", "--config", str(settings)]).exit_code == 5
    run_all(settings)
    assert ran == ["topology", "report"]
    assert path.read_text() == text


def test_interrupted_stage_is_run_again(settings, ran, monkeypatch):
    run_all(settings)

    def interrupted(job):
        raise KeyboardInterrupt

    whole = chain.STAGES
    monkeypatch.setattr(chain, "STAGES",
                        tuple(replace(s, run=interrupted) if s.name == "clash" else s for s in whole))
    arguments = ["all", "--config", str(settings), "--force"]
    assert CliRunner().invoke(app, arguments).exit_code == 7
    monkeypatch.setattr(chain, "STAGES", whole)
    ran.clear()
    run_all(settings)
    assert "clash" in ran and "scaffold" not in ran


def test_force_until_and_json(settings, ran):
    result = run_all(settings, "--until", "clash", "--json")
    assert list(json.loads(result.stdout)["stages"]) == ["scaffold", "build", "clash"]
    run_all(settings, "--until", "clash", "--force")
    assert ran == ["scaffold", "build", "clash"] * 2
    bad = CliRunner().invoke(app, ["all", "--config", str(settings), "--until", "tea"])
    assert bad.exit_code == 2 and "scaffold" in bad.stderr
    result = json.loads(run_all(settings, "--json").stdout)
    assert result["trajectory"].endswith("md/trajectory.dcd") and result["report"].endswith("report.html")


def test_last_lines_name_what_to_open(settings, ran):
    out = settings.parent / "out"
    lines = run_all(settings).stdout.splitlines()
    assert f"  vmd {out / 'topology.psf'} {out / 'md' / 'trajectory.dcd'}" in lines
    assert any("MDAnalysis.Universe" in line for line in lines)
    assert lines[-1] == f"  {out / 'report.html'}"
    assert not any("vmd" in line for line in run_all(settings, "--until", "clash").stdout.splitlines())


def test_record_names_inputs_versions_and_seed_but_no_place(settings, ran):
    run_all(settings, "--seed", 5)
    record = provenance.read(settings.parent / "out")["stages"]
    first = record["scaffold"]["provenance"]
    assert first["inputs"]["fasta"] == {"file": "locus.fa",
                                        "blake3": file_hash(settings.parent / "locus.fa")}
    assert first["seed"] == 5 and "numpy" in first["versions"]
    assert str(settings.parent) not in json.dumps([stage["provenance"] for stage in record.values()])
    assert record["build"]["provenance"]["inputs"]["scaffold"]["blake3"] == record["scaffold"]["outputs"]["scaffold.h5"]


def test_damaged_record_is_told(settings, ran):
    run_all(settings, "--until", "scaffold")
    path = settings.parent / "out" / "provenance.json"
    path.write_text(path.read_text()[:40])
    with pytest.raises(IntegrityError, match="delete it"):
        provenance.read(path.parent)


def test_overrides_replace_what_the_file_says(settings):
    config = load_config(settings, {"seed": 8, "solvate.box": [90, 90, 90], "output": "elsewhere"})
    assert (config.seed, config.solvate.box) == (8, (90, 90, 90))
    assert config.output == str(settings.parent / "elsewhere")
