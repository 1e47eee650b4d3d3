"""Whether a stage or a command that is run by itself may need more memory than there is; with few imports, which would
take some."""

import math
from pathlib import Path

from chromabuild.base.errors import ChromabuildError, ResourceError
from chromabuild.base.files import check_folder, file_names
from chromabuild.base.machine import memory_free, memory_here
from chromabuild.base.settings import Settings
from chromabuild.pipeline.needs import DRAWN_WATERS, preparation_memory, report_memory, shard_process_memory
from chromabuild.pipeline.relaxing import solute_file

OWN_NEED = ("scaffold", "build", "clash", "solvate", "topology", "report")
"""The others ask by themselves, or need little."""
ATOMS_PER_BP, ATOMS_PER_VOLUME, PACKED_AT_MOST = 150, 0.11, 6
"""More than any solute has, more than a cubic angstrom of water has, and how often a gzip file unfolds at most."""
LARGEST_SHAPE = 0.77
"""Of the cube of the distance of images, an octahedron."""
CHUNK = 1 << 18
"""Atoms that are read at a time."""


def refuse_alone(config: Settings, stage: str, threads: int) -> None:
    """Raise ResourceError when a stage that is run by itself needs more memory or disk than there is, or when the
    output folder cannot be written.

    The locus is read for it only where the size of its files leaves a doubt: DNA has 64 atoms a base pair, histones as
    many again and less than half of that, and no box is longer than straight DNA and the padding. Where a solute is
    there, its own extent tells: to estimate a build takes more memory than to write its shards.
    """
    check_folder(config.output)
    if stage not in OWN_NEED:
        return
    try:
        size = sum(Path(name).stat().st_size for name in file_names(config.locus.fasta))
    except OSError:
        return
    base_pairs = size * (PACKED_AT_MOST if config.locus.fasta.endswith(("gz", "bgz")) else 1)
    atoms = ATOMS_PER_VOLUME * _largest_volume(config, base_pairs) if stage == "solvate" else 0
    a_brick = min(atoms, ATOMS_PER_VOLUME * (1.5 * config.solvate.brick_edge) ** 3)  # edges are those that fit the box
    most = preparation_memory(base_pairs // 147, ATOMS_PER_BP * base_pairs, int(atoms), threads + 1,
                              shard_process_memory(config, a_brick))
    most["report"] = report_memory(ATOMS_PER_BP * base_pairs, DRAWN_WATERS, threads)
    if most[stage] > memory_free():
        from chromabuild.pipeline.limits import refuse

        refuse(config, (stage,), threads)


def refuse_without_memory(needed: float, what: str, remedy: str) -> None:
    """Raise ResourceError when ``what`` needs more memory (bytes) than this machine has or other programs leave."""
    here, free = memory_here(), memory_free()
    if needed > here:
        raise ResourceError(f"{what} needs about {needed / 1e9:.3g} GB of memory and this machine has "
                            f"{here / 1e9:.3g} GB: {remedy}")
    if needed > free:
        raise ResourceError(f"{what} needs about {needed / 1e9:.3g} GB of memory, and of the {here / 1e9:.3g} GB of "
                            f"this machine {free / 1e9:.3g} GB are free: end other programs, or {remedy}")


def _largest_volume(config: Settings, base_pairs: int) -> float:
    """Cubic angstrom of a box that is no smaller than that of the build."""
    if config.solvate.edges:
        return math.prod(config.solvate.edges)
    extent = _extent_of_solute(Path(config.output) / solute_file(config)["solute"])
    extent = extent or 3 * [3.4 * base_pairs]
    if config.solvate.shape != "rectangular":
        return LARGEST_SHAPE * (math.hypot(*extent) + 2 * config.solvate.padding) ** 3
    return math.prod(edge + 2 * config.solvate.padding for edge in extent)


def _extent_of_solute(path: Path) -> list[float] | None:
    """Edges of the upright box around the solute of a file, angstrom, which is read by and by; None where it cannot
    be: the stage says why."""
    from chromabuild.molecule.solute import Solute

    try:
        position = Solute.open(path).position
        ends = [(part.min(axis=0), part.max(axis=0)) for part in
                (position[start:start + CHUNK] for start in range(0, len(position), CHUNK))]
    except (ChromabuildError, OSError):
        return None
    return [float(max(high[k] for _, high in ends) - min(low[k] for low, _ in ends)) for k in range(3)]
