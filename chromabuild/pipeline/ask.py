"""Whether a stage that is run by itself may need more memory than there is; with few imports, which would take some."""

import math
from pathlib import Path

from chromabuild.base.files import check_folder, file_names
from chromabuild.base.machine import memory_here
from chromabuild.base.settings import Settings
from chromabuild.pipeline.needs import preparation_memory

OWN_NEED = ("scaffold", "build", "clash", "solvate", "topology")
"""The others ask by themselves, or need little."""
ATOMS_PER_BP, ATOMS_PER_VOLUME, PACKED_AT_MOST = 150, 0.11, 6
"""More than any solute has, more than a cubic angstrom of water has, and how often a gzip file unfolds at most."""


def refuse_alone(config: Settings, stage: str, threads: int) -> None:
    """Raise ResourceError when a stage that is run by itself needs more memory or disk than there is, or when the
    output folder cannot be written.

    The locus is read for it only where the size of its files leaves a doubt: DNA has 64 atoms a base pair, histones as
    many again and less than half of that, and no box is longer than straight DNA and the padding.
    """
    check_folder(config.output)
    if stage not in OWN_NEED:
        return
    try:
        size = sum(Path(name).stat().st_size for name in file_names(config.locus.fasta))
    except OSError:
        return
    base_pairs = size * (PACKED_AT_MOST if config.locus.fasta.endswith(("gz", "bgz")) else 1)
    edge = 3.4 * base_pairs + 2 * config.solvate.padding
    volume = math.prod(config.solvate.box) if config.solvate.box else edge**3
    atoms = ATOMS_PER_VOLUME * volume if stage == "solvate" else 0
    most = preparation_memory(base_pairs // 147, ATOMS_PER_BP * base_pairs, int(atoms), threads + 1)
    if most[stage] > memory_here():
        from chromabuild.pipeline.limits import refuse
        from chromabuild.pipeline.validation import check_box

        if stage == "solvate" and config.solvate.box:
            check_box(config)
        refuse(config, (stage,), threads)
