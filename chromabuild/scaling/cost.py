"""What a phase costs: LogGP (Alexandrov et al. 1995) with the busiest link in place of the bandwidth term.

Messages of a phase are taken to flow all at once, so that the busiest cable decides (a flow bound: right for the long
messages of large runs, where packets.py would take hours; packets.py shows what it leaves out for short ones).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chromabuild.scaling.trace import Phase, on_nodes


class Topology(Protocol):
    n_nodes: int

    def hops(self, source: np.ndarray, target: np.ndarray) -> np.ndarray: ...

    def worst_load(self, source: np.ndarray, target: np.ndarray, size: np.ndarray) -> float: ...


@dataclass(frozen=True)
class NetworkSpeed:
    """Seconds of latency, a message (its sender's and receiver's work together) and a hop; bytes a second of a cable,
    and of the memory through which ranks of one node exchange."""

    latency: float
    per_message: float
    per_hop: float
    bandwidth: float
    memory_bandwidth: float = np.inf


def node_traffic(phase: Phase, node_of: np.ndarray) -> tuple[Phase, int, float]:
    """Traffic between nodes, most messages that a rank sends or receives, most bytes that stay inside of a node."""
    n_ranks = len(node_of)
    busiest = max(phase.messages_sent(n_ranks).max(initial=0), phase.messages_received(n_ranks).max(initial=0))
    inside = node_of[phase.source] == node_of[phase.target]
    kept = np.bincount(node_of[phase.source[inside]], weights=phase.size[inside]).max(initial=0.0)
    return on_nodes(phase, node_of), int(busiest), float(kept)


def seconds(speed: NetworkSpeed, topology: Topology, traffic: Phase, messages: int, kept: float) -> float:
    """Time of a phase from what node_traffic says of it."""
    if messages == 0:
        return 0.0
    hops = topology.hops(traffic.source, traffic.target).max(initial=0)
    load = topology.worst_load(traffic.source, traffic.target, traffic.size)
    return max(path_seconds(speed, hops, messages, load),
               path_seconds(speed, hops, messages, 0.0) + kept / speed.memory_bandwidth)


def path_seconds(speed: NetworkSpeed, hops: float, messages: float, load: float) -> float:
    """The model of all machines: latency, hops on the way, messages of a rank, and the bytes that pass the deciding
    cable one after the other. What decides is the caller's: the busiest cable here, the sum over a message's own hops
    where a network stores and forwards, packets of a simulation where they queue."""
    return float(speed.latency + speed.per_hop * hops + speed.per_message * messages + load / speed.bandwidth)
