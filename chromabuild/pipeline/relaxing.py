"""Whether a build relaxes its solute before water is added, and which file then holds the solute."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings

CLEAN, RELAXED = "solute_clean.h5", "solute_relaxed.h5"
LARGE_SOLUTE = 10_000_000
"""Atoms from which on ``relax.mode: auto`` relaxes."""
ATOMS_PER_BASE_PAIR, ATOMS_PER_OCTAMER = 63.5, 15_660
"""Within a per cent; the same choice must follow from the locus alone, before anything is built."""


def relaxes(config: "Settings") -> bool:
    """Whether the chain of these settings has the stage ``relax``."""
    return config.relax.mode == "on" or config.relax.mode == "auto" and solute_size(config) >= LARGE_SOLUTE


def solute_file(config: "Settings") -> dict[str, str]:
    """The file of the solute that is put into water, by its role."""
    return {"solute": RELAXED if relaxes(config) else CLEAN}


def solute_size(config: "Settings") -> int:
    """About how many atoms the solute has, from the locus; where that cannot be read from a solute that is there."""
    from chromabuild.molecule.solute import Solute

    section = config.locus
    stamps = tuple(Path(file).stat().st_mtime_ns if Path(file).is_file() else 0
                   for file in (section.fasta, section.nucleosomes))
    size = _size_of_locus(section.model_copy(update={"contacts": None}).model_dump_json(), stamps)
    if size:
        return size
    for name in (CLEAN, "solute.h5"):
        try:
            return Solute.open(Path(config.output) / name).n_atoms
        except BadInputError:
            continue
    return 0


@lru_cache
def _size_of_locus(section: str, stamps: tuple[int, ...]) -> int:
    """Atoms of a locus by its settings as JSON, 0 where it cannot be read; ``stamps``: when its files were changed."""
    from chromabuild.base.settings import LocusSection
    from chromabuild.genome.locus import load_locus

    try:
        locus = load_locus(LocusSection.model_validate_json(section))
    except BadInputError:  # the stage that reads the locus says what is wrong with it
        return 0
    return round(ATOMS_PER_BASE_PAIR * len(locus.sequence) + ATOMS_PER_OCTAMER * len(locus.nucleosomes))
