"""A step with ranks apart for reciprocal space ([COMM] pme_ranks), which the other ranks do not wait for.

The ranks go round the nodes (`mpirun --map-by node`, `srun --distribution=cyclic`), so that the last ones, which are
the ranks apart, are as many on each node. These have pencils. Positions go to them and forces come back through the
network, each domain's to and from one of them, while real space is computed. Charges go when atoms change their owners.
"""

from dataclasses import dataclass

import numpy as np

from chromabuild.scaling.cost import NetworkSpeed, Topology, node_traffic, seconds
from chromabuild.scaling.fft_trace import Transform
from chromabuild.scaling.measured import StepSettings
from chromabuild.scaling.step import (
    ATOM_BYTES,
    WAVE_BYTES,
    Decomposition,
    Placement,
    choose_grid,
    halo_phases,
    halo_reach,
    work_time,
)


@dataclass(frozen=True)
class Apart:
    """Milliseconds a step: what either side takes, what goes between them; domains and ranks apart."""

    domains: int
    pme_ranks: int
    real: float
    reciprocal: float
    between: float

    @property
    def step(self) -> float:
        return max(self.real, self.reciprocal + self.between)


def step_apart(edge: tuple[float, float, float], atoms: float, ranks_a_node: int, pme_ranks_a_node: int,
               speed: NetworkSpeed, topology: Topology, core_speed: float = 1.0,
               settings: StepSettings | None = None) -> Apart:
    """The step of so many atoms in a box of these edges (angstrom) on all nodes of a network."""
    settings = settings or StepSettings()
    nodes = topology.n_nodes
    here = ranks_a_node - pme_ranks_a_node
    domains, pme_ranks = here * nodes, pme_ranks_a_node * nodes
    system = Decomposition(edge, atoms, choose_grid(edge, domains, halo_reach(settings)), settings)
    node_of = Placement(system.grid, here, cyclic=True).node_of
    halo = 2 * sum(seconds(speed, topology, *node_traffic(phase, node_of)) for phase in halo_phases(system))
    real = work_time(system, core_speed, reciprocal=False) + halo

    rows = 2 ** int(np.log2(pme_ranks) / 2)
    grid = (1, rows, pme_ranks // rows)
    there = Decomposition(edge, atoms, grid, settings)
    # These go round the nodes too.
    pencils = Transform(system.points, grid, "pencil", point_bytes=WAVE_BYTES).phases()
    node_of = Placement(grid, pme_ranks_a_node, cyclic=True).node_of
    fft = 2 * sum(seconds(speed, topology, *node_traffic(phase, node_of)) for phase in pencils)
    reciprocal = work_time(there, core_speed, reciprocal=True) + fft

    # A node's cable carries the atoms of its domains one way and those of its ranks apart the other.
    each_way = here * (speed.latency + speed.per_message) / pme_ranks_a_node
    volume = atoms / nodes * 2 * ATOM_BYTES / speed.bandwidth
    agreement = float(np.ceil(np.log2(domains)) * (speed.latency + speed.per_message))
    return Apart(domains, pme_ranks, 1e3 * (real + agreement), 1e3 * reciprocal, 1e3 * (2 * each_way + volume))
