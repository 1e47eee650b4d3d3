"""How a program is started on several MPI ranks: mpirun, a scheduler's launcher, or a command of the user's own."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

from chromabuild.base.errors import BadInputError, ResourceError
from chromabuild.base.launchers import launcher_problem

VARIABLE = "CHROMABUILD_LAUNCHER"
"""Environment variable with what ``dynamics.launcher: auto`` stands for on a machine."""
RANKS_VARIABLE = "CHROMAMD_RANKS"
"""Environment variable from which the engine learns how many ranks it must have been started on."""
TRIAL_SECONDS = 60.0


def launched(program: Sequence[str], ranks: int, threads: int = 1, launcher: str = "auto",
             variables: Sequence[str] = ()) -> list[str]:
    """The command line that starts ``program`` (its path and arguments) on ``ranks`` ranks of ``threads`` threads.

    ``launcher``: ``mpirun``, ``srun``, ``flux``, or a command in which ``{ranks}``, ``{threads}`` and ``{program}`` are
    replaced. ``auto``: what the environment variable ``CHROMABUILD_LAUNCHER`` says; without it srun inside a Slurm job
    where the MPI library works with it, else mpirun. One rank needs no mpirun. ``variables``: names of those of the
    environment that all ranks need; a launcher of the user's own hands them on by itself.

    Raises BadInputError for another launcher, ResourceError when it is not installed.
    """
    launcher, where = _named(launcher)
    if launcher == "auto":
        launcher = "srun" if _srun_works(program[0], ranks, threads) else "mpirun"
    return _command(launcher, where, program, ranks, threads, variables)


def check_launcher(launcher: str, ranks: int) -> None:
    """Raise what ``launched`` would, where no trial in a batch job is needed to know it."""
    launcher, where = _named(launcher)
    if launcher != "auto" or "SLURM_JOB_ID" not in os.environ:
        _command("mpirun" if launcher == "auto" else launcher, where, ["chromamd"], ranks, 1, ())


def _named(launcher: str) -> tuple[str, str]:
    """What ``auto`` stands for, and what names it."""
    where = "dynamics.launcher"
    if launcher == "auto" and os.environ.get(VARIABLE):
        launcher, where = os.environ[VARIABLE], f"the environment variable {VARIABLE}"
    problem = launcher_problem(launcher)
    if problem:
        raise BadInputError(f"{where} {launcher!r} {problem}")
    return launcher, where


def _command(launcher: str, where: str, program: Sequence[str], ranks: int, threads: int, variables: Sequence[str]
             ) -> list[str]:
    """The command line of a launcher that is known by now."""
    if launcher == "mpirun":
        return [*(_mpirun(ranks, variables) if ranks > 1 else []), *program]
    if launcher == "srun":
        return [_found("srun", where), *_srun(ranks, threads), *program]
    if launcher == "flux":
        return [_found("flux", where), "run", "-n", str(ranks), "-c", str(threads), *program]
    command = _filled(launcher, program, ranks, threads)
    return [_found(command[0], where), *command[1:]]


def _filled(template: str, program: Sequence[str], ranks: int, threads: int) -> list[str]:
    """The words of a user's own command.

    A word that is {program} becomes all words of the program; within another word, such as the argument of ``sh -c``,
    it becomes their text.
    """
    words: list[str] = []
    for word in shlex.split(template):
        if word == "{program}":
            words += program
        else:
            words.append(word.replace("{ranks}", str(ranks)).replace("{threads}", str(threads))
                         .replace("{program}", shlex.join(program)))
    return words


def _found(name: str, what: str) -> str:
    """Path of a program. Raises ResourceError when there is none."""
    path = shutil.which(name)
    if path is None:
        raise ResourceError(f"{name}, which {what} names to start MPI programs, was not found: install it or load its "
                            "module, or set dynamics.launcher to auto")
    return path


def _mpirun(ranks: int, variables: Sequence[str]) -> list[str]:
    path, is_open_mpi = _installed_mpirun()
    options = []
    if is_open_mpi:
        # Binding would put the ranks of two runs on the same cores; oversubscription is the user's decision. Only
        # variables that are named reach other nodes.
        options = ["--oversubscribe", "--bind-to", "none", *(part for name in variables for part in ("-x", name))]
        if os.geteuid() == 0:
            options.append("--allow-run-as-root")
    return [path, *options, "-np", str(ranks)]


@cache
def _installed_mpirun() -> tuple[str, bool]:
    """Path of mpirun, and whether it is Open MPI's (the options of MPICH's and Intel's differ)."""
    found = shutil.which("mpirun") or shutil.which("mpiexec")
    if found is None:
        raise ResourceError("mpirun was not found: install an MPI library (Debian: apt install openmpi-bin), "
                            "or use one rank")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    return found, "open" in (version.stdout + version.stderr).lower()


def _srun(ranks: int, threads: int) -> list[str]:
    """Arguments of srun."""
    # Ranks that end with code 7 one after the other must not kill those that are still ending; a crashed one must not
    # keep the others waiting for ever.
    return ["-n", str(ranks), "-c", str(threads), "--kill-on-bad-exit=0", "--wait=60"]


def _srun_works(engine: str, ranks: int, threads: int) -> bool:
    """Whether this is a Slurm job, outside of a step, in which srun starts the engine as one program of many ranks.

    Where the nodes of the job are hidden from mpirun, as by Snakemake's executor, srun is the only way: no trial.
    """
    is_job = "SLURM_JOB_ID" in os.environ and "SLURM_STEP_ID" not in os.environ and shutil.which("srun") is not None
    return is_job and ("SLURM_JOB_NODELIST" not in os.environ or _srun_trial(engine, ranks, threads))


@cache
def _srun_trial(engine: str, ranks: int, threads: int) -> bool:
    try:
        trial = subprocess.run(["srun", *_srun(ranks, threads), engine, "ranks"], capture_output=True, text=True,
                               check=False, timeout=TRIAL_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0 and trial.stdout.split() == [str(ranks)]
