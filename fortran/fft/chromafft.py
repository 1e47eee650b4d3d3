"""The distributed FFT library from Python, through its C interface. Run under mpirun; no other MPI module is needed."""

import ctypes
import os
from dataclasses import dataclass, field

import numpy as np


class _Options(ctypes.Structure):
    _fields_ = [("scheme", ctypes.c_char * 16), ("transport", ctypes.c_char * 16), ("subset", ctypes.c_char * 16),
                ("grid", ctypes.c_int * 3), ("n_chunks", ctypes.c_int), ("overlap_axes", ctypes.c_int),
                ("n_batch", ctypes.c_int), ("is_real", ctypes.c_int), ("bytes", ctypes.c_int),
                ("wave_order", ctypes.c_int * 3), ("ranks_a_node", ctypes.c_int)]


@dataclass
class Layout:
    """What a rank holds: boxes as rows (x0, y0, z0, x1, y1, z1), corners included, one after the other in memory, each
    with the axes (0, 1, 2 for x, y, z) in `order`, fastest first."""

    boxes: np.ndarray
    order: tuple = (0, 1, 2)

    def __post_init__(self) -> None:
        self.boxes = np.asarray(self.boxes, dtype=np.int32).reshape(-1, 6)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(np.maximum(self.boxes[:, 3:] - self.boxes[:, :3] + 1, 0), axis=1).sum())

    def indices(self) -> np.ndarray:
        """Grid index (x, y, z) of each element, in memory order: int (size, 3)."""
        parts = [np.empty((0, 3), dtype=int)]
        slow_first = list(self.order)[::-1]
        for box in self.boxes:
            axes = [np.arange(box[a], box[a + 3] + 1) for a in slow_first]
            part = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
            parts.append(part[:, [slow_first.index(a) for a in range(3)]])
        return np.concatenate(parts)

    def take(self, array: np.ndarray) -> np.ndarray:
        """This rank's elements of a global array indexed [..., x, y, z]; leading axes are the batch."""
        x, y, z = self.indices().T
        return np.ascontiguousarray(array[..., x, y, z])

    def _numbers(self) -> np.ndarray:
        return np.concatenate([np.asarray(self.order) + 1, self.boxes.ravel()]).astype(np.int32)


@dataclass
class Fft:
    """A plan; all ranks make it, use it and close it together. Options: see fft_options_t of fortran/fft."""

    n: tuple
    scheme: str = "model"
    transport: str = "alltoallv"
    subset: str = "full"
    grid: tuple = (0, 0, 0)
    n_chunks: int = 1
    overlap_axes: bool = True
    n_batch: int = 1
    real: bool = True
    single: bool = False
    wave_order: tuple = (-1, -1, -1)
    ranks_a_node: int = 0
    real_layout: Layout | None = None
    wave_layout: Layout | None = None
    _plan: ctypes.c_void_p = field(default_factory=ctypes.c_void_p, repr=False)

    def __post_init__(self) -> None:
        options = _Options(self.scheme.encode(), self.transport.encode(), self.subset.encode(), tuple(self.grid),
                           self.n_chunks, self.overlap_axes, self.n_batch, self.real, 4 if self.single else 8,
                           tuple(a + 1 for a in self.wave_order), self.ranks_a_node)
        message = ctypes.create_string_buffer(256)
        sides = []
        for layout in (self.real_layout, self.wave_layout):
            numbers = layout._numbers() if layout else np.zeros(3, dtype=np.int32)
            sides += [len(layout.boxes) if layout else -1, numbers.ctypes.data_as(ctypes.c_void_p)]
            numbers.flags.writeable = False  # keeps a reference in this frame
        code = library.chromafft_create(library.chromafft_world(), (ctypes.c_int * 3)(*self.n), ctypes.byref(options),
                                        *sides, ctypes.byref(self._plan), message)
        if code:
            raise ValueError(message.value.decode())
        self.real_layout = self._layout(0)
        self.wave_layout = self._layout(1)

    def _layout(self, side: int) -> Layout:
        count = library.chromafft_layout(self._plan, side, 0, (ctypes.c_int * 3)())
        numbers = (ctypes.c_int * (3 + 6 * count))()
        library.chromafft_layout(self._plan, side, count, numbers)
        return Layout(np.array(numbers[3:]), tuple(a - 1 for a in numbers[:3]))

    @property
    def grid_type(self) -> np.dtype:
        """Of an array on the grid."""
        return np.dtype(("f4" if self.single else "f8") if self.real else self.wave_type)

    @property
    def wave_type(self) -> np.dtype:
        """Of an array of waves."""
        return np.dtype("c8" if self.single else "c16")

    def start(self, direction: int, source: np.ndarray, target: np.ndarray) -> None:
        """Begin forward (1) or backward (2) between this rank's arrays; then progress() until True, or finish()."""
        for array, is_grid in ((source, direction == 1), (target, direction == 2)):
            layout, kind = (self.real_layout, self.grid_type) if is_grid else (self.wave_layout, self.wave_type)
            if array.dtype != kind or array.size != self.n_batch * layout.size or not array.flags.c_contiguous:
                raise ValueError(f"the plan wants {self.n_batch * layout.size} contiguous {kind}, not {array.size} "
                                 f"{array.dtype}")
        library.chromafft_start(self._plan, direction, source.ctypes.data_as(ctypes.c_void_p),
                                target.ctypes.data_as(ctypes.c_void_p))

    def progress(self) -> bool:
        """Move on without waiting; whether the transform is done."""
        return bool(library.chromafft_progress(self._plan))

    def finish(self) -> None:
        """Wait for the transform."""
        library.chromafft_finish(self._plan)

    def forward(self, grid: np.ndarray) -> np.ndarray:
        """Waves of this rank's grid points."""
        waves = np.full((self.n_batch, self.wave_layout.size), np.nan, dtype=self.wave_type)
        self.start(1, grid, waves)
        self.finish()
        return waves

    def backward(self, waves: np.ndarray) -> np.ndarray:
        """Not normalised; `waves` is kept (the library itself overwrites it)."""
        grid = np.full((self.n_batch, self.real_layout.size), np.nan, dtype=self.grid_type)
        waves = waves.copy()
        self.start(2, waves, grid)
        self.finish()
        return grid

    def counts(self) -> list[list[int]]:
        """(ranks, messages, bytes) of each exchange of the forward transform, as sent by this rank."""
        table = np.zeros((32, 3), dtype=np.int64)
        n = library.chromafft_counts(self._plan, len(table), table.ctypes.data_as(ctypes.c_void_p))
        return table[:n].tolist()

    def choice(self) -> tuple[str, list[int]]:
        """What the planner chose ("scheme subset Px Py Pz"), and the most exchanges and axes under way at once."""
        text = ctypes.create_string_buffer(64)
        under_way = (ctypes.c_int * 2)()
        library.chromafft_choice(self._plan, text, under_way)
        return text.value.decode(), list(under_way)

    def estimate(self) -> float:
        """Seconds of a forward transform by the planner's model."""
        return library.chromafft_estimate(self._plan)

    def close(self) -> None:
        """Give the plan back."""
        library.chromafft_destroy(self._plan)


library = ctypes.CDLL(os.environ["CHROMAFFT_LIBRARY"])
library.chromafft_estimate.restype = ctypes.c_double
library.chromafft_create.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                                     ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
library.chromafft_destroy.restype = None
for _name in ("start", "finish", "choice", "destroy"):
    getattr(library, f"chromafft_{_name}").restype = None


def start_mpi() -> tuple[int, int]:
    """Start MPI; (rank, ranks)."""
    library.MPI_Init(None, None)
    world = ctypes.c_int(library.chromafft_world())
    rank, ranks, error = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.mpi_comm_rank_(ctypes.byref(world), ctypes.byref(rank), ctypes.byref(error))
    library.mpi_comm_size_(ctypes.byref(world), ctypes.byref(ranks), ctypes.byref(error))
    return rank.value, ranks.value


def wait_for_all() -> None:
    """Return when all ranks have come."""
    world, error = ctypes.c_int(library.chromafft_world()), ctypes.c_int()
    library.mpi_barrier_(ctypes.byref(world), ctypes.byref(error))


def stop_mpi() -> None:
    """End MPI."""
    library.MPI_Finalize()
