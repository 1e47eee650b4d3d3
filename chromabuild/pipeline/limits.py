"""What this machine cannot do, in one sentence: `plan` says it before the work, `all` and `run` refuse with it.

A stage is measured against the memory and the disk that are here and against the formats that it writes.
"""

import math
import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from chromabuild.base.errors import BadInputError, ResourceError
from chromabuild.base.gpus import gpu_memory_here
from chromabuild.base.machine import memory_here, nodes_here
from chromabuild.base.settings import DynamicsSection, Settings
from chromabuild.base.threads import thread_count
from chromabuild.forcefield.molecule_runs import beyond_dcd
from chromabuild.pipeline.extent import size_is_known
from chromabuild.pipeline.needs import SHARD_BYTES_PER_ATOM, SHARD_PROCESS_BYTES, gpu_bytes, stage_memory
from chromabuild.pipeline.plan import SOLUTE_VOLUME, Estimate, Parts, estimate
from chromabuild.solvate.bricks import check_numbering

_WORK = {"scaffold": "folding the fibre", "build": "building the solute", "clash": "correcting clashes",
         "relax": "the relaxation without water", "solvate": "writing the shards", "topology": "the force field",
         "run": "the dynamics"}
_UNTIL = {"scaffold": "", "build": "scaffold", "clash": "build", "relax": "clash", "solvate": "clash",
          "topology": "solvate", "run": "topology"}
"""The stage before: how far the chain goes without."""
STAGES_WITH_LIMITS = tuple(_WORK)
_OF_SOLUTE = ("scaffold", "build", "clash", "relax", "topology")
"""Stages whose memory does not depend on the box."""
COMMON_PADDING = 10.0
"""Angstrom."""
LOOSE = 20
"""A box so many times as large as what its solute displaces is loose; by default it is some ten times as large."""


def obstacles(build: Estimate, config: Settings, stages: Collection[str]) -> list[str]:
    """Why some of the stages cannot be done here, and what helps, a sentence each; what weighs most first."""
    wanted = [name for name in _WORK if name in stages and name in build.memory]
    found = [box_below_cutoff(build.box, config.dynamics)] if "run" in wanted else []
    found += [_memory(build, config, stage) for stage in wanted]
    found += [_gpu_memory(build, config)] if "run" in wanted and config.dynamics.engine == "openmm" else []
    if "solvate" in wanted:
        found.append(_beyond_names(build))
    if "run" in wanted:
        found.append(beyond_dcd(build.trajectory_atoms, config.dynamics.trajectory_selection))
    found += [_disk(build, config, stage) for stage in wanted]
    return [sentence for sentence in found if sentence]


def refuse(config: Settings, stages: Collection[str], threads: int, parts: Parts | None = None) -> bool:
    """Raise ResourceError with the first sentence of ``obstacles`` when some stages cannot be done here.

    Gives whether the size of the box was known; while it is a guess only what depends on the solute alone is refused,
    and dynamics whose ranks are too many even without water. ``parts``: those of the settings, where they are known.
    """
    try:
        build = estimate(config, threads, parts=parts)
    except BadInputError:  # the stage that reads the input says what is wrong with it
        return False
    is_known = size_is_known(config, "scaffold" in stages, build.nucleosomes)
    considered = [name for name in stages if is_known or name in _OF_SOLUTE]
    for sentence in obstacles(build, config, considered):
        raise ResourceError(sentence)
    too_many = None if is_known or "run" not in stages else _memory(_without_water(build, config), config, "run")
    if too_many:
        raise ResourceError(too_many)
    return is_known


def _without_water(build: Estimate, config: Settings) -> Estimate:
    """The least that the dynamics may need, whatever the box."""
    solute = build.solute_atoms
    ranks = 1 if config.dynamics.tune else config.dynamics.ranks
    memory = stage_memory(config, build.nucleosomes, solute, solute, 1, 1, ranks)
    return replace(build, atoms=solute, memory={name: need / 1e9 for name, need in memory.items()})


def box_below_cutoff(box: Sequence[float], dynamics: DynamicsSection) -> str | None:
    """Why a periodic box with these edges, angstrom, is too small for the cutoff; None where it is not.

    An atom may meet only one image of another, so that no edge is shorter than twice the reach of the pair list
    (engine openmm: of the cutoff).
    """
    is_ours = dynamics.engine == "chromamd"
    cutoff = dynamics.cutoffs.cutoff
    least = 2 * (cutoff + dynamics.pairlist_buffer * is_ours)
    if min(box) >= least:
        return None
    reach = f"dynamics.cutoff = {cutoff:g} A"
    reach += f" with dynamics.pairlist_buffer = {dynamics.pairlist_buffer:g} A" if is_ours else ""
    return (f"{reach} needs box edges of {least:g} A, and the shortest is {min(box):g} A: choose a shorter cutoff, or "
            "a larger solvate.padding or box")


def _beyond_names(build: Estimate) -> str | None:
    """More waters than segment names can number."""
    try:
        check_numbering(build.counts)
    except BadInputError as error:
        return str(error)
    return None


def _memory(build: Estimate, config: Settings, stage: str) -> str | None:
    """Too little memory for a stage."""
    is_spread = stage == "run" and config.dynamics.engine == "chromamd"
    nodes = nodes_here() if is_spread else 1
    here = memory_here() / 1e9
    needed = build.memory[stage]
    if needed <= here * nodes:
        return None
    atoms, kind = (build.atoms, "atoms") if stage in ("solvate", "run") else (build.solute_atoms, "atoms of solute")
    remedy = _remedy(build, config, stage, here * nodes)
    if stage == "relax":
        remedy += ", set relax.enabled: false"
    elif stage == "run" and not is_spread:
        remedy += ", set dynamics.engine: chromamd"
    elif is_spread and config.dynamics.ranks > nodes * thread_count():
        remedy = f"lower dynamics.ranks = {config.dynamics.ranks:,} to the {nodes * thread_count()} cores that are here"
    elif is_spread:
        remedy += (f", use {math.ceil(needed / here)} nodes of this size (`chromabuild plan --machine NAME --nodes N` "
                   "tells what they cost)")
    machines = "this machine has" if nodes == 1 else f"{nodes} nodes have"
    stop = f", or stop before it with --until {_UNTIL[stage]}" if _UNTIL[stage] else ""
    return (f"{_WORK[stage]} of {atoms:.3g} {kind} needs about {needed:.3g} GB of memory and {machines} "
            f"{here * nodes:.3g} GB: {remedy}{stop}")


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


def _remedy(build: Estimate, config: Settings, stage: str, here: float) -> str:
    """What takes the memory (GB) of a stage below what is here: what has made it large."""
    needed = build.memory[stage]
    if stage in ("solvate", "run"):
        solvate = config.solvate
        volume = math.prod(build.box)
        tight = math.prod(max(edge - 2 * (solvate.padding - COMMON_PADDING), 1.0) for edge in build.box)
        if solvate.box is None and solvate.padding > COMMON_PADDING and needed * tight / volume <= here:
            return f"lower solvate.padding = {solvate.padding:g} A (10 is common)"
        if solvate.box is None and config.scaffold.packing == "free" and build.nucleosomes > 1:
            return "set scaffold.packing: compact, or choose a smaller locus"
        if solvate.box is not None and volume > LOOSE * SOLUTE_VOLUME * build.solute_atoms:
            return f"make solvate.box smaller (about {here / needed * build.atoms:.2g} atoms fit) or leave it empty"
    if stage == "solvate":
        fewer = thread_count_that_fits(build, here)
        if fewer:
            return f"use --threads {fewer}"
    atoms, kind = (build.atoms, "atoms") if stage in ("solvate", "run") else (build.solute_atoms, "atoms of solute")
    return f"choose a smaller locus (about {atoms * here / needed:.2g} {kind} fit)"


def thread_count_that_fits(build: Estimate, here: float) -> int | None:
    """With how many threads the shards can be written in so much memory (GB); None where not even with one."""
    spare = 1e9 * here - SHARD_PROCESS_BYTES - SHARD_BYTES_PER_ATOM * build.atoms
    return max(1, int(spare / SHARD_PROCESS_BYTES)) if spare > 0 else None


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
