"""The path of the double helix: wrapped on cores, straight, and relaxed between cores.

The chain is a row, or a circle, of rigid nodes: free base pairs and nucleosome cores. Base-pair steps with the harmonic
energy of Olson et al. 1998 join them, and ``relax_path`` finds its minimum. Cores and free base pairs are tethered to
where the scaffold put them: a coarse scaffold fixes them to a few angstrom only, and a linker that does not quite fit
moves cores rather than stretching; but the scaffold alone knows what lies beside a linker, and keeps clear of it.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg import solveh_banded
from scipy.spatial.transform import Rotation

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.dna.excluded_volume import ExcludedVolume
from chromabuild.dna.sequence import step_name
from chromabuild.dna.steps import (
    analyse,
    dna_parameters,
    orthonormalise,
    rebuild,
    rotation_about_z,
    rotation_from_vector,
    step_derivatives,
)

Result = TypeVar("Result")

DYAD = 73  # index of the dyad in the 147 base pairs of a core
CORE_TETHER = (2.0, np.radians(3.0))  # angstrom, radian: how far a core moves at a cost of half kT
FREE_TETHER = 8.0  # angstrom: the same for free base pairs; without it a linker of hundreds leaves its path
PHASE_LIMIT = 5.0  # kT
PEELED, PEELING_COST = 5, 20.0  # base pairs and kT: what ten base pairs at the ends of two cores hold on to them with
MOST_PEELINGS = 3  # the first for twist, two for stretch: at most 15 base pairs, two of seven contacts of a half
LARGEST_STRETCH = 0.04  # thermal for ten base pairs: 0.023; what pulls harder has moved cores by more than ten angstrom
LARGEST_Z = 6.0
MOST_ITERATIONS, PAST_STEPS = 150, 12
LONGEST_MOVE = 5.0  # angstrom in one iteration: too short for DNA to leap over DNA
CONVERGED = 2e-5  # of the energy, gained by one iteration: 0.2 kT for five hundred linkers
CHUNK = 8000  # joints; smaller ones wait for the interpreter
ROUGHLY = 3e-4  # the same, where only the better of two twists is asked for


@cache
def crystal_path() -> tuple[np.ndarray, np.ndarray]:
    """Origins (147, 3) and frames (147, 3, 3) of the DNA of PDB 1KX5 in the nucleosome's own frame."""
    data = json.loads(template_path("nucleosome_path_1kx5.json").read_text())
    return np.array(data["origin"]), orthonormalise(np.array(data["frame"]).reshape(-1, 3, 3))


@cache
def superhelix_path(
    outer_diameter: float = 106.0, pitch: float = 28.0, rise: float = 3.4, turn: float = 34.93
) -> tuple[np.ndarray, np.ndarray]:
    """The regular left-handed superhelix of jcc.25840 in the nucleosome's own frame, 147 base pairs.

    Args:
        outer_diameter: angstrom, of the DNA's outer surface; the axis lies 10 angstrom further in.
        pitch: angstrom a superhelical turn.
        rise: angstrom of arc between base pairs.
        turn: degree by which x turns about the path from one base pair to the next, counted from the direction to the
            superhelix axis; 34.93 is that of PDB 1KX5. At the dyad x (the major groove) faces the core.
    """
    radius, index = 0.5 * outer_diameter - 10.0, np.arange(-DYAD, DYAD + 1)
    climb = pitch / (2 * np.pi)
    angle = -index * rise / np.hypot(radius, climb)
    cosine, sine, zero = np.cos(angle), np.sin(angle), np.zeros(len(index))
    origin = np.stack([radius * cosine, radius * sine, -climb * angle], axis=1)
    tangent = np.stack([radius * sine, -radius * cosine, zero + climb], axis=1) / np.hypot(radius, climb)
    inward = np.stack([-cosine, -sine, zero], axis=1)
    frame = np.stack([inward, np.cross(tangent, inward), tangent], axis=2)
    return origin, frame @ rotation_about_z(np.radians(turn) * index)


def straight_path(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Origins (n, 3) and frames (n, 3, 3) of straight B-DNA along z."""
    return rebuild(np.tile(dna_parameters().b_dna, (n - 1, 1)))


def sequence_path(sequence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Origins (n, 3) and frames (n, 3, 3) of unstrained DNA: every step at the rest of its dinucleotide.

    ``sequence`` (n,) is 0..3 for A, C, G, T of strand I.
    """
    return rebuild(step_elasticity(sequence, "sequence")[0])


def step_elasticity(sequence: np.ndarray, steps: str) -> tuple[np.ndarray, np.ndarray]:
    """Rest values and standard deviations (n - 1, 6) of the steps of a sequence (n,), 0..3 for A, C, G, T.

    ``steps`` is ``sequence`` for the 16 dinucleotides of Olson et al. 1998, or ``generic`` for straight B-DNA at rest
    and the mean of their deviations everywhere.
    """
    parameters = dna_parameters()
    names = [step_name(first, second) for first in range(4) for second in range(4)]
    mean, deviation = (np.array([getattr(parameters.step[name], key) for name in names])
                       for key in ("mean", "deviation"))
    if steps == "generic":
        mean[:], deviation[:] = parameters.b_dna, deviation.mean(axis=0)
    kind = 4 * np.asarray(sequence)[:-1] + np.asarray(sequence)[1:]
    return mean[kind], deviation[kind]


@dataclass(frozen=True)
class LinkerReport:
    """What it costs to join two cores."""

    first_bp: int
    last_bp: int
    cost_kt: float
    """Elastic energy of its steps."""
    stretch: float
    """Fraction by which its summed rise exceeds the rest value."""
    twist_excess: float
    """Degree, over the whole linker."""
    largest_z: float
    """Largest deviation of a step parameter from rest, in standard deviations."""
    residual: float
    """Angstrom: the farther of its two cores was moved by so much to make it fit."""
    phase_cost_kt: float
    """What the twist excess alone costs, spread over all its steps."""
    offered_shift: int
    """Base pairs, +1 or -1, by which to lengthen the linker (move the dyads beyond it) to get in phase; 0: none."""
    phase_cost_after_shift_kt: float


@dataclass(frozen=True)
class RelaxedPath:
    """Base pairs and cores of the relaxed chain."""

    origin: np.ndarray
    """(n, 3) of the base pairs, angstrom."""
    frame: np.ndarray
    """(n, 3, 3)."""
    core_origin: np.ndarray
    """(m, 3) angstrom."""
    core_frame: np.ndarray
    """(m, 3, 3)."""
    linkers: list[LinkerReport]
    core_displacement: np.ndarray
    """(m,) angstrom by which each core moved from the scaffold."""
    core_rotation: np.ndarray
    """(m,) degree."""
    unwrapped: int
    """Base pairs that strained linkers took off the ends of cores."""

    def summary(self) -> dict:
        """For the build report."""
        return {
            "linkers": [asdict(linker) for linker in self.linkers],
            "core_displacement": [round(float(v), 4) for v in self.core_displacement],
            "core_rotation": [round(float(v), 4) for v in self.core_rotation],
            "unwrapped base pairs": self.unwrapped,
        }


class _FreeRun(NamedTuple):
    """Free base pairs ``first`` to ``last``, and whether a core holds the left and the right end."""

    first: int
    last: int
    anchored: tuple[bool, bool]


@dataclass
class _Chain:
    """Nodes in chain order; a free base pair is a node, all wrapped base pairs of a core are one."""

    origin: np.ndarray
    """(nodes, 3) angstrom."""
    frame: np.ndarray
    """(nodes, 3, 3)."""
    node_of_bp: np.ndarray
    """(n,)."""
    offset_origin: np.ndarray
    """(n, 3) of each base pair in its node's frame; zero for free base pairs."""
    offset_frame: np.ndarray
    joint: np.ndarray
    """(s,) base pair k for every elastic step k -> k+1, that is between different nodes."""
    rest: np.ndarray
    """(s, 6) step parameters at rest, angstrom and degree."""
    deviation: np.ndarray
    """(s, 6) their standard deviations."""
    tether: np.ndarray
    """(nodes, 6) weights, one over the tether's deviation; zero where there is none."""
    home_origin: np.ndarray
    """(nodes, 3) where the scaffold put them, angstrom."""
    home_back: np.ndarray
    """(nodes, 3, 3) transposed frames of home."""
    excluded_volume: ExcludedVolume
    core: np.ndarray
    """(m,) nodes that are cores."""
    threads: int

    def by_chunks(self, work: Callable[[slice], Result]) -> list[Result]:
        """What ``work`` returns for runs of joints, in order, by several threads."""
        chunks = [slice(first, first + CHUNK) for first in range(0, len(self.joint), CHUNK)]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(work, chunks))

    def base_pairs(self, origin: np.ndarray, frame: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Origins and frames of the base pairs ``which`` for given nodes."""
        node = self.node_of_bp[which]
        turned = frame[node]
        return (
            origin[node] + (turned @ self.offset_origin[which][:, :, None])[:, :, 0],
            turned @ self.offset_frame[which],
        )

    @property
    def node_behind(self) -> np.ndarray:
        """(s,) the node behind each joint."""
        return self.node_of_bp[self.joint + 1]

    def both_sides(self, origin: np.ndarray, frame: np.ndarray, joint: np.ndarray) -> tuple[tuple, tuple]:
        """The base pairs before and behind the joints, each origins and frames, for given nodes."""
        return self.base_pairs(origin, frame, joint), self.base_pairs(origin, frame, joint + 1)


def _tether_deviations(chain: _Chain, origin: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """(nodes, 6) standardised displacements from home; only cores are held against turning."""
    core, result = chain.core, np.zeros((len(origin), 6))
    result[:, :3] = (chain.home_back @ (origin - chain.home_origin)[:, :, None])[:, :, 0]
    if len(core):
        result[core, 3:] = Rotation.from_matrix(chain.home_back[core] @ frame[core]).as_rotvec()
    return result * chain.tether


def _energy(chain: _Chain, origin: np.ndarray, frame: np.ndarray) -> float:
    """Of steps, tethers and contacts, kT."""
    def steps(joints: slice) -> float:
        joint = chain.joint[joints]
        left, right = chain.both_sides(origin, frame, joint)
        return np.sum(((analyse(*left, *right) - chain.rest[joints]) / chain.deviation[joints]) ** 2)

    tether = np.sum(_tether_deviations(chain, origin, frame) ** 2)
    return 0.5 * float(sum(chain.by_chunks(steps)) + tether) + chain.excluded_volume.energy(origin, frame)


def _cross_matrix(v: np.ndarray) -> np.ndarray:
    zero = np.zeros(len(v))
    return np.stack([zero, -v[:, 2], v[:, 1], v[:, 2], zero, -v[:, 0], -v[:, 1], v[:, 0], zero], 1).reshape(-1, 3, 3)


def _inverse_adjoint(origin: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """(k, 6, 6): how a small motion (translation, rotation) of a body is seen from a frame fixed in that body."""
    result = np.zeros((len(origin), 6, 6))
    back = np.swapaxes(frame, 1, 2)
    result[:, :3, :3] = result[:, 3:, 3:] = back
    result[:, :3, 3:] = -back @ _cross_matrix(origin)
    return result


def _normal_equations(
    chain: _Chain, origin: np.ndarray, frame: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonal blocks (nodes, 6, 6), blocks below them (nodes, 6, 6; the last unused) and gradient (nodes, 6), kT.

    A node's unknowns are a translation and a rotation in its own frame. The blocks are those of Gauss and Newton; the
    one in the corner, by which a circle closes, is left out: the matrix only guides the way to the minimum.
    """
    def steps(joints: slice) -> tuple[np.ndarray, ...]:
        joint, deviation = chain.joint[joints], chain.deviation[joints]
        left, right = chain.both_sides(origin, frame, joint)
        parameters = analyse(*left, *right)
        step = ((parameters - chain.rest[joints]) / deviation)[:, :, None]
        back = np.swapaxes(left[1], 1, 2)
        relative_origin, relative_frame = (back @ (right[0] - left[0])[:, :, None])[:, :, 0], back @ right[1]
        by_right = step_derivatives(parameters, relative_frame) / deviation[:, :, None]
        # A motion of the left base pair is the opposite motion of the right one, seen from there.
        by_left = -by_right @ _inverse_adjoint(relative_origin, relative_frame)
        by_right, by_left = (
            by @ _inverse_adjoint(chain.offset_origin[bp], chain.offset_frame[bp])
            for by, bp in ((by_right, joint + 1), (by_left, joint)))
        left_back, right_back = np.swapaxes(by_left, 1, 2), np.swapaxes(by_right, 1, 2)
        return (left_back @ by_left, right_back @ by_right, right_back @ by_left,
                (left_back @ step)[:, :, 0], (right_back @ step)[:, :, 0])

    nodes, node = len(origin), chain.node_of_bp[chain.joint]
    diagonal, below, gradient = np.zeros((nodes, 6, 6)), np.zeros((nodes, 6, 6)), np.zeros((nodes, 6))
    if len(node):
        on_left, on_right, across, pull_left, pull_right = map(
            np.concatenate, zip(*chain.by_chunks(steps), strict=True))
        # Every node has at most one joint on either side, so plain indexing adds up correctly.
        behind = chain.node_behind
        diagonal[node] += on_left
        diagonal[behind] += on_right
        below[node] = np.where((behind == node + 1)[:, None, None], across, 0.0)
        gradient[node] += pull_left
        gradient[behind] += pull_right
    # A small motion in the node's own frame moves it by home^T frame in the frame of its home: a rotation, which drops
    # out of the matrix.
    tether = _tether_deviations(chain, origin, frame) * chain.tether
    diagonal[:, np.arange(6), np.arange(6)] += chain.tether**2
    gradient[:, :3] += (np.swapaxes(frame, 1, 2) @ (np.swapaxes(chain.home_back, 1, 2) @ tether[:, :3, None]))[:, :, 0]
    gradient[:, 3:] += tether[:, 3:]
    chain.excluded_volume.add_to(origin, frame, diagonal, gradient)
    return diagonal, below, gradient


def _solve(diagonal: np.ndarray, below: np.ndarray, right_side: np.ndarray) -> np.ndarray:
    """(nodes, 6) solution of a symmetric block-tridiagonal system."""
    nodes = len(diagonal)
    band = np.zeros((12, nodes, 6))
    for row in range(6):
        for column in range(6):
            if row >= column:
                band[row - column, :, column] = diagonal[:, row, column]
            band[6 + row - column, :, column] = below[:, row, column]
    return solveh_banded(band.reshape(12, -1), right_side.ravel(), lower=True).reshape(nodes, 6)


def _minimise(chain: _Chain, converged: float = CONVERGED) -> None:
    """L-BFGS on all nodes, preconditioned by the Gauss-Newton matrix; leaves the minimum in the chain.

    The matrix alone overrates the stiffness of a long bent linker against spinning about its own path, which turns
    roll into tilt and back at hardly any cost: what the gradients of past iterations tell makes up for that.
    """
    energy, past = _energy(chain, chain.origin, chain.frame), deque(maxlen=PAST_STEPS)
    diagonal, below, gradient = _normal_equations(chain, chain.origin, chain.frame)
    for _ in range(MOST_ITERATIONS):
        step = _descent(diagonal, below, gradient, past)
        step /= max(np.abs(step[:, :3]).max() / LONGEST_MOVE, np.abs(step[:, 3:]).max() / 0.5, 1.0)
        for share in 0.3 ** np.arange(7):
            origin = chain.origin + (chain.frame @ (share * step[:, :3, None]))[:, :, 0]
            frame = chain.frame @ rotation_from_vector(share * step[:, 3:])
            trial = _energy(chain, origin, frame)
            if trial <= energy + 1e-4 * share * np.sum(gradient * step):
                break
        else:
            if not past:
                break
            past.clear()
            continue
        gain, before, energy = energy - trial, gradient, trial
        chain.origin, chain.frame = origin, frame
        if gain < converged * (1.0 + energy):
            break
        diagonal, below, gradient = _normal_equations(chain, origin, frame)
        moved, change = share * step, gradient - before
        if np.sum(moved * change) > 0.0:
            past.append((moved, change))
    chain.frame = orthonormalise(chain.frame)


def _descent(diagonal: np.ndarray, below: np.ndarray, gradient: np.ndarray, past: Sequence) -> np.ndarray:
    """(nodes, 6) the step of L-BFGS (Nocedal 1980) from past (steps, changes of gradient), oldest first."""
    direction, shares = gradient.copy(), []
    for moved, change in reversed(past):
        shares.append(np.sum(moved * direction) / np.sum(moved * change))
        direction -= shares[-1] * change
    # A little damping, for chains that nothing holds: stiffness is of order 1/angstrom^2 and 100/radian^2.
    direction = _solve(diagonal + 1e-3 * np.diag([1.0, 1.0, 1.0, 100.0, 100.0, 100.0]), below, direction)
    for (moved, change), share in zip(past, reversed(shares), strict=True):
        direction += (share - np.sum(change * direction) / np.sum(moved * change)) * moved
    return -direction


def _retwist(chain: _Chain, run: _FreeRun, turns: float | None) -> float:
    """Spread twist evenly over free base pairs; the start of every minimisation.

    Args:
        chain: changed in place.
        run: the free base pairs.
        turns: whole turns beyond the number that lies nearest to rest; None: as many as there are.

    Returns:
        The excess over the rest twist that the run must hold, degree; zero for a free end.
    """
    first, last, anchored = run
    bps = np.arange(first - anchored[0], last + 1 + anchored[1])
    origin, frame = chain.base_pairs(chain.origin, chain.frame, bps)
    twist = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])[:, 5]
    rest = chain.rest[np.searchsorted(chain.joint, bps[:-1]), 5]
    excess = 0.0
    if all(anchored):
        excess = np.sum(twist) - np.sum(rest)
        if turns is not None:
            excess += 360.0 * (turns - np.round(excess / 360.0))
    turn = np.concatenate([[0.0], np.cumsum(rest + excess / len(rest) - twist)])
    if anchored[1] and not anchored[0]:
        turn -= turn[-1]
    node = chain.node_of_bp[first : last + 1]
    free = slice(int(anchored[0]), len(bps) - int(anchored[1]))
    chain.frame[node] = chain.frame[node] @ rotation_about_z(np.radians(turn[free]))
    return float(excess)


def _free_runs(core_of_bp: np.ndarray) -> list[_FreeRun]:
    """Linkers and free ends, in chain order."""
    free = np.concatenate([[False], core_of_bp < 0, [False]])
    edges = np.flatnonzero(free[1:] != free[:-1])
    return [_FreeRun(int(a), int(b - 1), (a > 0, b < len(core_of_bp)))
            for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _chain(
    sequence: np.ndarray, origin: np.ndarray, frame: np.ndarray, core_origin: np.ndarray, core_frame: np.ndarray,
    core_of_bp: np.ndarray, position_on_core: np.ndarray, path: tuple[np.ndarray, np.ndarray],
    histones: Sequence[np.ndarray], steps: str, threads: int,
) -> _Chain:
    """The chain where the scaffold put it; arguments as of ``relax_path``."""
    n, wrapped = len(sequence), core_of_bp >= 0
    starts = np.concatenate([[True], ~(wrapped[1:] & (core_of_bp[1:] == core_of_bp[:-1]))])
    node_of_bp = np.cumsum(starts) - 1
    first_bp = np.flatnonzero(starts)
    if wrapped[0] and core_of_bp[0] == core_of_bp[-1] and node_of_bp[-1] > 0:  # the seam of a circle lies in this core
        node_of_bp[node_of_bp == node_of_bp[-1]] = 0
        first_bp = first_bp[:-1]
    core_node = {int(core_of_bp[k]): int(node_of_bp[k]) for k in first_bp if wrapped[k]}
    nodes = np.array([core_node[k] for k in range(len(core_origin))], dtype=int)

    joint = np.flatnonzero(starts[1:])
    rest, deviation = (part[joint] for part in step_elasticity(sequence, steps))
    offset_origin, offset_frame = np.zeros((n, 3)), np.tile(np.eye(3), (n, 1, 1))
    on_path = position_on_core[wrapped] + DYAD
    offset_origin[wrapped], offset_frame[wrapped] = path[0][on_path], path[1][on_path]
    node_origin, node_frame = origin[first_bp].astype(float), orthonormalise(frame[first_bp].astype(float))
    node_origin[nodes], node_frame[nodes] = core_origin, orthonormalise(core_frame)
    tether = np.zeros((len(first_bp), 6))
    tether[nodes] = 1.0 / np.repeat(CORE_TETHER, 3)
    for first, last, _ in _free_runs(core_of_bp):
        tether[node_of_bp[first : last + 1], :3] = 1.0 / FREE_TETHER
    counts = [len(alpha_carbons) for alpha_carbons in histones]
    excluded_volume = ExcludedVolume(node_of_bp, offset_origin, np.repeat(nodes[: len(counts)], counts),
                                     np.concatenate([np.zeros((0, 3)), *histones]), threads)
    return _Chain(
        node_origin.copy(), node_frame.copy(), node_of_bp, offset_origin, offset_frame, joint, rest, deviation, tether,
        node_origin, np.swapaxes(node_frame, 1, 2), excluded_volume, nodes, threads,
    )  # fmt: skip


def _relax_roughly(chain: _Chain, runs: Sequence[_FreeRun], phase_limit: float, circular: bool) -> None:
    """Minimise roughly, from evenly spread twist; leaves the better direction of every linker's twist in the chain.

    In a circle linkers keep their turns: together they are its linking number.
    """
    excess = {run: _retwist(chain, run, turns=None if circular else 0.0) for run in runs}
    start = chain.frame.copy()
    _minimise(chain, ROUGHLY)
    # Close to half a turn of excess the other direction may be cheaper: try it for those, and keep what costs less.
    doubtful = [run for run in runs if abs(excess[run]) > 120.0 and not circular]
    if doubtful:
        first_try = (chain.origin.copy(), chain.frame.copy())
        cost = {run: _linker_report(chain, run, phase_limit).cost_kt for run in doubtful}
        span = {run: slice(chain.node_of_bp[run.first], chain.node_of_bp[run.last] + 1) for run in doubtful}
        for run in doubtful:
            chain.origin[span[run]], chain.frame[span[run]] = chain.home_origin[span[run]], start[span[run]]
            _retwist(chain, run, turns=-float(np.sign(excess[run])))
        _minimise(chain, ROUGHLY)
        kept = [run for run in doubtful if _linker_report(chain, run, phase_limit).cost_kt < cost[run]]
        second_try = (chain.origin.copy(), chain.frame.copy())
        chain.origin, chain.frame = first_try
        for run in kept:
            for whole, other in zip(first_try, second_try, strict=True):
                whole[span[run]] = other[span[run]]


def relax_path(
    sequence: np.ndarray,
    origin: np.ndarray,
    frame: np.ndarray,
    core_origin: np.ndarray,
    core_frame: np.ndarray,
    core_of_bp: np.ndarray,
    position_on_core: np.ndarray,
    path: tuple[np.ndarray, np.ndarray] | None = None,
    histones: Sequence[np.ndarray] = (),
    steps: str = "sequence",
    phase_limit: float = PHASE_LIMIT,
    threads: int = 1,
    nucleosomes: int | None = None,
    circular: bool = False,
) -> RelaxedPath:
    """Base-pair frames of a whole fibre with elastic linkers between cores.

    Args:
        sequence: (n,) 0..3 for A, C, G, T of strand I.
        origin: (n, 3) of the scaffold's base pairs, angstrom; only those of free base pairs are used: linkers stay
            near them.
        frame: (n, 3, 3) the same.
        core_origin: (m, 3) of the scaffold's cores.
        core_frame: (m, 3, 3).
        core_of_bp: (n,) core that each base pair is wrapped on, -1 for free ones.
        position_on_core: (n,) base pairs from the dyad, -73..73; ignored for free base pairs.
        path: origins (147, 3) and frames (147, 3, 3) of wrapped DNA in the nucleosome's own frame; default
            ``crystal_path()``. More rows, to which positions from 74 on lead, are of linker arms, and of other
            proteins' DNA in their own frames.
        histones: (k, 3) CA of every nucleosome in its own frame, which DNA keeps clear of.
        steps: ``sequence`` or ``generic``, as of ``step_elasticity``.
        phase_limit: kT; a linker whose twist excess costs more is offered a shift by one base pair.
        threads: the result does not depend on it.
        nucleosomes: how many of the cores, the first ones, give base pairs to strained linkers; default all. The
            others, proteins, hold theirs.
        circular: whether the last base pair is followed by the first, with a linker in between; linkers then keep the
            turns that the scaffold gives them.

    Returns:
        The relaxed path, with a report on every linker. One whose twist would cost more than ``PEELING_COST`` takes
        ``PEELED`` base pairs off the end of either core; so does one that is stretched by more than 4 % or has a step
        that deviates by more than 6 standard deviations, again until it is not.

    Raises:
        BadInputError: a linker is as strained as that after ``MOST_PEELINGS``, of which the first is for twist alone.
    """
    path = crystal_path() if path is None else path
    nucleosomes = len(core_origin) if nucleosomes is None else nucleosomes
    # Base pairs of a circle are counted from the middle of a core: then every linker is one run of them.
    seam = int(np.flatnonzero(core_of_bp == 0)[np.sum(core_of_bp == 0) // 2]) if circular else 0
    sequence, origin, frame, core_of_bp, position_on_core = (
        np.roll(part, -seam, axis=0) for part in (sequence, origin, frame, core_of_bp, position_on_core))

    def from_seam(bp: int) -> int:
        return (bp + seam) % len(sequence)

    def chain_of(core_of_bp: np.ndarray) -> _Chain:
        return _chain(sequence, origin, frame, core_origin, core_frame, core_of_bp, position_on_core, path, histones,
                      steps, threads)

    def reports(chain: _Chain, runs: Sequence[_FreeRun]) -> list[LinkerReport]:
        return [_linker_report(chain, run, phase_limit) for run in runs if all(run.anchored)]

    def without_ends(chain: _Chain, core_of_bp: np.ndarray, linkers: Sequence[LinkerReport]) -> _Chain:
        """The chain with ``PEELED`` base pairs more in each of these linkers on either side, where they are."""
        for linker in linkers:
            for first in (linker.first_bp - PEELED, linker.last_bp + 1):
                end = core_of_bp[first : first + PEELED]
                end[end < nucleosomes] = -1
        peeled = chain_of(core_of_bp)
        peeled.origin, peeled.frame = chain.base_pairs(
            chain.origin, chain.frame, np.unique(peeled.node_of_bp, return_index=True)[1])
        peeled.origin[peeled.core], peeled.frame[peeled.core] = chain.origin[chain.core], chain.frame[chain.core]
        return peeled

    wrapped_on, core_of_bp = core_of_bp, core_of_bp.copy()
    chain, runs = chain_of(core_of_bp), _free_runs(core_of_bp)
    _relax_roughly(chain, runs, phase_limit, circular)
    strained = [linker for linker in reports(chain, runs) if linker.phase_cost_kt > PEELING_COST]
    for _ in range(MOST_PEELINGS):
        if strained:
            chain = without_ends(chain, core_of_bp, strained)
            runs = _free_runs(core_of_bp)
        _minimise(chain)
        linkers = reports(chain, runs)
        strained = [one for one in linkers if abs(one.stretch) > LARGEST_STRETCH or one.largest_z > LARGEST_Z]
        if not strained:
            break
    for linker in strained:
        free = linker.first_bp + np.flatnonzero(wrapped_on[linker.first_bp : linker.last_bp + 1] < 0)
        raise BadInputError(
            f"the linker of base pairs {from_seam(free[0])}..{from_seam(free[-1])} cannot be built: it is stretched by "
            f"{100 * linker.stretch:.1f} % and a step deviates by {linker.largest_z:.1f} standard deviations, with "
            "the ends of its nucleosomes unwrapped; run more scaffold sweeps, or move one of its dyads by a few base "
            "pairs" + (f" ({linker.offered_shift:+d} brings it into phase)" if linker.offered_shift else "")
        )
    final_origin, final_frame = (np.roll(part, seam, axis=0) for part in chain.base_pairs(
        chain.origin, chain.frame, np.arange(len(sequence))))
    linkers = [replace(one, first_bp=from_seam(one.first_bp), last_bp=from_seam(one.last_bp)) for one in linkers]
    core = chain.core
    turned = Rotation.from_matrix(chain.home_back[core] @ chain.frame[core]) if len(core) else None
    return RelaxedPath(
        final_origin, final_frame, chain.origin[core], chain.frame[core], linkers,
        np.linalg.norm(chain.origin[core] - chain.home_origin[core], axis=1),
        np.degrees(turned.magnitude()) if turned is not None else np.zeros(0),
        int(np.sum((core_of_bp < 0) & (wrapped_on >= 0))),
    )  # fmt: skip


def _linker_report(chain: _Chain, run: _FreeRun, phase_limit: float) -> LinkerReport:
    """Cost, stretch and twist of one run of free base pairs with the steps that join it to its cores."""
    first, last, anchored = run
    rows = slice(*np.searchsorted(chain.joint, [first - anchored[0], last + anchored[1]]))
    joint = chain.joint[rows]
    left, right = chain.both_sides(chain.origin, chain.frame, joint)
    step, rest, deviation = analyse(*left, *right), chain.rest[rows], chain.deviation[rows]
    z = (step - rest) / deviation
    moved = np.linalg.norm(chain.origin - chain.home_origin, axis=1)
    ends = [chain.node_of_bp[bp] for bp, core in ((first - 1, anchored[0]), (last + 1, anchored[1])) if core]
    # One base pair more brings its own rest twist along, so that the others are left with so much less.
    excess, spread = float(np.sum(step[:, 5] - rest[:, 5])), np.sum(deviation[:, 5] ** 2)
    phase = {shift: 0.5 * (excess - shift * np.mean(rest[:, 5])) ** 2 / spread for shift in (0, 1, -1)}
    offered = min(phase, key=phase.get) if phase[0] > phase_limit else 0
    return LinkerReport(
        first, last, float(0.5 * np.sum(z**2)), float(np.sum(step[:, 2]) / np.sum(rest[:, 2]) - 1.0), excess,
        float(np.abs(z).max()), float(moved[ends].max(initial=0.0)), float(phase[0]), offered, float(phase[offered]),
    )  # fmt: skip
