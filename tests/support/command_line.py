"""The command line as a user has it: a program that is started, with its exit code and what it prints."""

import json
import os
import subprocess
import sys
from pathlib import Path

from blake3 import blake3

from chromabuild.pipeline.chain import NAMES

STAGES = NAMES[:NAMES.index("run")]
"""Those that make the input of the dynamics."""


def command(*arguments: object) -> list[str]:
    """What is started."""
    return [sys.executable, "-P", "-m", "chromabuild.cli", *map(str, arguments)]


def environment() -> dict[str, str]:
    """The packages of this test run, wherever the command is started."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def chromabuild(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command in a folder."""
    return subprocess.run(command(*arguments), cwd=cwd, env=environment(), capture_output=True, text=True, timeout=600)


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
            if path.is_file() and path.name not in ("provenance.json", "clash_report.html")
            and not path.name.startswith(".")}
