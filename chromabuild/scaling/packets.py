"""A torus at packet level: time goes in slots in which every link carries one packet.

Routers as those of Blue Gene/L (Adiga et al. 2005): a packet takes any link that brings it nearer, preferring the
neighbour with most room (adaptive, minimal); every input port has dynamic channels, first in first out, of limited
room, and one escape channel in which packets go along the axes in order, entering a ring only where two places are
free, so that rings never fill up (bubble rule). A packet that cannot move holds up those behind it. All packets of a
phase have one size, so a slot is the time of one packet on a link; a packet is passed on when it has wholly arrived,
which overstates the latency by the hops times a slot.
"""

from dataclasses import dataclass

import numpy as np

from chromabuild.scaling.topology import Torus


@dataclass(frozen=True)
class Router:
    """`room`: packets that a channel holds. `queues`: injection queues of a node. `adaptive`: False keeps all packets
    in the order of the axes."""

    channels: int = 2
    room: int = 8
    queues: int = 6
    adaptive: bool = True


@dataclass(frozen=True)
class Outcome:
    """`slots` until the last packet arrived; `carried`: packets over each link (axes, 2 directions, nodes); `arrived`:
    slot of each packet's arrival."""

    slots: int
    carried: np.ndarray
    arrived: np.ndarray


def simulate(torus: Torus, source: np.ndarray, target: np.ndarray, router: Router | None = None,
             seed: int = 0) -> Outcome:
    """Send one packet from each source to each target (nodes), all ready at once and sent in random order."""
    return _Simulation(torus, np.asarray(source), np.asarray(target), router or Router(),
                       np.random.default_rng(seed)).run()


class _Simulation:
    """Queues are numbered node * (ports + injection queues) + port; ports 0 .. 2 * axes - 1 (2 * axis + direction of
    travel) have `channels` dynamic channels and the escape channel each, injection queues stand behind them."""

    def __init__(self, torus: Torus, source: np.ndarray, target: np.ndarray, router: Router,
                 rng: np.random.Generator) -> None:
        self.torus, self.router, self.rng = torus, router, rng
        self.n_links = 2 * torus.n_axes
        self.n_channels = router.channels + 1
        self.n_ports = self.n_links * self.n_channels
        per_node = self.n_ports + router.queues
        n_nodes = torus.n_nodes
        self.node_of_queue = np.repeat(np.arange(n_nodes), per_node)
        self.port_of_queue = np.tile(np.arange(per_node), n_nodes)
        # Steps left along each axis; where both ways are equal, either at random.
        self.left = torus.steps(source, target)
        for axis, length in enumerate(torus.shape):
            tie = torus.is_ring[axis] & (2 * np.abs(self.left[axis]) == length)
            self.left[axis] *= np.where(tie, rng.choice([-1, 1], len(source)), 1)
        self.neighbour = np.empty((self.n_links, n_nodes), dtype=np.int64)
        place = torus.coordinates(np.arange(n_nodes))
        for axis, length in enumerate(torus.shape):
            for direction, sign in enumerate((1, -1)):
                there = place.copy()
                there[axis] = (there[axis] + sign) % length
                self.neighbour[2 * axis + direction] = torus.node(there)
        self.buffer = np.zeros((n_nodes * per_node, router.room), dtype=np.int64)
        self.head = np.zeros(n_nodes * per_node, dtype=np.int64)
        self.held = np.zeros(n_nodes * per_node, dtype=np.int64)
        self.per_node = per_node
        self._fill_injection_queues(source)

    def _fill_injection_queues(self, source: np.ndarray) -> None:
        order = self.rng.permutation(len(source))
        order = order[np.argsort(source[order], kind="stable")]
        moves = np.abs(self.left).sum(axis=0)[order] > 0
        order = order[moves]
        sent = np.bincount(source[order], minlength=self.torus.n_nodes)
        nth = np.arange(len(order)) - np.repeat(np.cumsum(sent) - sent, sent)
        queue = source[order] * self.per_node + self.n_ports + nth % self.router.queues
        order = order[np.argsort(queue, kind="stable")]
        self.injected = order
        length = np.bincount(queue, minlength=len(self.held))
        self.first = np.cumsum(length) - length
        self.held += length

    def run(self) -> Outcome:
        torus, router = self.torus, self.router
        carried = np.zeros((self.n_links, torus.n_nodes), dtype=np.int64)
        arrived = np.zeros(self.left.shape[1], dtype=np.int64)
        slot = 0
        while True:
            queue = np.flatnonzero(self.held)
            if len(queue) == 0:
                break
            slot += 1
            waits = self.port_of_queue[queue] >= self.n_ports
            packet = np.where(waits, self.injected[np.where(waits, self.first[queue] + self.head[queue], 0)],
                              self.buffer[queue, self.head[queue] % router.room])
            link, channel = self._choose(queue, packet)
            bids = np.flatnonzero(link >= 0)
            if len(bids) == 0:
                raise RuntimeError("packets hold each other up for ever")
            # One packet a link: who is in transit before who is injected, else by lot.
            node = self.node_of_queue[queue]
            output = node * self.n_links + link
            lot = self.rng.random(len(queue)) + waits
            bids = bids[np.argsort(lot[bids], kind="stable")]
            _, winners = np.unique(output[bids], return_index=True)
            won = bids[winners]
            # At most one newcomer a channel: every channel belongs to one link.
            self.head[queue[won]] += 1
            self.held[queue[won]] -= 1
            moved, over, start = packet[won], link[won], node[won]
            carried[over, start] += 1
            axis = over // 2
            self.left[axis, moved] -= np.where(over % 2 == 0, 1, -1)
            there = self.neighbour[over, start]
            stays = np.abs(self.left[:, moved]).sum(axis=0) > 0
            arrived[moved[~stays]] = slot
            into = (there * self.per_node + over * self.n_channels + channel[won])[stays]
            self.buffer[into, (self.head[into] + self.held[into]) % router.room] = moved[stays]
            self.held[into] += 1
        return Outcome(slot, carried.reshape(torus.n_axes, 2, -1), arrived)

    def _choose(self, queue: np.ndarray, packet: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The link and the channel behind it that the first packet of each queue asks for; -1: none has room."""
        router = self.router
        node, port = self.node_of_queue[queue], self.port_of_queue[queue]
        left = self.left[:, packet]
        best = np.full(len(queue), -1)
        link, channel = np.full(len(queue), -1), np.zeros(len(queue), dtype=np.int64)
        last = np.abs(left).sum(axis=0) == 1
        lot = self.rng.random((self.torus.n_axes, len(queue)))
        if router.adaptive:
            for axis in range(self.torus.n_axes):
                wanted = 2 * axis + (left[axis] < 0)
                base = self.neighbour[wanted, node] * self.per_node + wanted * self.n_channels
                free = router.room - self.held[base[:, None] + np.arange(router.channels)]
                emptiest = free.argmax(axis=1)
                room = np.where(last, router.room, np.take_along_axis(free, emptiest[:, None], axis=1)[:, 0])
                score = np.where((left[axis] != 0) & (room > 0), room + lot[axis], -1)
                better = score > best
                best = np.where(better, score, best)
                link = np.where(better, wanted, link)
                channel = np.where(better, emptiest, channel)
        # The escape channel, along the first axis with steps left.
        axis = np.argmax(left != 0, axis=0)
        wanted = 2 * axis + (np.take_along_axis(left, axis[None], axis=0)[0] < 0)
        base = self.neighbour[wanted, node] * self.per_node + wanted * self.n_channels + router.channels
        in_ring = port == wanted * self.n_channels + router.channels
        fits = last | (router.room - self.held[base] >= np.where(in_ring, 1, 2))
        escapes = (link < 0) & fits
        return np.where(escapes, wanted, link), np.where(escapes, router.channels, channel)
