"""A step of plane-wave minimisation as the source draws it (Bohm et al. 2008, figure 1): its work and its messages.

Phases: I states to the grid, II density, III and IV its transforms and energies, V the potential to the states, VI
states back, VII regularised forces, VIII orthonormal states, IX projections. Phases that run at the same time make one
stage. Work is counted in floating-point operations of two kinds: those of transforms and of sums over the grid, and
those of matrix products.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log2, pi

import numpy as np

from chromabuild.scaling.fans import Fan, tree
from chromabuild.scaling.placement import Decomposition, ObjectMap, hybrid_planes, turns
from chromabuild.scaling.trace import Phase

COMPLEX, REAL = 16, 8
NEWTON_CYCLES, PRODUCTS = 4, 3
"""Cycles of S^(-1/2) from the overlaps of a step, and matrix products of a cycle."""
XC_OPERATIONS = 300
"""Operations of a gradient-corrected functional at a point of the grid."""
SPLINE_ORDER = 6


def grid_size(largest_g: float, edge: float) -> int:
    """Points an axis, as wave_sphere.f90 has them, for waves up to 2 `largest_g`."""
    return smooth_size(2 * int(2 * largest_g * edge / (2 * pi)) + 1)


def smooth_size(least: int) -> int:
    """The smallest number from `least` on without prime factors above 5."""
    n = least
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1


def stick_lengths(box: tuple[float, float, float], cutoff: float) -> np.ndarray:
    """Waves of each stick of the half sphere with G^2 <= cutoff (Ry): kx = 0, 1, ...; ky from the lowest up."""
    unit = 2 * pi / np.array(box)
    most = (np.sqrt(cutoff) / unit).astype(int)
    x, y = np.meshgrid(np.arange(most[0] + 1), np.arange(-most[1], most[1] + 1), indexing="ij")
    left = cutoff - (x * unit[0]) ** 2 - (y * unit[1]) ** 2
    held = (left >= 0) & ~((x == 0) & (y < 0))
    length = (np.sqrt(left[held]) / unit[2]).astype(int)
    return np.where((x == 0)[held] & (y == 0)[held], length + 1, 2 * length + 1)


def deal_sticks(length: np.ndarray, parts: int) -> np.ndarray:
    """Part of each stick: the longest first, each to the part with the fewest waves (the first of them)."""
    load = np.zeros(parts, dtype=np.int64)
    part = np.empty(len(length), dtype=np.int64)
    for k in np.argsort(-length, kind="stable"):
        part[k] = load.argmin()
        load[part[k]] += length[k]
    return part


@dataclass(frozen=True)
class System:
    """What the work depends on: edge of a cube (bohr), cutoff (Ry), states, atoms, species. `spline`: local and
    non-local terms by splines; otherwise by sums over atoms."""

    edge: float
    cutoff: float
    states: int
    atoms: int
    species: int
    spline: bool = True

    @property
    def planes(self) -> int:
        return grid_size(self.cutoff**0.5, self.edge)

    def lines(self, finer: int = 1) -> float:
        """Lines along z of the half sphere of states, or of the density (`finer` 2)."""
        return pi / 2 * (finer * self.cutoff**0.5 * self.edge / (2 * pi)) ** 2

    def waves(self, finer: int = 1) -> float:
        """Waves of that half sphere."""
        return 2 * pi / 3 * (finer * self.cutoff**0.5 * self.edge / (2 * pi)) ** 3


@dataclass
class Stage:
    """Phases that run together: operations of each rank (ranks,), messages in buckets (five of the source travel as
    one) and others."""

    name: str
    transforms: np.ndarray
    products: np.ndarray
    fans: list[Fan] = field(default_factory=list)
    bucketed: list[Fan] = field(default_factory=list)
    trees: list[Phase] = field(default_factory=list)


def line_work(n: int) -> float:
    """Operations of a complex transform of n points."""
    return 5 * n * log2(n)


def plane_work(n: int) -> float:
    """Operations of a plane of a real field whose waves fill half of x."""
    return (n / 4 + n / 2) * line_work(n)


def stages(system: System, d: Decomposition, m: ObjectMap, rectangular: bool) -> list[Stage]:
    """The stages of a step. `rectangular`: matrices reach pair calculators by deposited packets, as where these lie in
    a prism; otherwise over trees of ranks."""
    n = d.planes

    def each(name: str, work: float) -> np.ndarray:
        return work * np.bincount(getattr(m, name).ravel(), minlength=m.n_ranks)

    def stage(name: str) -> Stage:
        return Stage(name, np.zeros(m.n_ranks), np.zeros(m.n_ranks))

    lines = system.lines() / d.g_sets
    to_grid = Fan("transposes of states", m.g, m.r, lines * COMPLEX)
    part = n * n / d.subplanes
    one = stage("I")
    one.transforms = each("g", lines * line_work(n)) + each("r", plane_work(n) + 2 * n * n)
    one.bucketed = [to_grid]

    two = stage("II")
    two.transforms = each("r", n * n)
    two.trees = [tree("sum of the density", list(m.r.T), m.rho_r, part * REAL, upward=True)]

    middle = _density(stage("III, IV, IX"), system, d, m, each)
    _nonlocal(middle, system, d, m, each)

    back = stage("V, VI")
    back.transforms = one.transforms.copy()
    back.fans = [Fan("potential to states", m.rho_r, m.r.T, part * REAL)]
    back.bucketed = [to_grid.reverse("transposes of states, back")]
    return [one, two, middle, back, _orthogonality("VII", system, d, m, rectangular, 2, 0),
            _orthogonality("VIII", system, d, m, rectangular, 1, NEWTON_CYCLES * PRODUCTS)]


def _density(stage: Stage, system: System, d: Decomposition, m: ObjectMap,
             each: Callable[[str, float], np.ndarray]) -> Stage:
    n, transforms = d.planes, 9
    rho_lines = system.lines(2) / d.rho_sets
    stage.transforms = each("rho_r", (transforms * 5 * n * n * log2(n) + XC_OPERATIONS * n * n) / d.subplanes)
    stage.transforms += each("rho_g", transforms * rho_lines * line_work(n))
    every = np.unique(m.rho_r), m.rho_r.reshape(1, -1)
    stage.fans = [Fan("transposes of the density", every[1], m.rho_g.reshape(1, -1),
                      rho_lines * COMPLEX / d.subplanes, transforms)]
    if d.subplanes > 1:
        stage.fans.append(Fan("within density planes", m.rho_r, m.rho_r, n * n * REAL / d.subplanes**2, transforms))
    waves = system.waves(2) / d.rho_sets
    if not system.spline:
        # Structure factors, local energy and forces, atom by atom.
        stage.transforms += each("rho_g", 2 * 8 * waves * system.atoms)
        return stage
    fine = d.hartree_planes
    stage.transforms += each("hartree_r", 2 * 5 * fine * fine * log2(fine) / d.subplanes)
    stage.transforms += each("hartree_g", 2 * rho_lines * line_work(fine))
    for a in range(d.atom_types):
        stage.fans.append(Fan("transposes of structure factors", m.hartree_r[..., a].reshape(1, -1),
                              m.hartree_g[:, a].reshape(1, -1), rho_lines * COMPLEX / d.subplanes, 2))
        if d.subplanes > 1:
            stage.fans.append(Fan("within planes of structure factors", m.hartree_r[..., a], m.hartree_r[..., a],
                                  fine * fine * REAL / d.subplanes**2, 2))
    stage.fans.append(Fan("density to local terms", m.rho_g[:, None], m.hartree_g, waves * COMPLEX))
    return stage


def _nonlocal(stage: Stage, system: System, d: Decomposition, m: ObjectMap,
              each: Callable[[str, float], np.ndarray]) -> None:
    waves = system.waves() / d.g_sets
    if not system.spline:
        stage.transforms += each("g", 2 * 8 * waves * system.atoms)
        stage.trees.append(tree("sums of projections", list(m.g), m.g[:, 0], system.atoms * REAL, upward=True))
        stage.trees.append(tree("projections", list(m.g), m.g[:, 0], system.atoms * REAL, upward=False))
        return
    coarse, lines, types = d.nonlocal_planes, system.lines() / d.g_sets, d.atom_types
    spread = 2 * 4 * system.atoms * SPLINE_ORDER**3 / coarse
    stage.transforms += each("g", 2 * types * (lines * line_work(coarse) + 8 * waves))
    stage.transforms += each("nonlocal_r", 2 * types * plane_work(coarse) + spread)
    there = Fan("transposes of projections", m.g, m.nonlocal_r, lines * COMPLEX, types)
    stage.bucketed += [there, there.reverse("transposes of projections, back")]
    stage.trees.append(tree("sums of projections", list(m.nonlocal_r), m.nonlocal_r[:, 0], system.atoms * REAL,
                            upward=True))
    stage.trees.append(tree("projections", list(m.nonlocal_r), m.nonlocal_r[:, 0], system.atoms * REAL, upward=False))


def _orthogonality(name: str, system: System, d: Decomposition, m: ObjectMap, rectangular: bool, fields: int,
                   products: int) -> Stage:
    """`fields` of every state to the pair calculators, tiles to ortho, `products` of matrices there, back."""
    reals = 2 * system.waves() / d.g_sets
    diagonal = d.block_pairs[:, 0] == d.block_pairs[:, 1]
    work = 2 * d.s_grain**2 * reals / d.chunks * np.where(diagonal, 2, 3)
    stage = Stage(name, np.zeros(m.n_ranks), np.bincount(
        m.pair.ravel(), weights=np.broadcast_to(work[:, None, None], m.pair.shape).ravel(), minlength=m.n_ranks))
    tile = d.ortho_grain or d.s_grain
    stage.products += products * 2 * tile**2 * d.states * np.bincount(m.ortho.ravel(), minlength=m.n_ranks) * 2

    forward = pair_fan(d, m, reals * REAL / d.chunks, fields)
    back = Fan("pair calculators to states", forward.target, forward.source, forward.size)
    stage.fans = [forward, back]
    owners = list(m.pair.reshape(len(m.pair), -1))
    stage.trees = [tree("overlaps to ortho", owners, m.ortho, tile**2 * REAL, upward=True)]
    if rectangular:
        stage.fans += [Fan("matrices to pair calculators", m.ortho[:, [t]], _distinct(owners), tile**2 * REAL,
                           deposit=True) for t in range(m.ortho.shape[1])]
    else:
        stage.trees.append(tree("matrices to pair calculators", owners, m.ortho, tile**2 * REAL, upward=False))
    if products:
        rows = [m.ortho[(d.block_pairs == a).any(axis=1)].ravel() for a in range(d.blocks)]
        same = np.array(rows)
        stage.fans.append(Fan("tiles of matrix products", same, same, tile**2 * REAL, products))
    return stage


def pair_fan(d: Decomposition, m: ObjectMap, size: float, fields: int) -> Fan:
    """Waves of every state in a set to all chunks of the pair calculators of its block, `fields` times `size` bytes."""
    diagonal = d.block_pairs[:, 0] == d.block_pairs[:, 1]
    states = np.arange(d.states).reshape(d.blocks, d.s_grain)
    source = m.g[states[d.block_pairs].reshape(len(d.block_pairs), -1)]  # (pairs, states of both blocks, g sets)
    source[diagonal, d.s_grain:] = -1
    source = source.transpose(0, 2, 1).reshape(-1, 2 * d.s_grain)
    return Fan("states to pair calculators", source, m.pair.reshape(-1, d.chunks), size, fields)


def _distinct(owners: list[np.ndarray]) -> np.ndarray:
    """Distinct ranks of each group, filled up with -1."""
    sets = [np.unique(ranks) for ranks in owners]
    found = np.full((len(sets), max(map(len, sets))), -1)
    for k, ranks in enumerate(sets):
        found[k, :len(ranks)] = ranks
    return found


def sent_by_ranks(r: np.ndarray, sticks: np.ndarray, plane_points: int, n_ranks: int) -> dict[str, np.ndarray]:
    """Messages and bytes that each rank of chromaqm sends for the states, under the names of its result file: for one
    transpose there and one back, one sum of the density and one round of potentials. `r` (pairs, planes): the map;
    `sticks`: rank of each stick of states in the order of `stick_lengths`; `plane_points`: of a plane of the grid."""
    order, batch = turns(r, n_ranks)
    # A stick and its mirror image; that of kx = ky = 0 is its own, and the first in the order.
    lines = 2 * np.bincount(sticks, minlength=n_ranks) - (np.arange(n_ranks) == sticks[0])
    messages, size = np.zeros(n_ranks, dtype=np.int64), np.zeros(n_ranks, dtype=np.int64)
    for first in range(0, len(r), batch):
        objects = np.bincount(r[order[first:first + batch]].ravel(), minlength=n_ranks)
        flow = lines[:, None] * objects[None] * COMPLEX
        np.fill_diagonal(flow, 0)
        messages += np.count_nonzero(flow, axis=1) + np.count_nonzero(flow, axis=0)
        size += flow.sum(axis=1) + flow.sum(axis=0)
    has = np.zeros((n_ranks, r.shape[1]), dtype=bool)
    has[r, np.arange(r.shape[1])] = True
    owner = hybrid_planes(1, r.shape[1], n_ranks, 1)[0]
    shared = np.array([[np.count_nonzero(has[a] & (owner == b)) for b in range(n_ranks)] for a in range(n_ranks)])
    np.fill_diagonal(shared, 0)
    planes = plane_points * REAL * shared
    return {"transposes": messages, "transposes_bytes": size,
            "densities": np.count_nonzero(shared, axis=1), "densities_bytes": planes.sum(axis=1),
            "potentials": np.count_nonzero(shared, axis=0), "potentials_bytes": planes.sum(axis=0)}
