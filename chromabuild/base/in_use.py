"""A folder that one process works in at a time."""

import errno
import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chromabuild.base.errors import BusyError
from chromabuild.base.files import cannot_write

LOCK_NAME = ".in_use"
LINGER_SECONDS = 60.0
"""How long what a dead process has started, such as an engine that writes its last checkpoint, is waited for."""
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_held: dict[Path, tuple[int, int]] = {}
"""Lock file to the thread that holds it and the descriptor of the open file."""


@contextmanager
def in_use(folder: str | Path, is_lock_kept: bool = True) -> Iterator[None]:
    """Hold a folder, made if need be, for this thread; within, the same thread may hold it again.

    The lock file stays, unless not ``is_lock_kept``: in folders that are given away.

    The kernel takes the lock back when this process and those that inherited it (``lock_descriptors``) have ended.
    After a process that died the latter are waited for. On a file system without locks there is none.

    Raises BusyError, which names the process, while another holds the folder, ResourceError when it cannot be written.
    """
    path = Path(folder).resolve() / LOCK_NAME
    thread, _ = _held.get(path, (None, None))
    if thread == threading.get_ident():
        yield
        return
    made = [place for place in (path.parent, *path.parent.parents) if not place.exists()]
    lock = _taken(path)
    try:
        _held[path] = threading.get_ident(), lock
        try:
            _tell(lock, f"{os.getpid()} {socket.gethostname()} {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
            yield
        finally:
            del _held[path]
            _tell(lock, "")
            if not is_lock_kept:
                path.unlink(missing_ok=True)
            _remove_empty(path, made)
            # Closing alone would leave it to a child that still has the file open.
            _lock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)


def _taken(path: Path) -> int:
    """Descriptor of the lock file, made if need be and held."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            _take(lock, path)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), path.stat()):
                    return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # its last holder removed it meanwhile


def _remove_empty(path: Path, made: list[Path]) -> None:
    """Remove the folders that were made for a lock file, where nothing else came to them."""
    if made and [*path.parent.iterdir()] in ([], [path]):
        path.unlink(missing_ok=True)
        with suppress(OSError):  # one that is not empty
            for place in made:
                place.rmdir()


def lock_descriptors() -> tuple[int, ...]:
    """Open files of the locks that this process holds, for a child that must not outlive them."""
    return tuple(lock for _, lock in _held.values())


def _take(lock: int, path: Path) -> None:
    deadline = time.monotonic() + LINGER_SECONDS
    while not _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
        holder, is_dead = _holder(path)
        if not is_dead or time.monotonic() > deadline:
            who = "an engine that another chromabuild has left" if is_dead else "another chromabuild"
            raise BusyError(f"{who} is at work in {path.parent} ({holder}): wait for it, stop it, or choose another "
                            "output folder")
        time.sleep(0.1)


def _lock(lock: int, operation: int) -> bool:
    """Whether the operation was done; on a file system without locks it counts as done."""
    try:
        fcntl.flock(lock, operation)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
    return True


def _holder(path: Path) -> tuple[str, bool]:
    """Who holds a lock, in words, and whether it was a process of this machine that has died since."""
    try:
        process, host, since = path.read_text(encoding="utf-8").split(maxsplit=2)
    except (OSError, ValueError):  # it is just beginning or ending
        return "process unknown", False
    is_dead = host == socket.gethostname() and not Path(f"/proc/{process}").exists() and Path("/proc/self").exists()
    return f"process {process} on {host}, since {since.strip()}", is_dead


def _tell(lock: int, who: str) -> None:
    """Leave the name of the holder for others; a full disk does without."""
    with suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, who.encode(), 0)
