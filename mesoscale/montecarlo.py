"""Metropolis Monte Carlo sampling of a fibre; the inner loop is the Fortran kernel fibre_monte_carlo."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mesoscale.kernels import Moves, kernel_energies, kernel_of
from mesoscale.model import TERMS, Chain
from mesoscale.observables import end_to_end, energy_drift, radius_of_gyration
from mesoscale.restraints import KEPT, contact_distances, stiffened
from mesoscale.tails import TERMS as TAIL_TERMS
from mesoscale.tails import FlexibleChains, Places, TailWalk, carried_beads, heads_alone, limbs_of
from mesoscale.trajectory import Trajectory

MOVES = ("bead translation", "core translation", "core rotation", "crank", "end pivot", "bead spin")
MOVE_WEIGHT = np.array([0.25, 0.10, 0.15, 0.20, 0.15, 0.15])
FIRST_STEP = np.array([0.15, 0.15, 0.05, 0.3, 0.1, 0.5])  # nm or radian
LARGEST_STEP = np.array([3.0, 3.0, 1.0, np.pi, np.pi, np.pi])
SMALLEST_STEP = 1e-4
TARGET_ACCEPTANCE = 0.35
LONGEST_RANGE = 40  # particles that one crank or pivot moves at most
PIVOT = MOVES.index("end pivot")
RANDOM_PER_TRIAL = 11
BURN_IN = 0.3  # share of the sweeps in which steps are adapted
SERIES = ("sweep", *TERMS, "radius_of_gyration", "end_to_end", "contacts_kept")
TAIL_SERIES = ("tail bond", "tail bend", "tail tether")
REGROWN = 0.25  # share of the chains that are regrown for each sweep of the fibre
SWEEPS_BEFORE_REGROWTH = 4  # at most: each call of the kernel computes the energies of all pairs anew
MOST_AT_ONCE = 20  # sweeps between two recomputations of the energy
# Records of energy over the sweeps that were asked for; with flexible tails one every SWEEPS_BEFORE_REGROWTH sweeps at
# most, for the energies from scratch that go into a record cost as much as two sweeps.
RECORDS = 100
LONGEST_RUN = 2  # times the sweeps asked for, when the energy is not at rest before
BOOKKEEPING = 1e-8  # largest relative difference of the running energy from a full recomputation


def move_weights(chain: Chain) -> NDArray[np.float64]:
    """Probability (6,) of each move of MOVES.

    An end pivot moves one of the LONGEST_RANGE particles at either end, at the cost of twenty single cores: a long
    chain has as few of them as it has ends, and a circle none.
    """
    possible = np.array([len(chain.beads), len(chain.cores), len(chain.cores), 1, not chain.is_circle,
                         len(chain.beads)]) > 0
    weight = np.where(possible, MOVE_WEIGHT, 0.0)
    weight[PIVOT] *= min(1.0, 2 * LONGEST_RANGE / chain.n)
    return weight / weight.sum()


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
    temperature: float = 1.0  # in multiples of the model's, in whose kBT energies are

    @classmethod
    def begin(
        cls, chain: Chain, position: NDArray[np.float64], frame: NDArray[np.float64], temperature: float = 1.0
    ) -> "Walk":
        """Start from a conformation."""
        counts = np.zeros(len(MOVES), np.int64)
        energy = kernel_energies(chain, position, frame)
        return cls(chain, position, frame, energy, FIRST_STEP.copy(), counts, counts.copy(), temperature)

    def advance(
        self, random: NDArray[np.float64], strict: bool, check: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Make one trial for each row of `random` (trials, 11); returns trials and acceptances per move.

        With `strict` no move may deepen an overlap. Raises ArithmeticError when the running energy has drifted from
        the energy computed from scratch; without `check` it is not computed from scratch.
        """
        chain = self.chain
        if chain.n == 1:
            return np.zeros(len(MOVES), np.int64), np.zeros(len(MOVES), np.int64)
        if check and np.isnan(self.energy).any():
            self.energy = kernel_energies(chain, self.position, self.frame)
        if self.temperature != 1.0:
            # The kernel accepts what costs less than -log(u); -T log(u) is the same with u to the power of T.
            random = np.column_stack([random[:, :-1], random[:, -1] ** self.temperature])
        kernel = kernel_of(chain).place(self.position, self.frame)
        moves = Moves(np.cumsum(move_weights(chain)), self.step, LONGEST_RANGE)
        energy, tried, accepted = kernel.run_trials(moves, random, strict, self.energy)
        self.position, self.frame = kernel.conformation()
        self.tried += tried
        self.accepted += accepted
        exact = kernel_energies(chain, self.position, self.frame) if check else energy
        # An overlap that was pushed apart on the way leaves the rounding error of its huge energy behind.
        scale = max(np.abs(exact).sum(), np.abs(self.energy).sum(), 1.0)
        if np.abs(energy - exact).max() > BOOKKEEPING * scale:
            raise ArithmeticError(f"running energy {energy.sum()} kBT differs from the full sum {exact.sum()} kBT")
        self.energy = exact
        return tried.astype(np.int64), accepted.astype(np.int64)

    def adapt(self, tried: NDArray[np.int64], accepted: NDArray[np.int64]) -> None:
        """Lengthen or shorten steps toward the target acceptance; only for the burn-in."""
        rate = accepted / np.maximum(tried, 1)
        factor = np.where(tried > 0, np.clip(rate / TARGET_ACCEPTANCE, 0.5, 1.5), 1.0)
        self.step = np.clip(self.step * factor, SMALLEST_STEP, LARGEST_STEP)

    def stiffen(self) -> None:
        """Hold contacts that stand wide open harder; only for the burn-in."""
        chain = self.chain
        distance = contact_distances(chain.contact, self.position)
        contact_k = stiffened(chain.contact_k, distance, chain.contact_distance)
        if not np.array_equal(contact_k, chain.contact_k):
            self.chain = replace(chain, contact_k=contact_k)
            self.energy = kernel_energies(self.chain, self.position, self.frame)


@dataclass
class CoupledTails:
    """Flexible chains under Monte Carlo together with their fibre: beads (b, 3) in the world, nm.

    A move of a core carries its chains along as they are, and feels them (mesoscale.model.Limbs); between sweeps of the
    fibre, chains are regrown in the field of the fibre that stands still. Both steps keep detailed balance in the same
    energy: that of the fibre and its limbs, and of the chains' own terms.
    """

    tails: FlexibleChains
    places: Places
    beads: NDArray[np.float64]
    energy: NDArray[np.float64]
    tried: int = 0
    accepted: int = 0

    @classmethod
    def begin(cls, walk: TailWalk, cores: int) -> "CoupledTails":
        """Chains as they were sampled on a fibre of so many cores; these must be without tails of their own."""
        return cls(walk.tails, Places.of(walk.tails, cores), walk.beads, walk.energy)

    def attach(self, walk: Walk, check: bool = True) -> None:
        """Hand the chains as they are to the cores. Without `check` the walk's energy is left open: not a number."""
        limbs = limbs_of(self.tails, self.places, walk.chain, walk.position, walk.frame, self.beads)
        walk.chain = replace(walk.chain, limbs=limbs)
        if check:
            walk.energy = kernel_energies(walk.chain, walk.position, walk.frame)
        else:
            walk.energy = np.full(len(TERMS), np.nan)

    def regrow(self, walk: Walk, random: np.random.Generator, check: bool = True, share: float = REGROWN) -> None:
        """Try to regrow a share of the chains where their cores are now. Without `check` their energy is not followed,
        which costs more than the moves, and `whole_energy` must wait for one with it.
        """
        chain = walk.chain
        beads = carried_beads(chain.limbs, self.places, chain, walk.position, walk.frame, len(self.beads))
        energy = None if check else np.zeros(len(TAIL_TERMS))
        regrown = TailWalk.begin(self.tails, chain, walk.position, walk.frame, beads, energy)
        chains = random.permutation(len(self.tails.core))
        regrown.regrow(chains[: max(1, int(share * len(chains)))], random, check)
        self.beads, self.energy = regrown.beads, regrown.energy
        self.tried += int(regrown.tried.sum())
        self.accepted += int(regrown.accepted.sum())
        self.attach(walk, check)

    def whole_energy(self, walk: Walk) -> dict[str, float]:
        """The fibre's terms with those of the chains: pairs of chains with anything are counted once."""
        heads = replace(walk.chain, limbs=heads_alone(walk.chain.limbs))
        whole = dict(zip(TERMS, kernel_energies(heads, walk.position, walk.frame), strict=True))
        own = dict(zip(TAIL_TERMS, self.energy, strict=True))
        whole["electrostatic"] += own["electrostatic"]
        whole["excluded"] += own["excluded"]
        return whole | {f"tail {term}": own[term] for term in ("bond", "bend", "tether")}


@dataclass
class Sampling:
    """A walk's end, its recorded series, the accepted share of each move, and conformations along the way."""

    walk: Walk
    series: dict[str, NDArray[np.float64]]
    acceptance: dict[str, float]
    snapshots: list[tuple[NDArray[np.float64], NDArray[np.float64]]]
    tails: CoupledTails | None = None

    def total_energy(self) -> NDArray[np.float64]:
        """The whole energy (records,), kBT."""
        return total_energy(tuple(self.series), np.array(list(self.series.values())).T)


def exchange(walks: list[Walk], first: int, random: np.random.Generator) -> tuple[int, int]:
    """Let walks at neighbouring temperatures exchange conformations: pairs from number `first` (0 or 1) on.

    Parallel tempering (Hukushima & Nemoto, J. Phys. Soc. Jpn. 65:1604, 1996): a pair is exchanged with probability
    min(1, exp((1/T1 - 1/T2) (E1 - E2))). Returns the pairs tried and exchanged.
    """
    tried = exchanged = 0
    for cold, hot in zip(walks[first:-1:2], walks[first + 1 :: 2], strict=True):
        gain = (1 / cold.temperature - 1 / hot.temperature) * (cold.energy.sum() - hot.energy.sum())
        tried += 1
        if np.log(1.0 - random.random()) <= gain:
            exchanged += 1
            for name in ("position", "frame", "energy"):
                one, other = getattr(cold, name), getattr(hot, name)
                setattr(cold, name, other)
                setattr(hot, name, one)
    return tried, exchanged


def total_energy(names: tuple[str, ...], records: NDArray[np.float64]) -> NDArray[np.float64]:
    """The whole energy (records,), kBT, from records (records, names)."""
    return records[:, [name in (*TERMS, *TAIL_SERIES) for name in names]].sum(axis=1)


def block_count(sweeps: int, flexible: bool) -> int:
    """Blocks that the sweeps asked for are recorded in."""
    return min(RECORDS, max(1, sweeps // SWEEPS_BEFORE_REGROWTH) if flexible else sweeps)


def most_blocks(sweeps: int, flexible: bool) -> int:
    """Blocks that a run has at most; one that is too short to tell whether it is at rest ends when it was asked to."""
    return block_count(sweeps, flexible) * (LONGEST_RUN if sweeps >= RECORDS else 1)


def sample(
    chain: Chain,
    position: NDArray[np.float64],
    frame: NDArray[np.float64],
    sweeps: int,
    seed: int,
    progress: Callable[[float, str], None] | None = None,
    tails: CoupledTails | None = None,
    trajectory: Trajectory | None = None,
    hotter: tuple[float, ...] = (),
) -> Sampling:
    """Sample from a conformation: positions (n, 3) and frames (n, 3, 3) of the particles. A sweep is one trial a
    particle, and with `tails` the regrowth of a share of them.

    Steps adapt, and restraints of contacts that stand open harden, during the first 30 % of the sweeps. No move may
    deepen an overlap: floors that hold at the start hold at the end. `progress` is called with the share done and a
    word on the state. The same seed gives the same result, also when a `trajectory` of an earlier run is gone on with.

    A run of RECORDS sweeps or more whose energy is not at rest then (mesoscale.observables.energy_drift) goes on, by a
    quarter of the sweeps at a time, for as many again at most.

    `hotter` names further temperatures, ascending multiples of the model's: as many more walks from the same start
    exchange conformations with it after every block. Raises ValueError when there are flexible tails as well.
    """
    if hotter and (tails is not None or sorted({1.0, *hotter}) != [1.0, *hotter]):
        raise ValueError("temperatures of further walks must ascend from above 1, and tails must be rigid")
    blocks = block_count(sweeps, tails is not None)
    most = most_blocks(sweeps, tails is not None)
    burn_in = int(np.ceil(BURN_IN * blocks)) if blocks > 1 else 0
    names = SERIES if tails is None else (*SERIES, *TAIL_SERIES)
    done_blocks, state = (0, {}) if trajectory is None else trajectory.last()
    if state:
        walk = Walk.begin(replace(chain, contact_k=state["contact_k"]), state["position"], state["frame"])
        walk.step, walk.tried, walk.accepted = state["step"], state["tried"], state["accepted"]
        if tails is not None:
            tails.beads, tails.energy = state["beads"], state["tail_energy"]
            tails.tried, tails.accepted = (int(count) for count in state["tail_counts"])
        hot = [Walk.begin(walk.chain, state["hot_position"][k], state["hot_frame"][k], temperature)
               for k, temperature in enumerate(hotter)]  # fmt: skip
        for k, one in enumerate(hot):
            one.step, one.tried, one.accepted = (state[f"hot_{name}"][k] for name in ("step", "tried", "accepted"))
        exchanges = state["exchanges"]
    else:
        walk = Walk.begin(chain, position, frame)
        hot = [Walk.begin(chain, position, frame, temperature) for temperature in hotter]
        exchanges = np.zeros(2, np.int64)
    walks = [walk, *hot]
    if tails is not None and chain.n > 1:
        tails.attach(walk)

    def record(sweep: int) -> NDArray[np.float64]:
        terms = tails.whole_energy(walk) if tails else dict(zip(TERMS, walk.energy, strict=True))
        distance = contact_distances(chain.contact, walk.position)
        values = {
            "sweep": sweep, **terms,
            "radius_of_gyration": radius_of_gyration(walk.position), "end_to_end": end_to_end(walk.position),
            "contacts_kept": np.count_nonzero(distance <= KEPT * chain.contact_distance),
        }  # fmt: skip
        return np.array([values[name] for name in names], float)

    def frame_of(values: NDArray[np.float64]) -> dict[str, NDArray]:
        arrays = {"position": walk.position, "frame": walk.frame, "step": walk.step, "tried": walk.tried,
                  "accepted": walk.accepted, "contact_k": walk.chain.contact_k, "record": values}  # fmt: skip
        if tails is not None:
            arrays |= {"beads": tails.beads, "tail_energy": tails.energy,
                       "tail_counts": np.array([tails.tried, tails.accepted])}  # fmt: skip
        if hot:
            names_of_hot = ("position", "frame", "step", "tried", "accepted")
            arrays |= {f"hot_{name}": np.stack([getattr(one, name) for one in hot]) for name in names_of_hot}
        return arrays | {"exchanges": exchanges}

    def finished(block: int) -> bool:
        late = block - blocks
        if late < 0 or late % max(1, blocks // 4):
            return False
        drift, noise = energy_drift(total_energy(names, np.array(records)))
        return abs(drift) < noise

    records, snapshots = [record(0)], []
    if trajectory is not None:
        if done_blocks:
            records = list(trajectory.frames("record", done_blocks))
            kept = slice(burn_in + 1, None)  # frame 0 is the start
            snapshots = list(zip(trajectory.frames("position", done_blocks)[kept],
                                 trajectory.frames("frame", done_blocks)[kept], strict=True))  # fmt: skip
        trajectory.begin(done_blocks, frame_of(records[0]))
        if not done_blocks:
            trajectory.append(frame_of(records[0]))
    first = max(0, done_blocks - 1)
    done = sweeps * first // blocks
    at_once = SWEEPS_BEFORE_REGROWTH if tails else MOST_AT_ONCE
    block = first
    while block < most and not finished(block):
        until = sweeps * (block + 1) // blocks
        if block == burn_in:
            for one in walks:
                one.tried[:] = one.accepted[:] = 0
            exchanges = np.zeros(2, np.int64)
        random = np.random.Generator(np.random.Philox(key=[seed, block]))
        before = [(one.tried.copy(), one.accepted.copy()) for one in walks]
        while done < until:
            now = min(at_once, until - done)
            check = tails is None or done + now == until
            for one in walks:
                one.advance(random.random((now * chain.n, RANDOM_PER_TRIAL)), strict=True, check=check)
            if tails is not None and chain.n > 1:
                tails.regrow(walk, random, check, now * REGROWN)
            done += now
        if block < burn_in:
            for one, (tried, accepted) in zip(walks, before, strict=True):
                one.adapt(one.tried - tried, one.accepted - accepted)
            walk.stiffen()
            for one in hot:
                one.chain = replace(one.chain, contact_k=walk.chain.contact_k)
                one.energy = kernel_energies(one.chain, one.position, one.frame)
        if hot:
            exchanges = exchanges + exchange(walks, block % 2, random)
        if block >= burn_in:
            snapshots.append((walk.position, walk.frame))
        records.append(record(done))
        if trajectory is not None:
            trajectory.append(frame_of(records[-1]))
        block += 1
        if progress is not None:
            progress(min(1.0, done / sweeps), f"energy {walk.energy.sum():.0f} kBT")
    if trajectory is not None:
        trajectory.close()
    acceptance = {name: float(a / max(t, 1)) for name, t, a in zip(MOVES, walk.tried, walk.accepted, strict=True)}
    if hot:
        acceptance["exchange"] = float(exchanges[1] / max(exchanges[0], 1))
    if tails is not None:
        acceptance["tail regrowth"] = tails.accepted / max(tails.tried, 1)
    series = dict(zip(names, np.array(records).T.copy(), strict=True))
    return Sampling(walk, series, acceptance, snapshots, tails)
