"""Engines that are stopped by signals at a known place, however fast or busy the machine is."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
"""One of these reaches an engine when it, mpirun or chromabuild is stopped or killed."""


def signal_engines(process: subprocess.Popen, number: int) -> None:
    """Send a signal to an engine by itself, to mpirun, or to chromabuild, once the engines look out for signals.

    They stand still until one has been handed to them: they would otherwise end before on a busy machine.
    """
    hold(process)  # at once: to look at all processes takes many steps of a small system
    wait_until(lambda: any(catch_signals(process)))  # MPI has started all engines when one is so far
    wait_until(lambda: all(catch_signals(process)))
    stopped = engines(process)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(stands_still(pid) for pid in stopped))
    process.send_signal(number)
    wait_until(lambda: all(any(is_pending(pid, stop) for stop in STOP_SIGNALS) for pid in stopped))
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)


def hold(process: subprocess.Popen) -> None:
    """Let a process stand still that is an engine itself, once it looks out for signals."""
    if _is_engine(process.pid) and _catches_signals(process.pid):
        os.kill(process.pid, signal.SIGSTOP)


def catch_signals(process: subprocess.Popen) -> list[bool]:
    """Of each engine, whether it has handlers for all signals that stop it."""
    return [_catches_signals(pid) for pid in engines(process)]


def _catches_signals(pid: int) -> bool:
    return all(_is_in_mask(pid, "SigCgt", number) for number in STOP_SIGNALS)


def _is_engine(pid: int) -> bool:
    return _name_of(Path(f"/proc/{pid}/stat")).startswith("chromamd")


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Or until the time is over; then what follows tells what is wrong."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not condition():
        time.sleep(0.01)


def engines(process: subprocess.Popen) -> list[int]:
    """The processes of the engine itself, among a process and its children."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat")
            if process.pid in (int(path.parent.name), _parent_of(path)) and _name_of(path).startswith("chromamd")]


def stands_still(pid: int) -> bool:
    """Whether all threads of a process have stopped."""
    return all(re.search(r"^State:\tT", path.read_text(), re.MULTILINE)
               for path in Path(f"/proc/{pid}/task").glob("*/status"))


def is_pending(pid: int, number: int) -> bool:
    """Whether a signal waits for a process that stands still."""
    return _is_in_mask(pid, "(?:Sig|Shd)Pnd", number)


def _is_in_mask(pid: int, mask: str, number: int) -> bool:
    """Whether a signal is in one of the masks of a process; not when the process has gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return any(int(bits, 16) >> (number - 1) & 1 for bits in re.findall(rf"{mask}:\t(\w+)", status))


def _name_of(stat: Path) -> str:
    """The name of a process by its file in /proc; empty when it has gone."""
    try:
        return stat.read_text().partition("(")[2].rpartition(")")[0]
    except OSError:
        return ""


def _parent_of(stat: Path) -> int | None:
    """The parent of a process by its file in /proc; None when it has gone."""
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
