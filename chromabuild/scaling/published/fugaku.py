"""LAMMPS on Fugaku (Li et al. 2023): figures 6, 12, 13 and 15, table 3 and the speeds of the abstract.

An exchange is their equations 3 to 8 over our traces: stages one after the other; in each a rank waits for the others,
works for every message, and the slowest message takes latency, hops of the 6D network and bytes. A thread pool shares
the messages, of which the six interfaces of a node take those of its four ranks. MPI takes a step of a measured
all-reduce for each message. Atoms are packed and unpacked one by one; a rebuild of the lists sends all of it again and
takes a time of its own.

Times of a step: table 3 gives those of 99 steps "in 0.01 s", but its totals are the speeds of figure 13a (8.77 million
tau and 2.87 us a day) only in units of 1 ms; so they are read. Stages that are not communication start from the
original program's rows, less the synchronisations of threads that the pool makes cheaper. Counts of synchronisations,
messages and rebuilds follow the authors' program (github.com/HPC-AI-Team/lammps-fugaku-threadpool).
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from chromabuild.scaling.cost import NetworkSpeed, path_seconds
from chromabuild.scaling.halo_trace import p2p, three_stage
from chromabuild.scaling.published.comparison import Claim, Constant, Curve, Entry, Panel
from chromabuild.scaling.topology import tofu, tofu_nodes
from chromabuild.scaling.trace import Phase, on_nodes

SPEED = NetworkSpeed(latency=0.49e-6, per_message=0.0, per_hop=0.1e-6, bandwidth=38.1e9 / 6)
"""Latency of a put and bytes a second of an interface (Ajima et al. 2018: 38.1 GB/s a node of six); the hop is
assumed."""
REGION, POOL = 5.8e-6, 1.1e-6
"""Seconds to start and join threads, of OpenMP and of the thread pool (the paper, section 3.3)."""
MPI_STEP = 4.1e-6
"""Seconds of a step of an all-reduce of 64 nodes in six steps: 39.5 us for 2 KiB and 143 us for 16 KiB leave 24.7 us
without the bytes (github.com/HLC-Lab/bine_trees_fugaku, data/fugaku/2024_08_25_04_12_08, files that end with
_lat_1_ports.csv)."""
CLOCK, CACHE_CYCLES = 2.0e9, (37, 40, 47)
"""Hz; cycles of an access to the second cache, which an atom costs when it is packed or unpacked: least, ours, most."""
RANKS_A_NODE, INTERFACES, THREADS = 4, 6, 6
"""Threads: those of a rank that send."""
ATOM_BYTES = 24
CELLS = {768: (4, 4, 4), 36864: (16, 12, 16)}
"""Cells of 2 x 3 x 2 nodes: 8 x 12 x 8 and 32 x 36 x 32 nodes."""
FAR = 1.5
"""Cutoff over the edge of a domain where 62 or 124 neighbours are needed; the paper does not give it, this is the
middle of its range."""
STEPS = 99
"""Of a run of table 3."""


@dataclass(frozen=True)
class Potential:
    """A system of the paper. `density` and `reach` (cutoff and skin) in its own unit of length; `rebuild`: steps
    between rebuilds of the lists; `exchanges`: single numbers sent within the pair stage; `joins`: synchronisations of
    threads in it, one for each loop and each sum over threads; `step`: time units of a step, and `unit` of its speed a
    day; `table`: the original's and the optimised rows of table 3 in milliseconds of 99 steps (pair, neighbour,
    communication, modify, other)."""

    name: str
    density: float
    reach: float
    atoms: int
    rebuild: float
    exchanges: int
    joins: int
    step: float
    unit: str
    speed: float
    table: dict[str, tuple[float, float, float, float, float]]

    def edge(self, atoms: float, nodes: int) -> float:
        """Edge of a rank's domain, taken as a cube as the paper does."""
        return float((atoms / (nodes * RANKS_A_NODE) / self.density) ** (1 / 3))


LJ = Potential("L-J", 0.8442, 2.5 + 0.3, 4_194_304, 20, 0, 2, 0.005e-6, "Mtau", 8.77,
               {"original": (2.17, 0.2125, 9.196, 1.3272, 1.2756),
                "optimised": (1.3019, 0.18073, 2.1287, 0.4986, 0.7641)})
EAM = Potential("EAM", 4 / 3.615**3, 4.95 + 1.0, 3_456_000, STEPS / 9, 2, 5, 0.005e-6, "us", 2.87,
                {"original": (14.266, 0.75542, 11.001, 1.2637, 5.56),
                 "optimised": (6.143, 0.61705, 3.0115, 0.47991, 4.79)})
"""Table 2 has lists checked every 5 steps. LAMMPS (22 Jul 2025, bench/in.eam) then builds them 9 times in 99 steps, and
13 times where it may check every step from the fifth, as in its own log."""
EAM_REBUILDS = (5, 20)
"""Steps between them: what the settings allow, and those of L-J."""
MODIFY_JOINS = 2
"""The two halves of a step of velocity Verlet."""
SMALL = 65_536
"""Atoms on 768 nodes."""


@dataclass(frozen=True)
class Software:
    """Seconds: a rank's wait in a stage, its work for a message over uTofu, an interface's work for a message, and a
    rebuild's work beside its messages."""

    wait: float
    message: float
    interface: float
    rebuild: float = 0.0


@cache
def node_map(nodes: int) -> tuple[tuple[int, int, int], np.ndarray]:
    """Grid of ranks, 2 x 2 x 1 a node, and the node of each."""
    cells = CELLS[nodes]
    shape = np.array([2, 3, 2]) * cells
    grid = tuple(int(n) for n in shape * (2, 2, 1))
    place = np.array(np.unravel_index(np.arange(np.prod(grid)), grid[::-1]))[::-1]
    on_grid = place // np.array([[2], [2], [1]])
    return grid, tofu_nodes(cells)[np.ravel_multi_index(tuple(on_grid[::-1]), tuple(shape[::-1]))]


def exchange(nodes: int, pattern: str, edge: float, reach: float, per_volume: float) -> list[Phase]:
    """The messages between ranks: pattern 3-stage, half or full; bytes in a unit of volume."""
    grid = node_map(nodes)[0]
    if pattern == "3-stage":
        return three_stage(grid, (edge,) * 3, reach, per_volume)
    return p2p(grid, (edge,) * 3, reach, per_volume, half=pattern == "half")


@cache
def transit(pattern: str, edge: float, reach: float,
            per_volume: float) -> tuple[tuple[float, ...], tuple[int, ...], tuple[float, ...]]:
    """For each stage: seconds of its slowest message, messages and bytes that a rank sends. The same on any number of
    nodes, since the way to a neighbour repeats after two cells: those of 768 are taken."""
    node_of = node_map(768)[1]
    torus = tofu(CELLS[768])
    times, counts, sizes = [], [], []
    for phase in exchange(768, pattern, edge, reach, per_volume):
        hops = torus.hops(node_of[phase.source], node_of[phase.target])
        beyond, size = np.divmod(np.unique(np.maximum(hops - 1, 0) * 10**9 + phase.size), 10**9)
        times.append(max(path_seconds(SPEED, h, 0, b) for h, b in zip(beyond, size, strict=True)))
        counts.append(int(phase.messages_sent(len(node_of)).max()))
        sizes.append(float(phase.bytes_sent(len(node_of)).max()))
    return tuple(times), tuple(counts), tuple(sizes)


def cable_time(nodes: int, pattern: str, edge: float, potential: Potential = LJ) -> float:
    """Seconds that the busiest cable alone needs, stage after stage."""
    node_of = node_map(nodes)[1]
    phases = exchange(nodes, pattern, edge, potential.reach, potential.density * ATOM_BYTES)
    return sum(tofu(CELLS[nodes]).worst_load(away.source, away.target, away.size) / SPEED.bandwidth
               for away in (on_nodes(phase, node_of) for phase in phases))


def exchange_time(pattern: str, how: str, software: Software, edge: float, potential: Potential = LJ,
                  reach: float | None = None, atom_bytes: int = ATOM_BYTES, pack: bool = False) -> float:
    """Seconds of an exchange. `how`: MPI, uTofu (one thread) or pool. `pack`: with packing and unpacking."""
    reach = potential.reach if reach is None else reach
    times, counts, sizes = transit(pattern, edge, reach, potential.density * atom_bytes)
    total = 0.0
    for time, count, size in zip(times, counts, sizes, strict=True):
        share = 1.0
        if how == "MPI":
            total += count * (MPI_STEP - SPEED.latency) + time if pattern == "half" else \
                count * (MPI_STEP - SPEED.latency + time)
        elif how == "uTofu":
            total += software.wait + count * software.message + time
        else:
            share = -(-count // THREADS) / count
            total += POOL + software.wait + time + max(
                share * count * software.message, count * RANKS_A_NODE / INTERFACES * software.interface)
        if pack:
            # Positions are received in their place and forces sent from theirs, so that an atom is touched once.
            total += share * size / atom_bytes * CACHE_CYCLES[1] / CLOCK
    return total


def communication(nodes: int, atoms: float, potential: Potential, version: str, software: Software) -> float:
    """Seconds a step of the stage that table 3 calls communication: positions there (but when lists are rebuilt),
    forces back, and rebuilds: atoms that move to all neighbours, then borders with their length before (MPI) or their
    place after them."""
    edge, each = potential.edge(atoms, nodes), 1 / potential.rebuild
    if version == "original":
        there = exchange_time("3-stage", "MPI", software, edge, potential, pack=True)
        rebuild = there + 3 * 6 * MPI_STEP
    else:
        there = exchange_time("half", "pool", software, edge, potential, pack=True)
        rebuild = there + exchange_time("half", "pool", software, edge, potential, atom_bytes=1) \
            + exchange_time("full", "uTofu", software, edge, potential, atom_bytes=1)
    return (2 - each) * there + each * (rebuild + software.rebuild)


def pair_exchange(nodes: int, atoms: float, potential: Potential, version: str, software: Software) -> float:
    """Seconds a step of the exchanges within the pair stage: a number of each atom."""
    how, pattern = ("MPI", "3-stage") if version == "original" else ("pool", "half")
    return potential.exchanges * exchange_time(pattern, how, software, potential.edge(atoms, nodes), potential,
                                               atom_bytes=8, pack=True)


def measured(potential: Potential, version: str) -> np.ndarray:
    """Seconds a step of the five stages (table 3)."""
    return np.array(potential.table[version]) * 1e-3 / STEPS


def optimised_step(potential: Potential, software: Software) -> np.ndarray:
    """Seconds a step of the five stages on 36,864 nodes: those of the original with the pool's synchronisations and
    with our communication."""
    pair, neighbour, _, modify, other = measured(potential, "original")
    gain = REGION - POOL
    inside = [pair_exchange(36864, potential.atoms, potential, version, software) for version in potential.table]
    return np.array([pair - potential.joins * gain - inside[0] + inside[1], neighbour,
                     communication(36864, potential.atoms, potential, "optimised", software),
                     modify - MODIFY_JOINS * gain, other])


def other_time(potential: Potential, nodes: int) -> float:
    """Seconds a step of the stage "other" of the original program: what EAM has there beyond L-J are its scan and
    all-reduce, whose steps go with the logarithm of the ranks (recursive doubling)."""
    base, all_of_it = (float(measured(one, "original")[4]) for one in (LJ, potential))
    rounds = np.log2(nodes * RANKS_A_NODE) / np.log2(36864 * RANKS_A_NODE)
    return base + (all_of_it - base) * float(rounds)


def small_step(potential: Potential, version: str, software: Software) -> np.ndarray:
    """Seconds a step of the five stages of 65,536 atoms on 768 nodes: work of pairs and lists in proportion to the
    atoms of a rank on 36,864 nodes, modify as there."""
    pair, neighbour, _, modify, _ = measured(potential, "original")
    scale = (SMALL / 768) / (potential.atoms / 36864)
    join = REGION if version == "original" else POOL
    work = pair - potential.joins * REGION - pair_exchange(36864, potential.atoms, potential, "original", software)
    return np.array([work * scale + potential.joins * join + pair_exchange(768, SMALL, potential, version, software),
                     neighbour * scale, communication(768, SMALL, potential, version, software),
                     modify - MODIFY_JOINS * (REGION - join), other_time(potential, 768)])


def speed(potential: Potential, seconds: float) -> float:
    """In the paper's unit, a day."""
    return potential.step * 86400 / seconds


@cache
def software() -> Software:
    """Fitted: wait and message on two ratios of figure 6 (1.5 times; 79 % less), an interface's work on the third
    (14 % less), all on 768 nodes and 65,536 atoms; the rebuild on the optimised L-J row of table 3."""
    edge = LJ.edge(SMALL, 768)
    free = Software(0.0, 0.0, 0.0)
    staged, direct = (exchange_time(pattern, "uTofu", free, edge) for pattern in ("3-stage", "half"))
    coarse = 0.21 * exchange_time("3-stage", "MPI", free, edge)
    # direct + wait + 13 message = coarse;  staged + 3 wait + 6 message = 1.5 coarse
    wait, message = np.linalg.solve([[1.0, 13.0], [3.0, 6.0]], [coarse - direct, 1.5 * coarse - staged])
    left = 0.86 * coarse - direct - wait - POOL
    found = Software(float(wait), float(message), float(left / 13 * INTERFACES / RANKS_A_NODE))
    known = communication(36864, LJ.atoms, LJ, "optimised", found)
    return Software(found.wait, found.message, found.interface,
                    float((measured(LJ, "optimised")[2] - known) * LJ.rebuild))


def constants() -> list[Constant]:
    found = software()
    return [
        Constant("latency of a put", 1e6 * SPEED.latency, "us", "published", "Ajima et al. 2018"),
        Constant("bandwidth of an interface", 1e-9 * SPEED.bandwidth, "GB/s", "published", "Ajima et al. 2018"),
        Constant("hop", 1e6 * SPEED.per_hop, "us", "assumed", "no figure found"),
        Constant("OpenMP region", 1e6 * REGION, "us", "published", "Li et al. 2023, section 3.3"),
        Constant("thread pool", 1e6 * POOL, "us", "published", "Li et al. 2023, section 3.3"),
        Constant("step of MPI", 1e6 * MPI_STEP, "us", "published", "HLC-Lab/bine_trees_fugaku, all-reduce, 64 nodes"),
        Constant("atom packed or unpacked", 1e9 * CACHE_CYCLES[1] / CLOCK, "ns", "assumed",
                 "an access to the second cache, 37 to 47 cycles"),
        Constant("steps between rebuilds, EAM", EAM.rebuild, "", "counted",
                 "LAMMPS 22 Jul 2025, bench/in.eam, neigh_modify every 5 delay 0 check yes: 9 in 99 steps"),
        Constant("wait in a stage", 1e6 * found.wait, "us", "fitted", "figure 6, 1.5 times faster and 79 % less"),
        Constant("work for a message, uTofu", 1e6 * found.message, "us", "fitted", "figure 6, the same two"),
        Constant("an interface's work for a message", 1e6 * found.interface, "us", "fitted", "figure 6, 14 % less"),
        Constant("rebuild beside its messages", 1e6 * found.rebuild, "us", "fitted",
                 "table 3, optimised L-J communication")]


def _stage(name: str, paper: float, ours: float, unit: str = "us", **more: object) -> Entry:
    return Entry(name, paper, ours, unit, bar=0.15, **more)


def entries() -> list[Entry]:
    soft, edge = software(), LJ.edge(SMALL, 768)
    staged, coarse, slow, pool = (exchange_time(pattern, how, soft, edge) for pattern, how in
                                  (("3-stage", "uTofu"), ("half", "uTofu"), ("3-stage", "MPI"), ("half", "pool")))
    found = [Entry("figure 6: 3-stage over p2p, uTofu", 1.5, staged / coarse, "x", True),
             Entry("figure 6: p2p uTofu of 3-stage MPI (79 % less)", 21, 100 * coarse / slow, "%", True),
             Entry("figure 6: thread pool of one thread (14 % less)", 86, 100 * pool / coarse, "%", True),
             _stage("largest message, 65,536 atoms", 528, ATOM_BYTES * LJ.density * edge**2 * LJ.reach, "B")]
    before, after = (communication(768, SMALL, LJ, version, soft) for version in LJ.table)
    found.append(_stage("figure 12b: L-J communication left (77 % less)", 23, 100 * after / before, "%"))
    for potential, gain in ((LJ, 43), (EAM, 56)):
        before, after = (small_step(potential, version, soft)[0] for version in potential.table)
        found.append(_stage(f"figure 12c: {potential.name} pair stage left ({gain} % less)", 100 - gain,
                            100 * after / before, "%"))
    for potential, gain in ((LJ, 3.01), (EAM, 2.45)):
        before, after = (small_step(potential, version, soft) for version in potential.table)
        least, most = ((before.sum() - before[4] + other) / (after.sum() - after[4] + other)
                       for other in (measured(potential, "original")[4], 0.0))
        found.append(_stage(
            f"figure 12a: {potential.name}, gain with 65,536 atoms", gain, float(before.sum() / after.sum()), "x",
            low=float(least), high=float(most),
            reason="the stage 'other' is not given for 768 nodes; the band goes from that of 36,864 nodes to none"))
    for potential in (LJ, EAM):
        name = f"table 3, {potential.name}"
        at_scale = communication(36864, potential.atoms, potential, "original", soft)
        found.append(_stage(f"{name}: communication, original", 1e6 * measured(potential, "original")[2],
                            1e6 * at_scale))
        stages, paper = optimised_step(potential, soft), measured(potential, "optimised")
        if potential is LJ:
            found.append(Entry(f"{name}: communication, optimised", 1e6 * paper[2], 1e6 * stages[2], "us", True))
        else:
            ends = [1e6 * communication(36864, EAM.atoms, replace(EAM, rebuild=steps), "optimised", soft)
                    for steps in (EAM_REBUILDS[1], EAM_REBUILDS[0])]
            found.append(_stage(
                f"{name}: communication, optimised", 1e6 * paper[2], 1e6 * stages[2], low=ends[0], high=ends[1],
                reason="the paper does not say how often its EAM lists are rebuilt; the band is for every 5 (the least "
                       "that its settings allow) to every 20 steps"))
        found.append(_stage(f"{name}: pair stage, optimised", 1e6 * paper[0], 1e6 * stages[0]))
        found.append(_stage(f"figure 13a, {potential.name}: speed on 36,864 nodes", potential.speed,
                            speed(potential, stages.sum()), f"{potential.unit}/day"))
        found.append(_stage(f"figure 13a, {potential.name}: gain on 36,864 nodes", {"L-J": 2.9, "EAM": 2.2}[
            potential.name], float(measured(potential, "original").sum() / stages.sum()), "x"))
    return found


def claims() -> list[Claim]:
    soft, edge = software(), LJ.edge(SMALL, 768)
    slow, staged = (exchange_time(pattern, "MPI", soft, edge) for pattern in ("half", "3-stage"))
    found = [Claim("p2p over MPI is slower than 3-stage over MPI (figure 6)", slow > staged,
                   f"{1e6 * slow:.1f} and {1e6 * staged:.1f} us")]
    for count, pattern, reach, wins in ((26, "full", LJ.reach, True), (62, "half", FAR * edge, True),
                                        (124, "full", FAR * edge, False)):
        direct = exchange_time(pattern, "pool", soft, edge, reach=reach)
        other = exchange_time("3-stage", "uTofu", soft, edge, reach=reach)
        found.append(Claim(f"p2p {'wins' if wins else 'loses'} at {count} neighbours (figure 15)",
                           (direct < other) == wins, f"{1e6 * direct:.1f} against {1e6 * other:.1f} us over uTofu"))
    for potential in (LJ, EAM):
        units = speed(potential, measured(potential, "optimised").sum())
        found.append(Claim(f"table 3, {potential.name}: in milliseconds its total is the speed of figure 13a",
                           abs(units / potential.speed - 1) < 0.02,
                           f"{units:.2f} and {potential.speed} {potential.unit}/day"))
    return found


def panel() -> Panel:
    """Table 3: stages of a step of the optimised program."""
    curves = []
    for potential in (LJ, EAM):
        paper = 1e6 * measured(potential, "optimised")
        curves.append(Curve(f"{potential.name}, optimised", tuple(range(5)),
                            tuple(1e6 * optimised_step(potential, software())), paper=tuple(enumerate(paper))))
    return Panel("Step on 36,864 nodes of Fugaku (table 3)", "", "µs a step", tuple(curves),
                 ("pair", "neighbour", "comm.", "modify", "other"))
