"""Folds side by side on this machine: a few processes that take one after the other."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from chromabuild.base.errors import ChromabuildError, ResourceError
from chromabuild.base.progress import Progress
from chromabuild.base.stop_signals import follow_parent
from chromabuild.pipeline.ensemble.fold import make_fold

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings

_LOOK = 0.5  # seconds between two looks at how far the folds are

Task = tuple[int, "Settings"]


def make_folds(tasks: Sequence[Task], jobs: int, threads: int, progress: Progress,
               finished: Callable[[int, str], bool]) -> None:
    """Make folds, each a number and its settings, up to ``jobs`` at a time on ``threads`` threads in all.

    ``finished`` gets the number and the state of each that is done, and says whether to go on; if not, those that are
    being made stop where they are. The processes are started afresh, so a script that calls this needs ``if __name__ ==
    "__main__"``. Raises what making a fold raises, and ResourceError when a process was killed.
    """
    if min(jobs, len(tasks)) <= 1:
        for done, (number, settings) in enumerate(tasks):
            state = make_fold(settings, threads, lambda phase, share=None, number=number, done=done: progress(
                f"fold {number}, {phase}", (done + (share or 0.0)) / len(tasks)))
            if not finished(number, state):
                return
        return
    jobs = min(jobs, len(tasks))
    context = multiprocessing.get_context("spawn")  # a fork would copy locks and OpenMP threads in unknown states
    shares = context.Array("d", jobs, lock=False)
    workers, connections = [], []
    try:
        for place in range(jobs):
            mine, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(os.getpid(), theirs, shares, place, max(1, threads // jobs)))
            worker.start()
            theirs.close()
            workers.append(worker)
            connections.append(mine)
        _share_out(tasks, connections, shares, progress, finished)
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()


def _share_out(tasks: Sequence[Task], connections: Sequence[Connection], shares: Sequence[float], progress: Progress,
               finished: Callable[[int, str], bool]) -> None:
    waiting, running, done = list(tasks), {}, 0
    for connection in connections:
        _give(connection, waiting, running)
    while running:
        numbers = ", ".join(map(str, sorted(running.values())))
        progress(f"{done} of {len(tasks)} done, making {numbers}", (done + sum(shares)) / len(tasks))
        for connection in wait(list(running), _LOOK):
            number = running.pop(connection)
            try:
                said = connection.recv()
            except EOFError:
                raise ResourceError(f"the process that made fold {number} was killed, perhaps for want of memory: the "
                                    "same command continues; use fewer --jobs") from None
            if isinstance(said, BaseException):
                raise said
            done += 1
            if not finished(number, said):
                return
            _give(connection, waiting, running)


def _give(connection: Connection, waiting: list[Task], running: dict[Connection, int]) -> None:
    if waiting:
        task = waiting.pop(0)
        connection.send(task)
        running[connection] = task[0]


def _work(parent: int, connection: Connection, shares: Sequence[float], place: int, threads: int) -> None:
    """Take tasks until the parent closes the connection or dies."""
    follow_parent(parent)

    def show(phase: str, share: float | None = None) -> None:
        shares[place] = share or 0.0

    while True:
        try:
            number, settings = connection.recv()
        except EOFError:
            return
        try:
            said: object = make_fold(settings, threads, show)
        except ChromabuildError as error:
            said = type(error)(f"fold {number}: {error}")
        except MemoryError:
            said = ResourceError(f"fold {number}: out of memory: use fewer --jobs")
        except Exception as error:
            said = error
        shares[place] = 0.0
        connection.send(said)
