"""The force fields that can be assigned: their files in the OpenMM package, and how each is meant to be cut off."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from chromabuild.base.errors import BadInputError

ForceFieldName = Literal["amber14", "amber-bsc1", "amber19", "charmm36m", "charmm36m-analogy", "amber14-analogy",
                         "amber-bsc1-analogy", "amber19-analogy"]
WaterName = Literal["tip3p", "spce", "opc", "tip4pew"]
SwitchForm = Literal["energy", "force"]


class Cutoffs(NamedTuple):
    """How non-bonded interactions end, angstrom."""

    cutoff: float
    switch_distance: float | None
    """From here on Lennard-Jones is switched off; None: plain truncation."""
    force_switch: bool
    """Whether its force is switched instead of its energy."""
    tail: bool
    """Whether energy and pressure of Lennard-Jones beyond the cutoff count, as of a uniform density."""


@dataclass(frozen=True)
class ForceField:
    """Files of OpenMM, and defaults of the section `dynamics`."""

    about: str
    solute: tuple[str, ...]
    """Files with proteins and nucleic acids."""
    water: dict[WaterName, str]
    """By water model the file with it and with the ions that were made for it."""
    cutoff: float = 9.0
    """Angstrom."""
    switch_width: float | None = None
    """Angstrom before the cutoff over which Lennard-Jones is switched off; None: plain truncation."""
    switch: SwitchForm = "energy"
    tail: bool = True
    """Whether it was made with the energy and pressure of Lennard-Jones beyond the cutoff."""
    is_charmm: bool = False
    """Whether residues are named as CHARMM names them and made by patches (templates/charmm_residues.json)."""
    by_analogy: bool = False
    """Whether residues without published parameters have those of like groups (``templates/*_analogies.json``)."""

    def cutoffs(self, cutoff: float | None, switch_distance: float | None, switch: SwitchForm | None,
                tail: bool | None) -> Cutoffs:
        """What the settings mean; None: as the force field was made. A force that is switched off has no tail."""
        end = self.cutoff if cutoff is None else cutoff
        if switch_distance is None and self.switch_width is not None:
            switch_distance = max(0.5 * end, end - self.switch_width)
        is_switched = switch_distance is not None and switch_distance < end
        force_switch = is_switched and (switch or self.switch) == "force"
        return Cutoffs(end, switch_distance, force_switch, self.tail and not force_switch if tail is None else tail)


def _amber_water(folder: str) -> dict[WaterName, str]:
    return {"tip3p": f"{folder}/tip3p.xml", "spce": f"{folder}/spce.xml", "opc": f"{folder}/opc.xml",
            "tip4pew": f"{folder}/tip4pew.xml"}


FORCE_FIELDS: dict[ForceFieldName, ForceField] = {
    "amber14": ForceField("ff14SB + OL15", ("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml"),
                          _amber_water("amber14")),
    "amber-bsc1": ForceField("ff14SB + bsc1", ("amber14/protein.ff14SB.xml", "amber14/DNA.bsc1.xml"),
                             _amber_water("amber14")),
    "amber19": ForceField("ff19SB + OL21", ("amber19/protein.ff19SB.xml", "amber19/DNA.OL21.xml"),
                          _amber_water("amber19")),
    "charmm36m": ForceField("CHARMM36m + CHARMM36 + CHARMM TIP3P", ("charmm36_2024.xml",),
                            {"tip3p": "charmm36_2024/water.xml"}, cutoff=12.0, switch_width=2.0, switch="force",
                            tail=False, is_charmm=True),
}
FORCE_FIELDS["charmm36m-analogy"] = replace(
    FORCE_FIELDS["charmm36m"],
    about="CHARMM36m, and parameters by analogy for methylated and crotonylated residues and polyamines",
    by_analogy=True)
for _name in ("amber14", "amber-bsc1", "amber19"):
    FORCE_FIELDS[f"{_name}-analogy"] = replace(
        FORCE_FIELDS[_name], about=f"{FORCE_FIELDS[_name].about}, and parameters by analogy for ubiquitinated lysine, "
        "polyamines and bonds of zinc",
        by_analogy=True)


def force_field_files(name: str, water: WaterName = "tip3p") -> tuple[str, ...]:
    """Files of a force field in the OpenMM package, water and ions last.

    Raises BadInputError for an unknown force field, and for a water model that it has no ions for.
    """
    if name not in FORCE_FIELDS:
        raise BadInputError(f"force field {name} is not known: use {' or '.join(FORCE_FIELDS)}")
    waters = FORCE_FIELDS[name].water
    if water not in waters:
        raise BadInputError(f"dynamics.force_field = {name} has no ions for solvate.water = {water}: "
                            f"use {' or '.join(waters)}")
    return (*FORCE_FIELDS[name].solute, waters[water])
