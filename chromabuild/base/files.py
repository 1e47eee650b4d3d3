"""Where the bundled molecular data lie, checksums of files, and files that appear whole or not at all."""

import errno
import fcntl
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal

from blake3 import blake3

from chromabuild.base.errors import BadInputError, ResourceError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_PART = re.compile(r"\.(?P<name>.+)\.(?P<process>\d{1,9})\.part")
"""Temporary name of a file, or a folder of files, that a process is writing."""
_parts_seen: dict[Path, dict[str, list[Path]]] = {}
"""Folder to the parts that lay there when this process first wrote into it."""
_SPACE = "free some disk space or choose another output folder"
_REMEDIES = {errno.EFBIG: "raise the limit on sizes of files (`ulimit -f`) or choose another output folder",
             errno.EACCES: "choose an output folder that you may write", errno.EROFS: "choose another output folder",
             errno.EPERM: "choose an output folder that you may write", errno.ENOTDIR: "choose another output folder",
             errno.EIO: "check the disk or choose another output folder", errno.ENAMETOOLONG: "choose a shorter name"}
"""What to do where the system refuses to write; ``_SPACE`` in all other cases."""


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


def remedy_of(error: OSError) -> str:
    """What a user can do about an error of the system while a file is written."""
    return _REMEDIES.get(error.errno or 0, _SPACE)


def cannot_write(path: str | Path, error: OSError) -> ResourceError:
    """The error to raise where the system refuses to write a file: it names the file, the reason and the remedy."""
    return ResourceError(f"cannot write {path}: {error.strerror or error}; {remedy_of(error)}")


class _Growing(io.FileIO):
    """A file whose errors of writing name it and the remedy."""

    def write(self, data: "ReadableBuffer") -> int | None:
        try:
            return super().write(data)
        except OSError as error:
            raise cannot_write(self.name, error) from error


def open_growing(path: str | Path, mode: Literal["a", "w", "r+"]) -> io.BufferedWriter | io.BufferedRandom:
    """A binary file that other programs read while it is written, and that keeps what it has when a write fails.

    Raises ResourceError at each write, flush and close that the disk refuses, and what ``open`` raises.
    """
    file = _Growing(path, mode)
    return io.BufferedRandom(file) if mode == "r+" else io.BufferedWriter(file)


def part_of(target: Path) -> Path:
    """The path under which this process writes a file, or a folder, that appears whole."""
    return target.with_name(f".{target.name}.{os.getpid()}.part")


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

    What killed processes left of the target is removed.

    Raises ResourceError when the folder cannot be written or the disk is full; the old file, if any, is kept.
    """
    target = Path(path)
    part = part_of(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers_of(target)
        yield part
        with open(part, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(part, target)
    except OSError as error:
        if error.filename is not None and Path(error.filename) not in (part, target, target.parent):
            raise
        raise cannot_write(target, error) from error
    finally:
        with suppress(OSError):  # a disk that fails here has told already
            part.unlink()


def remove_leftovers(folder: Path, names: Iterable[str] = ("*",)) -> None:
    """Remove what processes that were killed on this machine left of files of these names, or patterns of them."""
    names = tuple(names)
    for target, paths in _parts_in(folder).items():
        if any(fnmatchcase(target, name) for name in names):
            _remove_dead(paths)


def _remove_leftovers_of(target: Path) -> None:
    """The same for a file that is about to be written. A process looks once into a folder, which may hold 100,000
    files, and so takes no part for left that another machine begins later."""
    folder = Path(os.path.abspath(target.parent))
    if folder not in _parts_seen:
        _parts_seen[folder] = _parts_in(folder)
    _remove_dead(_parts_seen[folder].pop(target.name, []))


def _parts_in(folder: Path) -> dict[str, list[Path]]:
    """Names of files to the parts of them that lie in a folder."""
    found: dict[str, list[Path]] = {}
    for entry in os.scandir(folder) if folder.is_dir() else ():
        if part := _PART.fullmatch(entry.name):
            found.setdefault(part["name"], []).append(Path(entry.path))
    return found


def _remove_dead(paths: Iterable[Path]) -> None:
    """Remove those of some parts whose processes have ended."""
    for path in paths:
        part = _PART.fullmatch(path.name)
        if part and not _is_alive(int(part["process"])):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


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
        raise cannot_write(path, error) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
        yield
