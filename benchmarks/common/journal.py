"""What single trials have given, line by line in a file, so that the runs of several days add up."""

import json
import time
import zlib
from pathlib import Path


class Journal:
    """Results of trials by key; a trial that is kept is not made again.

    A line is ``[key, result]`` in JSON, appended as soon as a trial ends. A last line that was cut off is left out.
    """

    def __init__(self, path: Path | None, seconds: float, share: tuple[int, int] = (1, 1)) -> None:
        """``path``: None keeps nothing; no trial begins after so many ``seconds``; ``share`` (k, n): the k-th of n runs
        side by side, which make a part of the trials each. Keys that end with ``of`` and the same words stay together.
        """
        self._path, self._share = path, share
        self._end = self._until = time.monotonic() + seconds
        self._found: dict[str, object] = {}
        self.made = 0
        """Trials of this run; the others were in the file."""
        if path is not None and path.exists():
            whole, _, _ = path.read_text().rpartition("\n")
            self._found = {key: result for key, result in map(json.loads, whole.splitlines())}
            path.write_text(whole + "\n" if whole else "")

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def __getitem__(self, key: str) -> object:
        return self._found[key]

    def __setitem__(self, key: str, result: object) -> None:
        self._found[key] = result
        self.made += 1
        if self._path is not None:
            with open(self._path, "a") as file:
                file.write(json.dumps([key, result]) + "\n")

    @property
    def kept(self) -> int:
        """Trials of earlier runs."""
        return len(self._found) - self.made

    def share_out(self, parts: int) -> None:
        """Give the next of so many parts its share of the time that is left."""
        now = time.monotonic()
        self._until = now + max(0.0, self._end - now) / parts

    @property
    def is_late(self) -> bool:
        """Whether no further trial is to begin."""
        return time.monotonic() > self._until

    def todo(self, keys: list[str]) -> list[str]:
        """Keys without a result, of the share of this run."""
        k, n = self._share
        return [key for key in keys
                if key not in self._found and zlib.crc32(key.rpartition(" of ")[2].encode()) % n == k - 1]

    def results(self, keys: list[str]) -> list:
        """Of those keys that have one."""
        return [self._found[key] for key in keys if key in self._found]
