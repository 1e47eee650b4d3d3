"""HDF5 files that appear whole or not at all, on a full disk too."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from chromabuild.base.files import atomic_path

HARMED = (OSError, KeyError, ValueError, TypeError, IndexError, AttributeError, RuntimeError, MemoryError)
"""What h5py, or whoever takes what it reads, makes of a damaged file."""

CHECKED = {"libver": ("v110", "v110")}
"""Options of a file whose headers carry checksums: HDF5 refuses damaged ones, where others may hold it for ever."""


@contextmanager
def written_hdf5(path: str | Path, **options: object) -> Iterator[h5py.File]:
    """A new file to fill, which replaces ``path`` when the block ends without an error; options as of ``h5py.File``.

    It is filled in memory and then written at once: HDF5 does not survive a write that fails while it closes a file.
    Raises ResourceError when the folder cannot be written or the disk is full; the old file, if any, is kept.
    """
    image = io.BytesIO()
    with h5py.File(image, "w", **options) as file:
        yield file
    with atomic_path(path) as part:
        part.write_bytes(image.getbuffer())


def put(group: h5py.Group, name: str, values: object, **options: object) -> None:
    """A dataset at a path below a group; options as of ``create_dataset``.

    HDF5 writes the time into each group that it makes on the way, so that a second writing has other bytes: here they
    are made without.
    """
    *folders, own = name.split("/")
    for folder in folders:
        group = group[folder] if folder in group else group.create_group(folder, track_times=False)
    group.create_dataset(own, data=np.asarray(values), track_times=False, **options)
