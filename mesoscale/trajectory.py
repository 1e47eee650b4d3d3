"""A trajectory file from which sampling goes on as if it had never stopped, to the last bit.

Every block of sweeps fills one frame: the conformation, the tails, and all else that the next block depends on. Random
numbers are keyed by the block, so nothing of a generator needs to be kept.

The file has its whole size from the start: a disk that is too full is known then, HDF5 has nothing left to write while
the file grows, and the bytes are those of the frames, however often the run was stopped. A frame counts once its number
is written, which is last; its checksum tells later whether all of it came to the disk and is still unharmed.
"""

import io
import json
import os
import zlib
from pathlib import Path
from typing import BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

FORMAT = "chromabuild-fibre-trajectory"
VERSION = 2
_COUNT, _CHECKSUM = "finished", "checksum"


class Trajectory:
    """Frames of named arrays, which keep their shapes; `key` (JSON) says of which run, `most` how many it may have."""

    def __init__(self, path: str | Path, key: dict, most: int) -> None:
        """A file that may be there or not, or be of another run."""
        self._path, self._key, self._most = Path(path), json.dumps(key, sort_keys=True), most
        self._file: BinaryIO | None = None
        self._place: dict[str, int | None] = {}
        self._dtype: dict[str, np.dtype] = {}
        self._count = 0

    def last(self) -> tuple[int, dict[str, NDArray]]:
        """Number of finished frames before the first that is damaged, and the last of them; 0 and nothing where no run
        like this was stopped."""
        try:
            with h5py.File(self._path, "r", locking=False) as file:
                if (file.attrs["format"], file.attrs["version"], file.attrs["key"]) != (FORMAT, VERSION, self._key):
                    return 0, {}
                names = [name for name in file if name not in (_COUNT, _CHECKSUM)]
                frames, checksums = int(file[_COUNT][()]), file[_CHECKSUM][...]
                if not 0 < frames < min(self._most, len(checksums)):
                    return 0, {}
                last: dict[str, NDArray] = {}
                for k in range(frames):
                    frame = {name: file[name][k] for name in names}
                    if _checksum(frame) != checksums[k]:
                        return k, last
                    last = frame
                return frames, last
        except (OSError, KeyError, ValueError, TypeError):
            return 0, {}

    def frames(self, name: str, frames: int) -> NDArray:
        """The first so many frames of one array (frames, ...)."""
        with h5py.File(self._path, "r", locking=False) as file:
            return file[name][:frames]

    def begin(self, frames: int, arrays: dict[str, NDArray]) -> None:
        """Make ready to append arrays like these after so many frames; others are given up.

        Raises OSError, which names the file, when the disk has no room for the whole run.
        """
        kept = {name: self.frames(name, frames) for name in arrays} if frames else {}
        self._start(arrays, self._most, kept, frames)

    def append(self, arrays: dict[str, NDArray]) -> None:
        """One more frame, handed to the system when this returns. Raises OSError, which names the file."""
        frame = {name: np.asarray(array, self._dtype[name]) for name, array in arrays.items()}
        frame[_CHECKSUM] = np.array(_checksum(frame), np.uint32)
        for name, array in frame.items():
            place = self._place[name]
            if place is not None:  # an array may be empty
                self._write(place + self._count * array.nbytes, array.tobytes())
        self._count += 1
        self._write(self._place[_COUNT], np.array(self._count, np.int64).tobytes())

    def close(self) -> None:
        """No more frames: a file that has room for more is cut to those that there are."""
        if self._file is None:
            return
        self._file.close()
        self._file = None
        if self._count < self._most:
            frames = {name: self.frames(name, self._count) for name in self._place if name not in (_COUNT, _CHECKSUM)}
            self._start({name: values[0] for name, values in frames.items()}, self._count, frames, self._count)
            self._file.close()
            self._file = None

    def _start(self, arrays: dict[str, NDArray], most: int, kept: dict[str, NDArray], frames: int) -> None:
        """Put a file for `most` frames like `arrays` in place, open and with those `kept`: name to (frames, ...)."""
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        self._dtype = {name: array.dtype for name, array in arrays.items()}
        image = io.BytesIO()
        with h5py.File(image, "w", libver=("v110", "v110")) as file:
            file.attrs.update({"format": FORMAT, "version": VERSION, "key": self._key})
            empty = {name: np.zeros((most, *array.shape), array.dtype) for name, array in arrays.items()}
            empty |= {_CHECKSUM: np.zeros(most, np.uint32), _COUNT: np.zeros((), np.int64)}
            made = {name: file.create_dataset(name, data=values, track_times=False) for name, values in empty.items()}
            self._place = {name: dataset.id.get_offset() for name, dataset in made.items()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            self._file, self._count = open(part, "wb", buffering=0), 0
            self._write(0, image.getbuffer())
            for k in range(frames):
                self.append({name: values[k] for name, values in kept.items()})
            os.replace(part, self._path)  # the open file goes along
        finally:
            part.unlink(missing_ok=True)

    def _write(self, place: int, content: bytes | memoryview) -> None:
        """All of the content behind so many bytes."""
        content = memoryview(content).cast("B")
        try:
            while content:
                done = os.pwrite(self._file.fileno(), content, place)
                place, content = place + done, content[done:]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error


def _checksum(frame: dict[str, NDArray]) -> int:
    """Of a frame's arrays in the order of their names; never that of a frame that was not written."""
    checksum = 1
    for name in sorted(frame):
        checksum = zlib.crc32(np.ascontiguousarray(frame[name]).tobytes(), checksum)
    return checksum
