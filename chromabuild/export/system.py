"""A built system as exports take it."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from chromabuild.base.errors import IntegrityError
from chromabuild.forcefield.molecule_runs import MoleculeRuns, Selection, part_of
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
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
    velocity: np.ndarray | None = None
    """(n, 3) angstrom/ps; None: they are to be drawn."""

    def __post_init__(self) -> None:
        if len(self.position) != self.topology.n_atoms:
            raise IntegrityError(f"there are positions of {len(self.position)} atoms and a force field of "
                                 f"{self.topology.n_atoms}: run chromabuild topology again")

    def part(self, selection: Selection) -> "BuiltSystem":
        """The chosen molecules alone."""
        ranges = MoleculeRuns.of(self.topology).ranges(selection)

        def chosen(values: np.ndarray) -> np.ndarray:
            return np.concatenate([values[first - 1:last] for first, last in ranges])

        return replace(self, topology=part_of(self.topology, selection), position=chosen(self.position),
                       velocity=None if self.velocity is None else chosen(self.velocity))

    def whole(self) -> "BuiltSystem":
        """The same with molecules in one piece, each around the image of its first atom that is given: programs may not
        look for images along bonds."""
        position, topology = self.position.copy(), self.topology
        predecessors = [_predecessors(template) for template in topology.templates]
        for t, count, first in zip(topology.run_template.tolist(), topology.run_count.tolist(),
                                   topology.run_first_atom.tolist(), strict=False):
            before, n = predecessors[t], topology.templates[t].n_atoms
            molecules = position[first:first + count * n].reshape(count, n, 3)
            edges = np.round((molecules - molecules[:, before]) / self.box)
            # Each atom adds what its predecessors have, twice as many of them every time.
            while (before != before[before]).any():
                edges += edges[:, before]
                before = before[before]
            molecules -= edges * self.box
        return replace(self, position=position)


def _predecessors(template: MoleculeTemplate) -> np.ndarray:
    """(atoms,) the atom before each one on a path of bonds from the first atom; itself where there is none."""
    n = template.n_atoms
    i, j = template.bond_atoms.T
    bonds = coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
    _, before = breadth_first_order(bonds, 0, directed=False)
    return np.where(before < 0, np.arange(n), before)
