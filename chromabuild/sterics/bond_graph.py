"""Which atoms are bonded, and which are joined by up to three bonds."""

import numpy as np

from chromabuild import _kernels


class BondGraph:
    """Covalent bonds as compressed rows: neighbours of atom i are ``neighbour[first[i]:first[i+1]]``."""

    def __init__(self, n_atoms: int, bonds: np.ndarray) -> None:
        """``bonds`` is (b, 2), each bond once."""
        self.bonds = np.ascontiguousarray(bonds, dtype=np.int32).reshape(-1, 2)
        self.first = np.zeros(n_atoms + 1, dtype=np.int32)
        self.neighbour = np.zeros(max(2 * len(self.bonds), 1), dtype=np.int32)
        if len(self.bonds):
            _kernels.bond_graph.compress_bonds(self.bonds.T, self.first, self.neighbour)

    def degree(self, atoms: np.ndarray) -> np.ndarray:
        """Number of neighbours of each of some atoms."""
        return self.first[atoms + 1] - self.first[atoms]

    def neighbours(self, atom: int) -> np.ndarray:
        """Atoms bonded to one atom."""
        return self.neighbour[self.first[atom]:self.first[atom + 1]]

    def bonded(self, pairs: np.ndarray) -> np.ndarray:
        """(m,) bool: whether one, two or three bonds join the atoms of each of the (m, 2) pairs."""
        mark = np.zeros(len(pairs), dtype=np.int32)
        if len(pairs):
            pairs = np.ascontiguousarray(pairs, dtype=np.int32)
            _kernels.bond_graph.mark_bonded_pairs(self.first, self.neighbour, pairs.T, mark)
        return mark.astype(bool)

    def beyond(self, inner: int, outer: int, within: range | None = None) -> list[int] | None:
        """Atoms on the outer side of a bond, without ``outer`` itself; None when the bond is part of a ring.

        With ``within`` bonds are followed among these atoms only.
        """
        seen, stack = {inner, outer}, [outer]
        while stack:
            atom = stack.pop()
            for other in self.neighbours(atom).tolist():
                if other == inner and atom != outer:
                    return None
                if other not in seen and (within is None or other in within):
                    seen.add(other)
                    stack.append(other)
        return sorted(seen - {inner, outer})
