"""Metropolis Monte Carlo sampling of a fibre; the inner loop is the Fortran kernel fibre_monte_carlo."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mesoscale import _kernels
from mesoscale.kernels import kernel_arguments, kernel_energies
from mesoscale.model import TERMS, Chain
from mesoscale.observables import end_to_end, radius_of_gyration

MOVES = ("bead translation", "core translation", "core rotation", "crank", "end pivot", "bead spin")
MOVE_WEIGHT = np.array([0.25, 0.10, 0.15, 0.20, 0.15, 0.15])
FIRST_STEP = np.array([0.15, 0.15, 0.05, 0.3, 0.1, 0.5])  # nm or radian
LARGEST_STEP = np.array([3.0, 3.0, 1.0, np.pi, np.pi, np.pi])
SMALLEST_STEP = 1e-4
TARGET_ACCEPTANCE = 0.35
LONGEST_RANGE = 40  # particles that one crank or pivot moves at most
RANDOM_PER_TRIAL = 11
BURN_IN = 0.3  # share of the sweeps in which steps are adapted
RECORDS = 100  # records of energy over a whole run
BOOKKEEPING = 1e-8  # largest relative difference of the running energy from a full recomputation


def _or_one(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """f2py takes no empty arrays; what stands in is never picked, for its moves have no weight."""
    return numbers if len(numbers) else np.ones(1, np.int32)


@dataclass
class Walk:
    """A conformation under Monte Carlo: positions (n, 3), frames (n, 3, 3), energies per term, steps and counts."""

    chain: Chain
    position: NDArray[np.float64]
    frame: NDArray[np.float64]
    energy: NDArray[np.float64]
    step: NDArray[np.float64]
    tried: NDArray[np.int64]
    accepted: NDArray[np.int64]

    @classmethod
    def begin(cls, chain: Chain, position: NDArray[np.float64], frame: NDArray[np.float64]) -> "Walk":
        """Start from a conformation."""
        counts = np.zeros(len(MOVES), np.int64)
        energy = kernel_energies(chain, position, frame)
        return cls(chain, position, frame, energy, FIRST_STEP.copy(), counts, counts.copy())

    def advance(self, random: NDArray[np.float64], strict: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Make one trial for each row of `random` (trials, 11); returns trials and acceptances per move.

        With `strict` no move may deepen an overlap. Raises ArithmeticError when the running energy has drifted from
        the energy computed from scratch.
        """
        chain = self.chain
        if chain.n == 1:
            return np.zeros(len(MOVES), np.int64), np.zeros(len(MOVES), np.int64)
        possible = np.array([len(chain.beads), len(chain.cores), len(chain.cores), 1, 1, len(chain.beads)]) > 0
        weight = np.where(possible, MOVE_WEIGHT, 0.0)
        arguments = kernel_arguments(chain, self.position, self.frame)
        energy = self.energy.copy()
        tried, accepted = _kernels.fibre_monte_carlo.run_trials(
            beads=_or_one(chain.beads + 1), cores=_or_one(chain.cores + 1),
            longest=LONGEST_RANGE, strict=int(strict), weight=np.cumsum(weight / weight.sum()), step=self.step,
            random=np.asfortranarray(random.T), energy=energy, **arguments,
        )  # fmt: skip
        self.position = np.ascontiguousarray(arguments["position"].T)
        self.frame = np.ascontiguousarray(np.transpose(arguments["frame"], (2, 0, 1)))
        exact = kernel_energies(chain, self.position, self.frame)
        # An overlap that was pushed apart on the way leaves the rounding error of its huge energy behind.
        scale = max(np.abs(exact).sum(), np.abs(self.energy).sum(), 1.0)
        if np.abs(energy - exact).max() > BOOKKEEPING * scale:
            raise ArithmeticError(f"running energy {energy.sum()} kBT differs from the full sum {exact.sum()} kBT")
        self.energy = exact
        self.tried += tried
        self.accepted += accepted
        return tried.astype(np.int64), accepted.astype(np.int64)

    def adapt(self, tried: NDArray[np.int64], accepted: NDArray[np.int64]) -> None:
        """Lengthen or shorten steps toward the target acceptance; only for the burn-in."""
        rate = accepted / np.maximum(tried, 1)
        factor = np.where(tried > 0, np.clip(rate / TARGET_ACCEPTANCE, 0.5, 1.5), 1.0)
        self.step = np.clip(self.step * factor, SMALLEST_STEP, LARGEST_STEP)


@dataclass
class Sampling:
    """A walk's end, its recorded series, the accepted share of each move, and conformations along the way."""

    walk: Walk
    series: dict[str, NDArray[np.float64]]
    acceptance: dict[str, float]
    snapshots: list[tuple[NDArray[np.float64], NDArray[np.float64]]]


def sample(
    chain: Chain,
    position: NDArray[np.float64],
    frame: NDArray[np.float64],
    sweeps: int,
    seed: int,
    progress: Callable[[float, str], None] | None = None,
) -> Sampling:
    """Sample from a conformation: positions (n, 3) and frames (n, 3, 3) of the particles. A sweep is one trial a
    particle.

    Steps adapt during the first 30 % of the sweeps. No move may deepen an overlap: floors that hold at the start hold
    at the end. `progress` is called with the share done and a word on the state. The same seed gives the same result.
    """
    walk = Walk.begin(chain, position, frame)
    blocks = min(RECORDS, sweeps)
    burn_in = int(np.ceil(BURN_IN * blocks)) if blocks > 1 else 0
    records: dict[str, list[float]] = {name: [] for name in ("sweep", *TERMS, "radius_of_gyration", "end_to_end")}
    snapshots = []

    def record(sweep: int) -> None:
        values = {"sweep": sweep, **dict(zip(TERMS, walk.energy, strict=True))}
        values["radius_of_gyration"] = radius_of_gyration(walk.position)
        values["end_to_end"] = end_to_end(walk.position)
        for name, value in values.items():
            records[name].append(float(value))

    record(0)
    done = 0
    for block in range(blocks):
        until = sweeps * (block + 1) // blocks
        if block == burn_in:
            walk.tried[:] = walk.accepted[:] = 0
        random = np.random.Generator(np.random.Philox(key=[seed, block]))
        tried, accepted = np.zeros(len(MOVES), np.int64), np.zeros(len(MOVES), np.int64)
        for _ in range(until - done):
            counts = walk.advance(random.random((chain.n, RANDOM_PER_TRIAL)), strict=True)
            tried, accepted = tried + counts[0], accepted + counts[1]
        if block < burn_in:
            walk.adapt(tried, accepted)
        else:
            snapshots.append((walk.position, walk.frame))
        done = until
        record(done)
        if progress is not None:
            progress(done / sweeps, f"energy {walk.energy.sum():.0f} kBT")
    acceptance = {name: float(a / max(t, 1)) for name, t, a in zip(MOVES, walk.tried, walk.accepted, strict=True)}
    return Sampling(walk, {name: np.array(values) for name, values in records.items()}, acceptance, snapshots)
