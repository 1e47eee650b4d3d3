"""A built system as exports take it."""

from dataclasses import dataclass, replace

import numpy as np

from chromabuild.base.errors import IntegrityError
from chromabuild.forcefield.molecule_runs import MoleculeRuns, Selection, part_of
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute


@dataclass(frozen=True)
class BuiltSystem:
    """Force field, places and names of the atoms, in global order."""

    topology: Topology
    position: np.ndarray
    """(n, 3) angstrom."""
    box: np.ndarray
    """(3,) edges, angstrom."""
    solute: Solute | None = None
    """Whose residues bear their numbers; None: copies of a molecule repeat those of their template."""

    def __post_init__(self) -> None:
        if len(self.position) != self.topology.n_atoms:
            raise IntegrityError(f"there are positions of {len(self.position)} atoms and a force field of "
                                 f"{self.topology.n_atoms}: run chromabuild topology again")

    def part(self, selection: Selection) -> "BuiltSystem":
        """The chosen molecules alone."""
        ranges = MoleculeRuns.of(self.topology).ranges(selection)
        position = np.concatenate([self.position[first - 1:last] for first, last in ranges])
        return replace(self, topology=part_of(self.topology, selection), position=position)
