"""A nucleosome in boxes of water, built by the commands of chromabuild."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

COMMAND = (sys.executable, "-m", "chromabuild.cli")
SOLUTE = ("scaffold", "build", "clash")
SOLVENT = ("solvate", "topology")


def start(folder: Path, *settings: str) -> None:
    """A project of one nucleosome on its 147 base pairs, nothing of it built."""
    call(None, "init", folder, "--array", "1x601:147", *_set("scaffold.sweeps=100", *settings))


def build(folder: Path, stages: Sequence[str], *settings: str) -> None:
    """Some stages of a project; ``settings`` as of ``--set``."""
    for stage in stages:
        call(folder, stage, *_set(*settings))


def call(folder: Path | None, *words: object) -> None:
    """A command in a folder, without what it says. Raises CalledProcessError where it fails."""
    subprocess.run([*COMMAND, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   cwd=folder)


def _set(*settings: str) -> list[str]:
    return [word for one in settings for word in ("--set", one)]
