"""Which rank holds which object of a plane-wave run: the maps of Bohm et al. (2008).

The source divides a step among indexed objects (our names in brackets): states on sets of lines in reciprocal space
G(s, p) [g] and on planes of the grid R(s, p) [r], the density on parts of planes rho_R(p, p') [rho_r] and on sets of
lines [rho_g], the same of the Hartree and external energy [hartree_r, hartree_g], projections on planes [nonlocal_r],
pair calculators P_c(s, s', p, p') [pair] and ortho tiles [ortho]. A map gives the rank of each.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from chromabuild.base.files import atomic_path
from chromabuild.scaling.fft_trace import share
from chromabuild.scaling.topology import Torus


@dataclass(frozen=True)
class Decomposition:
    """Numbers of objects. OpenAtom's names: `g_sets` follows from gExpandFact, `s_grain` is sGrainSize, `ortho_grain`
    orthoGrainSize, `chunks` numChunks, `subplanes` (parts of a density plane) rhoRsubplanes."""

    states: int
    planes: int
    """Planes of the grid, N."""
    g_sets: int
    """Sets of lines of a state, N_g."""
    s_grain: int
    ortho_grain: int = 0
    chunks: int = 1
    subplanes: int = 1
    rho_sets: int = 1
    """Sets of lines of the density, N_g rho."""
    hartree_planes: int = 1
    """1.4 N with the spline."""
    nonlocal_planes: int = 1
    """0.7 N with the spline."""
    atom_types: int = 1

    def __post_init__(self) -> None:
        if self.s_grain < 1 or self.states % self.s_grain:
            raise ValueError(f"s_grain {self.s_grain} does not divide {self.states} states; take a divisor")
        if self.ortho_grain and self.s_grain % self.ortho_grain:
            raise ValueError(f"ortho_grain {self.ortho_grain} does not divide s_grain {self.s_grain}; take a divisor")

    @property
    def blocks(self) -> int:
        """Blocks of states, N_s."""
        return self.states // self.s_grain

    @cached_property
    def block_pairs(self) -> np.ndarray:
        """Blocks a <= b of each pair calculator: (pairs, 2)."""
        return np.array(np.triu_indices(self.blocks)).T

    @property
    def tiles(self) -> int:
        """Ortho tiles along an edge of a block."""
        return self.s_grain // (self.ortho_grain or self.s_grain)


@dataclass(frozen=True)
class ObjectMap:
    """Rank of each object: g (states, g_sets), r (states, planes), rho_r (planes, subplanes), rho_g (rho_sets),
    hartree_r (hartree_planes, subplanes, types), hartree_g (rho_sets, types), nonlocal_r (states, nonlocal_planes),
    pair (pairs, g_sets, chunks), ortho (pairs, tiles^2)."""

    n_ranks: int
    g: np.ndarray
    r: np.ndarray
    rho_r: np.ndarray
    rho_g: np.ndarray
    hartree_r: np.ndarray
    hartree_g: np.ndarray
    nonlocal_r: np.ndarray
    pair: np.ndarray
    ortho: np.ndarray


def _shapes(d: Decomposition) -> dict[str, tuple[int, ...]]:
    return {"g": (d.states, d.g_sets), "r": (d.states, d.planes), "rho_r": (d.planes, d.subplanes),
            "rho_g": (d.rho_sets,), "hartree_r": (d.hartree_planes, d.subplanes, d.atom_types),
            "hartree_g": (d.rho_sets, d.atom_types), "nonlocal_r": (d.states, d.nonlocal_planes),
            "pair": (len(d.block_pairs), d.g_sets, d.chunks), "ortho": (len(d.block_pairs), d.tiles**2)}


def deal(n: int, parts: int) -> np.ndarray:
    """Part of each of n items dealt in order; spread out where there are more parts than items."""
    return np.arange(n) * parts // n


def hybrid_planes(states: int, planes: int, n_ranks: int, groups: int) -> np.ndarray:
    """R(s, p) in the hybrid map: states dealt to groups of ranks, planes to the ranks of a group: (states, planes).
    One group is the plane map (a rank holds its planes of all states), as many groups as ranks the state map (all
    planes of its states)."""
    if groups < 1 or n_ranks % groups:
        raise ValueError(f"{groups} groups do not divide {n_ranks} ranks; take a divisor")
    a_group = n_ranks // groups
    return _shares(states, groups)[:, None] * a_group + _shares(planes, a_group)[None]


def _shares(n: int, parts: int) -> np.ndarray:
    """Part of each of n items in the library's even shares, which chromaqm deals planes by."""
    first, last = share(n, parts, np.arange(parts))
    return np.repeat(np.arange(parts), last - first + 1)


def hybrid_map(d: Decomposition, n_ranks: int, groups: int) -> ObjectMap:
    """States and their projections by `hybrid_planes`, everything else dealt in order."""
    return _in_order(d, n_ranks, g=hybrid_planes(d.states, d.g_sets, n_ranks, groups),
                     r=hybrid_planes(d.states, d.planes, n_ranks, groups),
                     nonlocal_r=hybrid_planes(d.states, d.nonlocal_planes, n_ranks, groups))


def state_map(d: Decomposition, n_ranks: int) -> ObjectMap:
    """All planes of a state on one rank: its transposes stay there."""
    return hybrid_map(d, n_ranks, n_ranks)


def plane_map(d: Decomposition, n_ranks: int) -> ObjectMap:
    """A plane of all states on one rank: densities are summed, potentials multiplied there."""
    return hybrid_map(d, n_ranks, 1)


def naive_map(d: Decomposition, n_ranks: int) -> ObjectMap:
    """Every kind of object dealt to ranks in the order of its indices: even, without regard to the network or to what
    other objects are near."""
    return _in_order(d, n_ranks)


def random_map(d: Decomposition, n_ranks: int, seed: int = 0) -> ObjectMap:
    """Every kind of object dealt evenly to ranks by lot."""
    rng = np.random.default_rng(seed)
    return _in_order(d, n_ranks, **{name: rng.permutation(n_ranks)[deal(int(np.prod(shape)), n_ranks)][
        rng.permutation(int(np.prod(shape)))].reshape(shape) for name, shape in _shapes(d).items()})


def _in_order(d: Decomposition, n_ranks: int, **given: np.ndarray) -> ObjectMap:
    return ObjectMap(n_ranks, **{name: given[name] if name in given else
                                 deal(int(np.prod(shape)), n_ranks).reshape(shape)
                                 for name, shape in _shapes(d).items()})


def prisms(torus: Torus, n: int) -> tuple[int, np.ndarray]:
    """Tile a torus of three axes with n prisms whose long axis spans an axis: that axis and, prism after prism, their
    nodes along it: (n, length, nodes of a cross-section). Several prisms share nodes where the cross-section has fewer
    nodes than there are prisms. Among the axes that allow it, the one with the flattest cross-sections."""
    best = None
    for axis in range(3):
        u, v = (a for a in range(3) if a != axis)
        across = torus.shape[u] * torus.shape[v]
        tiles = min(n, across)
        if across % tiles or n % tiles:
            continue
        area = across // tiles
        edges = [(w, area // w) for w in range(1, area + 1)
                 if area % w == 0 and torus.shape[u] % w == 0 and torus.shape[v] % (area // w) == 0]
        if edges:
            edge = min(edges, key=lambda e: abs(e[0] - e[1]))
            key = (n // tiles, sum(edge), -torus.shape[axis])
            if best is None or key < best[0]:
                best = (key, axis, u, v, edge, n // tiles)
    if best is None:
        raise ValueError(f"{n} prisms do not tile a torus of {' x '.join(map(str, torus.shape))}; take a power of two")
    _, axis, u, v, (w, h), shared = best
    place = np.empty((3, torus.shape[u] // w, torus.shape[v] // h, torus.shape[axis], w * h), dtype=np.int64)
    i, j, k, c = np.indices(place.shape[1:])
    place[axis], place[u], place[v] = k, i * w + c % w, j * h + c // w
    return axis, np.repeat(torus.node(place).reshape(-1, torus.shape[axis], w * h), shared, axis=0)


class _Nearest:
    """Deals objects to the ranks nearest to a centroid, each rank at most its even share of a kind."""

    def __init__(self, torus: Torus, per_node: int) -> None:
        self.torus, self.per_node = torus, per_node
        self.place = torus.coordinates(np.arange(torus.n_nodes))

    def centroid(self, ranks: np.ndarray, turn: float = 0.0) -> np.ndarray:
        """Mean place of ranks, around the rings where that is shorter. Where they fill a ring evenly every place of it
        is as good: the one at the fraction `turn`."""
        here = self.place[:, np.asarray(ranks).ravel() // self.per_node]
        mean = here.mean(axis=1)
        for axis, length in enumerate(self.torus.shape):
            if self.torus.is_ring[axis]:
                arrow = np.exp(2j * np.pi * here[axis] / length).mean()
                mean[axis] = length * (np.angle(arrow) / (2 * np.pi) % 1.0 if abs(arrow) > 1e-2 else turn)
        return mean

    def distance(self, centroid: np.ndarray) -> np.ndarray:
        """Hops of all nodes from a place."""
        far = np.abs(self.place - centroid[:, None])
        for axis, length in enumerate(self.torus.shape):
            if self.torus.is_ring[axis]:
                far[axis] = np.minimum(far[axis], length - far[axis])
        return far.sum(axis=0)

    def deal(self, centroids: list[np.ndarray], a_group: int, barred: np.ndarray | None = None,
             pools: list[np.ndarray] | None = None) -> np.ndarray:
        """`a_group` objects near each centroid: (groups, a_group). `barred`: ranks left out while others suffice;
        `pools`: the ranks that each group may use."""
        n_ranks = self.torus.n_nodes * self.per_node
        free = np.ones(n_ranks, dtype=bool)
        if barred is not None and a_group * len(centroids) <= n_ranks - len(np.unique(barred)):
            free[barred] = False
        load = np.zeros(n_ranks, dtype=np.int64)
        found = np.empty((len(centroids), a_group), dtype=np.int64)
        everywhere = np.flatnonzero(free)
        for group, centroid in enumerate(centroids):
            pool = everywhere if pools is None else pools[group]
            far = self.distance(centroid)[pool // self.per_node]
            # The least loaded ranks first, the nearest among them.
            near = pool[np.lexsort((far, load[pool]))]
            found[group] = np.resize(near, a_group)
            np.add.at(load, found[group], 1)
        return found


def prism_map(d: Decomposition, torus: Torus, per_node: int = 1) -> ObjectMap:
    """The source's topology-aware map. G(s, p) in ascending order of states along prism p; all R of a state in the flat
    slab of its G, planes in ascending order; density near the centroid of all R of a plane, its lines near but not on
    those ranks; pair calculators near the centroid of their two blocks of states within prism p; ortho tiles on the
    owner of one of their pair calculators that is nearest to all of them; projections on the slab of the state's G, not
    where the density is as long as there is room. Ranks of a node are numbered one after the other."""
    _, nodes = prisms(torus, d.g_sets)
    length = nodes.shape[1]
    ranks = (nodes[..., None] * per_node + np.arange(per_node)).reshape(d.g_sets, length, -1)  # along, across
    along = ranks.reshape(d.g_sets, -1)
    g = along[:, deal(d.states, along.shape[1])].T
    level = deal(d.states, along.shape[1]) // ranks.shape[2]

    near = _Nearest(torus, per_node)
    slab = ranks.transpose(1, 0, 2).reshape(length, -1)
    slab = slab[:, np.sort(np.unique(slab[0], return_index=True)[1])]  # prisms that share nodes list them twice
    r = _in_slabs(slab, level, d.planes)
    of_plane = [near.centroid(r[:, p], turn=p / d.planes) for p in range(d.planes)]
    rho_r = near.deal(of_plane, d.subplanes)
    of_lines = [of_plane[p] for p in deal(d.rho_sets, d.planes)]
    rho_g = near.deal(of_lines, 1, barred=rho_r.ravel())[:, 0]
    of_hartree = [of_plane[p] for p in deal(d.hartree_planes, d.planes)]
    hartree_r = near.deal(of_hartree, d.subplanes * d.atom_types).reshape(-1, d.subplanes, d.atom_types)
    hartree_g = near.deal(of_lines, d.atom_types, barred=np.concatenate([rho_r.ravel(), rho_g]))

    pair = np.empty((len(d.block_pairs), d.g_sets, d.chunks), dtype=np.int64)
    states = np.arange(d.states).reshape(d.blocks, d.s_grain)
    for p in range(d.g_sets):
        centroids = [near.centroid(g[states[[a, b]], p]) for a, b in d.block_pairs]
        pair[:, p] = near.deal(centroids, d.chunks, pools=[np.unique(along[p])] * len(centroids))
    ortho = near_owners(near, pair, d.tiles**2)

    busy = np.unique(np.concatenate([rho_r.ravel(), rho_g]))
    left = [row[~np.isin(row, busy)] for row in slab]
    if min(map(len, left)) * 2 < slab.shape[1]:
        left = list(slab)
    nonlocal_r = _in_slabs(left, level, d.nonlocal_planes)
    return ObjectMap(torus.n_nodes * per_node, g, r, rho_r, rho_g, hartree_r, hartree_g, nonlocal_r, pair, ortho)


def _in_slabs(slab: np.ndarray | list[np.ndarray], level: np.ndarray, planes: int) -> np.ndarray:
    """Planes of each state in ascending order over the slab of its level; states of one slab are shifted against each
    other by less than a plane, so that the ranks of a slab have even shares."""
    found = np.empty((len(level), planes), dtype=np.int64)
    for number in np.unique(level):
        members, row = np.flatnonzero(level == number), slab[number]
        k = np.arange(len(members))[:, None]
        found[members] = row[(np.arange(planes) * len(members) + k) * len(row) // (planes * len(members))]
    return found


def near_owners(near: _Nearest, pair: np.ndarray, tiles: int) -> np.ndarray:
    """For each pair of blocks, the owners of its pair calculators nearest to all of them: (pairs, tiles)."""
    found = np.empty((len(pair), tiles), dtype=np.int64)
    for k, owners in enumerate(pair):
        candidates = np.unique(owners)
        far = near.distance(near.centroid(owners))[candidates // near.per_node]
        found[k] = np.resize(candidates[np.argsort(far, kind="stable")], tiles)
    return found


TOGETHER = 4
"""Pairs of states that chromaqm has under way on each set of ranks that shares pairs."""


def turns(r: np.ndarray, n_ranks: int) -> tuple[np.ndarray, int]:
    """The order in which pairs of states (pairs, planes) take turns, one of each owner after the other, and how many
    are under way together, so that all ranks are busy."""
    first = r[:, 0]
    nth = np.array([np.count_nonzero(first[:k] == first[k]) for k in range(len(first))])
    sets = max(1, n_ranks // len(np.unique(r[0])))
    return np.argsort(nth, kind="stable"), min(len(r), TOGETHER * sets)


def write_state_planes(path: Path, r: np.ndarray, n_ranks: int) -> None:
    """Write the rank of each plane of each pair of states, (pairs, planes), as the map file of chromaqm: pairs, planes,
    ranks and pairs under way together; then, in the order of turns, the number of each pair and the ranks of its
    planes. One of the maps above with `states` for pairs gives r."""
    order, batch = turns(r, n_ranks)
    lines = [f"{r.shape[0]} {r.shape[1]} {n_ranks} {batch}"]
    lines += [f"{pair + 1} {' '.join(map(str, r[pair]))}" for pair in order]
    with atomic_path(path) as part:
        part.write_text("\n".join(lines) + "\n")


def write_object_map(path: Path, d: Decomposition, m: ObjectMap) -> None:
    """Write the ranks of all objects as the map file of chromaqm for `layer = OBJECTS`: numbers of pairs of states,
    planes, ranks, sets of waves of states and of the density, pairs of states in a block and in a tile, chunks and
    subplanes; then each table under its name. `states` of d are pairs of states."""
    lines = [" ".join(map(str, (d.states, d.planes, m.n_ranks, d.g_sets, d.rho_sets, d.s_grain,
                                d.ortho_grain or d.s_grain, d.chunks, d.subplanes)))]
    for name in ("g", "r", "rho_r", "rho_g", "pair", "ortho"):
        table = getattr(m, name)
        lines += [name, *(" ".join(map(str, row)) for row in table.reshape(len(table), -1))]
    with atomic_path(path) as part:
        part.write_text("\n".join(lines) + "\n")
