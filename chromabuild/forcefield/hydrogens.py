"""Hydrogens that are heavier than they are, and the atoms that are lighter for it."""

import numpy as np

from chromabuild.forcefield.topology_file import Topology


def bound_hydrogens(topology: Topology) -> np.ndarray:
    """(n, 2) hydrogens outside of waters, and the atoms that they are bound to, from 0."""
    pairs = topology.term("constraint")["atoms"]
    mass = topology.masses()
    in_water = topology.of_atoms([np.full(t.n_atoms, t.rigid_water) for t in topology.templates])
    pairs = pairs[~in_water[pairs[:, 0]]]
    return np.where((mass[pairs[:, 0]] < mass[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])


def repartitioned_masses(topology: Topology, factor: float) -> np.ndarray:
    """(n,) masses, those of hydrogens outside of waters multiplied and the difference taken from their partners."""
    mass = topology.masses()
    hydrogen, heavy = bound_hydrogens(topology).T
    added = (factor - 1) * mass[hydrogen]
    result = mass.copy()
    result[hydrogen] += added
    np.subtract.at(result, heavy, added)
    return result
