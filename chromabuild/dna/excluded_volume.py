"""What keeps a relaxing chain clear of itself: soft repulsion between its DNA, and between DNA and histones.

The scaffold keeps the axes of DNA 22 angstrom apart and histones outside of it. Linkers that take on the shape of their
sequence leave the scaffold's path by several angstrom and must not run through what lies there: no torsion mends two
helices that cross.
"""

import numpy as np

from chromabuild.sterics.cell_list import CellList

DNA_AXES = 22.0  # angstrom between two axes: the scaffold's floor
DNA_HISTONE = 14.0  # angstrom between an axis and a CA: scaffolds keep all but a hundred of their pairs beyond it
SOFTNESS = 1.0  # angstrom of overlap that cost half kT
ALONG = 15  # base pairs: nearer ones along the chain are neighbours, which elasticity keeps apart
MARGIN = 16.0  # angstrom: how far beyond contact pairs are listed


class ExcludedVolume:
    """Pairs of points carried by the nodes of a chain, and their energy 1/2 ((contact - distance) / softness)^2 in kT.

    Args:
        node_of_bp: (n,) node that carries each base pair; several base pairs of one node are those wrapped on a core.
        offset: (n, 3) of each base pair in its node's frame, angstrom.
        histone_node: (k,) node that carries each CA.
        histone_offset: (k, 3).
        threads: the result does not depend on it.
    """

    def __init__(
        self, node_of_bp: np.ndarray, offset: np.ndarray, histone_node: np.ndarray, histone_offset: np.ndarray,
        threads: int = 1,
    ) -> None:
        self._node = np.concatenate([node_of_bp, histone_node])
        self._offset = np.concatenate([offset, histone_offset])
        alone = np.bincount(node_of_bp, minlength=self._node.max() + 1)[node_of_bp] == 1
        free, wrapped = np.flatnonzero(alone), np.flatnonzero(~alone)
        histones = np.arange(len(node_of_bp), len(self._node))
        # Cores are rigid: a share of their points stands for their surface.
        histones, some_wrapped = histones[::3], wrapped[::3]
        self._lists = [_Neighbours(self._node, self._offset, *kinds, threads) for kinds in (
            (free, free, DNA_AXES, ALONG), (free, wrapped, DNA_AXES, ALONG), (free, histones, DNA_HISTONE, 0),
            (some_wrapped, some_wrapped, DNA_AXES, ALONG), (some_wrapped, histones, DNA_HISTONE, 0))]

    def energy(self, origin: np.ndarray, frame: np.ndarray) -> float:
        """kT, for origins (nodes, 3) and frames (nodes, 3, 3)."""
        return 0.5 * sum(float(np.sum(pairs.contacts(origin, frame)[3] ** 2)) for pairs in self._lists)

    def add_to(self, origin: np.ndarray, frame: np.ndarray, diagonal: np.ndarray, gradient: np.ndarray) -> None:
        """Add the gradient (nodes, 6) by motions in the nodes' own frames, and the Gauss-Newton matrix's diagonal."""
        for pairs in self._lists:
            first, second, direction, overlap = pairs.contacts(origin, frame)
            for point, sign in ((first, -1.0), (second, 1.0)):
                node = self._node[point]
                turned = (np.swapaxes(frame[node], 1, 2) @ direction[:, :, None])[:, :, 0] * (sign / SOFTNESS)
                row = np.concatenate([turned, np.cross(self._offset[point], turned)], axis=1)
                np.add.at(gradient, node, row * overlap[:, None])
                np.add.at(diagonal, node, row[:, :, None] * row[:, None, :])


class _Neighbours:
    """Pairs of points of two kinds, on different nodes and by number more than ``along`` apart, that may come into
    contact."""

    def __init__(
        self, node: np.ndarray, offset: np.ndarray, first: np.ndarray, second: np.ndarray, contact: float, along: int,
        threads: int,
    ) -> None:
        self.node, self.offset, self.first, self.second = node, offset, first, second
        self.contact, self.along, self.threads = contact, along, threads
        self.movers = np.unique(node[np.concatenate([first, second])])
        reach = np.zeros(node.max() + 1)
        np.maximum.at(reach, node, np.linalg.norm(offset, axis=1))
        self.reach = reach[self.movers]
        self.listed_origin = None

    def contacts(
        self, origin: np.ndarray, frame: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Points in contact, unit vectors from second to first, and overlaps over the softness."""
        if self.listed_origin is None or self._moved(origin, frame) > 0.5 * MARGIN:
            self._list(origin, frame)
        position = self._positions(self.point, origin, frame)
        apart = position[self.i] - position[self.j]
        distance = np.linalg.norm(apart, axis=1)
        near = np.flatnonzero(distance < self.contact)
        distance = np.maximum(distance[near], 1e-6)
        return (self.point[self.i[near]], self.point[self.j[near]], apart[near] / distance[:, None],
                (self.contact - distance) / SOFTNESS)

    def _positions(self, point: np.ndarray, origin: np.ndarray, frame: np.ndarray) -> np.ndarray:
        node = self.node[point]
        return origin[node] + (frame[node] @ self.offset[point][:, :, None])[:, :, 0]

    def _moved(self, origin: np.ndarray, frame: np.ndarray) -> float:
        """Angstrom: no point has moved further since pairs were listed."""
        shift = np.linalg.norm(origin[self.movers] - self.listed_origin, axis=1)
        # The difference of two rotations has two equal singular values, and zero.
        turn = np.linalg.norm(frame[self.movers] - self.listed_frame, axis=(1, 2)) / np.sqrt(2.0)
        return float(np.max(shift + self.reach * turn, initial=0.0))

    def _list(self, origin: np.ndarray, frame: np.ndarray) -> None:
        cells = CellList(self._positions(self.second, origin, frame), self.contact + MARGIN, self.threads)
        i, j = cells.in_spheres(self._positions(self.first, origin, frame), self.contact + MARGIN)
        pairs = np.stack([self.first[i], self.second[j]], axis=1)
        apart = self.node[pairs[:, 0]] != self.node[pairs[:, 1]]
        apart &= np.abs(pairs[:, 0] - pairs[:, 1]) > self.along
        if self.first is self.second:
            apart &= pairs[:, 0] < pairs[:, 1]
        self.point, pair = np.unique(pairs[apart], return_inverse=True)
        self.i, self.j = pair.reshape(-1, 2).T
        self.listed_origin, self.listed_frame = origin[self.movers], frame[self.movers]
