"""How far a run is, from the files that it is writing: nothing is asked of the run itself, and nothing locked."""

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from chromabuild.simulate.energy_log import TableReader
from chromabuild.simulate.protocol import PlannedPhase, Row

State = Literal["done", "running", "quiet", "stopped", "waiting"]
MOST_ROWS = 4000
"""Rows kept of a log; of a longer one every second, fourth, ... row."""
_SEEN_BYTES = 256
"""Bytes before the place reached in a log that must not have changed, or else it is read anew."""
_LEAST_SILENCE, _SILENT_PERIODS = 120.0, 5.0
"""A run that has written nothing for so many seconds, and so many times as long as an output takes, is quiet."""
_RATE_SECONDS = 900.0
"""The speed is that of so many last seconds."""
_CONTINUED = "continued from the checkpoint at step"


class LogTail:
    """Reads what was appended to an energy table since the last look, and keeps a bounded number of rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reset()

    def _reset(self) -> None:
        self.rows: list[Row] = []
        self.last: Row | None = None
        self.begin_step = 0.0
        """Step at which the process that writes the log began."""
        self.atoms: int | None = None
        self._stride, self._count, self._offset, self._seen, self._reader = 1, 0, 0, b"", TableReader()

    def look(self) -> None:
        """Read on. A log that was cut or replaced is read from its beginning; one that is not there has no rows."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset - len(self._seen))
                if file.read(len(self._seen)) != self._seen:
                    self._reset()
                file.seek(self._offset)
                text = file.read()
        except OSError:
            self._reset()
            return
        text = text[:text.rfind(b"\n") + 1]  # a line that is being written is left for the next look
        self._offset += len(text)
        self._seen = (self._seen + text)[-_SEEN_BYTES:]
        for line in text.decode("utf-8", errors="replace").splitlines():
            self._take(line)

    def _take(self, line: str) -> None:
        row = self._reader.row(line)
        if row is None:
            if line.startswith(_CONTINUED):
                self.begin_step = float(line.split()[-1])
            elif self.atoms is None and " atoms, " in line:
                self.atoms = int(line.split(" atoms, ")[0].split()[-1])
            return
        if self.last is None:
            self.begin_step = row["STEP"]
        self.last = row
        if self._count % self._stride == 0:
            self.rows.append(row)
            if len(self.rows) > MOST_ROWS:
                self.rows = self.rows[::2]
                self._stride *= 2
        self._count += 1

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """Name to (rows,) float64 of the rows that are kept and of the last one; none where the log has no rows."""
        rows = self.rows if self.last is None or self.rows[-1] is self.last else [*self.rows, self.last]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}


@dataclass
class LivePhase:
    """One phase, as far as it has come."""

    plan: PlannedPhase
    tail: LogTail
    state: State = "waiting"
    steps_done: int = 0
    seconds_per_step: float | None = None
    """Of the steps just done, or of the whole phase once that is done."""
    seconds_left: float | None = None
    message: str = ""
    """Why it stopped, where the engine said so."""
    checkpoint_age: float | None = None
    """Seconds since the last checkpoint; None where there is none."""
    checkpoint_step: int | None = None
    silence: float | None = None
    """Seconds since its files changed."""
    _marks: list[tuple[float, float]] = field(default_factory=list, repr=False)

    @property
    def share(self) -> float:
        """Finished share of the steps."""
        return min(1.0, self.steps_done / self.plan.steps)

    @property
    def ns_per_day(self) -> float | None:
        """Simulated time a day, of dynamics."""
        if self.plan.kind != "dynamics" or not self.seconds_per_step:
            return None
        return 86400e-6 * self.plan.timestep / self.seconds_per_step

    def look(self, folder: Path, reached: bool, now: float) -> None:
        """Bring everything up to date. ``reached``: the phases before this one are done; ``now``: s since 1970."""
        self.message, self.checkpoint_age, self.checkpoint_step, self.silence = "", None, None, None
        if not reached:
            self.state, self.steps_done, self._marks = "waiting", 0, []
            return
        record = _json(folder / self.plan.record)
        if record is not None and record.get("description", {}).get("phase", {}).get("steps") == self.plan.steps:
            self.tail.look()
            self.state, self.steps_done = "done", self.plan.steps
            self.seconds_per_step = record.get("seconds_per_step") or self.seconds_per_step
            return
        begun = _changed(folder / self.plan.begun)
        if begun is None:
            self.state, self.steps_done, self._marks = "waiting", 0, []
            return
        launched = max(begun, _changed(folder / f"{self.plan.stem}.inp") or begun)
        written = _changed(folder / self.plan.log)
        if written is None or written < begun:  # a log that is there is of an earlier attempt
            self.steps_done, self._marks = 0, []
        else:
            self.tail.look()
            self._measure_speed(written, launched)
        self._read_checkpoint(folder, now)
        self.silence = max(0.0, now - max(written or launched, launched, now - (self.checkpoint_age or now)))
        period = (self.seconds_per_step or 0.0) * self.plan.output_period
        self.state = "quiet" if self.silence > max(_LEAST_SILENCE, _SILENT_PERIODS * period) else "running"
        self.message = _sentence(folder / f"{self.plan.stem}.out")
        if self.message:
            self.state = "stopped"

    def _measure_speed(self, written: float, launched: float) -> None:
        """``written``: when the log was changed; ``launched``: when the engine was started, both s since 1970."""
        last = self.tail.last
        first = self.plan.first_step if self.plan.kind == "dynamics" else 0
        self.steps_done = max(0, int(last["STEP"]) - first) if last else 0
        start = (launched, self.tail.begin_step)
        if not self._marks or self._marks[0] != start:
            self._marks = [start]
        if last is None or written <= launched or last["STEP"] <= self._marks[-1][1]:
            return
        self._marks.append((written, last["STEP"]))
        while len(self._marks) > 3 and written - self._marks[2][0] > _RATE_SECONDS:
            del self._marks[1]
        # The time of the first mark holds the start of the engine: it does not count once there are two others.
        (begin, from_step), (end, to_step) = self._marks[1 if len(self._marks) > 2 else 0], self._marks[-1]
        if end > begin:
            self.seconds_per_step = (end - begin) / (to_step - from_step)

    def _read_checkpoint(self, folder: Path, now: float) -> None:
        mark = folder / self.plan.checkpoint_mark
        changed = _changed(mark)
        if changed is None:
            return
        self.checkpoint_age = max(0.0, now - changed)
        try:
            words = mark.read_text(encoding="utf-8", errors="replace").split()
            self.checkpoint_step = int(words[words.index("step") + 1])
        except (OSError, ValueError, IndexError):
            self.checkpoint_step = None


class LiveRun:
    """All phases of a run that goes on, or has ended, or has not begun."""

    def __init__(self, folder: Path, plan: tuple[PlannedPhase, ...]) -> None:
        self.folder = folder
        self.phases = [LivePhase(phase, LogTail(folder / phase.log)) for phase in plan]

    def look(self, now: float | None = None) -> None:
        """Read what is new."""
        now = time.time() if now is None else now
        reached = True
        for phase in self.phases:
            phase.look(self.folder, reached, now)
            reached = phase.state == "done"
        speed = {phase.plan.kind: phase.seconds_per_step for phase in self.phases if phase.seconds_per_step}
        for phase in self.phases:
            each = phase.seconds_per_step or speed.get(phase.plan.kind)
            left = phase.plan.steps - phase.steps_done
            phase.seconds_left = 0.0 if phase.state == "done" else left * each if each else None

    @property
    def is_done(self) -> bool:
        """Whether the last phase has ended."""
        return all(phase.state == "done" for phase in self.phases)

    @property
    def current(self) -> LivePhase:
        """The phase at work, or the next, or the last."""
        return next((phase for phase in self.phases if phase.state != "done"), self.phases[-1])

    @property
    def atoms(self) -> int | None:
        """Atoms of the system, once a log has told."""
        return next((phase.tail.atoms for phase in self.phases if phase.tail.atoms), None)

    @property
    def seconds_left(self) -> float | None:
        """Estimated time to the end of the last phase; None while the speed of one is unknown."""
        parts = [phase.seconds_left for phase in self.phases]
        return None if None in parts else sum(part for part in parts if part is not None)


def _changed(path: Path) -> float | None:
    """When a file was changed, s since 1970; None where there is none."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _json(path: Path) -> dict | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _sentence(output: Path) -> str:
    """The engine's sentence about why it ended, empty where there is none."""
    prefix = "chromamd: "
    try:
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.removeprefix(prefix) for line in lines if line.startswith(prefix)), "")
