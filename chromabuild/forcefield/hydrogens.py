"""Hydrogens that are heavier than they are, and the atoms that are lighter for it."""

import numpy as np

from chromabuild.forcefield.topology_file import Topology


def bound_hydrogens(topology: Topology) -> np.ndarray:
    """(n, 2) hydrogens outside of waters, and the atoms that they are bound to, from 0."""
    pairs = topology.term("constraint")["atoms"]
    mass = topology.masses()
    in_water = topology.of_atoms([np.full(t.n_atoms, t.rigid_water) for t in topology.templates])
    pairs = pairs[~in_water[pairs[:, 0]]]
    return bound_pairs(pairs, mass)


def repartitioned_masses(topology: Topology, factor: float) -> np.ndarray:
    """(n,) masses, those of hydrogens outside of waters multiplied and the difference taken from their partners."""
    return topology.of_atoms(masses_of_molecules(topology, factor))


def masses_of_molecules(topology: Topology, factor: float) -> list[np.ndarray]:
    """The same of the atoms of each kind of molecule."""
    found = []
    for template in topology.templates:
        mass, result = template.mass, template.mass.copy()
        if not template.rigid_water:
            hydrogen, heavy = bound_pairs(template.constraint_atoms, mass).T
            added = (factor - 1) * mass[hydrogen]
            result[hydrogen] += added
            np.subtract.at(result, heavy, added)
        found.append(result)
    return found


def bound_pairs(pairs: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(n, 2) constrained pairs with the hydrogen, the lighter one, first."""
    return np.where((mass[pairs[:, 0]] < mass[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
