"""The Snakemake workflow is the same chain as `chromabuild all`, and its schema is the model's."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.command_line import ALWAYS

from chromabuild.base.settings import Settings, commented_yaml, load_config, validated
from chromabuild.pipeline import chain
from chromabuild.pipeline.workflow import workflow_folder
from chromabuild.simulate.protocol import plan_phases

pytest.importorskip("snakemake")
WORKFLOW = workflow_folder() / "workflow"
PHASES = plan_phases(Settings().simulate)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A settings file with a locus that is good enough to plan jobs for."""
    tmp_path = tmp_path_factory.mktemp("project")
    (tmp_path / "locus.fa").write_text(">x\nACGT\n")
    (tmp_path / "nucleosomes.bed").write_text("x\t1\t2\n")
    named = {"locus.contacts": "loops.bedpe", "scaffold.acetylated": "peaks.bed", "build.template": "my.nucleosome.h5",
             "build.marks": ["marks.bed", "H3K27ac.narrowPeak"], "build.methylation": "cpg.bedMethyl"}
    for name in [name for value in named.values() for name in ([value] if isinstance(value, str) else value)]:
        (tmp_path / name).touch()
    (tmp_path / "locus.yaml").write_text(commented_yaml(validated({}, named, "project")))
    return tmp_path


def snakemake(project, *arguments, options=()):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(project)}
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile"), "--cores", "2", *arguments,
         "--config", f"settings={project / 'locus.yaml'}", "output=out", *options],
        cwd=project, env=environment, capture_output=True, text=True, timeout=180)


@pytest.fixture(scope="module")
def plan(project):
    """What a dry run of everything says."""
    result = snakemake(project, "--dry-run", options=['overrides=["dynamics.ranks=1"]', "seed=4"])
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def plan_of_many(project):
    """What a dry run says where shards and replicas are made side by side on several ranks."""
    result = snakemake(project, "--dry-run", options=[
        'overrides=["simulate.replicas=2", "dynamics.ranks=2"]', "brick_jobs=5", "brick_ranks=3", "phase_jobs=3"])
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def test_schema_is_current():
    script = WORKFLOW / "scripts" / "export_schema.py"
    text = runpy.run_path(str(script))["schema_text"]()
    assert (WORKFLOW / "schemas" / "config.schema.yaml").read_text() == text, f"run python {script}"


def test_dry_run_plans_every_stage_once_and_a_job_a_phase(plan):
    first = ALWAYS.index("run")
    assert re.findall(r"^rule (\w+):", plan, re.MULTILINE) == [
        *ALWAYS[:first], *["phase"] * len(PHASES), *ALWAYS[first:], "verify", "all"]


def test_phases_follow_each_other(project, plan):
    """Each reads the record of the one before it, and is run by its name."""
    jobs = re.findall(r"^rule phase:\n((?: +\S.*\n)+)", plan, re.MULTILINE)
    records = [str(project / "out" / "md" / phase.record) for phase in PHASES]
    for k, (job, phase) in enumerate(zip(jobs, PHASES, strict=True)):
        assert re.search(r"output: (.*)", job).group(1) == records[k]
        assert set(records) & set(re.search(r"input: (.*)", job).group(1).split(", ")) == set(records[max(0, k - 1):k])
        assert f"--phase {phase.name} --threads" in plan


@pytest.mark.parametrize(("code", "calls"), [(7, 3), (137, 3), (3, 1), (0, 3)])
def test_what_repeating_does_not_help_is_not_repeated(plan, tmp_path, code, calls):
    """The commands of a phase at three attempts, with a program that ends with this exit code."""
    text = re.search(r'\n( +failed=.*?\n +\}\n)', plan, re.DOTALL).group(1)
    folder = re.search(r"failed=(.*)/md/", text).group(1)
    program = tmp_path / "chromabuild"
    program.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\nexit {code}\n")
    program.chmod(0o755)
    text = re.sub(r"^( +).*--phase", rf"\1{program} run --phase", text.replace(folder, str(tmp_path)), flags=re.M)
    for attempt in (1, 2, 3):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text.replace("[ 1 -gt 1 ]", f"[ {attempt} -gt 1 ]")])
        assert done.returncode == code
    assert len((tmp_path / "calls").read_text().split()) == calls
    # Started again by hand, it is the first attempt once more.
    subprocess.run(["bash", "-c", text], check=False)
    assert len((tmp_path / "calls").read_text().split()) == calls + 1


def test_a_job_a_phase_and_replica(project, plan_of_many):
    """Each replica is a chain of its own, on as many tasks as there are ranks, and the stage waits for all."""
    text = plan_of_many
    jobs = re.findall(r"^rule phase:\n((?: +\S.*\n)+)", text, re.MULTILINE)
    outputs = [re.search(r"output: (.*)", job).group(1) for job in jobs]
    folders = [project / "out" / "md", project / "out" / "md" / "replica-2"]
    assert set(outputs) == {str(folder / phase.record) for folder in folders for phase in PHASES}
    for job, output in zip(jobs, outputs, strict=True):
        before = {path for path in re.search(r"input: (.*)", job).group(1).split(", ") if path.endswith(".json")}
        assert {Path(path).parent for path in before} <= {Path(output).parent, project / "out" / "shards"}
        assert re.search(r"resources: .*tasks=2, mpi=srun", job)
    for k, folder in enumerate(folders, 1):
        assert text.count(f"--replica {k} ") == len(PHASES)
        assert re.search(rf"^rule run:\n +input: .*{re.escape(str(folder / PHASES[-1].record))}", text, re.MULTILINE)


def test_rules_read_and_write_what_the_stages_do(project, plan):
    config = load_config(project / "locus.yaml", {"output": str(project / "out")})
    for stage in map(chain.stage_named, ALWAYS):
        job = re.search(rf"^rule {stage.name}:\n((?: +\S.*\n)+)", plan, re.MULTILINE).group(1)
        files = {kind: set(re.search(rf"{kind}: (.*)", job).group(1).split(", ")) for kind in ("input", "output")}
        folder = project / "out"
        assert files["output"] == {str(folder / name) for name in stage.outputs}
        records = {str(folder / "md" / phase.record) for phase in PHASES} if stage.name == "run" else set()
        assert files["input"] == {str(path) for path in stage.input_paths(config).values()} | records


def test_a_job_runs_the_command_of_its_stage(project):
    """The commands of a dry run and of a job are put together at different times."""
    result = snakemake(project, "--until", "scaffold")
    assert result.returncode != 0 and "mesoscale scaffold ..." in result.stderr
    assert "is outside the sequence" in result.stderr or "fewer than the 147" in result.stderr


def test_bricks_in_jobs_side_by_side(project, plan_of_many):
    """The plan first, then the batches, then the manifest; never more jobs than a scheduler can bear."""
    text = plan_of_many
    rules = re.findall(r"^rule (\w+):", text, re.MULTILINE)
    assert rules.count("bricks") == 5 and rules.count("solvation_plan") == 1
    assert rules.index("solvation_plan") < rules.index("bricks")
    assert rules.index("solvate") > max(i for i, name in enumerate(rules) if name == "bricks")
    assert set(re.findall(r"shards .*--part (\d)/5", text)) == set("01234")
    assert len(re.findall(r"^Shell command: mpirun -n 3 .* shards .*--part \d/5 .*--mpi$", text, re.MULTILINE)) == 5
    result = snakemake(project, "--dry-run", options=["brick_jobs=981"])
    assert result.returncode != 0 and "at most 1,000 jobs" in result.stdout + result.stderr


def test_a_job_a_fold_of_an_ensemble(project):
    """In two rounds: the energies of the second wait for all folds of the first, its folds for the energies."""
    result = snakemake(project, "--dry-run", "ensemble", options=['overrides=["ensemble.rounds=2"]', "ensemble=3"])
    assert result.returncode == 0, result.stderr
    text, folder = result.stdout + result.stderr, project / "out" / "ensemble"
    assert re.findall(r"^rule (\w+):", text, re.MULTILINE) == [
        *["fold"] * 3, "contact_energies_1", *["fold"] * 3, "ensemble"]
    jobs = re.findall(r"^rule fold:\n((?: +\S.*\n)+)", text, re.MULTILINE)
    energies = str(folder / "contact_energies.bedpe")
    assert [energies in re.search(r"input: (.*)", job).group(1) for job in jobs] == [False] * 3 + [True] * 3
    for number in (1, 2, 3):
        assert len(re.findall(rf"ensemble .* 3 --fold {number} --round [12] ", text)) == 2
    waiting = re.search(r"^rule contact_energies_1:\n +input: (.*)", text, re.MULTILINE).group(1)
    assert set(waiting.split(", ")) == {str(folder / f"jobs/round_01/fold_000{k}.done") for k in (1, 2, 3)}


def test_slurm_profile_names_rules_that_exist():
    profile = yaml.safe_load((WORKFLOW / "profiles" / "slurm" / "config.yaml").read_text())
    default = yaml.safe_load((WORKFLOW / "profiles" / "default" / "config.yaml").read_text())
    rules = {*chain.NAMES} | {name for path in (WORKFLOW / "rules").glob("*.smk")
                             for name in re.findall(r"^ *rule (\w+):", path.read_text(), re.MULTILINE)}
    assert profile["executor"] == "slurm" and profile.items() >= default.items()
    assert {*profile["set-resources"], *profile["set-threads"]} <= rules


def test_default_profile_is_taken(plan):
    """After kill -9 the same command must run the interrupted rule again, without being asked."""
    profile = yaml.safe_load((WORKFLOW / "profiles" / "default" / "config.yaml").read_text())
    assert profile["rerun-incomplete"] is True and profile["scheduler"] == "greedy"
    assert "profiles/default" in plan


def test_settings_are_held_to_the_schema(tmp_path):
    (tmp_path / "locus.yaml").write_text("clash: {treshold: 1}\n")
    result = snakemake(tmp_path, "--dry-run")
    assert result.returncode != 0 and "treshold" in result.stdout + result.stderr


def test_overrides_and_seed_reach_the_commands(plan):
    commands = re.findall(r"-m chromabuild\.cli (\w+) .*--set dynamics.ranks=1.* --set seed=4", plan)
    first = ALWAYS.index("run")
    assert commands == [*ALWAYS[:first], *["run"] * len(PHASES), *ALWAYS[first:], "verify"]


def test_layout_is_the_standard_one():
    root = Path(WORKFLOW).parent
    for name in ("workflow/Snakefile", "workflow/rules", "workflow/schemas", "workflow/report",
                 "workflow/profiles/default/config.yaml", "config/README.md", "config/config.yaml"):
        assert (root / name).exists()
