"""Networks as graphs of directed links: hops, and the load that messages put on every link.

A load is counted in bytes over the cables of a link, so that the slowest link is the one with the largest load.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np


@dataclass(frozen=True)
class Torus:
    """Nodes on a grid of any number of axes, x fastest; every axis a ring (`wrap`) or a row.

    A ring of two nodes has two cables between them, as the truncated axes of QCDOC (Fang et al. 2007). `orders`:
    "one" routes along the first axis first; "all" spreads every message over all orders of the axes, the mean of what
    an adaptive router does. Messages take the shorter way around, both ways in equal parts where they are equal.
    """

    shape: tuple[int, ...]
    wrap: tuple[bool, ...] | None = None
    orders: str = "all"

    @property
    def n_nodes(self) -> int:
        return int(np.prod(self.shape))

    @property
    def n_axes(self) -> int:
        return len(self.shape)

    @property
    def is_ring(self) -> tuple[bool, ...]:
        return self.wrap or (True,) * self.n_axes

    def coordinates(self, node: np.ndarray) -> np.ndarray:
        """Grid place of each node: int (axes, nodes)."""
        return np.array(np.unravel_index(node, self.shape[::-1]))[::-1]

    def node(self, place: np.ndarray) -> np.ndarray:
        return np.ravel_multi_index(tuple(place[::-1]), self.shape[::-1])

    def steps(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Signed steps along each axis, the shorter way; + where both ways are equal: int (axes, messages)."""
        shape = np.array(self.shape)[:, None]
        step = self.coordinates(target) - self.coordinates(source)
        around = (step + (shape - 1) // 2) % shape - (shape - 1) // 2
        return np.where(np.array(self.is_ring)[:, None], around, step)

    def hops(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        return np.abs(self.steps(source, target)).sum(axis=0)

    def link_loads(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Bytes on each link: (axes, 2 directions, nodes), by the node that the link leaves."""
        orders = list(permutations(range(self.n_axes))) if self.orders == "all" else [tuple(range(self.n_axes))]
        loads = np.zeros((self.n_axes, 2, self.n_nodes))
        start, end, step = self.coordinates(source), self.coordinates(target), self.steps(source, target)
        for order in orders:
            here = start.copy()
            for axis in order:
                self._add_runs(loads[axis], axis, here, step[axis], size / len(orders))
                here[axis] = end[axis]
        return loads

    def _add_runs(self, loads: np.ndarray, axis: int, here: np.ndarray, step: np.ndarray, size: np.ndarray) -> None:
        """Add runs of `step` links along an axis to `loads` (2, nodes), through differences along each row."""
        length = self.shape[axis]
        rest = [a for a in range(self.n_axes) if a != axis]
        row = np.ravel_multi_index(tuple(here[a] for a in rest), [self.shape[a] for a in rest]) if rest else \
            np.zeros(len(size), dtype=np.int64)
        n_rows = self.n_nodes // length
        tie = self.is_ring[axis] & (2 * np.abs(step) == length)
        for direction, sign in ((0, 1), (1, -1)):
            chosen = (sign * step > 0) | tie
            share = np.where(tie[chosen], 0.5, 1.0) * size[chosen]
            count = np.abs(step[chosen])
            # Links are counted by the node they leave; a run backward leaves the nodes here, here - 1, ...
            first = here[axis][chosen] if sign > 0 else here[axis][chosen] - count + 1
            first = first % length
            width = 2 * length + 1
            change = np.bincount(row[chosen] * width + first, weights=share, minlength=n_rows * width)
            change -= np.bincount(row[chosen] * width + first + count, weights=share, minlength=n_rows * width)
            load = np.cumsum(change.reshape(n_rows, width), axis=1)
            load = load[:, :length] + load[:, length:2 * length]
            places = np.unravel_index(np.arange(n_rows), [self.shape[a] for a in rest]) if rest else ()
            place = np.empty((self.n_axes, n_rows, length), dtype=np.int64)
            for a, values in zip(rest, places, strict=True):
                place[a] = values[:, None]
            place[axis] = np.arange(length)
            loads[direction, self.node(place).ravel()] += load.ravel()

    def worst_load(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> float:
        """Bytes through the busiest cable."""
        return float(self.link_loads(source, target, size).max(initial=0.0))

    @property
    def bisection(self) -> int:
        """Cables, each way, cut by the plane that halves the longest axis."""
        axis = int(np.argmax(self.shape))
        return self.n_nodes // self.shape[axis] * (2 if self.is_ring[axis] else 1)


def tofu(cells: tuple[int, int, int]) -> Torus:
    """TofuD: a torus of cells, each a block of 2 x 3 x 2 nodes (Ajima et al. 2018; Li et al. 2023). The axes A and C
    have one cable, B is a ring of three; the messages go along X, Y, Z, A, B, C in this order."""
    return Torus((*cells, 2, 3, 2), (True, True, True, False, True, False), orders="one")


def tofu_nodes(cells: tuple[int, int, int]) -> np.ndarray:
    """Node of each place of the grid (2X, 3Y, 2Z), x fastest, such that neighbours on the grid are neighbours on the
    network: inside of every second cell the grid runs backward."""
    shape = np.array([2, 3, 2])
    place = np.array(np.unravel_index(np.arange(np.prod(shape * cells)), tuple((shape * cells)[::-1])))[::-1]
    cell, inside = np.divmod(place, shape[:, None])
    inside = np.where(cell % 2 == 1, shape[:, None] - 1 - inside, inside)
    return tofu(cells).node(np.concatenate([cell, inside]))


@dataclass(frozen=True)
class Renumbered:
    """A network whose nodes go by other numbers: `number[k]` is the node that node k is."""

    network: Torus
    number: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.network.shape

    @property
    def n_nodes(self) -> int:
        return self.network.n_nodes

    def hops(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        return self.network.hops(self.number[source], self.number[target])

    def worst_load(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> float:
        return self.network.worst_load(self.number[source], self.number[target], size)


def tofu_on_grid(shape: tuple[int, int, int]) -> Renumbered | None:
    """TofuD with nodes numbered through a grid of nodes (x fastest) whose neighbours are neighbours on the network;
    None where no order of the axes makes cells of 2 x 3 x 2 of it."""
    for order in permutations(range(3)):
        turned = [shape[axis] for axis in order]
        if any(n % side for n, side in zip(turned, (2, 3, 2), strict=True)):
            continue
        cells = (turned[0] // 2, turned[1] // 3, turned[2] // 2)
        place = np.array(np.unravel_index(np.arange(np.prod(shape)), shape[::-1]))[::-1][list(order)]
        on_cells = np.ravel_multi_index(tuple(place[::-1]), tuple(turned[::-1]))
        return Renumbered(tofu(cells), tofu_nodes(cells)[on_cells])
    return None


@dataclass(frozen=True)
class FatTree:
    """A tree of switches: `arity[l]` subtrees of level l hang on a switch of level l + 1 (level 0: nodes). A subtree's
    trunk has as many cables as nodes, over `taper[l]`; traffic spreads evenly over them (adaptive routing)."""

    arity: tuple[int, ...]
    taper: tuple[float, ...] | None = None

    @property
    def n_nodes(self) -> int:
        return int(np.prod(self.arity))

    @cached_property
    def _below(self) -> np.ndarray:
        """Nodes of a subtree of each level."""
        return np.concatenate([[1], np.cumprod(self.arity)])

    def _level(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Level of the lowest common subtree."""
        level = np.zeros(len(source), dtype=np.int64)
        for below in self._below[:-1]:
            level += source // below != target // below
        return level

    def hops(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Cables on the way: up and down again."""
        return 2 * self._level(source, target)

    def cables(self, level: int) -> float:
        """Cables of the trunk of a subtree of this level."""
        return self._below[level] / (self.taper[level] if self.taper else 1.0)

    def link_loads(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> list[np.ndarray]:
        """Bytes through a cable of each trunk, level by level: (2: up, down; subtrees)."""
        loads = []
        for level, below in enumerate(self._below[:-1]):
            out = source // below != target // below
            loads.append(np.array([np.bincount(end[out] // below, weights=size[out], minlength=self.n_nodes // below)
                                   for end in (source, target)]) / self.cables(level))
        return loads

    def worst_load(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> float:
        return max(float(load.max(initial=0.0)) for load in self.link_loads(source, target, size))

    @property
    def bisection(self) -> float:
        """Cables, each way, between the two halves of the top switch's subtrees."""
        top = len(self.arity) - 1
        return self.arity[top] // 2 * self.cables(top)


@dataclass(frozen=True)
class Dragonfly:
    """Groups of `routers` switches, all connected to each other, with `nodes` nodes and `optical` cables to other
    groups on each (Kim et al. 2008). The cables to other groups are dealt out evenly; messages go the shortest way,
    over each cable between two groups in turn."""

    groups: int
    routers: int
    nodes: int
    optical: int

    def __post_init__(self) -> None:
        if self.groups > 1 and self.routers * self.optical < self.groups - 1:
            raise ValueError(f"{self.routers} x {self.optical} cables do not reach {self.groups - 1} other groups")

    @property
    def n_nodes(self) -> int:
        return self.groups * self.routers * self.nodes

    @property
    def cables(self) -> int:
        """Cables between two groups."""
        return self.routers * self.optical // (self.groups - 1) if self.groups > 1 else 0

    def _way(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, ...]:
        """Router and group at both ends, the cable between the groups and the routers it joins."""
        from_router, to_router = source // self.nodes, target // self.nodes
        from_group, to_group = from_router // self.routers, to_router // self.routers
        cable = (source + target) % max(1, self.cables)
        # Cable c of group g to group h is number ((h - g - 1) mod groups) * cables + c of g's.
        leaves = ((to_group - from_group - 1) % self.groups * self.cables + cable) // max(1, self.optical)
        enters = ((from_group - to_group - 1) % self.groups * self.cables + cable) // max(1, self.optical)
        across = from_group != to_group
        gate = np.where(across, from_group * self.routers + leaves, to_router)
        port = np.where(across, to_group * self.routers + enters, to_router)
        return from_router, to_router, from_group, to_group, cable, gate, port

    def hops(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        from_router, to_router, from_group, to_group, _, gate, port = self._way(source, target)
        inside = (from_router != gate).astype(np.int64) + ((from_group != to_group) & (port != to_router))
        return np.where(source == target, 0, 2 + inside + (from_group != to_group))

    def link_loads(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> dict[str, np.ndarray]:
        """Bytes on the cables: of nodes (2: to and from the router), within groups (from router, to router of the
        group) and between groups (from, to, cable)."""
        from_router, to_router, from_group, to_group, cable, gate, port = self._way(source, target)
        moves = source != target
        size = np.where(moves, size, 0.0)
        node = np.array([np.bincount(end, weights=size, minlength=self.n_nodes) for end in (source, target)])
        n_routers = self.groups * self.routers
        local = np.zeros(n_routers * self.routers)
        across = from_group != to_group
        for start, end, used in ((from_router, gate, from_router != gate),
                                 (port, to_router, across & (port != to_router))):
            local += np.bincount((start * self.routers + end % self.routers)[used], weights=size[used],
                                 minlength=len(local))
        n_cables = max(1, self.cables)
        between = np.bincount(((from_group * self.groups + to_group) * n_cables + cable)[across], weights=size[across],
                              minlength=self.groups**2 * n_cables)
        return {"node": node, "local": local.reshape(n_routers, self.routers),
                "global": between.reshape(self.groups, self.groups, n_cables)}

    def worst_load(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> float:
        return max(float(load.max(initial=0.0)) for load in self.link_loads(source, target, size).values())

    @property
    def bisection(self) -> int:
        """Cables, each way, between the first half of the groups and the others."""
        half = self.groups // 2
        return half * (self.groups - half) * self.cables
