"""Strong and weak scaling of chromamd: measured kernels (measured_step.json) on simulated networks.

    python -m benchmarks.network.scaling        (from the root of the repository: tables, docs/images/scaling.png)

A step is the measured work of a rank, plus the halo there (positions) and back (forces), PME's bricks there and back,
the FFT there and back by the engine's volumetric scheme 2d, and one agreement of all ranks. Nothing overlaps, all
ranks carry the same load. docs/scaling.md lists the assumptions.
"""

import json
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from .cost import Machine, Topology, node_traffic, seconds
from .fft_trace import Transform
from .halo_trace import p2p
from .topology import Dragonfly, FatTree, Torus
from .trace import Phase

HERE = Path(__file__).parent
FIGURE = HERE.parents[1] / "docs" / "images" / "scaling.png"
DENSITY = 0.1
"""Atoms a cubic angstrom."""
HALO_REACH = 13.5 + 2.0 + 4.0
"""Angstrom: list distance, twice the reach of a constraint group, the room that lets lists be renewed alone."""
ATOM_BYTES, GRID_BYTES, WAVE_BYTES = 24, 4, 8
"""A position or force (double); a grid point and a wave (mixed build)."""
SPLINE_ORDER, BRICK_MARGIN = 4, 4.0
"""Points; angstrom by which PME's bricks are wider than their domains (first_margin of pme.F90)."""
GRID_SPACING = 1.2
ENGINE_SCHEME = "2d"
"""PME asks the FFT for waves in boxes, which 1d does not give; the tables show both."""
NODE_BLOCK = (2, 4, 4)
"""Domains on a node: 32."""
LINE_SECONDS = 7.3e-3 / 128**3 / 21 / 2
"""Of a real transform, a point and factor of two (docs/fft.md: 128^3 there and back in 7.3 ms on one core)."""
RANK_GRIDS = {1024: (8, 8, 16), 2048: (8, 16, 16), 4096: (16, 16, 16), 8192: (16, 16, 32), 16_384: (16, 32, 32),
              32_768: (32, 32, 32), 65_536: (32, 32, 64)}
MPI_MESSAGE = 1.14e-6
"""Seconds a message: MPI's interval on Fugaku as fitted in fugaku.py."""


def networks(ranks: int) -> dict[str, tuple[Machine, Topology, np.ndarray]]:
    """Machine, topology and the node of each rank, by name."""
    grid = np.array(RANK_GRIDS[ranks])
    shape = tuple(int(n) for n in grid // NODE_BLOCK)
    place = np.array(np.unravel_index(np.arange(ranks), tuple(grid[::-1])))[::-1] // np.array(NODE_BLOCK)[:, None]
    node_of = np.ravel_multi_index(tuple(place[::-1]), shape[::-1])
    nodes = int(np.prod(shape))
    groups = max(1, nodes // 64)
    fast, slow = ({"latency": 1.5e-6, "per_message": MPI_MESSAGE, "per_hop": 0.1e-6, "bandwidth": b,
                   "memory_bandwidth": 100e9} for b in (25e9, 6.8e9))
    return {"fat tree": (Machine(**fast), FatTree((32, nodes // 32)), node_of),
            "dragonfly": (Machine(**fast), Dragonfly(groups, min(8, nodes // 8), 8, 8), node_of),
            "3D torus": (Machine(**slow), Torus(shape, orders="one"), node_of)}


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
class System:
    """A box of `edge` angstrom, three of them, on ranks of RANK_GRIDS."""

    edge: tuple[float, float, float]
    ranks: int

    @property
    def atoms_a_rank(self) -> float:
        return float(np.prod(self.edge)) * DENSITY / self.ranks

    @property
    def points(self) -> tuple[int, int, int]:
        return tuple(smooth(length / GRID_SPACING) for length in self.edge)

    @property
    def domain(self) -> tuple[float, float, float]:
        return tuple(a / p for a, p in zip(self.edge, RANK_GRIDS[self.ranks], strict=True))


@cache
def measured() -> tuple[np.ndarray, np.ndarray]:
    """Atoms of the measured boxes, and seconds an atom and step."""
    boxes = json.loads((HERE / "measured_step.json").read_text())["boxes"]
    return (np.array([box["atoms"] for box in boxes], dtype=float),
            1e-6 * np.array([sum(box["microseconds_per_atom"].values()) for box in boxes]))


def work_time(system: System) -> float:
    """Seconds of a rank's own work: the measured cost an atom against 1/edge of the domain (surfaces cost extra),
    between the measured sizes and a line beyond the smallest; never less than that of the largest. The lines of a
    larger grid are longer: what the logarithm adds is on top."""
    atoms, cost = measured()
    surface, wanted = atoms ** (-1 / 3), system.atoms_a_rank ** (-1 / 3)
    if wanted > surface.max():
        slope = (cost[0] - cost[1]) / (surface[0] - surface[1])
        each = cost[0] + slope * (wanted - surface[0])
    else:
        each = float(np.interp(wanted, surface[::-1], cost[::-1]))
    points = np.prod(system.points) / system.ranks
    longer = np.log2(np.prod(system.points)) - np.log2(atoms[-1] / DENSITY / GRID_SPACING**3)
    return system.atoms_a_rank * each + 2 * points * max(0.0, longer) * LINE_SECONDS


def halo_phases(system: System) -> list[Phase]:
    """Positions to 13 neighbours; forces go back the same way."""
    return p2p(RANK_GRIDS[system.ranks], system.domain, HALO_REACH, DENSITY * ATOM_BYTES, half=True)


def brick_phases(system: System) -> list[Phase]:
    """Charges on grid points beyond the domain to their owners: 26 neighbours, as a p2p halo as wide as spline and
    margin, of which half of the spline's width lies on either side."""
    grid = RANK_GRIDS[system.ranks]
    points = tuple(n / p for n, p in zip(system.points, grid, strict=True))
    margin = np.ceil(BRICK_MARGIN * system.points[0] / system.edge[0])
    return p2p(grid, points, (SPLINE_ORDER - 1) / 2 + margin, GRID_BYTES, half=False)


@cache
def fft_traffic(points: tuple[int, int, int], ranks: int, scheme: str) -> list[tuple[Phase, int, float]]:
    """Traffic between nodes of each exchange of a forward transform, summed up piece by piece."""
    node_of = networks(ranks)["fat tree"][2]
    n_nodes = int(node_of.max()) + 1
    transform = Transform(points, RANK_GRIDS[ranks], scheme, real=True, point_bytes=WAVE_BYTES)
    found: dict[int, tuple] = {}
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
        traffic.append((Phase(str(number), source, target, between[source, target]),
                        int(max(sent.max(), received.max())), kept))
    return traffic


def step(system: System, network: str) -> dict[str, float]:
    """Seconds of a step by part."""
    machine, topology, node_of = networks(system.ranks)[network]

    def both_ways(phases: list[Phase]) -> float:
        return 2 * sum(seconds(machine, topology, *node_traffic(phase, node_of)) for phase in phases)

    return {"work": work_time(system), "halo": both_ways(halo_phases(system)),
            "bricks": both_ways(brick_phases(system)),
            "FFT": fft_time(system, network, ENGINE_SCHEME),
            "agreement": np.ceil(np.log2(system.ranks)) * (machine.latency + machine.per_message)}


def fft_time(system: System, network: str, scheme: str) -> float:
    """Seconds of the exchanges of a transform there and back."""
    machine, topology, _ = networks(system.ranks)[network]
    return 2 * sum(seconds(machine, topology, *traffic) for traffic in fft_traffic(system.points, system.ranks, scheme))


def strong(atoms: float, ranks: int) -> System:
    """A cube of so many atoms."""
    return System(((atoms / DENSITY) ** (1 / 3),) * 3, ranks)


def weak(ranks: int, atoms_a_rank: float = 1e9 / 65_536) -> System:
    """Cubic domains of so many atoms each."""
    edge = (atoms_a_rank / DENSITY) ** (1 / 3)
    return System(tuple(edge * p for p in RANK_GRIDS[ranks]), ranks)


def row(system: System, network: str, reference: float) -> str:
    parts = step(system, network)
    total = sum(parts.values())
    schemes = {scheme: 1e3 * fft_time(system, network, scheme) for scheme in ("1d", "2d")}
    return (f"| {network} | {system.ranks:,} | {system.atoms_a_rank:,.0f} | {1e3 * parts['work']:.2f} | "
            f"{1e3 * parts['halo']:.2f} | {1e3 * parts['bricks']:.2f} | {schemes['2d']:.2f} | {schemes['1d']:.2f} | "
            f"{1e3 * total:.2f} | {100 * reference / total:.0f} % | {86.4 * 2e-6 / total * 1e3:.1f} |")


HEADER = ("| network | ranks | atoms a rank | work | halo | bricks | FFT (2d) | 1d would be | step, ms | efficiency | "
          "ns/day |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|")


def plot(results: dict[str, dict[str, list[float]]]) -> None:
    """`results`: panel -> network -> milliseconds a step for each of RANK_GRIDS."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharex=True)
    ranks = np.array(list(RANK_GRIDS))
    for axis, (title, lines) in zip(axes, results.items(), strict=True):
        for (name, values), style in zip(lines.items(), ("o-", "s--", "^:"), strict=True):
            axis.loglog(ranks, values, style, label=name, markersize=4)
        first = min(values[0] for values in lines.values())
        axis.loglog(ranks, first * (ranks[0] / ranks if "weak" not in title else np.ones(len(ranks))), color="grey",
                    linewidth=0.8, label="ideal")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("ranks")
        if "weak" in title:
            axis.set_yscale("linear")
            axis.set_ylim(0, 100)
    axes[0].set_ylabel("ms a step")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=100)


def main() -> None:
    results: dict[str, dict[str, list[float]]] = {}
    for title, make in (("1e8 atoms", partial(strong, 1e8)), ("1e9 atoms", partial(strong, 1e9)),
                        ("weak, 15,259 atoms a rank", weak)):
        print(f"\n### {title}\n\n{HEADER}")
        results[title] = {}
        for network in networks(1024):
            for ranks in RANK_GRIDS:
                system = make(ranks)
                total = sum(step(system, network).values())
                line = results[title].setdefault(network, [])
                line.append(1e3 * total)
                reference = line[0] / 1e3 * (1 if make is weak else min(RANK_GRIDS) / ranks)
                if ranks in (1024, 4096, 16_384, 32_768, 65_536):
                    print(row(system, network, reference), flush=True)
    plot(results)


if __name__ == "__main__":
    main()
