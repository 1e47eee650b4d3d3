"""The file of OpenMM that holds a water model, and the ions with the parameters made for it, for each force field."""

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import WaterName

WATER_FILES: dict[str, dict[WaterName, str]] = {"amber14": {
    "tip3p": "amber14/tip3p.xml", "spce": "amber14/spce.xml", "opc": "amber14/opc.xml",
    "tip4pew": "amber14/tip4pew.xml"}}
"""By force field and water model."""


def water_file(force_field: str, water: WaterName) -> str:
    """The file of a water in a force field. Raises BadInputError where they do not go together."""
    files = WATER_FILES[force_field]
    if water not in files:
        raise BadInputError(f"dynamics.force_field = {force_field} has no ions for solvate.water = {water}: "
                            f"use {' or '.join(files)}")
    return files[water]
