"""The Slurm script that submits itself again, with stand-ins for sbatch and chromabuild."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from chromabuild.pipeline.workflow import workflow_folder

SCRIPT = workflow_folder() / "slurm" / "dynamics.sbatch"
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


@pytest.fixture
def job(tmp_path):
    """Run the script as a job, with a signal to its shell once chromabuild works; gives exit code, stderr and calls."""
    for name, text in (("chromabuild", CHROMABUILD), ("sbatch", SBATCH)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "calls").mkdir()

    def run(*arguments: str, number: int | None = None, **variables: str) -> tuple[int, str, dict[str, str]]:
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"),
                                    "SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "2", **variables}
        for path in (tmp_path / "calls").iterdir():
            path.unlink()
        process = subprocess.Popen(["bash", str(SCRIPT), *arguments], env=environment, text=True,
                                   stderr=subprocess.PIPE)
        while number is not None and not (tmp_path / "calls" / "chromabuild").exists():
            time.sleep(0.02)
        if number is not None:
            process.send_signal(number)
        told = process.communicate(timeout=60)[1]
        calls = {path.name: path.read_text() for path in (tmp_path / "calls").iterdir()}
        return process.returncode, told, calls

    return run


def test_the_next_job_goes_on_where_the_time_was_over(job):
    code, _, calls = job("--extend", "10 ns", number=signal.SIGUSR1)
    assert code == 0 and calls["sbatch"] == f"99|{SCRIPT}|--extend|10 ns|"
    assert calls["chromabuild"] == "run --set dynamics.ranks=4 --threads 8 --extend 10 ns\n"


@pytest.mark.parametrize(("number", "variables", "expected"), [
    (signal.SIGTERM, {}, 7),  # cancelled
    (None, {"CODE": "7"}, 7),  # stopped by someone else
    (None, {"CODE": "0"}, 0), (None, {"CODE": "3"}, 3), (None, {"CODE": "137"}, 137)])
def test_no_job_follows(job, number, variables, expected):
    code, _, calls = job(number=number, **variables)
    assert code == expected and "sbatch" not in calls


def test_jobs_come_to_an_end(job):
    code, told, calls = job(number=signal.SIGUSR1, CHROMABUILD_JOBS="0")
    assert code == 7 and "submit it again to go on" in told and "sbatch" not in calls
    code, _, calls = job(number=signal.SIGUSR1, SBATCH_CODE="1")
    assert code == 7 and "sbatch" in calls


def test_slurm_is_asked_for_the_signal():
    text = Path(SCRIPT).read_text()
    assert "\n#SBATCH --signal=B:USR1@300\n" in text and text.index("#SBATCH") < text.index("set -u")
