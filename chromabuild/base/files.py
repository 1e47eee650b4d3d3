"""Where the bundled molecular data lie, checksums of files, and files that appear whole or not at all."""

import errno
import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryFile

from blake3 import blake3

from chromabuild.base.errors import BadInputError, ResourceError

_PART = re.compile(r"\.(?P<name>.+)\.(?P<process>\d{1,9})\.part")
"""Temporary name of a file that a process is writing."""


def template_path(name: str) -> Path:
    """Path of a bundled data file, e.g. ``residues.json``: inside the installed package or in the source tree."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / name).exists():
            return folder / name
    raise BadInputError(f"bundled data file {name} is missing: reinstall chromabuild")


def file_names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """The files that a setting names: one, several or none."""
    return (value,) if isinstance(value, str) and value else tuple(value or ())


def file_hash(path: str | Path) -> str:
    """blake3 of a file, hexadecimal; the file is read in pieces."""
    digest = blake3()
    with open(path, "rb") as handle:
        while block := handle.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def check_folder(folder: str | Path) -> None:
    """Raises ResourceError where no file can be written in a folder that is there, or that is to be made.

    It is tried, with a file without a name, and nothing is left behind.
    """
    there = next(path for path in (Path(folder), *Path(folder).resolve().parents) if path.is_dir())
    try:
        with TemporaryFile(dir=there):
            return
    except OSError as error:
        said = error.strerror if there == Path(folder) else f"{error.strerror or error} in {there}"
        raise ResourceError(f"cannot write {folder}: {said}; choose another output folder") from error


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path in the target's folder that replaces the target when the block ends without an error.

    Raises ResourceError when the folder cannot be written or the disk is full; the old file, if any, is kept.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield part
        with open(part, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(part, target)
    except OSError as error:
        if error.filename is not None and Path(error.filename) not in (part, target, target.parent):
            raise
        raise ResourceError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # a disk that fails here has told already
            part.unlink()


def remove_leftovers(folder: Path, names: Iterable[str] = ("*",)) -> None:
    """Remove what processes that were killed on this machine left of files of these names, or patterns of them."""
    names = tuple(names)
    if not folder.is_dir():
        return
    for entry in os.scandir(folder):
        part = _PART.fullmatch(entry.name)
        if part and any(fnmatchcase(part["name"], name) for name in names) and not _is_alive(int(part["process"])):
            Path(entry.path).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    return True


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, made if need be, waiting while another process holds it.

    The kernel takes it back from a process that dies. On a file system without locks there is none: what is done under
    it must be right when several do it. Raises ResourceError when the file cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open(path, "a")
    except OSError as error:
        raise ResourceError(f"cannot write {path}: {error.strerror or error}") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
        yield
