"""HDF5 files that appear whole or not at all, on a full disk too."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path

HARMED = (OSError, KeyError, ValueError, TypeError, IndexError, AttributeError, RuntimeError, MemoryError)
"""What h5py, or whoever takes what it reads, makes of a damaged file."""

CHECKED = {"libver": ("v110", "v110")}
"""Options of a file whose headers carry checksums: HDF5 refuses damaged ones, where others may hold it for ever."""


KINDS = {"chromabuild-scaffold": "a scaffold", "chromabuild-solute": "a solute", "chromabuild-topology": "a topology",
         "chromabuild-nucleosome": "a nucleosome template", "chromabuild-placed-solute": "the solute of a shard set",
         "chromabuild-solvation-plan": "the water and ions of a shard set"}
"""What a file is, by its attribute ``format``."""


def check_kind(file: h5py.File, path: str | Path, wanted: str, version: int, remedy: str) -> None:
    """Raises BadInputError unless an open file has the ``wanted`` format and version; ``remedy``: how such a file is
    made, or which one to give."""
    found = file.attrs.get("format", "")
    found = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
    if found == wanted and file.attrs.get("version") == version:
        return
    what = KINDS.get(found, "an HDF5 file of another origin")
    raise BadInputError(f"{path} is {what}{' of another version' * (found == wanted)}, and {KINDS[wanted]} of version "
                        f"{version} is needed: {remedy}")


@contextmanager
def written_hdf5(path: str | Path, **options: object) -> Iterator[h5py.File]:
    """A new file to fill, which replaces ``path`` when the block ends without an error; options as of ``h5py.File``.

    It is filled in memory and then written at once: HDF5 does not survive a write that fails while it closes a file.
    Fill it by ``create_dataset``: in a group that HDF5 makes by itself, as for ``file["a/b"] = values``, stands the
    time, and a second writing has other bytes.
    Raises ResourceError when the folder cannot be written or the disk is full; the old file, if any, is kept.
    """
    image = io.BytesIO()
    with h5py.File(image, "w", **options) as file:
        yield file
    with atomic_path(path) as part:
        part.write_bytes(image.getbuffer())
