"""Annealing, minimisation and dynamics of a fibre by its forces: from a path of cores to a compact fibre whose floors
hold.

The inner loop is the Fortran kernel fibre_relaxation. Dynamics are Newtonian with a little friction; after every
CHUNK steps velocities are drawn anew from the Maxwell distribution of the annealing temperature. The result is a good
starting point for Monte Carlo, not a sample of an ensemble.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mesoscale.binned_polymer import drawn_guide
from mesoscale.cores import ball_core, coarse_core
from mesoscale.energy import overlaps
from mesoscale.kernels import Relaxation, kernel_energies, kernel_of
from mesoscale.model import TERMS, Chain, body_points
from mesoscale.observables import radius_of_gyration
from mesoscale.polymer import coarse_path, nodes_of, seat
from mesoscale.restraints import contact_distances, stiffened

Array = NDArray[np.float64]
# Masses of the kernel (with kBT and nm they fix the unit of time); they set how fast things move, nothing else.
BEAD_MASS, BEAD_INERTIA, CORE_MASS, CORE_INERTIA, WALL_MASS = 4.0, 4.0, 8.0, 64.0, 200.0
CHUNK = 60  # steps between two draws of velocities
TIME_STEP = 0.04  # of dynamics with a soft floor
SOFT_FLOOR = 100.0  # kBT/nm^2 while annealing
SOFT_WALL = 20.0  # kBT/nm^2
FRICTION = 0.1
RIM = 2.0  # nm that the box reaches beyond the centres of bodies: DNA around its axis and water
# Stiffness (kBT/nm^2) of floors while they are enforced, and how far (nm) they are widened: in turn until they hold.
ENFORCEMENT = ((1e3, 0.02), (5e3, 0.02), (5e3, 0.04), (2e4, 0.02), (2e4, 0.05), (2e4, 0.1))
SETTLING_STEPS = 1000
ATTEMPTS = 8
SHAKING = 1.0  # kBT, while something is driven out of a core
STUCK = 0.3  # nm; an overlap so deep after a minimisation is DNA that runs through a core

# Squeezing into a small box: pressure (kBT/nm^3) rises over the first half, temperature (kBT) falls after a fifth.
PRESSURE = 0.1
FIRST_PRESSURE = 0.003
HOT, COLD = 10.0, 0.3
SQUEEZE_CHUNKS = 400
# Squeezing knows floors, not charges with their excluded volume: where cores touch, sites of theirs lie in each other
# (up to 1e11 kBT). Minimisation in the whole energy follows; steps so small at first that no force throws a body out.
RELIEF = ((0.002, 200), (0.005, 100))  # time step, steps
RELIEF_FLOOR, RELIEF_MARGIN = 1e4, 0.02  # kBT/nm^2, nm

# Gathering into a container and toward contacts.
CLOSING_STEPS = 500  # of minimisation, in which linkers that do not fit the coarse path come to their length
GATHER_CHUNKS = 120
GATHER_HOT = 3.0
SOFTEST_FLOOR = 2.0  # kBT/nm^2: what lies in each other at the start can pass
OPENED = 0.35  # share of the time in which cores are balls that drive everything out, and floors stiffen
EAGER = 5.0  # contacts pull this many times harder at first

# Equilibration in the whole energy.
EQUILIBRATION_CHUNKS = 120
FINE_TIME_STEP = 0.02
FINE_MARGIN = 0.1  # nm by which floors are widened: twice the depth that kBT pushes into one
CHARGE_INTERVAL = 8  # steps
CLEARING_STEPS = (10, 30, 100)  # of minimisation at each stiffness, few, so that the fibre keeps its warmth


@dataclass
class Conformation:
    """Positions (n, 3) and frames (n, 3, 3) of the particles, half the edges (3,) of the box under pressure; nm."""

    position: Array
    frame: Array
    wall: Array

    @classmethod
    def boxed(cls, chain: Chain, position: Array, frame: Array) -> "Conformation":
        """With a box that just holds it."""
        return cls(position, frame, np.abs(body_points(chain, position, frame)).max(axis=0))


def advance(
    chain: Chain, start: Conformation, steps: int, velocity: Array, *,
    minimise: bool, time_step: float, margin: float = 0.0, pressure: float = 0.0, friction: float = FRICTION,
    charge_interval: int = 0,
) -> tuple[Conformation, float]:  # fmt: skip
    """Steps of dynamics, or of FIRE minimisation; electrostatics and excluded volume act every `charge_interval` steps,
    never when it is 0.

    `velocity` (7, n + 1) as in the kernel. Returns the new conformation and the largest force left (kBT/nm).
    """
    kernel = kernel_of(chain).place(start.position, start.frame)
    settings = Relaxation(steps, minimise, time_step, margin, pressure, RIM, friction, charge_interval)
    wall, force = kernel.relax(settings, velocity, start.wall if pressure > 0 else chain.wall)
    return Conformation(*kernel.conformation(), wall if pressure > 0 else start.wall), force


def thermal_velocities(chain: Chain, random: np.random.Generator, temperature: float) -> Array:
    """Maxwell velocities (7, n + 1) at a temperature in kBT: shifts, turns of cores, spins of beads; the walls last."""
    core = chain.core > 0
    spread = np.zeros((7, chain.n + 1))
    spread[:3, :-1] = np.where(core, CORE_MASS, BEAD_MASS) ** -0.5
    spread[3:6, :-1] = np.where(core, CORE_INERTIA**-0.5, 0.0)
    spread[6, : chain.segments] = np.where(core[: chain.segments], 0.0, BEAD_INERTIA**-0.5)
    spread[:3, -1] = WALL_MASS**-0.5
    return np.sqrt(temperature) * spread * random.standard_normal(spread.shape)


def settle(chain: Chain, start: Conformation, pressure: float = 0.0) -> Conformation:
    """Minimise until no two bodies overlap; when that cannot be had, the conformation with the least overlap."""
    best, least = start, np.inf
    now = start
    for attempt in range(ATTEMPTS):
        if attempt:
            now = untangle(chain, best, np.random.Generator(np.random.Philox(key=attempt)))
        for stiffness, margin in ENFORCEMENT:
            now = enforce(chain, now, stiffness, margin, pressure)
            depth = overlaps(chain, now.position, now.frame)
            left = float((depth**2).sum())
            if left < least:
                best, least = now, left
            if least == 0:
                return best
            if depth.max() > STUCK:
                break
    return best


def enforce(
    chain: Chain, start: Conformation, stiffness: float, margin: float, pressure: float, steps: int = SETTLING_STEPS
) -> Conformation:
    """Minimise with floors that are this stiff (kBT/nm^2) and reach this much (nm) farther."""
    stiff = replace(chain, floor_k=stiffness, wall_k=SOFT_WALL if pressure > 0 else chain.wall_k)
    time_step = 0.02 * np.sqrt(1e3 / stiffness)
    at_rest = np.zeros((7, chain.n + 1))
    now, _ = advance(stiff, start, steps, at_rest, minimise=True, time_step=time_step, margin=margin,
                     pressure=pressure)  # fmt: skip
    return now


def gather(
    chain: Chain, random: np.random.Generator, show: Callable[[float, str], None] | None = None
) -> Conformation:
    """A conformation in the chain's container that keeps its contacts: cores and linkers on a coarse polymer's path.

    With energies of contacts that polymer follows one of few beads, sampled with them (mesoscale/binned_polymer.py).
    Linkers are closed while bodies can pass each other; then floors stiffen, first those of balls, and the fibre cools.
    """
    ball, coarse = (chain.reshaped(shape) for shape in (ball_core, coarse_core))
    nodes = nodes_of(chain)
    guide = None if chain.wells is None else drawn_guide(chain, random)
    now = Conformation.boxed(chain, *seat(chain, nodes, coarse_path(chain, nodes, random, guide)))
    now, _ = advance(replace(ball, floor_k=SOFTEST_FLOOR), now, CLOSING_STEPS, np.zeros((7, chain.n + 1)),
                     minimise=True, time_step=TIME_STEP / 2)  # fmt: skip
    for share in np.linspace(0.0, 1.0, GATHER_CHUNKS):
        softened = replace(
            ball if share < OPENED else coarse,
            floor_k=float(np.interp(share, (0, OPENED), (SOFTEST_FLOOR, SOFT_FLOOR))),
            contact_k=chain.contact_k * np.interp(share, (0, OPENED, 1), (EAGER, EAGER, 1)),
        )
        velocity = thermal_velocities(chain, random, GATHER_HOT * (COLD / GATHER_HOT) ** share)
        now, _ = advance(softened, now, CHUNK, velocity, minimise=False, time_step=TIME_STEP)
        if show is not None:
            show(share, f"gathering, radius of gyration {radius_of_gyration(now.position):.0f} nm")
    return now


def equilibrate(
    chain: Chain, start: Conformation, random: np.random.Generator, show: Callable[[float, str], None] | None = None
) -> tuple[Conformation, Array]:
    """Dynamics in the whole energy at its temperature, so that little is left for Monte Carlo to bring to rest; also
    the constants (c,) of restraints, raised where their contacts would not come together.

    A trial of Monte Carlo moves one part by a fraction of an angstrom; here all parts move together down the forces of
    their charges. Floors are soft on the way and hold at the end, if they can be made to.
    """
    now = start
    for share in np.linspace(0.0, 1.0, EQUILIBRATION_CHUNKS):
        velocity = thermal_velocities(chain, random, 1.0)
        now, _ = advance(chain, now, CHUNK, velocity, minimise=False, time_step=FINE_TIME_STEP, margin=FINE_MARGIN,
                         friction=0.0, charge_interval=CHARGE_INTERVAL)  # fmt: skip
        distance = contact_distances(chain.contact, now.position)
        chain = replace(chain, contact_k=stiffened(chain.contact_k, distance, chain.contact_distance))
        if show is not None:
            show(share, f"equilibrating, radius of gyration {radius_of_gyration(now.position):.0f} nm")
    return clear(chain, now), chain.contact_k


def clear(chain: Chain, start: Conformation) -> Conformation:
    """Make the floors hold of a warm conformation in which they were soft, with as few steps as it takes."""
    now = start
    for steps in CLEARING_STEPS:
        for stiffness, margin in ENFORCEMENT:
            now = enforce(chain, now, stiffness, margin, 0.0, steps)
            if len(overlaps(chain, now.position, now.frame)) == 0:
                return now
    return settle(chain, now)


def untangle(chain: Chain, start: Conformation, random: np.random.Generator) -> Conformation:
    """Drive DNA out of cores that it runs through: cores are balls first, then have the coarse shape."""
    now = start
    for shape, stiffness in ((ball_core, SOFT_FLOOR / 5), (ball_core, SOFT_FLOOR), (coarse_core, SOFT_FLOOR)):
        soft = replace(chain.reshaped(shape), floor_k=stiffness)
        for _ in range(SETTLING_STEPS // 2 // CHUNK):
            velocity = thermal_velocities(chain, random, SHAKING)
            now, _ = advance(soft, now, CHUNK, velocity, minimise=False, time_step=TIME_STEP)
    return now


def squeeze(chain: Chain, start: Conformation, random: np.random.Generator) -> Conformation:
    """Anneal the fibre in a box whose soft walls come in under pressure, and let the floors hold at the end."""
    soft = replace(chain, floor_k=SOFT_FLOOR, wall_k=SOFT_WALL)
    now = start
    for share in np.linspace(0.0, 1.0, SQUEEZE_CHUNKS):
        pressure = FIRST_PRESSURE * (PRESSURE / FIRST_PRESSURE) ** min(1.0, share / 0.5)
        temperature = HOT * (COLD / HOT) ** max(0.0, (share - 0.2) / 0.8)
        velocity = thermal_velocities(chain, random, temperature)
        now, _ = advance(soft, now, CHUNK, velocity, minimise=False, time_step=TIME_STEP, pressure=pressure)
    return settle(chain, now, PRESSURE)


def relieve(chain: Chain, start: Conformation) -> Conformation:
    """Minimise a squeezed fibre in its whole energy, the pressure kept."""
    stiff, now = replace(chain, floor_k=RELIEF_FLOOR, wall_k=SOFT_WALL), start
    for time_step, steps in RELIEF:
        now, _ = advance(stiff, now, steps, np.zeros((7, chain.n + 1)), minimise=True, time_step=time_step,
                         margin=RELIEF_MARGIN, pressure=PRESSURE, charge_interval=1)  # fmt: skip
    return now


def energy_of(chain: Chain, conformation: Conformation) -> float:
    """Energy of all terms but the walls' (kBT)."""
    energy = kernel_energies(chain, conformation.position, conformation.frame)
    return float(energy.sum() - energy[TERMS.index("confinement")])


def enthalpy(chain: Chain, conformation: Conformation, volume: float) -> float:
    """Energy as ``energy_of`` gives it (kBT), plus pressure times volume (nm^3) of the box."""
    return energy_of(chain, conformation) + PRESSURE * volume
