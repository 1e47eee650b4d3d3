"""A function applied to many tasks by processes that are forked from this one.

They see everything that this process holds without a copy, and have a pipe each: none waits for a lock that another
one held when it died, and the death of one is noticed. They end by SIGKILL: a fork that has not run yet forgets every
signal for which its parent has a handler in Python, so that the SIGTERM of multiprocessing.Pool may leave it waiting
for ever. No OpenMP thread may start in them, since a fork has none of the threads that the library believes in.
"""

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import TypeVar

from chromabuild.base.errors import ResourceError
from chromabuild.base.stop_signals import follow_parent

_BATCHES = 64  # for each process: few messages, and nobody waits long for the last one
_AHEAD = 2  # batches that a process has got, so that it does not wait for the next one

Task = TypeVar("Task")
Result = TypeVar("Result")


def can_fork() -> bool:
    """Whether this system has forks."""
    return "fork" in multiprocessing.get_all_start_methods()


def map_in_forks(function: Callable[[Task], Result], tasks: Sequence[Task], processes: int) -> Iterator[Result]:
    """``function`` of every task, in order, by ``processes`` processes. They do not see what this process changes
    after the first result was asked for.

    Raises what ``function`` raises, and ResourceError when a process was killed.
    """
    size = max(1, len(tasks) // (_BATCHES * processes))
    batches = [tasks[first:first + size] for first in range(0, len(tasks), size)]
    workers: list[ForkProcess] = []
    running: dict[Connection, int] = {}
    try:
        for _ in range(min(processes, len(batches))):
            worker, connection = _started(function, batches)
            workers.append(worker)
            running[connection] = 0
        yield from _in_order(batches, running)
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()


def _started(function: Callable[[Task], Result], batches: list[Sequence[Task]]) -> tuple[ForkProcess, Connection]:
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    worker = context.Process(target=_work, args=(os.getpid(), theirs, function, batches))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside idle threads, as those of OpenMP are
        worker.start()
    theirs.close()
    return worker, mine


def _in_order(batches: list[Sequence[Task]], running: dict[Connection, int]) -> Iterator:
    """Hand out batches by number and yield the results in order; ``running`` counts those that each process has."""
    waiting, done, following = iter(range(len(batches))), {}, 0
    for _ in range(_AHEAD):
        for connection in running:
            _give(connection, waiting, running)
    while following < len(batches):
        for connection in wait([connection for connection, count in running.items() if count]):
            number, said = _receive(connection)
            if isinstance(said, BaseException):
                raise said
            running[connection] -= 1
            done[number] = said
            _give(connection, waiting, running)
        while following in done:
            yield from done.pop(following)
            following += 1


def _receive(connection: Connection) -> tuple[int, list | Exception]:
    try:
        return connection.recv()
    except (EOFError, ConnectionError):
        raise ResourceError("a process that shared the work was killed, perhaps for want of memory: use fewer --threads"
                            ) from None


def _give(connection: Connection, waiting: Iterator[int], running: dict[Connection, int]) -> None:
    number = next(waiting, None)
    if number is not None:
        running[connection] += 1
        with suppress(BrokenPipeError):  # the process is dead, which is noticed where its answer is read
            connection.send(number)


def _work(parent: int, connection: Connection, function: Callable[[Task], Result],
          batches: list[Sequence[Task]]) -> None:
    """Take numbers of batches until the parent kills this process or dies."""
    follow_parent(parent)
    while True:
        number = connection.recv()
        try:
            said: object = [function(task) for task in batches[number]]
        except Exception as error:
            said = error
        connection.send((number, said))
