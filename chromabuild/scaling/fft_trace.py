"""Messages of the distributed FFT (`fortran/fft`): the geometry of its schemes, for any number of ranks.

The same stages as `fft_scheme.f90`: what each rank holds, and the axes of the process grid along which it changes
hands; what two ranks have in common is what one sends the other. tests/fft compares
with the library's own counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chromabuild.scaling.trace import Phase


@dataclass(frozen=True)
class Stage:
    """Boxes that each rank holds, corners included: (ranks, boxes, 3); empty where upper < lower. `among`: axes of the
    process grid along which data arrive."""

    name: str
    lower: np.ndarray
    upper: np.ndarray
    among: tuple[bool, bool, bool]


@dataclass(frozen=True)
class Transform:
    """A 3D transform of `n` points on a `grid` of ranks (x fastest). `scheme`: slab, pencil, 1d, 2d, qcdoc, columns.
    `checker`: lines belong to ranks whose coordinates add up to a multiple of it (1: all, 2: checkerboard).
    `point_bytes`: of a complex number; before the first transform a real grid has half of that. `y_fastest`: the axis
    that runs faster where lines along y are dealt (0 in the library)."""

    n: tuple[int, int, int]
    grid: tuple[int, int, int]
    scheme: str
    real: bool = True
    checker: int = 1
    point_bytes: int = 8
    y_fastest: int = 0

    @property
    def n_ranks(self) -> int:
        return int(np.prod(self.grid))

    @property
    def n_waves(self) -> int:
        return self.n[0] // 2 + 1 if self.real else self.n[0]

    def stages(self) -> list[Stage]:
        place = np.array(np.unravel_index(np.arange(self.n_ranks), self.grid[::-1]))[::-1]
        px, py, pz = self.grid
        n, waves = self.n, self.n_waves
        whole = [np.array([0, m - 1])[:, None] + np.zeros(self.n_ranks, dtype=np.int64) for m in n]
        mine = [share(m, p, place[a]) for a, (m, p) in enumerate(zip(n, self.grid, strict=True))]
        all_kx, my_kx = share(waves, 1, 0 * place[0]), share(waves, px, place[0])
        if self.scheme == "slab":
            if (px, py) != (1, 1):
                raise ValueError(f"slabs need a grid of 1 x 1 x P ranks, not {px} x {py} x {pz}")
            return [_brick("planes", whole[0], whole[1], mine[2], (False, False, False)),
                    _brick("z", all_kx, share(n[1], pz, place[2]), whole[2], (False, False, True))]
        if self.scheme == "pencil":
            kx = share(waves, py, place[1])
            return [_brick("x", whole[0], mine[1], mine[2], (False, False, False)),
                    _brick("y", kx, whole[1], mine[2], (False, True, False)),
                    _brick("z", kx, share(n[1], pz, place[2]), whole[2], (False, False, True))]
        stages = [_brick("bricks", *mine, (False, False, False)),
                  self._lines("x", place, 0, (mine[1], mine[2]), (1, 2), (True, False, False))]
        brick = (my_kx, mine[1], mine[2])
        y_lines = ((my_kx, mine[2]), (0, 2)) if self.y_fastest == 0 else ((mine[2], my_kx), (2, 0))
        if self.scheme in ("1d", "qcdoc"):
            stages += [_brick("x back", *brick, (True, False, False)),
                       self._lines("y", place, 1, *y_lines, (False, True, False)),
                       _brick("y back", *brick, (False, True, False)),
                       self._lines("z", place, 2, (mine[1], my_kx), (1, 0), (False, False, True))]
            if self.scheme == "qcdoc":
                stages.append(_brick("z back", *brick, (False, False, True)))
        elif self.scheme == "2d":
            kx = share(waves, px * py, place[0] + px * place[1])
            stages += [_brick("y", kx, whole[1], mine[2], (True, True, False)),
                       _brick("z", kx, share(n[1], pz, place[2]), whole[2], (False, False, True))]
        elif self.scheme == "columns":
            stages += [self._lines("y", place, 1, *y_lines, (True, True, False)),
                       self._lines("z", place, 2, (mine[1], my_kx), (1, 0), (False, True, True))]
        else:
            raise ValueError(f"no scheme {self.scheme}")
        return stages

    def _lines(self, name: str, place: np.ndarray, axis: int, across: tuple[np.ndarray, np.ndarray],
               axes: tuple[int, int], among: tuple[bool, bool, bool]) -> Stage:
        """Lines along `axis` through the ranges `across` of two other axes (fast, slow), dealt among the owners in a
        row of ranks. A run of lines is a part of a first row, whole rows, and a part of a last one."""
        n_in_row = self.grid[axis]
        others = place.sum(axis=0) - place[axis]
        row = np.arange(n_in_row)
        owns = (others[:, None] + row) % self.checker == 0
        owns[~owns.any(axis=1)] = True
        owners = owns.sum(axis=1)
        mine = np.take_along_axis(owns.cumsum(axis=1) - 1, place[axis][:, None], axis=1)[:, 0]
        holds = np.take_along_axis(owns, place[axis][:, None], axis=1)[:, 0]
        (fast, fast_end), (slow, slow_end) = across
        width = np.maximum(fast_end - fast + 1, 1)
        n_lines = np.maximum(fast_end - fast + 1, 0) * np.maximum(slow_end - slow + 1, 0)
        first, last = share(n_lines, owners, mine)
        first, last = np.where(holds, first, 0), np.where(holds, last, -1)
        first_row, last_row = first // width, last // width
        begin, end = first % width, last % width
        one_row = first_row == last_row
        lower = np.zeros((self.n_ranks, 3, 3), dtype=np.int64)
        upper = np.full((self.n_ranks, 3, 3), -1)
        upper[..., axis] = self.n[axis] - 1
        rows = ((first_row, first_row, begin, np.where(one_row, end, width - 1)),
                (first_row + 1, last_row - 1, 0 * begin, width - 1),
                (last_row, np.where(one_row, last_row - 1, last_row), 0 * begin, end))
        for k, (low, high, left, right) in enumerate(rows):
            lower[:, k, axes[0]], upper[:, k, axes[0]] = fast + left, fast + right
            lower[:, k, axes[1]], upper[:, k, axes[1]] = slow + low, slow + high
        upper[last < first] = -1
        lower[last < first] = 0
        return Stage(name, lower, upper, among)

    def phases(self) -> list[Phase]:
        """The messages of a forward transform, exchange after exchange. Nothing is sent to oneself."""
        return [phase for _, phase in self.pieces(self.n_ranks**2)]

    def pieces(self, chunk: int = 1 << 20, groups: int | None = None) -> Iterator[tuple[int, Phase]]:
        """The same in pieces of about `chunk` pairs of ranks, with the number of the exchange; of the groups of ranks
        that exchange among themselves, only the first `groups`."""
        stages = self.stages()
        place = np.array(np.unravel_index(np.arange(self.n_ranks), self.grid[::-1]))[::-1]
        transformed = False
        for number, (before, after) in enumerate(zip(stages[:-1], stages[1:], strict=True)):
            # The exchange that follows the transform along x carries waves, the one before it points.
            transformed |= number > 0 or self.scheme in ("slab", "pencil")
            bytes_each = self.point_bytes if transformed or not self.real else self.point_bytes // 2
            group = np.zeros(self.n_ranks, dtype=np.int64)
            for axis in range(3):
                if not after.among[axis]:
                    group = group * self.grid[axis] + place[axis]
            members = np.argsort(group, kind="stable").reshape(group.max() + 1, -1)[:groups]
            kinds: dict[bytes, tuple[np.ndarray, ...]] = {}
            at_once = max(1, chunk // members.shape[1] ** 2)
            for start in range(0, len(members), at_once):
                parts = []
                for group_members in members[start:start + at_once]:
                    boxes = _relative(before, after, group_members)
                    kind = boxes.tobytes()
                    if kind not in kinds:
                        kinds[kind] = _common_points(boxes[:, :, :before.lower.shape[1]],
                                                     boxes[:, :, before.lower.shape[1]:])
                    i, j, points = kinds[kind]
                    parts.append((group_members[i], group_members[j], points * bytes_each))
                yield number, Phase(after.name, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _relative(before: Stage, after: Stage, ranks: np.ndarray) -> np.ndarray:
    """Boxes that some ranks hold before and after an exchange, from the lowest corner of all: (2: lower, upper; ranks,
    boxes, 3). Groups of ranks for which they are equal send equal messages."""
    lower = np.concatenate([before.lower[ranks], after.lower[ranks]], axis=1)
    upper = np.concatenate([before.upper[ranks], after.upper[ranks]], axis=1)
    empty = (upper < lower).any(axis=-1, keepdims=True)
    origin = np.where(empty, np.iinfo(lower.dtype).max, lower).min(axis=(0, 1))
    return np.array([np.where(empty, 0, lower - origin), np.where(empty, -1, upper - origin)])


def _common_points(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Members i, j of a group, i other than j, and the points that i has before and j has afterwards."""
    n = before.shape[1]
    points = np.zeros((n, n), dtype=np.int64)
    for a in range(before.shape[2]):
        for b in range(after.shape[2]):
            low = np.maximum(before[0, :, a][:, None], after[0, :, b][None])
            high = np.minimum(before[1, :, a][:, None], after[1, :, b][None])
            points += np.prod(np.maximum(high - low + 1, 0), axis=-1)
    np.fill_diagonal(points, 0)
    i, j = np.nonzero(points)
    return i, j, points[i, j]


def share(n: np.ndarray | int, parts: np.ndarray | int, part: np.ndarray) -> np.ndarray:
    """First and last index of share `part` when n items are dealt to `parts`: shares differ by one at most."""
    n, part = np.asarray(n), np.asarray(part)

    def first(k: np.ndarray) -> np.ndarray:
        return k * (n // parts) + np.minimum(k, n % parts)

    return np.array([first(part), first(part + 1) - 1])


def _brick(name: str, x: np.ndarray, y: np.ndarray, z: np.ndarray, among: tuple[bool, bool, bool]) -> Stage:
    corners = np.stack([x, y, z], axis=-1)  # (2, ranks, 3)
    return Stage(name, corners[0][:, None], corners[1][:, None], among)
