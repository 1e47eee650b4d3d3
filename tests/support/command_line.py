"""The command line as a user has it: a program that is started, with its exit code and what it prints."""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd
from pathlib import Path

import pytest
from blake3 import blake3

from chromabuild.pipeline.chain import NAMES

ALWAYS = tuple(name for name in NAMES if name not in ("refine", "relax"))
"""The stages of a small locus."""
STAGES = ALWAYS[:ALWAYS.index("run")]
"""Those that make the input of the dynamics."""
DEMO_SWEEPS = 60
"""Monte Carlo sweeps of the demo where tests build it: every stage after it is as in the example."""


def command(*arguments: object) -> list[str]:
    """What is started."""
    return [sys.executable, "-P", "-m", "chromabuild.cli", *map(str, arguments)]


def environment() -> dict[str, str]:
    """The packages of this test run, wherever the command is started."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def chromabuild(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command in a folder, in a process of its own that has imported the libraries already."""
    arguments = list(map(str, arguments))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = _server().Process(target=_run, args=(arguments, str(cwd), dict(os.environ), DupFd(out.fileno()),
                                                       DupFd(err.fileno())))
        process.start()
        process.join(600)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(command(*arguments), 600)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(command(*arguments), process.exitcode, *texts)


@cache
def _server() -> ForkServerContext:
    """Where processes start from: a process without threads that has imported what commands take seconds to import."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["chromabuild.cli", "chromabuild.api", "chromabuild.pipeline.chain", "h5py",
                                    "matplotlib.pyplot", "openmm.app", "scipy.optimize", "scipy.spatial"])
    # The packages of this test run, not those of the folder in which it was started.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONSAFEPATH", "1")
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        forkserver.ensure_running()
    return context


def _run(arguments: list[str], folder: str, variables: dict[str, str], out: DupFd, err: DupFd) -> None:
    """The command, in the new process."""
    from chromabuild.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables | {"PYTHONPATH": environment()["PYTHONPATH"]})
    for stream, file in enumerate((out, err), start=1):
        os.dup2(file.detach(), stream)
    sys.argv = ["chromabuild", *arguments]
    main()


def result_of(*arguments: object, cwd: Path) -> dict:
    """What a command that must succeed prints with ``--json``."""
    done = chromabuild(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one sentence with which a command has to end; nothing else may follow it, and no traceback precede it."""
    assert done.returncode == code, done.stderr or done.stdout
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    sentences = [line for line in lines if line.startswith("chromabuild: ")]
    assert len(sentences) == 1 and lines[-1] == sentences[0]
    return sentences[0]


def digests(folder: Path) -> dict[str, str]:
    """blake3 of every file below a folder, but for hidden ones and those that hold times."""
    return {str(path.relative_to(folder)): blake3(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "provenance.json" and not path.name.startswith(".")}
