"""Find and run our plane-wave program chromaqm, and be the command of that name."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import IO, Any

from chromabuild.base.errors import ChromabuildError, IntegrityError, InterruptedRunError, ResourceError
from chromabuild.simulate.executable import become
from chromabuild.simulate.launcher import launched

_NAME = "chromaqm"
_STOP = signal.SIGUSR1
"""Lets dynamics write its restart files and end; mpirun hands it on to all ranks."""
_RESULT_FILE = re.compile(r"^\s*resultfile\s*=\s*([^#!]*)", re.IGNORECASE)


def executable() -> Path:
    """Path of the program inside the installed package. Raises ResourceError when it was not built."""
    path = Path(__file__).resolve().parents[1] / "_bin" / _NAME
    if not path.is_file():
        raise ResourceError(f"this build has no {_NAME}: build chromabuild with CHROMAQM=ON "
                            "(in the source tree: ./do setup)")
    return path


def check(control: Path, ranks: int = 1) -> None:
    """Raise the error with which a run on so many ranks would refuse its input; one process finds out."""
    done = subprocess.run([str(executable()), "check", str(control), str(ranks)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise _error(done.returncode, done.stderr)


def run(control: Path, ranks: int = 1, threads: int = 1, launcher: str = "auto",
        output: IO[str] | None = None) -> dict[str, Any]:
    """Run chromaqm on a control file and wait for it; its lines go to ``output`` (standard output).

    What it refuses, more ranks than have work among it, is refused before any of several ranks starts.

    Returns what it wrote to the result file that the control file names: energies in hartree, forces in hartree/bohr,
    positions in bohr; empty where none is named. ``launcher`` as of ``simulate.launcher.launched``. Raises the error
    class that fits the program's exit code, with its own sentence; NotConvergedError when the minimum was not reached.
    """
    if ranks > 1:
        check(control, ranks)
    line = launched([str(executable()), "run", str(control)], ranks, threads, launcher, ("OMP_NUM_THREADS",))
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    if ranks > (os.cpu_count() or 1):
        environment["OMPI_MCA_mpi_yield_when_idle"] = "1"  # waiting ranks must not keep the working ones from a core
    if output is not None:
        output.flush()
    with subprocess.Popen(line, stdout=output, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            _, complaints = process.communicate()
        except BaseException:  # Ctrl-C, or the signal of a scheduler
            process.send_signal(_STOP)
            process.wait()
            raise
    if process.returncode != 0:
        raise _error(process.returncode, complaints)
    return _result(control)


def _error(code: int, complaints: str) -> ChromabuildError:
    """The error of a run that ended with this code, with the program's own sentence."""
    if code < 0:
        return InterruptedRunError(f"{_NAME} was stopped by signal {-code}: run it again, from its restart files where "
                                   "it has written them")
    classes = {error.exit_code: error for error in ChromabuildError.__subclasses__()}
    start = f"{_NAME}: "
    sentences = [text.removeprefix(start) for text in complaints.splitlines() if text.startswith(start)]
    return classes.get(code, ChromabuildError)(
        sentences[0] if sentences else f"{_NAME} ended with code {code}: {complaints[-300:].strip()}")


def _result(control: Path) -> dict[str, Any]:
    found = [match[1].strip() for text in control.read_text(encoding="utf-8").splitlines()
             if (match := _RESULT_FILE.match(text))]
    if not found:
        return {}
    return read_result(Path(found[-1]))


def read_result(path: Path) -> dict[str, Any]:
    """A result file: energies in hartree, forces in hartree/bohr. Raises IntegrityError when it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise IntegrityError(f"{path}: is not the result file of {_NAME} ({error}); run it again") from None


def main() -> None:
    """Console script ``chromaqm``: becomes the program; ``chromaqm --path`` prints where it is (for mpirun)."""
    become(_NAME, executable)


