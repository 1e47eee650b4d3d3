"""Atom types by which AMBER's prmtop and LAMMPS name Lennard-Jones parameters.

In AMBER's force fields they are the Lennard-Jones types of the topology. In CHARMM's a type also has parameters of 1-4
pairs, so that CHARMM's own types take their place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chromabuild.export.blocks import distinct_rows
from chromabuild.export.charmm import is_charmm
from chromabuild.export.pair_parameters import parameters_of_types
from chromabuild.forcefield.topology_file import Topology


@dataclass(frozen=True)
class ScaledPairs:
    """Lennard-Jones parameters of 1-4 pairs by atom type (angstrom, kcal/mol)."""

    sigma: np.ndarray
    """(t,)."""
    epsilon: np.ndarray
    """(t,)."""
    special: dict[tuple[int, int], tuple[float, float]]
    """Sigma and epsilon of pairs of types that do not follow the Lorentz-Berthelot rule."""

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """(t, t) c12 and c6 of all pairs of types."""
        sigma = 0.5 * (self.sigma[:, None] + self.sigma)
        epsilon = np.sqrt(self.epsilon[:, None] * self.epsilon)
        for (a, b), values in self.special.items():
            sigma[[a, b], [b, a]], epsilon[[a, b], [b, a]] = values
        c6 = 4 * epsilon * sigma**6
        return c6 * sigma**6, c6


@dataclass(frozen=True)
class AtomTypes:
    """Types of the atoms of a system, from 0."""

    names: list[str]
    lj_type: np.ndarray
    """(t,) Lennard-Jones type of the topology that each has."""
    of_template: list[np.ndarray]
    """By kind of molecule the type of each atom."""
    scaled: ScaledPairs | None
    """Of 1-4 pairs, in a force field of CHARMM."""


def atom_types(topology: Topology) -> AtomTypes:
    """Those that atoms have. Raises BadInputError where parameters of CHARMM's types do not give those of all pairs."""
    if is_charmm(topology):
        return _of_charmm(topology)
    used = np.unique(np.concatenate([topology.templates[t].lj_type for t in np.unique(topology.run_template)]))
    return AtomTypes([name.decode() for name in topology.lj_name[used].tolist()], used,
                     [np.searchsorted(used, template.lj_type) for template in topology.templates], None)


def _of_charmm(topology: Topology) -> AtomTypes:
    templates = topology.templates
    names, kinds = distinct_rows([t.atom_class for t in templates])
    types = [name.decode() for name in names.tolist()]
    found = parameters_of_types(topology, templates, kinds, types)
    lj_type = np.zeros(len(types), dtype=np.int64)
    for template, kind in zip(templates, kinds, strict=True):
        lj_type[kind] = template.lj_type
    return AtomTypes(types, lj_type, kinds, ScaledPairs(found.single[:, 2], found.single[:, 3], found.special))


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Different names of at most ``width`` letters: the first ones, with a number in their place where two would be
    alike."""
    found: dict[str, None] = {}
    for name in names:
        new, k = name[:width], 0
        while new in found:
            k += 1
            new = name[:width - len(str(k))] + str(k)
        found[new] = None
    return list(found)
