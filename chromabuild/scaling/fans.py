"""Messages from every member of a group to every member of another, and the load they put on a torus.

A plane-wave step has up to 1e8 of them, but they factorise: within a group all messages are equal. The load then
follows from how many members each node has, by a matrix product for each leg of the way.
"""

from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np

from chromabuild.scaling.topology import Torus
from chromabuild.scaling.trace import Phase, on_nodes


@dataclass(frozen=True)
class Fan:
    """Every source of a group sends `size` bytes to every target of the group, `times` over: source (groups, sources),
    target (groups, targets), ranks; -1: none. `deposit`: a packet is left at all nodes on its way and crosses each
    link once, whatever the number of targets (the rectangular multicast of Blue Gene/L)."""

    name: str
    source: np.ndarray
    target: np.ndarray
    size: float
    times: int = 1
    deposit: bool = False

    def reverse(self, name: str) -> "Fan":
        return Fan(name, self.target, self.source, self.size, self.times)

    def messages(self) -> Phase:
        """Single messages between ranks, those to oneself left out."""
        shape = (*self.source.shape, self.target.shape[1])
        source = np.broadcast_to(self.source[:, :, None], shape).ravel()
        target = np.broadcast_to(self.target[:, None], shape).ravel()
        moves = (source != target) & (source >= 0) & (target >= 0)
        source, target = source[moves], target[moves]
        return Phase(self.name, source, target, np.full(len(source), self.size * self.times),
                     np.full(len(source), self.times))

    def sent_and_received(self, n_ranks: int) -> np.ndarray:
        """Messages of each rank, those to itself left out: (2, ranks). A deposited packet is sent once a group."""
        found = np.zeros((2, n_ranks))
        step = max(1, (1 << 22) // n_ranks)
        for first in range(0, len(self.source), step):
            out, into = (_count(end[first:first + step], n_ranks) for end in (self.source, self.target))
            beyond = into.sum(axis=1, keepdims=True) - into
            found[0] += (out * (np.minimum(beyond, 1) if self.deposit else beyond)).sum(axis=0)
            found[1] += (into * (out.sum(axis=1, keepdims=True) - out)).sum(axis=0)
        return found * self.times


def tree(name: str, members: list[np.ndarray], roots: np.ndarray, size: float, upward: bool,
         branches: int = 2) -> Phase:
    """A reduction (upward) or multicast over a tree of the distinct ranks of each group, in ascending order below the
    root: `roots` (groups, roots a group), a tree and `size` bytes for each root."""
    source, target = [], []
    for ranks, tops in zip(members, roots, strict=True):
        ranks = np.unique(ranks)
        for top in np.atleast_1d(tops):
            below = ranks[ranks != top]
            parent = np.concatenate([[top], below])[np.arange(len(below)) // branches]
            source.append(below if upward else parent)
            target.append(parent if upward else below)
    source, target = np.concatenate(source), np.concatenate(target)
    return Phase(name, source, target, np.full(len(source), size))


def combined(phases: list[Phase], n_ranks: int, bucket: int) -> np.ndarray:
    """Messages that each rank sends and receives, (2, ranks), when `bucket` messages between the same ranks travel as
    one."""
    found = np.zeros((2, n_ranks))
    key = np.concatenate([phase.source * n_ranks + phase.target for phase in phases])
    pair, count = np.unique(key, return_counts=True)
    packed = -(-count // bucket)
    for end, of in enumerate((pair // n_ranks, pair % n_ranks)):
        found[end] += np.bincount(of, weights=packed, minlength=n_ranks)
    return found


def link_loads(torus: Torus, fan: Fan, per_node: int = 1, chunk: int = 1 << 24) -> np.ndarray:
    """Bytes on each link as Torus.link_loads has them, (axes, 2, nodes), of a torus of three axes. Deposited packets go
    along the axes in order."""
    if not fan.deposit and fan.source.shape[1] * fan.target.shape[1] < torus.n_nodes // 4 and fan.source.size < 1 << 24:
        # So few that one by one they are quicker, those between the same nodes taken together.
        single = on_nodes(fan.messages(), np.arange(torus.n_nodes * per_node) // per_node)
        return torus.link_loads(single.source, single.target, single.size)
    loads = np.zeros((3, 2, torus.n_nodes))
    orders = list(permutations(range(3))) if torus.orders == "all" and not fan.deposit else [(0, 1, 2)]
    step = 1 if fan.deposit else max(1, chunk // (2 * torus.n_nodes))
    for first in range(0, len(fan.source), step):
        dense = [_members(torus, end[first:first + step], per_node) for end in (fan.source, fan.target)]
        for order in orders:
            for axis, load in zip(order, _legs(torus, order, *dense, fan.deposit), strict=True):
                loads[axis] += load * (fan.size * fan.times / len(orders))
    return loads


def mirrored(torus: Torus, loads: np.ndarray) -> np.ndarray:
    """Loads of the same messages on their way back, where routes take all orders of the axes."""
    grid = loads.reshape(3, 2, *torus.shape[::-1])
    found = np.empty_like(grid)
    for axis in range(3):
        for way, step in ((0, 1), (1, -1)):
            found[axis, 1 - way] = np.roll(grid[axis, way], step, axis=2 - axis)
    return found.reshape(loads.shape)


def _members(torus: Torus, ranks: np.ndarray, per_node: int) -> np.ndarray:
    """Members on each node: (groups, x, y, z), single precision."""
    count = _count(np.where(ranks < 0, -1, ranks // per_node), torus.n_nodes)
    return count.reshape(len(ranks), *torus.shape[::-1]).transpose(0, 3, 2, 1).astype(np.float32)


def _count(places: np.ndarray, n: int) -> np.ndarray:
    """Members of each group at each of n places: (groups, n)."""
    group = np.broadcast_to(np.arange(len(places))[:, None], places.shape)
    held = places >= 0
    return np.bincount(group[held] * n + places[held], minlength=len(places) * n).reshape(-1, n)


@cache
def _steps(length: int, ring: bool) -> np.ndarray:
    """Share of a message from a to b on each link of an axis: (a, b, 2 * length), forward links first, by the node
    that the link leaves."""
    on = np.zeros((length, length, 2 * length), dtype=np.float32)
    for a in range(length):
        for b in range(length):
            ahead = (b - a) % length
            ways = [(ahead, 1.0)] if ring else [(b - a, 1.0)]
            if ring and 2 * ahead > length:
                ways = [(ahead - length, 1.0)]
            elif ring and 2 * ahead == length:
                ways = [(ahead, 0.5), (-ahead, 0.5)]
            for way, share in ways:
                for k in range(abs(way)):
                    on[a, b, (a + k) % length if way > 0 else length + (a - k) % length] += share
    return on


def _legs(torus: Torus, order: tuple[int, ...], source: np.ndarray, target: np.ndarray,
          deposit: bool) -> list[np.ndarray]:
    """Load of each leg, axes in the given order: (2, nodes) each. On the first leg a message is still in the row of its
    source, on the last one in that of its target."""
    turn = (0, *(axis + 1 for axis in order))
    s, t = source.transpose(turn), target.transpose(turn)
    x, y, z = s.shape[1:]
    steps = [_steps(torus.shape[axis], torus.is_ring[axis]) for axis in order]
    if deposit:
        # One copy a link: what counts is whether anything lies beyond it.
        t = (t > 0).astype(np.float32)
    one = np.tensordot(t.sum(axis=(2, 3)), steps[0], (1, 1))  # group, from, link
    two = np.tensordot(t.sum(axis=3), steps[1], (2, 1))  # group, x, from, link
    three = np.tensordot(s.sum(axis=(1, 2)), steps[2], (1, 0))  # group, to, link
    legs = [(one.reshape(-1, 2 * x).T @ s.reshape(-1, y * z)).reshape(2 * x, y, z),
            (two.transpose(1, 3, 0, 2).reshape(x * 2 * y, -1) @ s.sum(axis=1).reshape(-1, z)).reshape(x, 2 * y, z),
            (t.transpose(1, 2, 0, 3).reshape(x * y, -1) @ three.reshape(-1, 2 * z)).reshape(x, y, 2 * z)]
    if deposit:
        legs = [np.minimum(leg, s.sum()) for leg in legs]
    back = np.argsort(order)
    return [np.array([part.transpose(back).transpose(2, 1, 0).ravel() for part in np.split(load, 2, axis=leg)])
            for leg, load in enumerate(legs)]
