"""Messages of a halo exchange: every rank needs the atoms within a cutoff of its domain (Li et al. 2023, table 1).

Ranks on a periodic grid, domains of edges `edge`, ghosts within `reach` (same unit), `per_volume` bytes in a unit of
volume (density times bytes an atom). Corners count as boxes, as in the source's formulas.
"""

from itertools import product

import numpy as np

from chromabuild.scaling.trace import Phase


def p2p(grid: tuple[int, int, int], edge: tuple[float, float, float], reach: float, per_volume: float,
        half: bool = True) -> list[Phase]:
    """One phase: each rank sends to all neighbours within reach, or to the half of them that come before it. 13 and 26
    messages where reach <= edge, 62 and 124 up to twice the edge."""
    offsets = neighbours(edge, reach)
    if half:
        offsets = [d for d in offsets if d[::-1] < (0, 0, 0)]
    place = _places(grid)
    source, target, size = [], [], []
    for offset in offsets:
        volume = np.prod([a if d == 0 else min(a, reach - (abs(d) - 1) * a) for d, a in zip(offset, edge, strict=True)])
        source.append(np.arange(place.shape[1]))
        target.append(_ranks(grid, place + np.array(offset)[:, None]))
        size.append(np.full(place.shape[1], round(volume * per_volume)))
    return [Phase("p2p", np.concatenate(source), np.concatenate(target), np.concatenate(size))]


def three_stage(grid: tuple[int, int, int], edge: tuple[float, float, float], reach: float,
                per_volume: float) -> list[Phase]:
    """Axis after axis, both ways, passing on what the earlier axes brought; as many rounds an axis as there are layers
    of domains within reach: 6 messages where reach <= edge, 12 up to twice the edge."""
    place = _places(grid)
    ranks = np.arange(place.shape[1])
    phases = []
    for axis in range(3):
        for layer in range(_layers(edge[axis], reach)):
            depth = min(edge[axis], reach - layer * edge[axis])
            face = np.prod([edge[a] + (2 * reach if a < axis else 0) for a in range(3) if a != axis])
            ways = []
            for sign in (1, -1):
                step = np.zeros((3, 1), dtype=np.int64)
                step[axis] = sign
                ways.append(_ranks(grid, place + step))
            size = np.full(2 * len(ranks), round(depth * face * per_volume))
            phases.append(Phase(f"{'xyz'[axis]}{layer + 1}", np.tile(ranks, 2), np.concatenate(ways), size))
    return phases


def neighbours(edge: tuple[float, float, float], reach: float) -> list[tuple[int, int, int]]:
    """Offsets of all domains within reach, axis by axis."""
    ranges = [range(-_layers(a, reach), _layers(a, reach) + 1) for a in edge]
    return [offset for offset in product(*ranges) if any(offset)]


def _layers(edge: float, reach: float) -> int:
    return int(np.ceil(reach / edge - 1e-12))


def _places(grid: tuple[int, int, int]) -> np.ndarray:
    return np.array(np.unravel_index(np.arange(np.prod(grid)), grid[::-1]))[::-1]


def _ranks(grid: tuple[int, int, int], place: np.ndarray) -> np.ndarray:
    return np.ravel_multi_index(tuple((place % np.array(grid)[:, None])[::-1]), grid[::-1])
