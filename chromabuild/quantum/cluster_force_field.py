"""The force field's energy of a cluster, as far as it changes when its pieces move as rigid bodies or turn about bonds.

Coulomb and Lennard-Jones terms of all pairs without a cutoff, and dihedral terms. Terms that would name an atom beyond
a cut are left out, bonds and angles too, which do not change.
"""

import numpy as np

from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.geometry import measure_torsion
from chromabuild.quantum.cluster import Cluster

CAP_SIGMA, CAP_EPSILON = 2.6495, 0.0157
"""Angstrom and kcal/mol: aliphatic hydrogen of AMBER (Cornell et al. 1995), for the hydrogens that close cuts."""


class ClusterForceField:
    """Energies (kcal/mol) of positions (n + c, 3) of a cluster in angstrom."""

    def __init__(self, topology: Topology, cluster: Cluster) -> None:
        n, all_rows = cluster.n_atoms, len(cluster.element)
        kind = topology.per_atom("lj_type")[cluster.atom]
        sigma = np.append(topology.lj_sigma[kind], np.full(all_rows - n, CAP_SIGMA))
        epsilon = np.append(topology.lj_epsilon[kind], np.full(all_rows - n, CAP_EPSILON))
        c6 = 4 * np.sqrt(epsilon[:, None] * epsilon) * (0.5 * (sigma[:, None] + sigma)) ** 6
        c12 = c6 * (0.5 * (sigma[:, None] + sigma)) ** 6
        c6[:n, :n], c12[:n, :n] = topology.lj_c6[np.ix_(kind, kind)], topology.lj_c12[np.ix_(kind, kind)]
        charge_product = topology.coulomb_constant * cluster.charge[:, None] * cluster.charge

        # A hydrogen that closes a cut has no parameters within its own piece.
        counts = cluster.piece[:, None] != cluster.piece
        counts[:n, :n] = True
        excluded = _rows(topology.exclusions(), cluster.atom)
        counts[excluded[:, 0], excluded[:, 1]] = counts[excluded[:, 1], excluded[:, 0]] = False
        self._i, self._j = np.nonzero(np.triu(counts, 1))
        self._between = cluster.piece[self._i] != cluster.piece[self._j]
        self._qq, self._c12, self._c6 = (of[self._i, self._j] for of in (charge_product, c12, c6))
        self._add_pairs14(topology, cluster)
        self._piece = cluster.piece
        dihedral = topology.term("dihedral")
        inside = np.isin(dihedral["atoms"], cluster.atom).all(axis=1)
        self._dihedral = np.searchsorted(cluster.atom, dihedral["atoms"][inside])
        self._k, self._n, self._phase = (dihedral[key][inside] for key in ("k", "n", "phase"))

    def _add_pairs14(self, topology: Topology, cluster: Cluster) -> None:
        term = topology.term("pair14")
        inside = np.isin(term["atoms"], cluster.atom).all(axis=1)
        rows = np.searchsorted(cluster.atom, term["atoms"][inside])
        sigma6 = term["sigma"][inside] ** 6
        c6 = 4 * term["epsilon"][inside] * sigma6
        self._i, self._j = np.append(self._i, rows[:, 0]), np.append(self._j, rows[:, 1])
        self._between = np.append(self._between, np.zeros(len(rows), dtype=bool))
        self._qq = np.append(self._qq, topology.coulomb_constant * term["charge_product"][inside])
        self._c12, self._c6 = np.append(self._c12, c6 * sigma6), np.append(self._c6, c6)

    def energy(self, position: np.ndarray) -> float:
        """Pairs and dihedral terms."""
        r2 = ((position[self._i] - position[self._j]) ** 2).sum(axis=1)
        pairs = self._qq / np.sqrt(r2) + self._c12 / r2**6 - self._c6 / r2**3
        angle = measure_torsion(*(position[self._dihedral[:, k]] for k in range(4)))
        return float(pairs.sum() + (self._k * (1 + np.cos(self._n * angle - np.radians(self._phase)))).sum())

    def piece_forces(self, position: np.ndarray) -> np.ndarray:
        """(f, 3) kcal/mol/angstrom: what the other pieces do to each."""
        apart = position[self._i] - position[self._j]
        r2 = (apart**2).sum(axis=1)
        slope = np.where(self._between, self._qq / r2**1.5 + 12 * self._c12 / r2**7 - 6 * self._c6 / r2**4, 0.0)
        force = np.zeros((int(self._piece.max()) + 1, 3))
        np.add.at(force, self._piece[self._i], slope[:, None] * apart)
        np.add.at(force, self._piece[self._j], -slope[:, None] * apart)
        return force


def _rows(pairs: np.ndarray, atom: np.ndarray) -> np.ndarray:
    """(m, 2) rows of the pairs of which both atoms are among ``atom``."""
    return np.searchsorted(atom, pairs[np.isin(pairs, atom).all(axis=1)]).reshape(-1, 2)
