"""How long stages take, in processor seconds of the machine at hand.

Laws were measured with benchmarks/plan_estimates.py; docs/how-to/plan-a-build.md has what they say over what was taken.
How much faster or slower this machine is, a short task tells, in a second.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from chromabuild.base.settings import Settings
from chromabuild.pipeline.needs import PICTURES, TABULATED_FROM
from chromabuild.scaling.measured import step_cost
from chromabuild.simulate.protocol import PlannedPhase
from chromabuild.simulate.tuning import step_settings

REFERENCE_TASK = 0.256
"""Processor seconds of ``_task`` where the laws were measured."""
REFERENCE_START = 1.05
"""Processor seconds in which a stage starts there."""
TASK_ROUNDS = 2
RUN_START = 0.65
"""Processor seconds of a stage of dynamics beside REFERENCE_START: launchers, and what it sums up."""
SET_UP_SECONDS_PER_ATOM, PHASE_SECONDS_PER_ATOM = 1.3e-6, 8e-6
"""Of domains, and of a phase beside its steps: restart files, pair lists, forces and energies at both ends."""
MINIMISE_OVER_DYNAMICS = 1.35
"""A step of minimisation over one of dynamics: it has the energy."""
REPORT_SECONDS, REPORT_SECONDS_PER_SOLUTE_ATOM, REPORT_SECONDS_PER_ATOM = 9.0, 4e-6, 1.3e-6
"""Of the report beside REFERENCE_START: pictures of some million pixels, and the atoms in them."""
REFINE_SECONDS_PER_ATOM, REFINE_STEP_SECONDS_PER_ATOM = 1e-5, 6e-8
"""Of atoms whose beads move: to make their terms and to lay them back, and of a step."""
RELAX_STEP_SECONDS_PER_ATOM = {"minimise": 1.1e-6, "dynamics": 1.3e-6}


@dataclass(frozen=True)
class Speed:
    """Of a machine, as a multiple of the time that the reference takes."""

    factor: float
    start: float
    """Processor seconds in which a stage starts."""


WRAPPED, BEAD = 147, 10
"""Base pairs in a nucleosome and in a bead of a linker."""
SWEEP, LONE = 3e-5, 7e-6
"""Processor seconds of a sweep of DNA alone or of one nucleosome, and for each of its particles."""
PARTICLE, CORE = 1.3e-4, 2.5e-4
"""Of a sweep in a crowd, for each particle and for each nucleosome beside."""
TABULATED = 1.2e-4
"""Of a sweep for each particle where the field of a core is tabulated."""
CROWDED_FROM = 12
"""Nucleosomes in walls from which costs grow with the logarithm of their number: fewer have room beyond the walls, and
with more, the share that lies at a face falls."""
SAMPLING_GROWTH = 0.34
"""Of the sampling, by e times as many nucleosomes."""
SETTLING = {"fitted": (0.53, 0.66), "formal": (0.227, 0.22)}
"""Processor seconds a nucleosome, and their growth, of what comes before and after the sampling: gathering,
equilibration, tails. In arrays of 4 to 45 nucleosomes and in 26 kb of the bundled locus one gathering was enough."""
LONGER = 1.15
"""By how much sampling goes on where the energy is not at rest, on average."""
SQUEEZING = 3.6, 2.6
"""Processor seconds that a nucleosome of many takes to be annealed in a small box as often as ``smallest_box`` does,
and how much less where there is but one."""
RELIEF, CROWD = 3.7, 10
"""And that it takes in the minimisation with all charges, among at least so many others."""
QUICK = 5.0
"""Processor seconds that a plan folds a fibre for without being asked."""
REFERENCE = Speed(1.0, REFERENCE_START)


@cache
def speed_here() -> Speed:
    """Measured, in about a second."""
    took = min(_seconds_of_task() for _ in range(TASK_ROUNDS))
    factor = took / REFERENCE_TASK
    return Speed(factor, REFERENCE_START * factor)


def _seconds_of_task() -> float:
    """Processor seconds of a short sampling of a small fibre on one thread."""
    from mesoscale.fibre import Fibre
    from mesoscale.folding import fold
    from mesoscale.model import Parameters

    before = time.process_time()
    fold(Fibre("ACGTTGCA" * 64, (90, 250, 410)), Parameters(core_charges="formal"), 100, 1, threads=1)
    return time.process_time() - before


def stage_seconds(config: Settings, nucleosomes: int, base_pairs: int, solute: int, atoms: int, threads: int,
                  speed: Speed) -> dict[str, float]:
    """Of the stages up to the force field. What of them runs on ``threads`` takes so much less of the clock."""
    has_protein = nucleosomes > 0
    alone = {"scaffold": 0.1, "build": 0.4, "clash": 0.1, "solvate": 0.0,
             "topology": (4.6 if has_protein else 1.0) + 4.5e-6 * solute}
    shared = {"scaffold": folding_seconds(config, nucleosomes, base_pairs), "build": 3.3e-6 * solute,
              "clash": 2.6e-6 * solute, "solvate": 0.87e-6 * atoms, "topology": 0.0}
    return {name: speed.start + speed.factor * (alone[name] + shared[name] / threads) for name in alone}


def run_seconds(config: Settings, atoms: int, phases: Sequence[PlannedPhase], threads: int, speed: Speed) -> float:
    """Of the dynamics, whose ``phases`` are those of all replicas, one after the other.

    A step of dynamics is that of water, measured by parts on the reference (``scaling.measured``), with the cutoffs
    and the mesh of the settings.
    """
    step = float(step_cost(step_settings(config.dynamics))[1][-1])
    steps = sum(phase.steps * phase.replicas * (MINIMISE_OVER_DYNAMICS if phase.kind == "minimise" else 1)
                for phase in phases)
    set_ups = sum(phase.number == 1 for phase in phases)
    each = SET_UP_SECONDS_PER_ATOM * set_ups + PHASE_SECONDS_PER_ATOM * len(phases) + step * steps
    return speed.start + speed.factor * (RUN_START + each * atoms / threads)


def report_seconds(solute: int, atoms: int, threads: int, speed: Speed) -> float:
    """Of the report, whose pictures are drawn side by side."""
    pictures = REPORT_SECONDS + REPORT_SECONDS_PER_SOLUTE_ATOM * solute + REPORT_SECONDS_PER_ATOM * atoms
    return speed.start + speed.factor * pictures / min(threads, PICTURES)


def refine_seconds(solute: int, phases: Sequence[PlannedPhase], threads: int, speed: Speed) -> float:
    """Of the dynamics of beads."""
    steps = sum(phase.steps for phase in phases)
    return speed.start + speed.factor * (REFINE_SECONDS_PER_ATOM * solute
                                         + REFINE_STEP_SECONDS_PER_ATOM * steps * solute / threads)


def relax_seconds(solute: int, phases: Sequence[PlannedPhase], threads: int, speed: Speed) -> float:
    """Of the relaxation without water."""
    steps = sum(phase.steps * RELAX_STEP_SECONDS_PER_ATOM[phase.kind] for phase in phases)
    each = steps + PHASE_SECONDS_PER_ATOM * len(phases)
    return speed.start + speed.factor * (5.0 + 5e-6 * solute + each * solute / threads)


def folding_seconds(config: Settings, nucleosomes: int, base_pairs: int) -> float:
    """Of the sampling and what goes before and after, on one core of the reference."""
    section = config.scaffold
    particles = nucleosomes + max(0, base_pairs - WRAPPED * nucleosomes) / BEAD
    if config.is_laid_flat:
        return 0.0
    if nucleosomes < 2:
        return section.sweeps * (SWEEP + LONE * particles)
    has_walls = section.confinement_radius or section.container or section.is_packed
    is_formal = section.core_charges == "formal"
    crowding = math.log(max(1.0, nucleosomes / CROWDED_FROM)) if has_walls else 0.0
    if nucleosomes >= TABULATED_FROM:
        sweep = TABULATED * particles * (0.6 if is_formal else 1.0) * (1 + SAMPLING_GROWTH * crowding)
    else:
        sweep = (PARTICLE * particles + CORE * nucleosomes) * (0.2 if is_formal else 1.0)
    # Neighbours within the reach of charges: few along a coil, many in a crowd.
    found = section.sweeps * LONGER * sweep * (1.0 if has_walls else 0.2)
    if has_walls or config.locus.contacts:
        each, growth = SETTLING[section.core_charges]
        found += nucleosomes * each * (1 + growth * crowding)
    if section.choose == "smallest-box":
        relief = RELIEF * min(1.0, nucleosomes / CROWD) * (0.1 if is_formal else 1.0)
        found += nucleosomes * (SQUEEZING[0] - SQUEEZING[1] / nucleosomes + relief)
    return found


def is_quick(config: Settings, nucleosomes: int, base_pairs: int, speed: Speed) -> bool:
    """Whether a plan may fold the fibre to know its box: where that is short, and no rule for the size is there."""
    if config.scaffold.choose == "smallest-box" and nucleosomes > 1:
        return False
    return speed.factor * folding_seconds(config, nucleosomes, base_pairs) < QUICK
