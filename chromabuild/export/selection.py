"""Which molecules of a built system a selection touches: the language of ``shards.selection``, on its topology."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.export.blocks import ATOMS_AT_ONCE
from chromabuild.export.psf import ResidueLabel, labelled_runs
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.solute import Solute
from chromabuild.shards import StoredVectors
from chromabuild.shards.selection import parse_selection


@dataclass(frozen=True)
class ChosenMolecules:
    """Whole molecules of a system."""

    of_run: list[np.ndarray]
    """Of each run of equal molecules, (m,) from 0, ascending."""
    selected: int
    """Atoms that the selection itself names; the others complete molecules."""

    def place(self, topology: Topology, atom: int) -> int | None:
        """The number in the part of an atom of the system; None where the part lacks it."""
        run = int(np.searchsorted(topology.run_first_atom, atom, side="right")) - 1
        sizes = [topology.templates[t].n_atoms for t in topology.run_template.tolist()]
        molecule, within = divmod(atom - int(topology.run_first_atom[run]), sizes[run])
        rows = self.of_run[run]
        k = int(np.searchsorted(rows, molecule))
        if k == len(rows) or rows[k] != molecule:
            return None
        before = sum(len(one) * size for one, size in zip(self.of_run[:run], sizes, strict=False))
        return before + k * sizes[run] + within


@dataclass(frozen=True)
class _Copies:
    """Some molecules of a run that follow each other, as a selection sees their atoms."""

    template: MoleculeTemplate
    label: ResidueLabel
    first: int
    count: int
    position: np.ndarray

    def __len__(self) -> int:
        return self.count * self.template.n_atoms

    @property
    def name(self) -> np.ndarray:
        """Bytes."""
        return np.tile(self.template.atom_name, self.count)

    @property
    def resname(self) -> np.ndarray:
        """Bytes."""
        return np.tile(self.template.residue_name[self.template.atom_residue], self.count)

    @cached_property
    def residue(self) -> np.ndarray:
        """Counted from 0 through these molecules."""
        n = len(self.template.residue_name)
        return (n * np.arange(self.count)[:, None] + self.template.atom_residue).ravel()

    @cached_property
    def _labels(self) -> list[tuple[str, int]]:
        n = len(self.template.residue_name)
        return [self.label(k) for k in range(self.first * n, (self.first + self.count) * n)]

    @property
    def segid(self) -> np.ndarray:
        """Bytes."""
        return np.array([segment.encode() for segment, _ in self._labels])[self.residue]

    @property
    def resid(self) -> np.ndarray:
        """Numbers of residues."""
        return np.array([number for _, number in self._labels])[self.residue]


def molecules_chosen(text: str, topology: Topology, solute: Solute | None, position: np.ndarray | StoredVectors,
                     box: np.ndarray) -> ChosenMolecules:
    """The molecules of which a selection has an atom; other arguments as a ``BuiltSystem`` has them.

    One block of molecules at a time is looked at. Raises BadInputError for a selection that cannot be understood or
    chooses nothing.
    """
    wanted = parse_selection(text)

    def blocks() -> Iterator[tuple[int, _Copies]]:
        return _copies(topology, solute, position)

    wanted.look_around(lambda: (atoms for _, atoms in blocks()), box)
    found: list[list[np.ndarray]] = [[] for _ in topology.run_count]
    selected = 0
    for run, atoms in blocks():
        chosen = wanted(atoms)
        selected += int(chosen.sum())
        found[run].append(atoms.first + np.flatnonzero(chosen.reshape(atoms.count, -1).any(axis=1)))
    if selected == 0:
        raise BadInputError(f"no atom is selected by '{text}': select others")
    return ChosenMolecules([np.concatenate([np.zeros(0, dtype=np.int64), *parts]) for parts in found], selected)


def _copies(topology: Topology, solute: Solute | None, position: np.ndarray | StoredVectors
            ) -> Iterator[tuple[int, _Copies]]:
    """All molecules, by run, in blocks."""
    for run, (template, count, first, label) in enumerate(labelled_runs(topology, solute)):
        n = template.n_atoms
        at_once = max(1, ATOMS_AT_ONCE // n)
        for start in range(0, count, at_once):
            copies = min(at_once, count - start)
            begin = first + start * n
            yield run, _Copies(template, label, start, copies, position[begin:begin + copies * n])
