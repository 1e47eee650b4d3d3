"""A GROMACS top with one molecule of each type, and how many there are of each."""

import copy
from pathlib import Path

import numpy as np
from openmm import app

from chromabuild.forcefield.gromacs_top import GromacsTop
from chromabuild.forcefield.molecule_kinds import Kinds, Residues

_COSTLY = ("dihedrals", "pairs", "cmaps", "exclusions")


def bonds_alone(top: app.GromacsTopFile) -> app.GromacsTopFile:
    """The same without terms of which constraints know nothing, so that a System with constraints is made quickly."""
    short = copy.copy(top)
    short._moleculeTypes = {}
    for name, kind in top._moleculeTypes.items():
        short._moleculeTypes[name] = copy.copy(kind)
        vars(short._moleculeTypes[name]).update({terms: [] for terms in _COSTLY}, nrexcl=1)
    return short


class OneOfEach(GromacsTop):
    """Every type in [ molecules ] is there once."""

    def __init__(self, path: str | Path, include: str | Path | None = None) -> None:
        self.counts: list[tuple[str, int]] = []
        """Type and number of molecules of each line of [ molecules ]."""
        super().__init__(path, include)

    def _processMolecule(self, line: str) -> None:  # noqa: N802 (OpenMM's name)
        super()._processMolecule(line)
        name, count = self._molecules.pop()
        if count < 1:
            return
        if all(name != known for known, _ in self.counts):
            self._molecules.append((name, 1))
        self.counts.append((name, count))

    def kinds(self) -> tuple[Kinds, Residues]:
        """Molecules by type, and their residues, counted through the system. Segments are lines of [ molecules ]."""
        names = list(dict.fromkeys(name for name, _ in self.counts))
        sizes = []
        for name in names:
            numbers = np.array([fields[2] for fields in self._moleculeTypes[name].atoms])
            begins = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
            sizes.append(np.diff(begins, append=len(numbers)))
        lines = [(names.index(name), count) for name, count in self.counts]
        order = np.repeat(*np.array(lines, dtype=np.int64).T)
        size = np.concatenate([np.tile(sizes[name], count) for name, count in lines])
        segid = np.concatenate([np.full(count * len(sizes[name]), str(line).encode(), dtype="S4")
                                for line, (name, count) in enumerate(lines, 1)])
        n_residues = np.array([len(of_type) for of_type in sizes])[order]
        n_atoms = np.array([of_type.sum() for of_type in sizes])[order]
        _, example = np.unique(order, return_index=True)
        return (Kinds(np.concatenate([[0], np.cumsum(n_atoms)]), np.cumsum(n_residues) - n_residues, order, example),
                Residues(np.concatenate([[0], np.cumsum(size)]), np.arange(1, len(size) + 1), segid))
