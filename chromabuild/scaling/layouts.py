"""Ranks and threads that share the cores of a run, in the order of what the model of a step says of them.

The work of a rank is measured; messages within a node cost what the bundled ``workstation`` is given, those between
nodes what ``infiniband`` is given (docs/explanation/network-simulation.md). The order is what it is for: it says what
to measure first, and what to take where measuring does not pay.
"""

from dataclasses import dataclass

from chromabuild.base.errors import BadInputError
from chromabuild.scaling import measured
from chromabuild.scaling.machine import Machine, find_machine
from chromabuild.scaling.measured import StepSettings
from chromabuild.scaling.prediction import MOST_LAYERS, MOST_NODES, MOST_RANKS, Job, parts_of_step
from chromabuild.scaling.step import Decomposition, choose_grid, halo_reach


@dataclass(frozen=True)
class Layout:
    """Ranks of so many threads each, and the seconds that the model gives a step."""

    ranks: int
    threads: int
    seconds: float


def layouts(edge: tuple[float, float, float], atoms: int, settings: StepSettings, cores: int, nodes: int = 1,
            memory: float = float("inf"), machine: Machine | None = None) -> list[Layout]:
    """All ways to share ``cores`` on ``nodes`` evenly among ranks, fastest first, for a box (3,) of edges in angstrom.

    Left out are those with domains narrower than half of the halo's reach, and those whose ranks together need more
    than ``memory`` bytes; a rank on each node with all its cores is there in any case. ``machine``: another than those
    bundled for one node and for several. Raises BadInputError for more nodes than cores.
    """
    if cores < nodes:
        raise BadInputError(f"{nodes} nodes have only {cores} cores: give each node one")
    machine = machine or find_machine("infiniband" if nodes > 1 else "workstation")
    per_node = cores // nodes
    found = []
    for threads in range(per_node, 0, -1):
        ranks = nodes * (per_node // threads)
        if per_node % threads or ranks > MOST_RANKS or nodes > MOST_NODES:
            continue
        grid = choose_grid(edge, ranks, halo_reach(settings))
        system = Decomposition(edge, atoms, grid, settings)
        fits = min(system.domain) >= halo_reach(settings) / MOST_LAYERS and \
            ranks * measured.rank_memory(system.atoms_a_rank) <= memory
        if fits or ranks == nodes:
            found.append(Layout(ranks, threads, _seconds(system, machine, nodes, threads)))
    return sorted(found, key=lambda layout: layout.seconds)


def _seconds(system: Decomposition, machine: Machine, nodes: int, threads: int) -> float:
    """Of a step, by the model."""
    return float(sum(parts_of_step(system, Job(machine, nodes, system.ranks // nodes, threads))[0].values()))
