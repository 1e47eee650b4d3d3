"""Car-Parrinello steps of water on Blue Gene/L: table 1 of Bohm et al. 2008, every entry.

A step's stages follow each other; in a stage the busiest rank's work and messages and the busiest cable's bytes add up,
as a core of that machine feeds its network itself. Five constants are fitted on the column of 1,024 nodes: operations
a second of transforms and of matrix products, the cost of a message of Charm++'s own layer and of MPI, and how much of
the time of the busiest cable counts. All other columns are predicted.

Not in the paper, and assumed: how many objects of each kind the runs had (`decomposition`), the shape of partitions,
and the map of the runs without topology. For that one objects are placed by lot ("spread over processors without regard
for network locality"); in the order of their indices for comparison.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from chromabuild.scaling.fans import Fan, combined, link_loads, mirrored
from chromabuild.scaling.placement import Decomposition, ObjectMap, naive_map, prism_map, random_map
from chromabuild.scaling.planewave_trace import Stage, System, stages
from chromabuild.scaling.published.comparison import Entry
from chromabuild.scaling.topology import Torus

SHAPES = {32: (4, 4, 2), 64: (4, 4, 4), 128: (8, 4, 4), 256: (8, 8, 4), 512: (8, 8, 8), 1024: (8, 8, 16),
          2048: (8, 16, 16), 4096: (16, 16, 16), 8192: (16, 16, 32), 16384: (16, 32, 32), 20480: (32, 40, 16)}
"""Nodes of partitions; a torus from 512 on, a mesh below."""
LINK_BANDWIDTH = 175e6
"""Bytes a second (Eleftheriou et al. 2007; Adiga et al. 2005)."""
CORE_BANDWIDTH = 6 * LINK_BANDWIDTH
"""A core writes and reads all packets and "can barely keep the entire network busy" (the paper): six links."""
BUCKET = 5
FILE = Path(__file__).parents[1] / "data" / "planewave_loads.json"
FITTED = 1024
CO, VN, MPI, NO_TOPOLOGY, NO_SPLINE = "CO", "VN", "MPI layer", "no topology", "no EES"
IN_ORDER = "no topology, in order"
NODES = tuple(SHAPES)
_ = None
TABLE = {  # seconds a step; waters and kind of run, by nodes
    (8, CO): (.22, .10, .082, .071, .046, .026, .020, _, _, _, _),
    (16, CO): (.73, .40, .23, .15, .106, .061, .041, .035, _, _, _),
    (32, CO): (2.71, 1.52, .95, .44, .26, .15, .11, .081, .063, _, _),
    (64, CO): (_, 6.62, 3.75, 1.88, .87, .51, .31, .21, .15, _, _),
    (128, CO): (_, _, _, _, 6.9, 2.73, 1.40, .91, .58, .37, .3),
    (256, CO): (_, _, _, _, _, 16.4, 8.14, 4.83, 2.75, 1.71, 1.54),
    (8, VN): (.13, .11, .08, .06, .028, .021, _, _, _, _, _),
    (16, VN): (.46, .28, .19, .13, .08, .047, .035, _, _, _, _),
    (32, VN): (1.99, 1.40, .81, .43, .174, .13, .082, .067, _, _, _),
    (64, VN): (_, 9.07, 3.38, 1.71, .67, .38, .22, .17, .15, _, _),
    (128, VN): (_, _, _, _, 3.0, 1.48, .90, .65, .48, .40, .3),
    (256, VN): (_, _, _, _, _, _, 5.10, 3.48, 2.41, 1.47, 1.2),
    (32, MPI): (_, _, _, _, _, .33, .22, .17, .12, _, _),
    (32, NO_TOPOLOGY): (_, _, _, _, _, .21, .23, .16, .18, _, _),
    (32, NO_SPLINE): (_, _, _, _, _, .22, .14, .098, .082, _, _),
    (256, NO_TOPOLOGY): (_, _, _, _, _, 28.8, 23.0, 13.4, 6.83, 3.40, _),
}
WATER_VOLUME = 29.875 / 0.529177210903**3
"""Cubic bohr a molecule at 1 g/cm^3."""
CUTOFF = 70.0


def system(waters: int, spline: bool = True) -> System:
    """Waters in a cube at 70 Ry."""
    return System((waters * WATER_VOLUME) ** (1 / 3), CUTOFF, 4 * waters, 3 * waters, 2, spline)


def decomposition(waters: int, ranks: int) -> Decomposition:
    """Objects of a run: our choice where the paper is silent. It says: N_g sets of lines, a number that tiles the torus
    and is near the number of planes; about 500 objects of the density for 32 waters; the decomposition is exhausted
    where ranks equal states times sets of lines, where the rows of table 1 end (32 x 64, 64 x 64, 128 x 64). Pair
    calculators about one a rank, as OpenAtom's manual advises."""
    given = system(waters)
    n = given.planes
    g_sets = 64 if waters <= 64 else 128
    subplanes = next(y for y in (4, 2, 1) if y == 1 or y * n <= ranks // 2)
    s_grain = min(given.states, 256)
    while s_grain > 16 and _pairs(given.states // s_grain) * g_sets < ranks:
        s_grain //= 2
    chunks = -(-ranks // (_pairs(given.states // s_grain) * g_sets))
    return Decomposition(given.states, n, g_sets, s_grain, min(s_grain, 32), chunks, subplanes, n, round(1.4 * n),
                         round(0.7 * n), given.species)


def _pairs(blocks: int) -> int:
    return blocks * (blocks + 1) // 2


@dataclass(frozen=True)
class Load:
    """Of a stage: operations of transforms and of products of the busiest rank, messages that it sends and receives,
    bytes through it, bytes through the busiest cable. Each is that of the rank or cable that has most of it."""

    transforms: float
    products: float
    messages: float
    rank_bytes: float
    cable_bytes: float


def run_map(kind: str, d: Decomposition, torus: Torus, per_node: int) -> ObjectMap:
    """The map of a kind of run."""
    ranks = torus.n_nodes * per_node
    if kind == NO_TOPOLOGY:
        return random_map(d, ranks)
    return naive_map(d, ranks) if kind == IN_ORDER else prism_map(d, torus, per_node)


def simulate(waters: int, kind: str, nodes: int) -> dict[str, Load]:
    """What each stage of a run asks of ranks and cables, from the messages of all objects: seconds to half a minute."""
    per_node = 2 if kind == VN else 1
    ranks = nodes * per_node
    torus = Torus(SHAPES[nodes], (nodes >= 512,) * 3)
    d = decomposition(waters, ranks)
    placed = run_map(kind, d, torus, per_node)
    known: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
    return {stage.name: _load(stage, torus, ranks, per_node, known)
            for stage in stages(system(waters, kind != NO_SPLINE), d, placed, kind not in (NO_TOPOLOGY, IN_ORDER))}


def _traffic(fan: Fan, torus: Torus, ranks: int, per_node: int, known: dict) -> tuple[np.ndarray, np.ndarray]:
    """Messages that ranks send and receive, and bytes on the cables; messages between the same ranks, and those back,
    are looked up in `known`."""
    one = replace(fan, size=1.0, times=1)
    if fan.deposit:
        counts, loads = one.sent_and_received(ranks), link_loads(torus, one, per_node)
    else:
        key = hash(fan.source.tobytes()), hash(fan.target.tobytes())
        if key[::-1] in known:
            counts, loads = known[key[::-1]]
            counts, loads = counts[::-1], mirrored(torus, loads)
        else:
            if key not in known:
                known[key] = one.sent_and_received(ranks), link_loads(torus, one, per_node)
            counts, loads = known[key]
    return counts * fan.times, loads * fan.size * fan.times


def _load(stage: Stage, torus: Torus, ranks: int, per_node: int, known: dict) -> Load:
    messages, through = np.zeros(ranks), np.zeros(ranks)
    cables = np.zeros((3, 2, torus.n_nodes))
    for fan in (*stage.fans, *stage.bucketed):
        count, loads = _traffic(fan, torus, ranks, per_node, known)
        count = count.sum(axis=0)
        through += count * fan.size
        messages += count * (packing(fan, ranks) if any(fan is other for other in stage.bucketed) else 1.0)
        cables += loads
    for phase in stage.trees:
        moves = phase.source != phase.target
        for end in (phase.source, phase.target):
            count = np.bincount(end[moves], minlength=ranks)
            messages += count
            through += np.bincount(end[moves], weights=phase.size[moves], minlength=ranks)
        cables += torus.link_loads(phase.source // per_node, phase.target // per_node, phase.size)
    return Load(*map(float, (stage.transforms.max(), stage.products.max(), messages.max(), through.max(),
                             cables.max())))


def packing(fan: Fan, ranks: int, most: int = 4_000_000) -> float:
    """Messages over those before they are put into buckets of five; of a sample of source ranks if there are many."""
    every = max(1, fan.source.size * fan.target.shape[1] // most)
    phase = replace(fan, source=np.where(fan.source % every == 0, fan.source, -1)).messages()
    return combined([phase], ranks, BUCKET)[0].sum() / max(1, len(phase.source))


def runs() -> list[tuple[int, str, int]]:
    """Waters, kind and nodes of all runs of which loads are kept: those of the table, MPI's being those of CO, and the
    runs of 32 waters without topology in the order of indices too."""
    found = [key for key in measured() if key[1] != MPI]
    return found + [(32, IN_ORDER, nodes) for waters, kind, nodes in found if (waters, kind) == (32, NO_TOPOLOGY)]


def write_loads(loads: dict[tuple[int, str, int], dict[str, Load]]) -> None:
    """Keep the loads of all runs with today's date."""
    record = {"computed": date.today().isoformat(), "loads": list(Load.__dataclass_fields__),
              "runs": [{"waters": waters, "kind": kind, "nodes": nodes,
                        "stages": {name: list(asdict(load).values()) for name, load in found.items()}}
                       for (waters, kind, nodes), found in loads.items()]}
    FILE.write_text(json.dumps(record, indent=1) + "\n")


@cache
def recorded() -> dict[tuple[int, str, int], dict[str, Load]]:
    """The loads of all runs as last simulated."""
    return {(run["waters"], run["kind"], run["nodes"]): {name: Load(*of) for name, of in run["stages"].items()}
            for run in json.loads(FILE.read_text())["runs"]}


def _factors(waters: int, kind: str, nodes: int, stage: str = "") -> tuple[np.ndarray, float]:
    """Factors of the five constants, and the seconds that need none; of one stage or of all."""
    found = recorded()[waters, CO if kind == MPI else kind, nodes]
    parts = [found[stage]] if stage else found.values()
    one = Load(*(sum(getattr(part, name) for part in parts) for name in Load.__dataclass_fields__))
    native = 0.0 if kind == MPI else one.messages
    return (np.array([one.transforms, one.products, native, one.messages - native, one.cable_bytes / LINK_BANDWIDTH]),
            one.rank_bytes / CORE_BANDWIDTH)


def measured() -> dict[tuple[int, str, int], float]:
    """Seconds a step of every entry of the table."""
    return {(*row, nodes): value for row, values in TABLE.items()
            for nodes, value in zip(NODES, values, strict=True) if value is not None}


@cache
def constants() -> np.ndarray:
    """Seconds an operation of transforms, of products, a message, a message of MPI; seconds over those that the bytes
    of the busiest cable take. Least squares of relative errors over the column of 1,024 nodes, none negative."""
    column = [(key, value) for key, value in measured().items() if key[2] == FITTED]
    rows, rest = zip(*(_factors(*key) for key, _ in column), strict=True)
    seconds = np.array([value for _, value in column])
    # Of the order of one each, so that the solver's tolerance fits all.
    scale = np.array([1e-9, 1e-9, 1e-6, 1e-6, 1.0])
    return scale * nnls(np.array(rows) * scale / seconds[:, None], 1 - np.array(rest) / seconds)[0]


def seconds(waters: int, kind: str, nodes: int, stage: str = "") -> float:
    """Simulated seconds of a step or of one of its stages."""
    factors, rest = _factors(waters, kind, nodes, stage)
    return float(factors @ constants() + rest)


def cable_seconds(waters: int, kind: str, nodes: int) -> float:
    """What all bytes of a step take through the busiest cable of each stage, one stage after the other."""
    return sum(load.cable_bytes for load in recorded()[waters, kind, nodes].values()) / LINK_BANDWIDTH


def entries() -> list[Entry]:
    """Every entry of the table of which loads are recorded."""
    return [Entry(_name(waters, kind, nodes), value, seconds(waters, kind, nodes), "s", fitted=nodes == FITTED)
            for (waters, kind, nodes), value in measured().items()
            if (waters, CO if kind == MPI else kind, nodes) in recorded()]


def _name(waters: int, kind: str, nodes: int) -> str:
    return f"{waters} waters, {kind}, {nodes} nodes"


def entry_of() -> dict[tuple[int, str, int], Entry | None]:
    """The entry of each published figure; None where loads are not recorded."""
    by_name = {entry.name: entry for entry in entries()}
    return {key: by_name.get(_name(*key)) for key in measured()}


def topology_ratios() -> list[tuple[int, int, float, float, float | None]]:
    """Waters, nodes, time without the topology map over that with it: published, simulated with objects placed by lot,
    and in the order of their indices (32 waters)."""
    found = []
    for (waters, kind, nodes), value in measured().items():
        if kind == NO_TOPOLOGY and (waters, kind, nodes) in recorded():
            ours = [seconds(waters, other, nodes) / seconds(waters, CO, nodes)
                    if (waters, other, nodes) in recorded() else None for other in (kind, IN_ORDER)]
            found.append((waters, nodes, value / measured()[waters, CO, nodes], *ours))
    return found
