"""Find our MPI programs, and be the command chromamd; with few imports, as every rank may start it."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from chromabuild.base.errors import ChromabuildError, ResourceError

Precision = Literal["mixed", "double"]

_NAMES = {"mixed": "chromamd", "double": "chromamd-double"}


def executable(precision: Precision = "mixed") -> Path:
    """Path of the engine inside the installed package. Raises ResourceError when it was not built."""
    path = Path(__file__).resolve().parents[1] / "_bin" / _NAMES[precision]
    if not path.is_file() and precision == "double" and path.with_name(_NAMES["mixed"]).is_file():
        raise ResourceError(f"this build has no {path.name}: build chromabuild with CHROMAMD_DOUBLE=ON "
                            "(in the source tree: ./do setup), or use precision=\"mixed\"")
    if not path.is_file():
        raise ResourceError(f"the MD engine {path} is missing: install an MPI compiler "
                            "(Debian: apt install gfortran libopenmpi-dev) and build chromabuild again")
    return path


def become(name: str, find: Callable[[], Path], before: Callable[[str, str], Iterable[str]] | None = None) -> None:
    """Be the command of a program: give way to it, or with ``--path`` alone print where it is (for mpirun).

    ``before`` is called with the first two arguments; what it gives is told on standard error.
    """
    command, control = (*sys.argv[1:3], "", "")[:2]
    try:
        path = find()
        for line in before(command, control) if before else ():
            print(f"{name}: {line}", file=sys.stderr)
    except ChromabuildError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    if sys.argv[1:] == ["--path"]:
        print(path)
    elif before and command == "import" and control:
        print(f"{name}: {control} is ready to run")
    else:
        os.execv(path, [str(path), *sys.argv[1:]])


def main() -> None:
    """Console script ``chromamd``: becomes the engine; ``chromamd --path`` prints where it is (for mpirun).

    A control file that names files of CHARMM, AMBER or GROMACS is imported before; ``chromamd import FILE`` does only
    that. Of several ranks the first one does it while the others wait.
    """
    become("chromamd", executable, _import)


def _import(command: str, control: str) -> Iterable[str]:
    """Import what a control file names, for commands that read one; gives what there is to tell."""
    if command not in ("run", "energy", "setup", "import") or not control:
        return ()
    from chromabuild.simulate.foreign_control import prepare

    return prepare(control)
