"""Launchers that stand in for those of schedulers: what they are called with, and that signals come through them."""

import os
import signal
from pathlib import Path

import pytest
from support.chain_in_water import make_system

from chromabuild.base.errors import BadInputError, InterruptedRunError, ResourceError
from chromabuild.base.settings import Settings
from chromabuild.simulate import chromamd, launcher
from chromabuild.simulate.launcher import launched
from chromabuild.simulate.protocol import Task, run_phases
from chromabuild.simulate.result import Run

MPIRUN = """while [ "$1" != "$ENGINE" ]; do shift; done
exec mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 "$@"
"""
ALONE = """while [ "$1" != "$ENGINE" ]; do shift; done
"$@" && "$@"
"""
SRUN = ["-n", "2", "-c", "3", "--kill-on-bad-exit=0", "--wait=60"]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a launcher on the PATH that notes its arguments and starts the program; gives what it was called with."""
    folder = tmp_path / "launchers"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("ENGINE", str(chromamd.executable()))
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_STEP_ID", launcher.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    launcher._srun_trial.cache_clear()

    def put(name: str, script: str = MPIRUN) -> Path:
        (folder / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {folder / name}.calls\n{script}')
        (folder / name).chmod(0o755)
        return folder / name

    return put


def test_command_lines(install):
    for name in ("srun", "flux", "aprun"):
        install(name)
    program = ["/engine", "run", "a file.inp"]

    def line(ranks: int, threads: int, of: str) -> list[str]:
        first, *rest = launched(program, ranks, threads, of)
        return [Path(first).name, *rest]

    assert line(2, 3, "srun") == ["srun", *SRUN, *program]
    assert line(1, 4, "flux") == ["flux", "run", "-n", "1", "-c", "4", *program]
    assert line(4, 2, "aprun -n {ranks} -d{threads} {program} -v") == ["aprun", "-n", "4", "-d2", *program, "-v"]
    assert line(4, 2, "sh -c 'exec aprun -n {ranks} {program}'") == [
        "sh", "-c", "exec aprun -n 4 /engine run 'a file.inp'"]
    assert launched(program, 1) == launched(program, 1, launcher="mpirun") == program
    with pytest.raises(ResourceError, match="qrun, which dynamics.launcher names to start MPI programs, was not found"):
        launched(program, 2, launcher="qrun -n {ranks} {program}")


def test_automatic_choice(install, monkeypatch):
    """srun is taken in a Slurm job where it starts one program of all ranks, and not inside of a step."""
    def chosen() -> str:
        return Path(launched([str(chromamd.executable()), "run"], 2, 3)[0]).name

    srun = install("srun")
    assert chosen() == "mpirun"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    assert chosen() == chosen() == "srun"
    assert Path(f"{srun}.calls").read_text().splitlines() == [" ".join([*SRUN, str(chromamd.executable()), "ranks"])]
    launcher._srun_trial.cache_clear()
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    assert chosen() == "mpirun"
    monkeypatch.delenv("SLURM_STEP_ID")
    for script in (ALONE, "echo srun: error: no PMI >&2; exit 1\n"):
        launcher._srun_trial.cache_clear()
        install("srun", script)
        assert chosen() == "mpirun"
    monkeypatch.delenv("SLURM_JOB_NODELIST")
    assert chosen() == "srun"
    monkeypatch.setenv(launcher.VARIABLE, "srun")
    assert chosen() == "srun"
    monkeypatch.setenv(launcher.VARIABLE, "srun --fast")
    with pytest.raises(BadInputError, match="the environment variable CHROMABUILD_LAUNCHER 'srun --fast' is neither"):
        chosen()


def run(folder: Path, of: str, stop_at: int | None = None) -> Run:
    """Minimisation and dynamics on two ranks; the signal comes at a step."""
    config = Settings.model_validate({
        "dynamics": {"cutoff": 8, "pairlist_buffer": 1, "ranks": 2, "launcher": of},
        "simulate": {"protocol": None, "output_period": 100, "trajectory_period": 500, "phases": [
            {"name": "minimise", "kind": "minimise", "steps": 20},
            {"name": "dynamics", "steps": 3000, "timestep": 1}]}})

    def watch(phase, row):
        if row is not None and phase.name == "dynamics" and row["STEP"] == stop_at:
            os.kill(os.getpid(), signal.SIGUSR1)

    return run_phases(config, Task(config.dynamics, 1, folder / "t.h5", folder / "bricks.txt", folder / "md"), chromamd,
                      progress=watch)


@pytest.mark.mpi
@pytest.mark.release
@pytest.mark.parametrize("of", ["srun", "flux", "sh -c 'exec mylaunch {ranks} {threads} {program}'"])
def test_a_signal_comes_through(install, tmp_path, of):
    name = "mylaunch" if "mylaunch" in of else of
    fake = install(name)
    make_system(tmp_path, 100, neutral=False)
    with pytest.raises(InterruptedRunError, match="stopped by a signal after step"):
        run(tmp_path, of, stop_at=100)
    assert run(tmp_path, of).energies["STEP"].tolist() == list(range(0, 3001, 100))
    assert "continued from the checkpoint" in (tmp_path / "md/02-dynamics.log").read_text()
    calls = Path(f"{fake}.calls").read_text().splitlines()
    assert len(calls) == 4 and all(call.endswith(".inp") and " 2 " in f" {call}" for call in calls)


@pytest.mark.mpi
def test_a_launcher_that_does_not_fit_the_mpi_library(install, tmp_path):
    """As many programs of one rank each must not write to the same files."""
    install("alone", ALONE)
    make_system(tmp_path, 100, neutral=False)
    with pytest.raises(BadInputError, match="runs on 1 of the 2 ranks that were asked for"):
        run(tmp_path, "alone {ranks} {program}")
    assert list((tmp_path / "md" / "restart").glob("*.rst")) == []
