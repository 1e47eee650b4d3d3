"""Memory of this process and of all that it starts, looked up while they run."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


def family() -> list[int]:
    """This process, and those that descend from it."""
    found, new = [], [os.getpid()]
    while new:
        found += new
        new = [int(child) for pid in new for path in Path(f"/proc/{pid}/task").glob("*/children")
               for child in _text(path).split()]
    return found


def memory_of(processes: list[int]) -> int:
    """Sum of their proportional set sizes, bytes; of those that have ended nothing."""
    rollups = [_text(Path(f"/proc/{pid}/smaps_rollup")).partition("\nPss:")[2].split() for pid in processes]
    return sum(1024 * int(words[0]) for words in rollups if words)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""


class MemoryWatch:
    """Largest memory of the family while a block runs, by what it is doing.

        with MemoryWatch(lambda: phase) as watch:
            ...
        watch.peak  # {"one phase": bytes, ...}
    """

    def __init__(self, label: Callable[[], str] = lambda: "all", interval: float = 0.5, skipped: int = 0) -> None:
        """``label`` says what is being done; ``interval``: seconds between looks; ``skipped``: how many of the family,
        this process first, do not count."""
        self.peak: dict[str, int] = {}
        self._label, self._interval, self._skipped = label, interval, skipped
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    @property
    def largest(self) -> int:
        """Of all, bytes."""
        return max(self.peak.values(), default=0)

    def _look(self) -> None:
        while not self._stop.wait(self._interval):
            label = self._label()
            self.peak[label] = max(self.peak.get(label, 0), memory_of(family()[self._skipped:]))

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
