"""A trajectory file from which sampling goes on as if it had never stopped, to the last bit.

Every block of sweeps appends one frame: the conformation, the tails, and all else that the next block depends on.
Random numbers are keyed by the block, so nothing of a generator needs to be kept. The file is written in HDF5's
single-writer mode: a run that is killed leaves the frames that were finished, and can be read while it grows.
"""

import json
import os
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

FORMAT = "chromabuild-fibre-trajectory"
VERSION = 1


class Trajectory:
    """Frames of named arrays, which keep their shapes; `key` (JSON) says of which run, `most` how many it will have."""

    def __init__(self, path: str | Path, key: dict, most: int) -> None:
        """A file that may be there or not, or be of another run."""
        self._path, self._key, self._most = Path(path), json.dumps(key, sort_keys=True), most
        self._file: h5py.File | None = None

    def last(self) -> tuple[int, dict[str, NDArray]]:
        """Number of finished frames, and the last of them; 0 and nothing where no run like this was stopped."""
        try:
            with h5py.File(self._path, "r", swmr=True) as file:
                if (file.attrs["format"], file.attrs["version"], file.attrs["key"]) != (FORMAT, VERSION, self._key):
                    return 0, {}
                # The counter is written after all else of a frame.
                frames = len(file["finished"])
                if not 0 < frames < self._most:
                    return 0, {}
                return frames, {name: file[name][frames - 1] for name in file if name != "finished"}
        except (OSError, KeyError):
            return 0, {}

    def frames(self, name: str, frames: int) -> NDArray:
        """The first so many frames of one array (frames, ...)."""
        with h5py.File(self._path, "r", swmr=True) as file:
            return file[name][:frames]

    def begin(self, frames: int, arrays: dict[str, NDArray]) -> None:
        """Make ready to append arrays like these after so many frames; others are given up.

        A file whose writer was killed can be read but not written any more: its frames go into a new one.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        file = h5py.File(part, "w", libver="latest")
        file.attrs.update({"format": FORMAT, "version": VERSION, "key": self._key})
        for name, array in arrays.items():
            shape = np.shape(array)
            room = (None, *(size or None for size in shape))  # an empty array has chunks only if it may grow
            chunk = (1, *(max(1, size) for size in shape))
            made = file.create_dataset(name, (frames, *shape), np.asarray(array).dtype, maxshape=room, chunks=chunk)
            if frames:
                made[...] = self.frames(name, frames)
        file.create_dataset("finished", data=np.arange(frames), maxshape=(None,), chunks=(64,))
        file.flush()
        os.replace(part, self._path)  # the open file goes along
        file.swmr_mode = True
        self._file = file

    def append(self, arrays: dict[str, NDArray]) -> None:
        """One more frame, safe on disk when this returns."""
        file = self._file
        frames = len(file["finished"])
        for name, array in arrays.items():
            file[name].resize(frames + 1, axis=0)
            file[name][frames] = array
        file.flush()
        file["finished"].resize(frames + 1, axis=0)
        file["finished"][frames] = frames
        file.flush()

    def close(self) -> None:
        """No more frames."""
        if self._file is not None:
            self._file.close()
            self._file = None
