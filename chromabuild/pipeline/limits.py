"""What cannot be done, in one sentence: `plan` says it before the work, `validate`, `all` and `run` refuse with it.

A stage is measured against the memory and the disk that are there, and against its box and the formats that it writes:
the first is the machine's fault (ResourceError), the second that of the settings (BadInputError).
"""

import math
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import shortest_translation, tilt_of, vectors_of
from chromabuild.base.duration import span
from chromabuild.base.errors import BadInputError, ChromabuildError, ResourceError
from chromabuild.base.gpus import gpu_memory_here
from chromabuild.base.machine import memory_free, memory_here, nodes_here
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.base.threads import thread_count
from chromabuild.forcefield.molecule_runs import beyond_dcd
from chromabuild.pipeline.extent import fold_in_doubt, size_is_known
from chromabuild.pipeline.needs import (
    PICTURES,
    SHARD_BYTES_PER_ATOM,
    gpu_bytes,
    report_memory,
    shard_process_memory,
    stage_memory,
)
from chromabuild.pipeline.plan import SOLUTE_VOLUME, Estimate, Parts, dynamics_seconds, estimate
from chromabuild.pipeline.relaxing import BUILT, CLEAN, REFINED, RELAXED
from chromabuild.pipeline.savings import saving_that_fits
from chromabuild.pipeline.speeds import REFERENCE, Speed
from chromabuild.scaling.machine import Machine
from chromabuild.solvate.bricks import check_numbering
from chromabuild.solvate.ions import check_potential, check_room_for_ions
from chromabuild.solvate.placement import check_filling, check_room

_WORK = {"scaffold": "folding the fibre", "build": "building the solute", "refine": "the dynamics of beads",
         "clash": "correcting clashes", "relax": "the relaxation without water", "solvate": "writing the shards",
         "topology": "the force field", "run": "the dynamics", "report": "the report"}
_UNTIL = {"scaffold": "", "build": "scaffold", "refine": "build", "clash": "build", "relax": "clash",
          "solvate": "clash", "topology": "solvate", "run": "topology", "report": "run"}
"""The stage before: how far the chain goes without."""
STAGES_WITH_LIMITS = tuple(_WORK)
_OF_SOLUTE = ("scaffold", "build", "refine", "clash", "relax", "topology")
"""Stages whose memory does not depend on the box."""
LONGEST_RUN = 365 * 86400.0
"""Seconds: dynamics that would take longer is refused."""
LONG_RUN = 86400.0
"""Seconds: before longer dynamics a first look at whether it runs is advised."""
FIRST_LOOK = "demo"
"""The shipped protocol that shows that a system runs."""
COMMON_BRICK = 100.0
"""Angstrom: larger bricks take memory and save little."""
LOOSE = 20
"""A box so many times as large as what its solute displaces is loose; by default it is some ten times as large."""
MADE_BY = {"scaffold": "scaffold.h5", "build": BUILT, "refine": REFINED, "clash": CLEAN, "relax": RELAXED}
"""What a stage will replace: of an earlier build, it tells nothing of the box."""


@dataclass(frozen=True)
class Nodes:
    """Where the dynamics runs."""

    number: int
    memory: float
    """Bytes of one."""
    cores: int
    """Of one."""
    machine: str = ""
    """Name of a machine; empty: this one."""

    @classmethod
    def here(cls) -> "Nodes":
        """Those of this batch job, or this machine."""
        return cls(nodes_here(), memory_here(), thread_count())

    @classmethod
    def of(cls, machine: Machine, number: int) -> "Nodes":
        """So many of a machine."""
        return cls(number, 1e9 * machine.node.memory_gb, machine.node.cores, machine.name)

    def __str__(self) -> str:
        """As the subject of a sentence, with its verb."""
        one = f"a node of {self.machine}" if self.machine else "this machine"
        of = f" of {self.machine}" if self.machine else ""
        return f"{one} has" if self.number == 1 else f"{self.number} nodes{of} have"


def obstacles(build: Estimate, config: Settings, stages: Collection[str], threads: int, parts: Parts | None = None,
              nodes: Nodes | None = None) -> list[ChromabuildError]:
    """Why some of the stages cannot be done here, and what helps, as the errors with which they refuse; what weighs
    most first.

    ``threads`` of the estimate; ``parts``: those of the settings, where they are known; ``nodes``: where the dynamics
    runs (None: here), the other stages run here.
    """
    nodes = nodes or Nodes.here()
    wanted = [name for name in _WORK if name in stages and name in build.memory]
    too_many = "run" in wanted and beyond_dcd(build.trajectory_atoms, config.dynamics.trajectory_selection)
    of_input = [_problem_of_box(build, config, wanted), BadInputError(too_many) if too_many else None]
    of_machine = [_memory(build, config, stage, threads, parts, nodes) for stage in wanted]
    if "run" in wanted and not nodes.machine:
        of_machine += [_gpu_memory(build, config)] if config.dynamics.engine == "openmm" else []
        of_machine.append(_time(build, config, threads))
    of_machine += [_disk(build, config, stage) for stage in wanted]
    return [*filter(None, of_input), *(ResourceError(sentence) for sentence in of_machine if sentence)]


def refuse(config: Settings, stages: Collection[str], threads: int, parts: Parts | None = None,
           nodes: Nodes | None = None) -> bool:
    """Raise the first error of ``obstacles`` when some stages cannot be done here, or ResourceError when one alone,
    which is about to begin, needs more memory than other programs leave.

    Gives whether the size of the box was known; while it is a guess only what depends on the solute alone is refused,
    and dynamics whose ranks are too many even without water. DNA that is folded in a moment is, where its box is in
    doubt. ``parts`` and ``nodes`` as for ``obstacles``.
    """
    try:
        parts = parts or Parts.of(config)
        folded = fold_in_doubt(config, parts.fibre, threads) if "scaffold" in stages else None
        build = estimate(config, threads, folded, [MADE_BY[name] for name in stages if name in MADE_BY], parts=parts)
    except BadInputError:  # the stage that reads the input says what is wrong with it
        return False
    is_known = folded is not None or size_is_known(config, "scaffold" in stages, build.nucleosomes)
    considered = [name for name in stages if is_known or name in _OF_SOLUTE]
    for error in obstacles(build, config, considered, threads, parts, nodes):
        raise error
    taken = _memory_taken(build, considered[0]) if len(stages) == 1 and considered else None
    too_many = None if is_known or "run" not in stages else _memory(
        _without_water(build, config), config, "run", threads, None, nodes or Nodes.here())
    if taken or too_many:
        raise ResourceError(taken or too_many)
    return is_known


def _without_water(build: Estimate, config: Settings) -> Estimate:
    """The least that the dynamics may need, whatever the box."""
    solute = build.solute_atoms
    ranks = 1 if config.dynamics.tune else config.dynamics.ranks
    memory = stage_memory(config, build.nucleosomes, solute, solute, 1, 1, ranks)
    return replace(build, atoms=solute, memory={name: need / 1e9 for name, need in memory.items()})


def check_box(box: Sequence[float] | np.ndarray, config: Settings, stages: Collection[str]) -> None:
    """Raises BadInputError for a box, (3,) edges or (3, 3) vectors, angstrom, that is too small or too large for water
    and ions (stage `solvate`) or for the cutoff (`run`), whatever is put into it."""
    vectors = np.rint(np.array(box) * 1000)
    if "solvate" in stages:
        check_filling(vectors)
        if config.solvate.ion_placement == "debye-hueckel":
            check_potential(vectors)
    problem = box_below_cutoff(box, config.dynamics) if "run" in stages else None
    if problem:
        raise BadInputError(problem)


def box_below_cutoff(box: Sequence[float] | np.ndarray, dynamics: DynamicsSection) -> str | None:
    """Why a periodic box, (3,) edges or (3, 3) vectors, angstrom, is too small for the cutoff; None where it is not.

    An atom may meet only one image of another, so that images are no nearer than twice the reach of the pair list
    (engine openmm: nor an edge of the diagonal shorter than twice the cutoff).
    """
    is_ours = dynamics.engine == "chromamd"
    cutoff = dynamics.cutoffs.cutoff
    least = 2 * (cutoff + dynamics.pairlist_buffer * is_ours)
    leans = tilt_of(np.array(box)).any()
    shortest = shortest_translation(np.array(box)) if is_ours else float(np.diag(vectors_of(box)).min())
    if shortest >= least:
        return None
    reach = f"dynamics.cutoff = {cutoff:g} A"
    reach += f" with dynamics.pairlist_buffer = {dynamics.pairlist_buffer:g} A" if is_ours else ""
    if leans:
        return (f"{reach} needs " + ("images" if is_ours else "layers of images") + f" {least:g} A apart, and those of "
                f"the box are {shortest:.4g} A: choose a shorter cutoff, or a larger solvate.padding")
    return (f"{reach} needs box edges of {least:g} A, and the shortest is {shortest:g} A: choose a shorter cutoff, or "
            "a larger solvate.padding or box")


def _problem_of_box(build: Estimate, config: Settings, stages: Collection[str]) -> BadInputError | None:
    """What the box is too small or too large for: the solute too, and segment names of its water."""
    try:
        check_box(build.vectors, config, stages)
        if "solvate" in stages:
            if config.solvate.edges is not None:
                check_room(np.array(build.least_extent), config.solvate)
            check_numbering(build.counts)
            check_room_for_ions(math.prod(build.box), build.solute_atoms, build.counts)
    except BadInputError as error:
        return error
    return None


def _memory(build: Estimate, config: Settings, stage: str, threads: int, parts: Parts | None, nodes: Nodes
            ) -> str | None:
    """Too little memory for a stage."""
    is_spread = stage == "run" and config.dynamics.engine == "chromamd"
    if stage != "run":
        nodes = replace(Nodes.here(), number=1)
    elif not is_spread:
        nodes = replace(nodes, number=1)
    needed, one, here = build.memory[stage], nodes.memory / 1e9, nodes.number * nodes.memory / 1e9
    if needed <= here:
        return None
    atoms, kind = _size(build, stage)
    remedy = _remedy(build, config, stage, here, threads, parts)
    cores = nodes.number * nodes.cores
    if stage in ("refine", "relax"):
        remedy += f", set {stage}.enabled: false"
    elif stage == "run" and not is_spread:
        remedy += ", set dynamics.engine: chromamd"
    elif is_spread and config.dynamics.ranks > cores:
        remedy = (f"lower dynamics.ranks = {config.dynamics.ranks:,} to the {cores} cores that are "
                  f"{'there' if nodes.machine else 'here'}")
        if not nodes.machine:
            remedy += ", name the machine that it is for (`chromabuild validate --machine NAME --nodes N`)"
    elif is_spread:
        remedy += (f", use {math.ceil(needed / one)} nodes of this size (`chromabuild plan --machine NAME --nodes N` "
                   "tells what they cost)")
    stop = f", or stop before it with --until {_UNTIL[stage]}" if _UNTIL[stage] else ""
    return (f"{_WORK[stage]} of {atoms:.3g} {kind} needs about {needed:.3g} GB of memory and {nodes} "
            f"{here:.3g} GB: {remedy}{stop}")


def _memory_taken(build: Estimate, stage: str) -> str | None:
    """Enough memory for a stage, but other programs have it."""
    needed, free = build.memory.get(stage, 0.0), memory_free() / 1e9
    if nodes_here() > 1 or needed <= free:
        return None
    return (f"{_WORK[stage]} needs about {needed:.3g} GB of memory, and of the {memory_here() / 1e9:.3g} GB of this "
            f"machine {free:.3g} GB are free: end other programs, or wait until they have ended")


def _size(build: Estimate, stage: str) -> tuple[int, str]:
    """What the memory of a stage grows with."""
    if stage in ("solvate", "run"):
        return build.atoms, "atoms"
    return build.solute_atoms, "atoms" if stage == "build" else "atoms of solute"


def first_look(atoms: int, config: Settings, threads: int, speed: Speed = REFERENCE) -> float | None:
    """Seconds that the dynamics takes with the protocol that only shows that the system runs; None where what is set
    takes no longer than that, or less than LONG_RUN."""
    seconds = dynamics_seconds(config, atoms, threads, speed)
    changed = config.model_copy(update={"simulate": SimulateSection(protocol=FIRST_LOOK)})
    look = dynamics_seconds(changed, atoms, threads, speed)
    return look if seconds >= LONG_RUN and look < seconds else None


def _time(build: Estimate, config: Settings, threads: int) -> str | None:
    """Dynamics of chromamd that would not end. How fast OpenMM is on a GPU is not known.

    On the reference: a measured speed is never the same twice, and `all` shall say what `plan` says.
    """
    nodes = nodes_here()
    seconds = dynamics_seconds(config, build.atoms, threads) / nodes
    if config.dynamics.engine != "chromamd" or seconds <= LONGEST_RUN:
        return None
    machines = "the reference machine of estimates" if nodes == 1 else f"{nodes} nodes"
    look = first_look(build.atoms, config, threads)
    shorter = (f"set simulate.protocol: {FIRST_LOOK} (about {span(look / nodes)}), which shows that it runs, "
               if look is not None and look / nodes <= LONGEST_RUN else "")
    return (f"{_WORK['run']} of {build.atoms:.3g} atoms takes about {span(seconds)} on {machines}: {shorter}use more "
            "nodes (`chromabuild plan --machine NAME --nodes N` tells how long they take), simulate fewer steps, "
            f"choose a smaller locus, or stop before it with --until {_UNTIL['run']}")


def _gpu_memory(build: Estimate, config: Settings) -> str | None:
    """Too little memory on the GPU of the dynamics; None where no driver tells how much there is."""
    from chromabuild.simulate.openmm_platform import ON_GPUS, chosen_platform

    dynamics = config.dynamics
    here = gpu_memory_here(dynamics.devices)
    if here is None:
        return None
    try:
        is_on_gpu = chosen_platform(dynamics).name in ON_GPUS
    except BadInputError:  # the run says which platforms there are
        return None
    needed = gpu_bytes(build.atoms, dynamics.platform_precision)
    if not is_on_gpu or needed <= here:
        return None
    return (f"the dynamics of {build.atoms:.3g} atoms needs about {needed / 1e9:.3g} GB of memory on a GPU, which has "
            f"{here / 1e9:.3g} GB: set dynamics.engine: chromamd, or choose a smaller locus (about "
            f"{build.atoms * here / needed:.2g} atoms fit)")


def _remedy(build: Estimate, config: Settings, stage: str, here: float, threads: int, parts: Parts | None) -> str:
    """What takes the memory (GB) of a stage below what is here: what has made it large."""
    needed = build.memory[stage]
    least = stage_memory(config, 0, 0, 0, 0, 1, config.dynamics.ranks)[stage] / 1e9
    if stage == "report":
        fewer = next((count for count in range(min(threads, PICTURES + 1) - 1, 0, -1)
                      if report_memory(build.solute_atoms, build.counts["water"], count) <= 1e9 * here), None)
        if fewer:
            return f"use --threads {fewer}"
    if here <= least:
        return f"give it more (of which the program itself takes {least:.2g} GB)"
    share = (here - least) / (needed - least)
    if stage == "solvate":
        fewer = thread_count_that_fits(build, config, here)
        if fewer and fewer < threads:
            return f"use --threads {fewer}"
        if config.solvate.brick_edge > COMMON_BRICK:
            return f"lower solvate.brick_edge = {config.solvate.brick_edge:g} A ({COMMON_BRICK:g} is common)"
    atoms, kind = _size(build, stage)
    if stage in ("solvate", "run"):
        saving = saving_that_fits(config, stage, here, threads, parts or Parts.of(config))
        if saving:
            return f"set {saving.keys} (about {saving.build.atoms:.2g} atoms, {saving.build.memory[stage]:.2g} GB)"
        if config.solvate.edges is not None and math.prod(build.box) > LOOSE * SOLUTE_VOLUME * build.solute_atoms:
            return f"make solvate.box smaller (about {share * build.atoms:.2g} atoms fit)"
    return f"choose a smaller locus (about {share * atoms:.2g} {kind} fit)"


def thread_count_that_fits(build: Estimate, config: Settings, here: float) -> int | None:
    """With how many threads the shards can be written in so much memory (GB); None where not even with one."""
    each = shard_process_memory(config, build.atoms / build.shards)
    spare = 1e9 * here - each - SHARD_BYTES_PER_ATOM * build.atoms
    return max(1, int(spare / each)) if spare > 0 else None


def _disk(build: Estimate, config: Settings, stage: str) -> str | None:
    """Too little disk for a stage. Its files of an earlier run count as free: they are replaced."""
    folder = Path(config.output)
    mine = {"build": ("solute",), "relax": ("relax",), "solvate": ("shards",),
            "run": ("trajectory", "restarts")}.get(stage, ())
    place = {"relax": folder / "relax", "solvate": folder / "shards", "run": folder / "md"}.get(stage)
    needed = sum(build.disk[name] for name in mine)
    there = next(path for path in (folder, *folder.resolve().parents) if path.is_dir())
    free = shutil.disk_usage(there).free / 1e9
    if place is not None and free < needed and place.is_dir():
        free += sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e9
    if needed <= free:
        return None
    remedy = "free space or choose another output folder"
    if build.disk["trajectory"] > 0.5 * needed and stage == "run":
        remedy += ", or write fewer frames (trajectory_period of the phases) or atoms (dynamics.trajectory_selection)"
    return f"{_WORK[stage]} needs about {needed:.3g} GB of disk and {folder} has {free:.3g} GB free: {remedy}"
