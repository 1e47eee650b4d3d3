"""Which file holds the solute that is put into water."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings

CLEAN, RELAXED = "solute_clean.h5", "solute_relaxed.h5"
_BOUND_IONS = ("solvate.magnesium_hexahydrates", "solvate.spermine", "solvate.spermidine", "solvate.water")


def solute_file(config: "Settings") -> dict[str, str]:
    """Its name, by its role."""
    return {"solute": RELAXED if config.relax.enabled else CLEAN}


def bound_ion_settings(config: "Settings", relaxed: bool) -> tuple[str, ...]:
    """Settings of the ions at phosphates, of the stage that places them: the last before water, ``relaxed`` or not."""
    solvate = config.solvate
    asked = solvate.magnesium_hexahydrates or solvate.spermine or solvate.spermidine
    return _BOUND_IONS if asked and config.relax.enabled == relaxed else ()
