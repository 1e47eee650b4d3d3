"""From a fibre to a scaffold: gathered along a coarse path, settled, equilibrated, sampled, perhaps squeezed, and given
tails; docs/explanation/folding.md tells the steps and what they cost."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import numpy as np

from mesoscale.circle import LinkingNumberError, closed_start, linking_number_of
from mesoscale.cores import coarse_core
from mesoscale.dynamics import equilibrate_with_tails, first_tails
from mesoscale.energy import overlaps
from mesoscale.fibre import Fibre
from mesoscale.kernels import set_threads
from mesoscale.model import (
    Chain,
    Parameters,
    body_points,
    build_chain,
    over_stretch,
    shapes_of,
    straight_conformation,
    with_field,
)
from mesoscale.montecarlo import CoupledTails, most_blocks, sample
from mesoscale.observables import energy_drift, map_of
from mesoscale.relaxation import Conformation, energy_of, enthalpy, equilibrate, gather, relieve, settle, squeeze
from mesoscale.restraints import contact_report
from mesoscale.scaffold import Scaffold, box_volume, build_scaffold
from mesoscale.tails import FlexibleChains, TailWalk, beads_of_nucleosomes, cores_of, heads_of, tails_of_fibre
from mesoscale.trajectory import Trajectory

SQUEEZES = 12  # annealings tried for the smallest box
# kBT a core or bead by which a squeezed conformation may lie above the sampled one that it comes from.
ACCEPTABLE = 10.0
# Streams of random numbers beside those of Monte Carlo, which count blocks from 0.
GATHERING, SQUEEZING, TAILS, EQUILIBRATION = 10**6, 2 * 10**6, 3 * 10**6, 4 * 10**6
# Regrowths of every tail on a finished conformation. They begin straight, through whatever stands there: in a crowded
# fibre of 40 nucleosomes the last deep overlap of a tail was gone after 30, and charges fell by 4 % in the next 30.
TAIL_SWEEPS = 40
GATHERINGS = 5
CAUGHT = 0.5  # nm by which a segment of an entangled linker is too long at rest; thermal for ten base pairs: 0.12


def fold(
    fibre: Fibre,
    parameters: Parameters,
    sweeps: int,
    seed: int,
    choose: Literal["last", "smallest-box"] = "last",
    progress: Callable[[float, str], None] | None = None,
    trajectory: Path | None = None,
    hotter: tuple[float, ...] = (),
    threads: int | None = None,
) -> Scaffold:
    """Fold the fibre and return one conformation down to the base pair.

    A fibre with a container or contacts is gathered along a coarse path and equilibrated, a circle is laid on a ring
    and equilibrated; another, and DNA alone that lies straight within its walls, begins with straight linkers. Overlaps
    are pushed apart, and `sweeps` Monte Carlo sweeps follow in which no overlap may come back.
    `choose` says what is built: the last conformation, or the best of several sampled ones after each has been annealed
    under pressure into a small box (`smallest_box`; the last one where none of these is acceptable). `progress` is
    called with the share done and a word on the state. Where floors could not be met, the scaffold says so:
    floor_violations, deepest_violation. Sampling is written to the file `trajectory`, and goes on from there when a run
    with the same arguments was stopped. `hotter`: temperatures of parallel tempering, as `sample` takes them. The same
    arguments give the same result on any number of `threads`.

    With flexible tails dynamics move tails and fibre together, with the fitted charges of the core without tails, and
    both are sampled. Raises ValueError when formal charges are asked for there, and LinkingNumberError for a linking
    number of a circle that its linkers cannot hold.
    """
    if threads is not None:
        set_threads(threads)
    show = progress or (lambda share, state: None)
    flexible = parameters.tails == "flexible"
    if not fibre.dyads:  # DNA alone has no tails
        parameters, flexible = replace(parameters, tails="rigid"), False
    if flexible and parameters.core_charges == "formal":
        raise ValueError("formal charges of the core have rigid tails in them: flexible tails need fitted core charges")
    chain = build_chain(fibre, replace(parameters, core_charges="formal") if flexible else parameters)
    frames = None if trajectory is None else _trajectory(trajectory, fibre, parameters, sweeps, seed, hotter)
    stopped = frames.last()[1] if frames is not None else {}
    folded = chain.is_circle or chain.n > 1 and (chain.confinement_k > 0 or chain.wall_k > 0 or len(chain.contact) > 0
                              or chain.wells is not None) and not _lies_straight(chain)
    shapes, form = shapes_of(fibre, parameters, rigid_tails=False)
    bare = {"shape": shapes[0], "others": shapes[1:], "form": form}
    histones = tails_of_fibre(fibre, parameters)
    beads = None
    if stopped:
        start = Conformation.boxed(chain, stopped["position"], stopped["frame"])
    elif folded:
        start = _closed(fibre, chain, parameters, seed, show) if chain.is_circle else _gathered(chain, seed, show)
        random = _random(seed, EQUILIBRATION)

        def shown(share: float, state: str) -> None:
            show(0.1 + 0.1 * share, state)

        if flexible:
            chain = replace(chain, **bare)
            beads = first_tails(histones, chain, start, _random(seed, TAILS))
            start, beads, contact_k = equilibrate_with_tails(chain, start, histones, beads, random, shown)
        else:
            start, contact_k = equilibrate(chain, start, random, shown)
        chain = replace(chain, contact_k=contact_k)
    else:
        laid = straight_conformation(chain.reshaped(coarse_core))
        start = Conformation.boxed(chain, *laid)
        if chain.n > 1:  # a core alone has nothing to fold
            start = settle(chain, start)
    most = 0.7 if choose == "smallest-box" else 0.8
    coupled = None
    if flexible:
        chain = replace(chain, **bare)
        if beads is not None:
            grown = TailWalk.begin(histones, chain, start.position, start.frame, beads)
        else:  # beads of a run that is gone on with come from its last frame
            grown = grow_tails(histones, chain, start.position, start.frame, seed, 0 if stopped else TAIL_SWEEPS)
        coupled = CoupledTails.begin(grown, len(chain.cores))
    sampled = sample(with_field(chain), start.position, start.frame, sweeps, seed,
                     lambda share, state: show(0.2 + most * share, state), coupled, frames, hotter)  # fmt: skip
    position, frame = sampled.walk.position, sampled.walk.frame
    excess = None
    if choose == "smallest-box" and chain.n > 1:
        best, excess = smallest_box(chain, sampled.snapshots or [(position, frame)], seed, show)
        position, frame = best.position, best.frame

    if not fibre.dyads:
        beads = np.zeros((0, 3))
    elif coupled is not None and choose == "last":
        beads = coupled.beads
    else:
        beads = grow_tails(histones, replace(chain, **bare), position, frame, seed).beads
    heads = heads_of(histones, chain, position, frame)
    scaffold = build_scaffold(
        fibre, chain, position, frame, parameters,
        tails=beads_of_nucleosomes(histones, fibre, beads),
        linker_histones=np.concatenate(
            [heads, beads[~histones.histone_tails()].reshape(len(heads), -1, 3)], axis=1) if len(heads) else None,
    )
    scaffold.linker_histone_core = np.searchsorted(cores_of(fibre), histones.head_core).astype(np.int32)
    scaffold.energy, scaffold.acceptance = sampled.series, sampled.acceptance
    scaffold.contacts = contact_report(fibre.contacts, chain.bp, position, parameters.contact_distance,
                                       sampled.walk.chain.contact_k,
                                       len(fibre.sequence) if fibre.circular else None)
    snapshots = [conformation[0] for conformation in sampled.snapshots] or [position]
    scaffold.contact_map, scaffold.contact_resolution = map_of(fibre, chain.bp, snapshots)
    drift, noise = energy_drift(sampled.total_energy())
    scaffold.observables |= {"energy_drift": drift, "energy_noise": noise, "energy_at_rest": abs(drift) < noise}
    scaffold.observables["truncation_bound"] = parameters.truncation_bound
    if excess is not None:
        scaffold.observables["squeezing_energy"] = excess
    depth = overlaps(chain, position, frame)
    scaffold.floor_violations = len(depth)
    scaffold.deepest_violation = float(depth.max(initial=0.0))
    return scaffold


def _lies_straight(chain: Chain) -> bool:
    """Whether it is DNA alone, without contacts, that has room in its walls as it is."""
    if len(chain.cores) or len(chain.contact) or chain.wells is not None or chain.confinement_k > 0:
        return False
    position, frame = straight_conformation(chain)
    return bool((np.abs(body_points(chain, position, frame)).max(axis=0) <= chain.wall).all())


def _gathered(chain: Chain, seed: int, show: Callable[[float, str], None]) -> Conformation:
    """A conformation whose floors hold and whose linkers are not wound around each other, from as many gatherings as it
    takes: bodies pass each other at first, and no later move unthreads a linker that was caught."""
    for attempt in range(GATHERINGS):
        random = _random(seed, GATHERING + attempt)
        start = settle(chain, gather(chain, random, lambda share, state: show(0.1 * share, state)))
        caught = over_stretch(chain, start.position, start.frame).max() > CAUGHT
        if not caught and len(overlaps(chain, start.position, start.frame)) == 0:
            break
    return start


def _closed(
    fibre: Fibre, chain: Chain, parameters: Parameters, seed: int, show: Callable[[float, str], None]
) -> Conformation:
    """The same of a circle."""
    for attempt in range(GATHERINGS):
        random = _random(seed, GATHERING + attempt)
        start = closed_start(fibre, chain, parameters, random, lambda share, state: show(0.1 * share, state))
        caught = over_stretch(chain, start.position, start.frame).max() > CAUGHT
        if not caught and len(overlaps(chain, start.position, start.frame)) == 0:
            break
    if fibre.linking_number not in (None, found := linking_number_of(fibre, chain, start, parameters)):
        raise LinkingNumberError(f"the circle came to {found} turns instead of {fibre.linking_number}: try another "
                                 "seed, or a number nearer to that of the relaxed circle")
    return start


def smallest_box(
    chain: Chain, snapshots: list, seed: int, show: Callable[[float, str], None]
) -> tuple[Conformation, float]:
    """The best of SQUEEZES annealings under pressure that begin at evenly spread snapshots (positions, frames), and its
    energy above that of its snapshot, kBT a core or bead.

    The best has the lowest energy plus pressure times volume of those that are acceptable: no floor is violated, and
    the energy is at most ACCEPTABLE above. Where none is, it is the last snapshot as it was sampled, with zero.
    """
    free = replace(chain, wall_k=0.0, confinement_k=0.0)
    chosen, risen, lowest = Conformation.boxed(free, *snapshots[-1]), 0.0, np.inf
    for k in range(SQUEEZES):
        sampled = Conformation.boxed(free, *snapshots[len(snapshots) * k // SQUEEZES])
        found = relieve(free, squeeze(free, sampled, _random(seed, SQUEEZING + k)))
        volume = box_volume(body_points(free, found.position, found.frame))
        above = (energy_of(free, found) - energy_of(free, sampled)) / chain.n
        is_acceptable = above <= ACCEPTABLE and len(overlaps(free, found.position, found.frame)) == 0
        if is_acceptable and enthalpy(free, found, volume) < lowest:
            chosen, risen, lowest = found, above, enthalpy(free, found, volume)
        show(0.9 + 0.1 * (k + 1) / SQUEEZES, f"box {volume:.0f} nm^3, {above:.1f} kT a particle above sampling")
    return chosen, risen


def grow_tails(
    tails: FlexibleChains, chain: Chain, position: np.ndarray, frame: np.ndarray, seed: int, sweeps: int = TAIL_SWEEPS
) -> TailWalk:
    """Histone tails and linker histones, sampled in the field of a conformation that stands still; the cores of `chain`
    must be without tails of their own."""
    walk = TailWalk.begin(tails, chain, position, frame)
    random = _random(seed, TAILS)
    for sweep in range(sweeps):
        # Often at first: the huge energies of overlaps leave rounding errors behind, which a check does away with.
        walk.sweep(random, check=sweep & (sweep - 1) == 0 or sweep == sweeps - 1)
    return walk


def _trajectory(
    path: Path, fibre: Fibre, parameters: Parameters, sweeps: int, seed: int, hotter: tuple[float, ...]
) -> Trajectory:
    """The file of a run with these arguments."""
    locus = hashlib.sha256(fibre.key.encode()).hexdigest()
    key = {"fibre": locus, "parameters": asdict(parameters), "sweeps": sweeps, "seed": seed, "hotter": hotter}
    if fibre.contact_energies:
        key["contact_energies"] = hashlib.sha256(repr(fibre.contact_energies).encode()).hexdigest()
    return Trajectory(path, key, most_blocks(sweeps, parameters.tails == "flexible") + 1)


def _random(seed: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, stream]))
