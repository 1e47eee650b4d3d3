"""A start for a circle with cores: laid on a ring, annealed, and wound as often as asked for.

Cores sit on a flat ring with their linkers toward each other and floors stiff enough that no DNA passes through other
DNA, so that the circle is no knot. Walls come in slowly. How often the strands turn about each other is settled there,
by whole turns of linkers; no later move changes it.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mesoscale.cores import coarse_core
from mesoscale.energy import twist_deviations
from mesoscale.fibre import Fibre
from mesoscale.model import Chain, Parameters, body_points
from mesoscale.polymer import LEVER, twisted_frames
from mesoscale.relaxation import CHUNK, COLD, SOFT_FLOOR, TIME_STEP, Conformation, advance, settle, thermal_velocities
from mesoscale.scaffold import build_scaffold

Array = NDArray[np.float64]
CORE_ARC = 12.0  # nm of the ring that a core takes: cores do not touch where they are laid
CLOSING_STEPS = 1500  # of minimisation, in which linkers come to their lengths
CHUNKS, HOT = 100, 3.0  # of annealing, and its first temperature (kBT)
MOST_TWIST = 0.75 * np.pi  # radian of deviation of a segment: beyond pi a turn would be lost
ROUNDS = 4
TAKEN_UP = (-1.8, -0.2)  # turns by which a nucleosome changes the linking number of relaxed DNA, at least and at most


class LinkingNumberError(ValueError):
    """A linking number that the linkers of a circle cannot hold."""


def ring(chain: Chain) -> tuple[Array, Array]:
    """Positions (n, 3) and frames (n, 3, 3) of all particles on a flat ring about z, every linker evenly twisted by
    less than half a turn beyond its rest."""
    own = np.where(chain.core > 0, CORE_ARC, 0.0)
    begins = np.concatenate([[0.0], np.cumsum(own + chain.rest_length)])
    radius = begins[-1] / (2 * np.pi)

    def point(arc: Array | float) -> Array:
        angle = np.asarray(arc) / radius
        return radius * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=-1)

    position, frame = point(begins[:-1]), np.tile(np.eye(3), (chain.n, 1, 1))
    for p in chain.cores:
        (leave, arrive), ways = chain.joint_point[p], chain.joint_frame[p, :, :, 0]
        half, middle = 0.5 * float(np.linalg.norm(leave - arrive)), begins[p] + 0.5 * CORE_ARC
        mine = np.array([leave, leave + LEVER * ways[0], arrive, arrive - LEVER * ways[1]])
        wanted = point(middle + np.array([half, half + LEVER, -half, -half - LEVER]))
        # Kabsch: the rigid motion that brings joints and ways nearest to the ring.
        left, _, right = np.linalg.svd((wanted - wanted.mean(axis=0)).T @ (mine - mine.mean(axis=0)))
        left[:, 2] *= np.linalg.det(left @ right)
        frame[p] = left @ right
        position[p] = wanted.mean(axis=0) - frame[p] @ mine.mean(axis=0)
    frame = twisted_frames(chain, position, frame)
    return position, wound(chain, position, frame)


def wound(chain: Chain, position: Array, frame: Array, turns: dict[int, int] | None = None) -> Array:
    """Frames (n, 3, 3) with the twist of every linker spread evenly over its segments, `turns` more in linkers of these
    numbers. Of a bare circle, which has one linker, the first bead stays."""
    frame, deviation = frame.copy(), twist_deviations(chain, position, frame)
    for number in np.unique(chain.linker):
        segments = np.flatnonzero(chain.linker == number)
        so_far = np.cumsum(deviation[segments])
        whole = so_far[-1] + 2 * np.pi * (turns or {}).get(int(number), 0)
        angle = whole * np.arange(1, len(segments)) / len(segments) - so_far[:-1]
        for p, by in zip(chain.end_of_segment[segments[:-1]], angle, strict=True):
            c, s = np.cos(by), np.sin(by)
            frame[p] = frame[p] @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return frame


def excess_turns(chain: Chain, position: Array, frame: Array) -> float:
    """Turns by which all linkers together are twisted beyond their rest."""
    return float(twist_deviations(chain, position, frame).sum() / (2 * np.pi))


def rewound(chain: Chain, position: Array, frame: Array, turns: int) -> Array:
    """Frames (n, 3, 3) with so many turns more, each in the linker where it costs least.

    Raises LinkingNumberError when linkers cannot hold them.
    """
    deviation = twist_deviations(chain, position, frame)
    numbers = np.unique(chain.linker)
    count = np.array([np.count_nonzero(chain.linker == number) for number in numbers])
    excess = np.array([deviation[chain.linker == number].sum() for number in numbers])
    stiffness = np.array([1 / np.sum(1 / chain.twist_k[chain.linker == number]) for number in numbers])
    given = dict.fromkeys(numbers.tolist(), 0)
    way = 2 * np.pi * np.sign(turns)
    for _ in range(abs(turns)):
        cost = stiffness * ((excess + way) ** 2 - excess**2)
        cost[np.abs(excess + way) > MOST_TWIST * count] = np.inf
        best = int(np.argmin(cost))
        if not np.isfinite(cost[best]):
            raise LinkingNumberError("linkers of the circle cannot hold so many turns")
        excess[best] += way
        given[int(numbers[best])] += int(np.sign(turns))
    return wound(chain, position, frame, given)


def check_linking_number(fibre: Fibre, chain: Chain, parameters: Parameters) -> None:
    """Raise LinkingNumberError where linkers cannot hold the fibre's linking number whatever the path."""
    if fibre.linking_number is None:
        return
    held = MOST_TWIST * chain.segments / (2 * np.pi)
    relaxed = len(fibre.sequence) * parameters.twist_per_bp / 360
    least, most = (relaxed + len(fibre.dyads) * taken for taken in TAKEN_UP)
    low, high = int(np.ceil(least - held)), int(np.floor(most + held))
    if not low <= fibre.linking_number <= high:
        raise LinkingNumberError(
            f"linking number {fibre.linking_number} is beyond what this circle of {len(fibre.sequence)} base pairs can "
            f"have: with its nucleosomes it is relaxed between {least:.0f} and {most:.0f}, and its linkers hold "
            f"{held:.1f} turns; take one from {low} to {high}")


def closed_start(
    fibre: Fibre, chain: Chain, parameters: Parameters, random: np.random.Generator,
    show: Callable[[float, str], None] | None = None,
) -> Conformation:
    """A conformation of a circle with cores in its container, whose floors hold, if they can be made to.

    Its linking number is that of the fibre; where the fibre leaves it open, the one whose linkers are nearest to rest,
    together within half a turn. Raises LinkingNumberError for one that linkers cannot hold.
    """
    coarse = replace(chain.reshaped(coarse_core), floor_k=SOFT_FLOOR)
    free = replace(coarse, wall_k=0.0, confinement_k=0.0)
    now = Conformation.boxed(free, *ring(chain))
    at_rest = np.zeros((7, chain.n + 1))
    now, _ = advance(free, now, CLOSING_STEPS, at_rest, minimise=True, time_step=TIME_STEP / 2)
    room = np.abs(body_points(free, now.position, now.frame)).max(axis=0)
    radius = float(np.linalg.norm(now.position, axis=1).max())
    for last_round in range(ROUNDS):
        turns = -round(excess_turns(chain, now.position, now.frame))
        if last_round and turns == 0:
            break
        now.frame = rewound(chain, now.position, wound(chain, now.position, now.frame), turns)
        now = _annealed(coarse, now, room, radius, random, show)
        room, radius = np.minimum(room, chain.wall), min(radius, chain.confinement_radius)
    if fibre.linking_number is not None:
        turns = fibre.linking_number - linking_number_of(fibre, chain, now, parameters)
        try:
            now.frame = rewound(chain, now.position, wound(chain, now.position, now.frame), turns)
        except LinkingNumberError:
            raise LinkingNumberError(
                f"linking number {fibre.linking_number} is {turns:+d} from that of the relaxed circle, "
                f"{fibre.linking_number - turns}, which its linkers cannot hold: take one nearer to it") from None
        now = _annealed(coarse, now, room, radius, random, show)
    return settle(chain, now)


def _annealed(chain: Chain, start: Conformation, room: Array, radius: float, random: np.random.Generator,
              show: Callable[[float, str], None] | None) -> Conformation:
    """Annealed while walls come in from `room` (3,) and a confining sphere from `radius` (nm) to those of the chain."""
    now = start
    for share in np.linspace(0.0, 1.0, CHUNKS):
        inwards = min(1.0, 1.5 * share)
        walled = replace(chain, wall=tuple(np.maximum(chain.wall, room + inwards * (chain.wall - room))),
                         confinement_radius=max(chain.confinement_radius,
                                                radius + inwards * (chain.confinement_radius - radius)))
        velocity = thermal_velocities(chain, random, HOT * (COLD / HOT) ** share)
        now, _ = advance(walled, now, CHUNK, velocity, minimise=False, time_step=TIME_STEP)
        if show is not None:
            show(share, "closing the circle")
    return now


def linking_number_of(fibre: Fibre, chain: Chain, now: Conformation, parameters: Parameters) -> int:
    """How often the strands of the circle turn about each other, from the frames of all its base pairs."""
    scaffold = build_scaffold(fibre, chain, now.position, now.frame, parameters)
    return linking_number(scaffold.origin, scaffold.frame)


def linking_number(origin: Array, frame: Array) -> int:
    """Gauss' linking number of the axis of a closed double helix and a strand, from frames (n, 3, 3; y along the pair)
    at origins (n, 3) in angstrom.

    Each pair of segments contributes the solid angle of the quadrilateral of their ends (Klenin & Langowski,
    Biopolymers 54:307, 2000), so that the sum of a closed path is a whole number.
    """
    axis, strand = origin, origin + frame[:, :, 1]  # 1 angstrom off the axis, which nothing comes between
    after = np.roll(strand, -1, axis=0)
    total = 0.0
    for a, b in zip(axis, np.roll(axis, -1, axis=0), strict=True):
        corner = [strand - a, after - a, after - b, strand - b]
        unit = [v / np.linalg.norm(v, axis=1)[:, None] for v in corner]
        for one, two, three in ((0, 1, 2), (0, 2, 3)):
            u, v, w = unit[one], unit[two], unit[three]
            volume = np.sum(u * np.cross(v, w), axis=1)
            total += np.arctan2(volume, 1 + np.sum(u * v + v * w + w * u, axis=1)).sum()
    return round(-total / (2 * np.pi))
