"""Time and memory of child processes, and programs that take turns."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """What a process and its children took."""

    cpu: float
    """Processor seconds."""
    wall: float
    """Seconds of the clock."""
    memory: float
    """Largest resident set of one process, GB."""

    def clock(self, cores: int) -> float:
        """Seconds that count: on one core processor time, which other work disturbs little, on more the clock."""
        return self.cpu if cores == 1 else self.wall


_WRAPPER = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
json.dump([used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss / 1e6], open(sys.argv[1], "w"))
sys.exit(code)
"""


def measured(command: Sequence[object], log: Path, threads: int = 1, environment: Mapping[str, str] | None = None,
             folder: Path | None = None) -> Usage:
    """Run a command with its output in ``log``. Ends the program with that output when the command fails."""
    figures = log.with_suffix(".usage")
    with log.open("w") as out:
        done = subprocess.run([sys.executable, "-c", _WRAPPER, str(figures), *map(str, command)], cwd=folder,
                              stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              env={**os.environ, **(environment or {}), "OMP_NUM_THREADS": str(threads)})
    if done.returncode:
        sys.exit(f"{command[0]} failed with code {done.returncode}; the end of {log}:\n{log.read_text()[-2000:]}")
    return Usage(*json.loads(figures.read_text()))


def in_turns(programs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each program, which take turns in every round, so that a ratio has both sides from the same minute."""
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, run in programs.items():
            found[name].append(run())
    return found


def cpu_seconds(action: Callable[[], object]) -> float:
    """Processor seconds of this process for one call."""
    begin = time.process_time()
    action()
    return time.process_time() - begin
