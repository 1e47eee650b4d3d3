"""Dynamics of a fibre together with its flexible chains, to bring both near rest before Monte Carlo samples them.

The inner loop is the Fortran kernel fibre_dynamics: the energy is that of Monte Carlo with flexible tails, but for a
shorter cutoff of charges. As in mesoscale/relaxation.py, velocities are drawn anew after every chunk of steps, and the
result is a start for Monte Carlo, not a sample.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mesoscale.chain_kernel import Dynamics, chain_kernel_of
from mesoscale.kernels import kernel_of
from mesoscale.model import Chain, with_field
from mesoscale.relaxation import FINE_MARGIN, Conformation, clear, thermal_velocities
from mesoscale.restraints import contact_distances, stiffened
from mesoscale.tails import TERMS, FlexibleChains, TailWalk

Array = NDArray[np.float64]
TAIL_MASS = 4.0  # as in the kernel
# Charges are left out beyond so many screening lengths, where exp(-kappa r) is below 1 %: half as many look-ups.
CUTOFF = 5.0


class Stage(NamedTuple):
    """Chunks of dynamics: steps of a chunk, time of a step, steps between two pushes of charges, the share of sigma
    within which charges do not act and excluded volume pushes no harder, and the temperature (kBT) at which velocities
    are drawn.
    """

    chunks: int
    steps: int
    time_step: float
    interval: int
    closest: float
    temperature: float


# Excluded volume costs 4 kBT at 0.5 of sigma, 11 at 0.46. Soft cores bear longer steps and let come apart what stands
# in each other at first. Pushes so far apart heat cores by 0.2 kBT within a chunk, and velocities are drawn colder for
# it. The second stage drives out again what soft cores let in, and is as warm as what is sampled later.
STAGES = (Stage(140, 30, 0.04, 2, 0.5, 0.8), Stage(12, 60, 0.02, 2, 0.46, 1.0))
# Chunks between two regrowths of all chains: dynamics alone leave tails where they have bound first.
REGROWTH = 2
FAR = 20.0  # times as far apart as they are, cores feel nothing of each other
LONE_SWEEPS, CROWDED_SWEEPS = 10, 6  # regrowths of all chains on lone cores, and then where the cores are
CHARGES = 5  # where the kernel's energies have them


def shortened(chain: Chain) -> Chain:
    """The chain with charges that reach CUTOFF screening lengths, and tables of its cores' fields for them."""
    shorter = replace(chain, cutoff=min(chain.cutoff, CUTOFF / chain.kappa))
    return with_field(shorter, least=0)


def advance_with_tails(
    chain: Chain, tails: FlexibleChains, start: Conformation, beads: Array, stage: Stage, random: np.random.Generator
) -> tuple[Conformation, Array, Array]:
    """A chunk of dynamics from newly drawn velocities, for a chain with a table of its cores' field.

    Returns the conformation, the beads (b, 3), and the energies (7,) that the kernel names.
    """
    fibre = kernel_of(chain).place(start.position, start.frame)
    moving = chain_kernel_of(tails).place(beads)
    velocity = thermal_velocities(chain, random, stage.temperature)
    spread = (stage.temperature / TAIL_MASS) ** 0.5
    bead_velocity = spread * random.standard_normal((3, len(beads)))
    settings = Dynamics(stage.steps, stage.time_step, stage.interval, stage.closest, FINE_MARGIN)
    energy = moving.advance(fibre, settings, velocity, bead_velocity)
    return Conformation(*fibre.conformation(), start.wall), moving.places(), energy


def first_tails(
    tails: FlexibleChains, chain: Chain, where: Conformation, random: np.random.Generator
) -> Array:
    """Beads (b, 3) of chains that were grown on lone cores, where nothing is in their way, and then where the cores
    stand."""
    apart = Conformation(FAR * where.position, where.frame, where.wall)
    beads = None
    for _ in range(LONE_SWEEPS):
        beads = regrown(tails, chain, apart, random, beads)
    beads = world_beads(tails, chain, where, local_beads(tails, chain, apart, beads))
    for _ in range(CROWDED_SWEEPS):
        beads = regrown(tails, chain, where, random, beads)
    return beads


def regrown(
    tails: FlexibleChains, chain: Chain, where: Conformation, random: np.random.Generator, beads: Array | None
) -> Array:
    """Beads (b, 3) after every chain was tried to be regrown once, from `beads` or from straight ones. Their energy is
    not followed: that of overlaps is so large that it would lose its digits."""
    walk = TailWalk.begin(tails, chain, where.position, where.frame, beads, np.zeros(len(TERMS)))
    walk.sweep(random, check=False)
    return walk.beads


def equilibrate_with_tails(
    chain: Chain, start: Conformation, tails: FlexibleChains, beads: Array, random: np.random.Generator,
    show: Callable[[float, str], None] | None = None,
) -> tuple[Conformation, Array, Array]:
    """Dynamics of cores, linkers and chains with beads (b, 3) in the whole energy; the counterpart of
    mesoscale.relaxation.equilibrate for cores without tails of their own.

    Returns a conformation whose floors hold, if they can be made to, the beads on it, and the constants (c,) of
    restraints.
    """
    moving, now = shortened(chain), start
    stages = [stage for stage in STAGES for _ in range(stage.chunks)]
    for chunk, stage in enumerate(stages):
        now, beads, energy = advance_with_tails(moving, tails, now, beads, stage, random)
        if chunk % REGROWTH == REGROWTH - 1:
            beads = regrown(tails, moving, now, random, beads)
        distance = contact_distances(moving.contact, now.position)
        moving = replace(moving, contact_k=stiffened(moving.contact_k, distance, moving.contact_distance))
        if show is not None:
            show((chunk + 1) / len(stages), f"equilibrating with tails, charges {energy[CHARGES]:.0f} kBT")
    on_core = local_beads(tails, chain, now, beads)
    now = clear(chain, now)
    return now, world_beads(tails, chain, now, on_core), moving.contact_k


def local_beads(tails: FlexibleChains, chain: Chain, where: Conformation, beads: Array) -> Array:
    """Beads (b, 3) in the frames of the cores that their chains hang on."""
    at = chain.cores[np.repeat(tails.core, np.diff(tails.first))]
    return np.einsum("bji,bj->bi", where.frame[at], beads - where.position[at])


def world_beads(tails: FlexibleChains, chain: Chain, where: Conformation, beads: Array) -> Array:
    """The opposite of `local_beads`."""
    at = chain.cores[np.repeat(tails.core, np.diff(tails.first))]
    return where.position[at] + np.einsum("bij,bj->bi", where.frame[at], beads)
