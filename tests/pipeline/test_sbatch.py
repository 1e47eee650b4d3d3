"""The Slurm script that has itself run again, with stand-ins for Slurm and chromabuild.

benchmarks/two_nodes.py tries it with Slurm itself.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from chromabuild.pipeline.workflow import workflow_folder

SCRIPT = workflow_folder() / "slurm" / "dynamics.sbatch"
ARRAY = workflow_folder() / "slurm" / "ensemble.sbatch"
CHROMABUILD = """#!/usr/bin/env bash
trap 'sleep 0.3; exit 7' USR1 TERM
printf '%s\\n' "$*" > "$CALLS/chromabuild"
[[ -n "${CODE:-}" ]] && exit "$CODE"
for k in {1..100}; do sleep 0.1 & wait; done
"""
SBATCH = """#!/usr/bin/env bash
printf '%s|' "$CHROMABUILD_JOBS" "$@" > "$CALLS/sbatch"
exit "${SBATCH_CODE:-0}"
"""
SCONTROL = """#!/usr/bin/env bash
printf '%s|' "$@" > "$CALLS/scontrol"
exit "${SCONTROL_CODE:-0}"
"""
SQUEUE = "#!/bin/sh\necho 1-00:00:00\n"
SLURM = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_NUM_NODES": "2",
         "SLURM_NTASKS_PER_NODE": "2", "SLURM_JOB_PARTITION": "long"}


@pytest.fixture
def job(tmp_path):
    """Run the script as a job, with a signal to its shell once chromabuild works; gives exit code, stderr and calls."""
    programs = {"chromabuild": CHROMABUILD, "sbatch": SBATCH, "scontrol": SCONTROL, "squeue": SQUEUE}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "calls").mkdir()

    def run(*arguments: str, number: int | None = None, script: Path = SCRIPT,
            **variables: str) -> tuple[int, str, dict[str, str]]:
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"),
                                    **SLURM, **variables}
        for path in (tmp_path / "calls").iterdir():
            path.unlink()
        process = subprocess.Popen(["bash", str(script), *arguments], env=environment, text=True,
                                   stderr=subprocess.PIPE)
        while number is not None and not (tmp_path / "calls" / "chromabuild").exists():
            time.sleep(0.02)
        if number is not None:
            process.send_signal(number)
        told = process.communicate(timeout=60)[1]
        calls = {path.name: path.read_text() for path in (tmp_path / "calls").iterdir()}
        return process.returncode, told, calls

    return run


def test_the_job_runs_again_where_its_time_was_over(job):
    code, _, calls = job("--extend", "10 ns", number=signal.SIGUSR1)
    assert code == 0 and calls["scontrol"] == "requeue|7|" and "sbatch" not in calls
    assert calls["chromabuild"] == "run --set dynamics.ranks=4 --threads 8 --extend 10 ns\n"


def test_another_job_follows_where_none_runs_again(job):
    """With as many tasks, on which alone the phase goes on, and as much time."""
    code, _, calls = job("--extend", "10 ns", number=signal.SIGUSR1, SCONTROL_CODE="1")
    assert code == 0 and calls["sbatch"] == (
        "99|--nodes=2|--ntasks=4|--cpus-per-task=2|--ntasks-per-node=2|--partition=long|--time=1-00:00:00|"
        f"{SCRIPT}|--extend|10 ns|")


@pytest.mark.parametrize(("number", "variables", "expected"), [
    (signal.SIGTERM, {}, 7),  # cancelled
    (None, {"CODE": "7"}, 7),  # stopped by someone else
    (None, {"CODE": "0"}, 0), (None, {"CODE": "3"}, 3), (None, {"CODE": "137"}, 137)])
def test_no_job_follows(job, number, variables, expected):
    code, _, calls = job(number=number, **variables)
    assert code == expected and not {"sbatch", "scontrol"} & set(calls)


def test_jobs_come_to_an_end(job):
    code, told, calls = job(number=signal.SIGUSR1, CHROMABUILD_JOBS="3", SLURM_RESTART_COUNT="3")
    assert code == 7 and "submit it again to go on" in told and not {"sbatch", "scontrol"} & set(calls)
    code, _, calls = job(number=signal.SIGUSR1, SCONTROL_CODE="1", SBATCH_CODE="1")
    assert code == 7 and "sbatch" in calls


def test_slurm_is_asked_for_the_signal():
    text = Path(SCRIPT).read_text()
    assert "\n#SBATCH --signal=B:USR1@300\n" in text and text.index("#SBATCH") < text.index("set -u")


TASK = {"SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MAX": "32"}


def test_a_task_of_an_array_makes_a_fold_and_runs_again_where_its_time_was_over(job):
    code, _, calls = job("--rounds", "2", number=signal.SIGUSR1, script=ARRAY, **TASK)
    assert code == 0 and calls["scontrol"] == "requeue|5_7|"
    assert calls["chromabuild"] == "ensemble 32 --fold 7 --rounds 2 --threads 2\n"


def test_task_0_sums_up(job):
    code, _, calls = job("32", script=ARRAY, CODE="0", **TASK | {"SLURM_ARRAY_TASK_ID": "0"})
    assert code == 0 and calls["chromabuild"] == "ensemble 32 --jobs 2 --threads 2\n" and "scontrol" not in calls


@pytest.mark.parametrize(("number", "variables", "expected"), [
    (signal.SIGTERM, {}, 7), (None, {"CODE": "3"}, 3), (None, {"CODE": "7"}, 7),
    (signal.SIGUSR1, {"SLURM_RESTART_COUNT": "20"}, 7)])
def test_a_task_ends_for_good(job, number, variables, expected):
    code, _, calls = job(number=number, script=ARRAY, **TASK | variables)
    assert code == expected and "scontrol" not in calls
