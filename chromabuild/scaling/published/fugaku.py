"""Halo exchanges of LAMMPS on Fugaku (Li et al. 2023).

Their equations 3 to 8 over our traces, with hops of the 6D network: a message takes an interval to inject, then
latency, hops and bytes; the stages of the 3-stage pattern follow each other. With one thread a rank drives one of six
network interfaces and injects all its messages; in parallel the four ranks of a node share all six. As in the paper,
messages do not get in each other's way; `cable_time` says what that leaves out. Two intervals are fitted on figure 6
as the text tells it: uTofu's on "1.5 times faster", MPI's on "reduced by 79 %". The times of the figures are not in
the text.
"""

from functools import cache

import numpy as np

from chromabuild.scaling.halo_trace import p2p, three_stage
from chromabuild.scaling.published.comparison import Claim, Entry
from chromabuild.scaling.topology import tofu, tofu_nodes
from chromabuild.scaling.trace import Phase, on_nodes

LATENCY, BANDWIDTH = 0.49, 6800.0
"""Microseconds of a put, bytes a microsecond of a link (the paper, section 2.2)."""
HOP = 0.1
"""Microseconds a hop beyond the first; our assumption, no figure of the paper."""
RANKS_A_NODE, INTERFACES = 4, 6
DENSITY, REACH, ATOM_BYTES = 0.8442, 2.5 + 0.3, 24
"""Lennard-Jones liquid; cutoff and skin; a position in double precision."""
CELLS = {768: (4, 4, 4), 36864: (16, 12, 16)}
"""Cells of 2 x 3 x 2 nodes: 8 x 12 x 8 and 32 x 36 x 32 nodes."""
SMALL, STRONG = 65_536, 4_194_304
"""Atoms on 768 and on 36,864 nodes."""
FAR = 1.5
"""Cutoff over the edge of a domain where 62 or 124 neighbours are needed; the paper does not give it, this is the
middle of its range."""


@cache
def node_map(nodes: int) -> tuple[tuple[int, int, int], np.ndarray]:
    """Grid of ranks, 2 x 2 x 1 a node, and the node of each."""
    cells = CELLS[nodes]
    shape = np.array([2, 3, 2]) * cells
    grid = tuple(int(n) for n in shape * (2, 2, 1))
    place = np.array(np.unravel_index(np.arange(np.prod(grid)), grid[::-1]))[::-1]
    on_grid = place // np.array([[2], [2], [1]])
    return grid, tofu_nodes(cells)[np.ravel_multi_index(tuple(on_grid[::-1]), tuple(shape[::-1]))]


def edge_of(atoms: int, nodes: int) -> float:
    """Edge of a rank's domain, taken as a cube as the paper does."""
    return float((atoms / (nodes * RANKS_A_NODE) / DENSITY) ** (1 / 3))


def exchange(nodes: int, pattern: str, edge: float, reach: float = REACH) -> list[Phase]:
    """The messages between ranks: pattern 3-stage, half or full."""
    grid = node_map(nodes)[0]
    if pattern == "3-stage":
        return three_stage(grid, (edge,) * 3, reach, DENSITY * ATOM_BYTES)
    return p2p(grid, (edge,) * 3, reach, DENSITY * ATOM_BYTES, half=pattern == "half")


@cache
def transit(nodes: int, pattern: str, edge: float, reach: float = REACH) -> tuple[list[float], list[int]]:
    """For each phase: microseconds of latency, hops and bytes of its slowest message, and messages a rank sends."""
    node_of = node_map(nodes)[1]
    torus = tofu(CELLS[nodes])
    times, counts = [], []
    for phase in exchange(nodes, pattern, edge, reach):
        hops = torus.hops(node_of[phase.source], node_of[phase.target])
        times.append(float((LATENCY + HOP * np.maximum(hops - 1, 0) + phase.size / BANDWIDTH).max()))
        counts.append(int(phase.messages_sent(len(node_of)).max()))
    return times, counts


def cable_time(nodes: int, pattern: str, edge: float) -> float:
    """Microseconds that the busiest cable alone needs, phase after phase."""
    node_of = node_map(nodes)[1]
    return sum(tofu(CELLS[nodes]).worst_load(away.source, away.target, away.size) / BANDWIDTH
               for away in (on_nodes(phase, node_of) for phase in exchange(nodes, pattern, edge)))


def exchange_time(nodes: int, pattern: str, interval: float, edge: float, parallel: bool = False,
                  reach: float = REACH) -> float:
    """Microseconds of an exchange: messages injected one after the other, then the last one's way."""
    times, counts = transit(nodes, pattern, edge, reach)
    share = RANKS_A_NODE / INTERFACES if parallel else 1.0
    return sum(t + share * n * interval for t, n in zip(times, counts, strict=True))


@cache
def intervals() -> tuple[float, float]:
    """Microseconds between messages of uTofu and of MPI, from two ratios of figure 6 (65,536 atoms, 768 nodes)."""
    edge = edge_of(SMALL, 768)
    staged, staged_messages = (sum(values) for values in transit(768, "3-stage", edge))
    direct, direct_messages = (sum(values) for values in transit(768, "half", edge))
    utofu = (staged - 1.5 * direct) / (1.5 * direct_messages - staged_messages)
    coarse = direct + direct_messages * utofu
    return float(utofu), float((coarse / (1 - 0.79) - staged) / staged_messages)


def entries() -> list[Entry]:
    utofu, mpi = intervals()
    edge, late = edge_of(SMALL, 768), edge_of(STRONG, 36864)
    coarse = exchange_time(768, "half", utofu, edge)
    fine = exchange_time(768, "half", utofu, edge, parallel=True)
    staged_mpi = exchange_time(768, "3-stage", mpi, edge)
    at_scale = exchange_time(36864, "half", utofu, late, True) / exchange_time(36864, "3-stage", mpi, late)
    atoms = DENSITY * edge**2 * REACH
    return [
        Entry("figure 6: 3-stage over p2p, uTofu", 1.5, exchange_time(768, "3-stage", utofu, edge) / coarse, "x", True),
        Entry("figure 6: p2p uTofu of 3-stage MPI (79 % less)", 21, 100 * coarse / staged_mpi, "%", True),
        Entry("largest message, 65,536 atoms", 528, ATOM_BYTES * atoms, "B", bar=0.1),
        Entry("figure 6: thread pool of one thread (14 % less)", 86, 100 * fine / coarse, "%", bar=0.25),
        Entry("figure 12b: communication left (77 % less)", 23, 100 * fine / staged_mpi, "%", bar=0.25),
        Entry("table 3, 36,864 nodes, L-J: communication left", 100 * 2.1287 / 9.196, 100 * at_scale, "%", bar=0.25),
    ]


def claims() -> list[Claim]:
    utofu, mpi = intervals()
    edge = edge_of(SMALL, 768)
    slow, staged = exchange_time(768, "half", mpi, edge), exchange_time(768, "3-stage", mpi, edge)
    found = [Claim("p2p over MPI is slower than 3-stage over MPI (figure 6)", slow > staged,
                   f"{slow:.1f} and {staged:.1f} us")]
    for count, pattern, reach, wins in ((26, "full", REACH, True), (62, "half", FAR * edge, True),
                                        (124, "full", FAR * edge, False)):
        direct = exchange_time(768, pattern, utofu, edge, True, reach)
        other = exchange_time(768, "3-stage", utofu, edge, reach=reach)
        found.append(Claim(f"p2p {'wins' if wins else 'loses'} at {count} neighbours (figure 15)",
                           (direct < other) == wins, f"{direct:.1f} against {other:.1f} us, both over uTofu"))
    return found
