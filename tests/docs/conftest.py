"""The shell of a user, for tutorials and examples."""

import os
import sys

import pytest


@pytest.fixture
def user_environment(tmp_path):
    """The commands ``chromabuild``, ``chromamd``, ``chromaqm`` and ``python`` of this test run, with two threads."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, call in (("python", ""), ("chromabuild", "-P -m chromabuild.cli"),
                       ("chromamd", "-P -c 'from chromabuild.simulate.executable import main; main()'"),
                       ("chromaqm", "-P -c 'from chromabuild.quantum.chromaqm import main; main()'")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (programs / name).chmod(0o755)
    return os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "2",
                         "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(tmp_path)}
