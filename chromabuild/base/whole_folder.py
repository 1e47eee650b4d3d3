"""Files of one result that appear together, or not at all, in a folder that one process writes at a time."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from chromabuild.base.errors import ResourceError
from chromabuild.base.files import cannot_write, part_of, remove_leftovers
from chromabuild.base.in_use import in_use


@contextmanager
def whole_folder(folder: str | Path, last: Sequence[str]) -> Iterator[Path]:
    """A temporary folder within ``folder``, which is made, whose files replace those of the same names there when the
    block ends without an error.

    Files named in ``last``, by which others know the result, come last: where one is, all are. What killed processes
    left of the same result is removed. Raises ResourceError when the disk is full, BusyError, which names the process,
    while another writes there; the old files are kept.
    """
    folder = Path(folder)
    with in_use(folder, is_lock_kept=False):
        remove_leftovers(folder, last)
        part = part_of(folder / last[0])
        try:
            part.mkdir()
            yield part
            _move(part, folder, last)
        except ResourceError as error:
            raise ResourceError(str(error).replace(str(part), str(folder))) from error
        except OSError as error:
            named = Path(error.filename) if isinstance(error.filename, str) else folder
            if not named.is_relative_to(folder):
                raise
            raise cannot_write(str(named).replace(str(part), str(folder)), error) from error
        finally:
            with suppress(OSError):
                shutil.rmtree(part)


def _move(part: Path, folder: Path, last: Sequence[str]) -> None:
    found = [path.relative_to(part) for path in sorted(part.rglob("*"))]
    for name in sorted(found, key=lambda name: str(name) in last):
        if (part / name).is_dir():
            (folder / name).mkdir(exist_ok=True)
        else:
            os.replace(part / name, folder / name)
