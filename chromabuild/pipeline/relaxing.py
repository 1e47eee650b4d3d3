"""Which file holds the solute whose clashes are corrected, and which the one that is put into water."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings

BUILT, REFINED, CLEAN, RELAXED = "solute.h5", "solute_refined.h5", "solute_clean.h5", "solute_relaxed.h5"
_BOUND_IONS = ("solvate.magnesium_hexahydrates", "solvate.spermine", "solvate.spermidine", "solvate.water")


def clashing_file(config: "Settings") -> dict[str, str]:
    """Name of the solute with clashes, by its role."""
    return {"solute": REFINED if config.refine.enabled else BUILT}


def solute_file(config: "Settings") -> dict[str, str]:
    """Name of the solute for water, by its role."""
    return {"solute": RELAXED if config.relax.enabled else CLEAN}


def bound_ion_settings(config: "Settings", relaxed: bool) -> tuple[str, ...]:
    """Settings of the ions at phosphates, of the stage that places them: the last before water, ``relaxed`` or not."""
    solvate = config.solvate
    asked = solvate.magnesium_hexahydrates or solvate.spermine or solvate.spermidine
    return _BOUND_IONS if asked and config.relax.enabled == relaxed else ()
