"""Signals that ask a program to stop, and processes that stop with the one that started them."""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""Ctrl-C, a request of the system or of a scheduler, a terminal that closes, and what schedulers announce the end of a
job by."""
_SIGNAL_OF_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2): the signal that a process gets when its parent dies."""
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@contextmanager
def stops_go_to(handler: Callable[[int], None]) -> Iterator[None]:
    """Hand the number of every ``STOPS`` that comes to ``handler`` for a while, in this process alone: processes that
    are forked meanwhile end by them.

    SIGHUP stays ignored where it was when the program began (``nohup``). Only the main thread may change handlers; in
    others nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()

    def handle(number: int, frame: object) -> None:
        if os.getpid() == owner:
            handler(number)
            return
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = {number: signal.signal(number, handle) for number in STOPS
              if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)


def get_when_parent_dies(number: int) -> None:
    """Let this process have a signal at the death of the one that started it; nothing where the system lacks that."""
    if _LIBC is not None:
        _LIBC.prctl(_SIGNAL_OF_PARENT, number)


def follow_parent(parent: int) -> None:
    """In a worker: leave Ctrl-C and closed terminals to the process ``parent``, and die with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    get_when_parent_dies(signal.SIGKILL)
    if os.getppid() != parent:  # it died before: the same command may be at work again by now
        os._exit(1)
