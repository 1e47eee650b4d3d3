"""Checkpoints of dynamics in OpenMM: where a phase goes on that was stopped, killed, or made longer."""

import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import openmm
from openmm import unit

from chromabuild.base.duration import minutes_of
from chromabuild.base.files import atomic_path, open_growing
from chromabuild.base.stop_signals import stops_go_to
from chromabuild.simulate.protocol import PlannedPhase, Task


@dataclass(frozen=True)
class Checkpoint:
    """Positions, nm, velocities, nm/ps, and box vectors, nm, after a step, and how long the files were."""

    step: int
    position: np.ndarray
    velocity: np.ndarray
    box: np.ndarray
    log_bytes: int
    trajectory_bytes: int
    frames: int

    def restore(self, context: openmm.Context) -> None:
        """Put the state into a context."""
        context.setPeriodicBoxVectors(*self.box)
        context.setPositions(self.position)
        context.setVelocities(self.velocity)

    def write(self, path: Path) -> None:
        """Write it by atomic rename."""
        with atomic_path(path) as part, open(part, "wb") as file:
            np.savez(file, **asdict(self))


def checkpoint_path(task: Task, phase: PlannedPhase) -> Path:
    """Where the checkpoint of a phase is."""
    return task.folder / phase.checkpoint.replace("().rst", "state.npz")


def read_checkpoint(task: Task, phase: PlannedPhase) -> Checkpoint | None:
    """The checkpoint of a phase whose files are still there; None where there is none that holds."""
    try:
        with np.load(checkpoint_path(task, phase)) as found:
            values = {name: found[name] for name in found.files}
        single = ("step", "log_bytes", "trajectory_bytes", "frames")
        checkpoint = Checkpoint(**values | {name: int(values[name]) for name in single})
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None
    files = [(task.folder / phase.log, checkpoint.log_bytes)]
    if phase.trajectory:
        files.append((task.folder / phase.trajectory, checkpoint.trajectory_bytes))
    return checkpoint if all(path.is_file() and path.stat().st_size >= size for path, size in files) else None


def cut_to(checkpoint: Checkpoint, task: Task, phase: PlannedPhase) -> None:
    """Take from the files what was written after the checkpoint."""
    os.truncate(task.folder / phase.log, checkpoint.log_bytes)
    if phase.trajectory:
        path = task.folder / phase.trajectory
        os.truncate(path, checkpoint.trajectory_bytes)
        with open_growing(path, "r+") as file:  # number of frames, as the writer of OpenMM takes it from the header
            file.seek(8)
            file.write(int(checkpoint.frames).to_bytes(4, "little"))


class CheckpointWriter:
    """Writes checkpoints of a phase, each ``dynamics.checkpoint`` of wall-clock time."""

    def __init__(self, task: Task, phase: PlannedPhase, context: openmm.Context) -> None:
        self._task, self._phase, self._context = task, phase, context
        self._interval = 60 * minutes_of(task.dynamics.checkpoint) or np.inf
        self._next = time.monotonic() + self._interval

    def is_due(self) -> bool:
        """Whether the interval has passed."""
        return time.monotonic() >= self._next

    def write(self, step: int, frames: int) -> None:
        """Checkpoint after ``step``; log and trajectory must have been flushed. Raises FloatingPointError where a
        position is no number: the checkpoint before is kept."""
        state = self._context.getState(getPositions=True, getVelocities=True)
        position = _plain(state.getPositions(asNumpy=True), unit.nanometer)
        if not np.isfinite(position).all():
            raise FloatingPointError("a position is no number")
        folder, phase = self._task.folder, self._phase
        Checkpoint(
            step=step, position=position,
            velocity=_plain(state.getVelocities(asNumpy=True), unit.nanometer / unit.picosecond),
            box=_plain(state.getPeriodicBoxVectors(asNumpy=True), unit.nanometer),
            log_bytes=(folder / phase.log).stat().st_size,
            trajectory_bytes=(folder / phase.trajectory).stat().st_size if phase.trajectory else 0, frames=frames,
        ).write(checkpoint_path(self._task, phase))
        with atomic_path(folder / phase.checkpoint_mark) as part:
            part.write_text(f"step {step}\nfirst_step {phase.first_step}\n", encoding="ascii")
        self._next = time.monotonic() + self._interval


def _plain(values: unit.Quantity, wanted: unit.Unit) -> np.ndarray:
    return np.array(values.value_in_unit(wanted), dtype=float)


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Gives what tells whether one of ``STOPS`` has come, which do nothing else in the block."""
    came = threading.Event()
    with stops_go_to(lambda _: came.set()):
        yield came.is_set
