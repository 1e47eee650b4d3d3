"""Which file holds the solute that is put into water."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings

CLEAN, RELAXED = "solute_clean.h5", "solute_relaxed.h5"


def solute_file(config: "Settings") -> dict[str, str]:
    """Its name, by its role."""
    return {"solute": RELAXED if config.relax.enabled else CLEAN}
