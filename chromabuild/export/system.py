"""A built system as exports take it."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from chromabuild.base.box_vectors import nearest_image, vectors_of
from chromabuild.base.errors import IntegrityError
from chromabuild.export.blocks import ATOMS_AT_ONCE, molecule_blocks
from chromabuild.export.region import residues_of
from chromabuild.export.selection import ChosenMolecules, molecules_chosen
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.solute import Solute
from chromabuild.shards import StoredVectors


@dataclass(frozen=True)
class BuiltSystem:
    """Force field, places and names of the atoms, in global order."""

    topology: Topology
    position: np.ndarray | StoredVectors
    """(n, 3) angstrom, in memory or on disk: exports take slices."""
    box: np.ndarray
    """(3,) edges, or (3, 3) vectors where they lean, angstrom."""
    solute: Solute | None = None
    """Whose residues bear their numbers; None: copies of a molecule repeat those of their template."""
    velocity: np.ndarray | StoredVectors | None = None
    """(n, 3) angstrom/ps; None: they are to be drawn."""

    def __post_init__(self) -> None:
        if len(self.position) != self.topology.n_atoms:
            raise IntegrityError(f"there are positions of {len(self.position)} atoms and a force field of "
                                 f"{self.topology.n_atoms}: run chromabuild topology again")

    def chosen(self, selection: str) -> ChosenMolecules:
        """The molecules of which a selection has an atom. Raises BadInputError as ``molecules_chosen`` does."""
        return molecules_chosen(selection, self.topology, self.solute, self.position, self.box)

    def part(self, selection: str) -> "BuiltSystem":
        """The molecules of which a selection has an atom, whole and alone. Raises BadInputError as
        ``molecules_chosen`` does."""
        return self.of_molecules(self.chosen(selection))

    def of_molecules(self, chosen: ChosenMolecules) -> "BuiltSystem":
        """These molecules alone, in the same order and the same box."""
        topology = self.topology
        count = np.array([len(rows) for rows in chosen.of_run], dtype=topology.run_count.dtype)
        there = count > 0
        kinds, of_run = np.unique(topology.run_template[there], return_inverse=True)
        # Residue numbers that a run has of its file follow each other, which those of a part do not.
        part = replace(topology, templates=[topology.templates[t] for t in kinds.tolist()],
                       run_template=of_run.astype(topology.run_template.dtype), run_count=count[there],
                       run_residue=None, run_segid=None)
        return replace(self, topology=part, position=self._rows(self.position, chosen), solute=self._solute_of(chosen),
                       velocity=None if self.velocity is None else self._rows(self.velocity, chosen))

    def _rows(self, values: np.ndarray | StoredVectors, chosen: ChosenMolecules) -> np.ndarray:
        """Those of the chosen molecules among values (n, 3)."""
        first, pieces = self.topology.run_first_atom.tolist(), []
        for rows, start, end, count in zip(chosen.of_run, first[:-1], first[1:], self.topology.run_count.tolist(),
                                           strict=True):
            size = (end - start) // count
            step = max(1, ATOMS_AT_ONCE // size)
            for before in range(0, count, step):
                behind = min(before + step, count)
                own = rows[np.searchsorted(rows, before):np.searchsorted(rows, behind)] - before
                if len(own):
                    block = values[start + before * size:start + behind * size]
                    pieces.append(block.reshape(behind - before, size, 3)[own].reshape(-1, 3))
        return np.concatenate(pieces)

    def _solute_of(self, chosen: ChosenMolecules) -> Solute | None:
        """The molecules of the solute that are chosen; None without any."""
        if self.solute is None:
            return None
        first, runs = self.solute.molecule_first_residue, chosen.of_run
        before = np.cumsum(self.topology.run_count) - self.topology.run_count
        number = np.concatenate([start + rows for start, rows in zip(before, runs, strict=True)
                                 if start < len(first) - 1])
        return residues_of(self.solute, [(k, np.arange(first[k], first[k + 1])) for k in number.tolist()]) \
            if len(number) else None

    def whole(self, folder: Path) -> "BuiltSystem":
        """The same with molecules in one piece, each around the image of its first atom that is given: programs may not
        look for images along bonds. Positions are on disk, as ``StoredVectors`` in ``folder``."""
        position, topology = StoredVectors(len(self.position), folder), self.topology
        vectors = vectors_of(self.box)
        inverse = np.linalg.inv(vectors)
        predecessors = [_predecessors(template) for template in topology.templates]
        for t, first, count in molecule_blocks(topology):
            before, n = predecessors[t], topology.templates[t].n_atoms
            molecules = np.array(self.position[first:first + count * n]).reshape(count, n, 3)
            apart = molecules - molecules[:, before]
            edges = np.round((apart - nearest_image(apart, vectors)) @ inverse)
            # Each atom adds what its predecessors have, twice as many of them every time.
            while (before != before[before]).any():
                edges += edges[:, before]
                before = before[before]
            position.put(first, (molecules - edges @ vectors).reshape(-1, 3))
        return replace(self, position=position)


def _predecessors(template: MoleculeTemplate) -> np.ndarray:
    """(atoms,) the atom before each one on a path of bonds from the first atom; itself where there is none."""
    n = template.n_atoms
    i, j = template.bond_atoms.T
    bonds = coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
    _, before = breadth_first_order(bonds, 0, directed=False)
    return np.where(before < 0, np.arange(n), before)
