"""Messages of one phase of communication: who sends how much to whom."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Phase:
    """Messages that are under way together; the next phase begins when all have arrived. Arrays of equal length:
    source and target ranks (or nodes), bytes. `count`: messages that each entry stands for."""

    name: str
    source: np.ndarray
    target: np.ndarray
    size: np.ndarray
    count: np.ndarray | None = None

    @property
    def total_bytes(self) -> int:
        return int(self.size.sum())

    def messages_sent(self, n_ranks: int) -> np.ndarray:
        return np.bincount(self.source, weights=self.count, minlength=n_ranks).astype(np.int64)

    def messages_received(self, n_ranks: int) -> np.ndarray:
        return np.bincount(self.target, weights=self.count, minlength=n_ranks).astype(np.int64)

    def bytes_sent(self, n_ranks: int) -> np.ndarray:
        return np.bincount(self.source, weights=self.size, minlength=n_ranks).astype(np.int64)

    def bytes_received(self, n_ranks: int) -> np.ndarray:
        return np.bincount(self.target, weights=self.size, minlength=n_ranks).astype(np.int64)


def on_nodes(phase: Phase, node_of: np.ndarray) -> Phase:
    """The traffic between nodes (`node_of` each rank) that host several ranks: one entry a pair of nodes, with its
    bytes and its number of messages; what stays inside of a node is left out."""
    source, target = node_of[phase.source], node_of[phase.target]
    outside = source != target
    source, target, size = source[outside], target[outside], phase.size[outside]
    n_nodes = int(node_of.max()) + 1
    pair, entry = np.unique(source.astype(np.int64) * n_nodes + target, return_inverse=True)
    messages = np.ones(len(size), dtype=np.int64) if phase.count is None else phase.count[outside]
    return Phase(phase.name, pair // n_nodes, pair % n_nodes, np.bincount(entry, weights=size, minlength=len(pair)),
                 np.bincount(entry, weights=messages, minlength=len(pair)))
