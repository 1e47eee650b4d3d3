"""Which atoms of a system are solute, water and ions: what `dynamics.trajectory_selection` chooses, as a few ranges.

Global order is solute, water, ions, in runs of equal molecules; so a choice of molecules is a choice of runs, whatever
the size of the system.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.topology_file import Topology, opened, template_groups

Selection = Literal["auto", "all", "solute", "solute-and-ions"]
AUTO_ATOMS = 1_000_000
"""From here on ``auto`` leaves out the water: 12 MB a frame."""
DCD_ATOMS = 536_870_911
"""Records of a DCD have at most 2^31 - 1 bytes, four to an atom."""
_KEY = "dynamics.trajectory_selection"


@dataclass(frozen=True)
class MoleculeRuns:
    """Runs of equal molecules in global order; arrays (k,)."""

    atoms: np.ndarray
    """Atoms of each run."""
    is_water: np.ndarray
    is_ion: np.ndarray
    """Molecules of one atom."""

    @classmethod
    def of(cls, topology: Topology) -> "MoleculeRuns":
        """Those of a topology."""
        return cls._from(np.array([t.n_atoms for t in topology.templates]),
                         np.array([t.rigid_water for t in topology.templates]),
                         topology.run_template, topology.run_count)

    @classmethod
    def read(cls, path: str | Path) -> "MoleculeRuns":
        """Those of a topology file, without its terms. Raises BadInputError when it cannot be read."""
        with opened(path) as file:
            groups = template_groups(file)
            return cls._from(np.array([len(group["charge"]) for group in groups]),
                             np.array([bool(group.attrs["rigid_water"]) for group in groups]),
                             file["molecule/template"][...], file["molecule/count"][...])

    @classmethod
    def _from(cls, size: np.ndarray, is_water: np.ndarray, template: np.ndarray, count: np.ndarray) -> "MoleculeRuns":
        return cls(size[template].astype(np.int64) * count, is_water[template].astype(bool), size[template] == 1)

    @property
    def n_atoms(self) -> int:
        """Atoms of the system."""
        return int(self.atoms.sum())

    def chosen(self, selection: Selection) -> np.ndarray:
        """(k,) bool: the runs of a selection. Raises BadInputError when it chooses nothing."""
        if selection == "auto":
            is_small = self.n_atoms < AUTO_ATOMS
            selection = "all" if is_small or self.is_water.all() else "solute-and-ions"
        without = {"all": np.zeros(len(self.atoms), dtype=bool), "solute": self.is_water | self.is_ion,
                   "solute-and-ions": self.is_water}[selection]
        if without.all():
            raise BadInputError(f"{_KEY} = {selection} chooses no atom of this system: use all")
        return ~without

    def ranges(self, selection: Selection) -> list[tuple[int, int]]:
        """First and last atom, counted from 1, of each stretch of a selection, as few as there can be."""
        end = np.cumsum(self.atoms)
        found: list[tuple[int, int]] = []
        for k in np.flatnonzero(self.chosen(selection)):
            first, last = int(end[k] - self.atoms[k]) + 1, int(end[k])
            if found and found[-1][1] + 1 == first:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
        return found


def part_of(topology: Topology, selection: Selection) -> Topology:
    """The topology of the chosen molecules alone, in the same order."""
    runs = MoleculeRuns.of(topology).chosen(selection)
    names = {name: None if getattr(topology, name) is None else getattr(topology, name)[runs]
             for name in ("run_residue", "run_segid")}
    return replace(topology, run_template=topology.run_template[runs], run_count=topology.run_count[runs], **names)


def beyond_dcd(n_atoms: int, selection: Selection) -> str | None:
    """What stands against a DCD trajectory of so many atoms, None when nothing does."""
    if n_atoms <= DCD_ATOMS:
        return None
    return (f"{_KEY} = {selection} is {n_atoms:,} atoms and a DCD file holds at most {DCD_ATOMS:,}: "
            "choose solute-and-ions, or solute")


def trajectory_ranges(topology: str | Path, selection: Selection) -> list[tuple[int, int]]:
    """First and last atom, counted from 1, of each stretch of the trajectory of a topology file.

    Raises BadInputError when the selection chooses nothing or more than a DCD file holds.
    """
    ranges = MoleculeRuns.read(topology).ranges(selection)
    problem = beyond_dcd(sum(last - first + 1 for first, last in ranges), selection)
    if problem:
        raise BadInputError(problem)
    return ranges
