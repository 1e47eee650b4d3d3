"""The force fields that can be assigned: their files in the OpenMM package, and how each is meant to be cut off."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

ForceFieldName = Literal["amber14", "amber-bsc1", "amber19", "charmm36m"]
SwitchForm = Literal["energy", "force"]


class Cutoffs(NamedTuple):
    """How non-bonded interactions end, angstrom."""

    cutoff: float
    switch_distance: float | None
    """From here on Lennard-Jones is switched off; None: plain truncation."""
    force_switch: bool
    """Whether its force is switched instead of its energy."""


@dataclass(frozen=True)
class ForceField:
    """Files of OpenMM, and defaults of the section `dynamics`."""

    about: str
    solute: tuple[str, ...]
    """Files with proteins and nucleic acids."""
    water: dict[str, str]
    """By water model the file with it and with the ions that were made for it."""
    cutoff: float = 9.0
    """Angstrom."""
    switch_width: float | None = None
    """Angstrom before the cutoff over which Lennard-Jones is switched off; None: plain truncation."""
    switch: SwitchForm = "energy"
    is_charmm: bool = False
    """Whether residues are named as CHARMM names them and made by patches (templates/charmm_residues.json)."""

    def cutoffs(self, cutoff: float | None, switch_distance: float | None, switch: SwitchForm | None) -> Cutoffs:
        """What the settings mean; None: as the force field was made."""
        end = self.cutoff if cutoff is None else cutoff
        if switch_distance is None and self.switch_width is not None:
            switch_distance = max(0.5 * end, end - self.switch_width)
        is_switched = switch_distance is not None and switch_distance < end
        return Cutoffs(end, switch_distance, is_switched and (switch or self.switch) == "force")


FORCE_FIELDS: dict[ForceFieldName, ForceField] = {
    "amber14": ForceField("ff14SB + OL15", ("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml"),
                          {"tip3p": "amber14/tip3p.xml"}),
    "amber-bsc1": ForceField("ff14SB + bsc1", ("amber14/protein.ff14SB.xml", "amber14/DNA.bsc1.xml"),
                             {"tip3p": "amber14/tip3p.xml"}),
    "amber19": ForceField("ff19SB + OL21", ("amber19/protein.ff19SB.xml", "amber19/DNA.OL21.xml"),
                          {"tip3p": "amber19/tip3p.xml"}),
    "charmm36m": ForceField("CHARMM36m + CHARMM36 + CHARMM TIP3P", ("charmm36_2024.xml",),
                            {"tip3p": "charmm36_2024/water.xml"}, cutoff=12.0, switch_width=2.0, switch="force",
                            is_charmm=True),
}


def force_field_files(name: ForceFieldName, water: str = "tip3p") -> tuple[str, ...]:
    """Files of a force field in the OpenMM package, water and ions last."""
    return (*FORCE_FIELDS[name].solute, FORCE_FIELDS[name].water[water])
