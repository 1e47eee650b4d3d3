"""A step of chromamd on any number of ranks: measured work, simulated messages.

A step is the measured work of a rank, the halo there (positions) and back (forces), PME's bricks there and back, the
FFT there and back by the fastest of the engine's volumetric schemes, rank by rank or node by node, and one agreement of
all ranks. Nothing overlaps, and all ranks carry the same load. docs/explanation/network-simulation.md lists the
assumptions.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from chromabuild.scaling import measured
from chromabuild.scaling.cost import NetworkSpeed, Topology, node_traffic, seconds
from chromabuild.scaling.fft_trace import Transform
from chromabuild.scaling.halo_trace import p2p
from chromabuild.scaling.measured import StepSettings
from chromabuild.scaling.trace import Phase

Grid = tuple[int, int, int]

DENSITY = 0.1
"""Atoms a cubic angstrom, of the measured boxes."""
GROUP_REACH, SPARE_REACH = 2.0, 4.0
"""Angstrom that the halo reaches beyond the list: twice the reach of a constraint group, and the room that lets lists
be renewed alone."""
ATOM_BYTES, GRID_BYTES, WAVE_BYTES = 24, 4, 8
"""A position or force (double); a grid point and a wave (mixed build)."""
BRICK_MARGIN = 4.0
"""Angstrom by which PME's bricks are wider than their domains (first_margin of the engine's PME)."""
LONGEST_BY_NODE = 1024
"""Bytes up to which messages of the FFT go by node (fortran/fft/fft_distributed.f90)."""
SCHEMES = ("1d", "2d")
"""Volumetric schemes of the FFT, of which the engine takes the faster one ([COMM] fft)."""
LINE_SECONDS = 7.3e-3 / 128**3 / 21 / 2
"""Of a real transform, a point and factor of two (docs/explanation/fft.md: 128^3 there and back in 7.3 ms on
one core)."""


def smooth(points: float) -> int:
    """Least even number from `points` with factors 2, 3, 5, as the engine chooses its grid."""
    n = 2 * int(np.ceil(points / 2))
    while True:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 2


@dataclass(frozen=True)
class Decomposition:
    """A box of three edges (angstrom) with so many atoms, cut into a grid of domains, one a rank."""

    edge: tuple[float, float, float]
    atoms: float
    grid: Grid
    settings: StepSettings = StepSettings()

    @property
    def ranks(self) -> int:
        return int(np.prod(self.grid))

    @property
    def atoms_a_rank(self) -> float:
        return self.atoms / self.ranks

    @property
    def density(self) -> float:
        """Atoms a cubic angstrom."""
        return self.atoms / float(np.prod(self.edge))

    @property
    def points(self) -> Grid:
        """PME's grid."""
        return tuple(smooth(length / self.settings.grid_spacing) for length in self.edge)

    @property
    def domain(self) -> tuple[float, float, float]:
        """Edges of a domain, angstrom."""
        return tuple(a / p for a, p in zip(self.edge, self.grid, strict=True))


@dataclass(frozen=True)
class Placement:
    """The node of each rank: `ranks_per_node` consecutive ranks, x fastest, or a `block` of neighbouring domains; or,
    if `cyclic`, one rank on each node after the other in turns."""

    grid: Grid
    ranks_per_node: int
    block: Grid | None = None
    cyclic: bool = False

    @property
    def node_grid(self) -> tuple[int, ...]:
        """Blocks along x, y and z; without blocks the nodes in a row."""
        if self.block:
            return tuple(n // b for n, b in zip(self.grid, self.block, strict=True))
        return (-(-int(np.prod(self.grid)) // self.ranks_per_node),)

    @cached_property
    def node_of(self) -> np.ndarray:
        """Node of each rank: int (ranks,)."""
        rank = np.arange(np.prod(self.grid))
        if not self.block:
            return rank % self.node_grid[0] if self.cyclic else rank // self.ranks_per_node
        place = np.array(np.unravel_index(rank, self.grid[::-1]))[::-1] // np.array(self.block)[:, None]
        return np.ravel_multi_index(tuple(place[::-1]), self.node_grid[::-1])


def halo_reach(settings: StepSettings) -> float:
    """Angstrom from its faces within which a domain needs the atoms of others."""
    return settings.list_distance + GROUP_REACH + SPARE_REACH


def choose_grid(edge: tuple[float, float, float], ranks: int, reach: float) -> Grid:
    """Domains along x, y, z as the engine chooses them (fortran/comm/domain_grid.f90): the least halo volume, and
    narrower than `reach` (angstrom) only if there is no other way."""
    fitting: Grid | None = None
    best = np.inf
    for narrow in (False, True):
        for pz in _divisors(ranks):
            for py in _divisors(ranks // pz):
                trial = (ranks // pz // py, py, pz)
                domain = np.array(edge) / trial
                if not narrow and (domain < reach).any():
                    continue
                volume = float(np.prod(domain + 2 * reach))
                if volume < best * (1 - 1e-9):
                    fitting, best = trial, volume
        if fitting:
            break
    return fitting


def choose_block(grid: Grid, ranks_per_node: int) -> Grid | None:
    """The block of domains of a node with the least surface; None if the grid has no blocks of this size."""
    found = None
    for bz in _divisors(ranks_per_node):
        for by in _divisors(ranks_per_node // bz):
            block = (ranks_per_node // bz // by, by, bz)
            if all(n % b == 0 for n, b in zip(grid, block, strict=True)):
                found = min(found or block, block, key=lambda b: b[0] * b[1] + b[1] * b[2] + b[2] * b[0])
    return found


def _divisors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0]


def work_time(system: Decomposition, core_speed: float = 1.0, threads: int = 1,
              reciprocal: bool | None = None) -> float:
    """Seconds of a rank's own work, or of its part in or beside reciprocal space as `measured.step_cost` has it: the
    measured cost an atom against 1/edge of the domain (surfaces cost extra), between the measured sizes and a line
    beyond the smallest; never less than that of the largest. The lines of a larger grid are longer: what the logarithm
    adds is on top. `core_speed`: over that of the measured core."""
    atoms, cost = measured.step_cost(system.settings, reciprocal)
    surface, wanted = atoms ** (-1 / 3), system.atoms_a_rank ** (-1 / 3)
    if wanted > surface.max():
        slope = (cost[0] - cost[1]) / (surface[0] - surface[1])
        each = cost[0] + slope * (wanted - surface[0])
    else:
        each = float(np.interp(wanted, surface[::-1], cost[::-1]))
    points = np.prod(system.points)
    longer = np.log2(points) - np.log2(atoms[-1] / DENSITY / measured.GRID_SPACING**3)
    total = system.atoms_a_rank * each
    if reciprocal is not False:
        total += 2 * points / system.ranks * max(0.0, longer) * LINE_SECONDS
    return float(total / core_speed / measured.thread_gain(threads))


def halo_phases(system: Decomposition) -> list[Phase]:
    """Positions to the half of the neighbours; forces go back the same way."""
    return _to_others(p2p(system.grid, system.domain, halo_reach(system.settings), system.density * ATOM_BYTES))


def brick_phases(system: Decomposition) -> list[Phase]:
    """Charges on grid points beyond the domain to their owners: all neighbours, as a p2p halo as wide as spline and
    margin, of which half of the spline's width lies on either side."""
    points = tuple(n / p for n, p in zip(system.points, system.grid, strict=True))
    margin = np.ceil(BRICK_MARGIN * system.points[0] / system.edge[0])
    return _to_others(p2p(system.grid, points, (system.settings.spline_order - 1) / 2 + margin, GRID_BYTES, half=False))


def _to_others(phases: list[Phase]) -> list[Phase]:
    """Without the messages of a rank to itself, which a short axis of the grid makes."""
    kept = []
    for phase in phases:
        other = phase.source != phase.target
        kept.append(Phase(phase.name, phase.source[other], phase.target[other], phase.size[other]))
    return kept


@dataclass(frozen=True)
class Exchange:
    """Of a transform. `traffic`: between nodes; `messages`: most that a rank sends or receives; `combined`: the same
    where ranks of a node send together; `near`: most ranks of a node among the `members` of a group that exchanges;
    `kept`: most bytes that stay in a node."""

    traffic: Phase
    messages: int
    combined: int
    near: int
    members: int
    kept: float


@cache
def fft_traffic(points: Grid, placement: Placement, scheme: str) -> list[Exchange]:
    """The exchanges of a forward transform, summed up piece by piece."""
    node_of, ranks = placement.node_of, len(placement.node_of)
    n_nodes = int(node_of.max()) + 1
    transform = Transform(points, placement.grid, scheme, real=True, point_bytes=WAVE_BYTES)
    found: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for number, piece in transform.pieces():
        if number not in found:
            found[number] = (np.zeros(n_nodes**2), np.zeros(ranks, dtype=np.int64), np.zeros(ranks, dtype=np.int64))
        between, sent, received = found[number]
        between += np.bincount(node_of[piece.source] * n_nodes + node_of[piece.target], weights=piece.size,
                               minlength=n_nodes**2)
        sent += piece.messages_sent(ranks)
        received += piece.messages_received(ranks)
    traffic = []
    for number in sorted(found):
        between, sent, received = found[number]
        between = between.reshape(n_nodes, n_nodes)
        kept = float(between.diagonal().max())
        np.fill_diagonal(between, 0.0)
        source, target = np.nonzero(between)
        among = transform.stages()[number + 1].among
        combined, near = node_messages(placement, among)
        members = int(np.prod([p for p, moves in zip(placement.grid, among, strict=True) if moves]))
        traffic.append(Exchange(Phase(str(number), source, target, between[source, target]),
                                int(max(sent.max(), received.max())), combined, near, members, kept))
    return traffic


def node_messages(placement: Placement, among: tuple[bool, bool, bool]) -> tuple[int, int]:
    """Of an exchange among the ranks along some axes, in which each node sends one message to each other one: the most
    that a rank sends, where the ranks of a node take turns, and the most ranks of a node that take part."""
    ranks = len(placement.node_of)
    place = np.array(np.unravel_index(np.arange(ranks), placement.grid[::-1]))[::-1]
    group = np.zeros(ranks, dtype=np.int64)
    for axis in range(3):
        if not among[axis]:
            group = group * placement.grid[axis] + place[axis]
    pair, near = np.unique(group * ranks + placement.node_of, return_counts=True)
    nodes = np.bincount(pair // ranks)[pair // ranks]
    # Its own node has a turn too, which matters where one rank takes all of them.
    return int(np.where(near > 1, -(-nodes // near), nodes - 1)[nodes > 1].max(initial=0)), int(near.max())


def fft_time(system: Decomposition, placement: Placement, speed: NetworkSpeed, topology: Topology,
             scheme: str, by_node: bool = False) -> float:
    """Seconds of the exchanges of a transform there and back. `by_node`: short messages go from node to node as one,
    for which the ranks of a node meet before and after; one of them copies what leaves out of the memory of the others,
    and what arrives into it."""
    total = 0.0
    points = float(np.prod(system.points)) * WAVE_BYTES / 2 / system.ranks
    for exchange in fft_traffic(system.points, placement, scheme):
        together = by_node and points / exchange.members <= LONGEST_BY_NODE
        messages = exchange.combined if together else exchange.messages
        # Without messages between nodes the bytes within them remain.
        total += seconds(speed, topology, exchange.traffic, max(messages, min(1, exchange.messages)), exchange.kept)
        if together:
            away = exchange.traffic.bytes_sent(topology.n_nodes).max(initial=0)
            total += 2 * away / speed.memory_bandwidth + 2 * np.ceil(np.log2(exchange.near)) * speed.latency
    return float(2 * total)


def best_scheme(system: Decomposition, placement: Placement, speed: NetworkSpeed,
                topology: Topology) -> tuple[str, bool, float]:
    """The fastest scheme, whether nodes send as one, and the seconds of its exchanges there and back; the first where
    they are equal."""
    times = {(scheme, by_node): fft_time(system, placement, speed, topology, scheme, by_node)
             for by_node in (False, True) for scheme in SCHEMES}
    best = min(times, key=times.get)
    return *best, times[best]


def step_time(system: Decomposition, placement: Placement, speed: NetworkSpeed, topology: Topology,
              core_speed: float = 1.0, threads: int = 1) -> dict[str, float]:
    """Seconds of a step by part."""

    def both_ways(phases: list[Phase]) -> float:
        return 2 * sum(seconds(speed, topology, *node_traffic(phase, placement.node_of)) for phase in phases)

    return {"work": work_time(system, core_speed, threads), "halo": both_ways(halo_phases(system)),
            "bricks": both_ways(brick_phases(system)), "FFT": best_scheme(system, placement, speed, topology)[-1],
            "agreement": float(np.ceil(np.log2(system.ranks)) * (speed.latency + speed.per_message))}
