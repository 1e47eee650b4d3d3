"""What a run costs on a machine: time of a step, node-hours, memory of a rank, disk, and how sure that is."""

import math
from dataclasses import asdict, dataclass

from chromabuild.base.duration import span
from chromabuild.base.errors import BadInputError
from chromabuild.scaling import measured
from chromabuild.scaling.machine import Machine
from chromabuild.scaling.measured import StepSettings
from chromabuild.scaling.published.record import ALL, TableError, all_entries, recorded, table_error
from chromabuild.scaling.step import (
    Decomposition,
    Placement,
    best_scheme,
    choose_block,
    choose_grid,
    halo_reach,
    step_time,
)

MOST_RANKS, MOST_NODES = 131_072, 4096
"""Beyond which the traffic between all nodes no longer fits into memory."""
MOST_LAYERS = 2
"""Layers of domains that a halo may reach over; with more, no published exchange covers it."""
NEARBY = (0.25, 0.5, 1, 2, 4)
"""Multiples of the number of nodes that the table shows."""
MICROSECOND = 1e9
"""fs."""


@dataclass(frozen=True)
class Run:
    """What is to be simulated: a box (3,) angstrom with so many atoms, steps of `timestep` fs of which `minimise_steps`
    more come first, and what it writes, in gigabytes; a frame every `frame_period` steps."""

    edge: tuple[float, float, float]
    atoms: int
    settings: StepSettings
    minimise_steps: int
    steps: int
    timestep: float
    disk_gb: float
    frame_gb: float
    frame_period: int


@dataclass(frozen=True)
class Job:
    """Nodes of a machine, ranks on each and threads of each rank."""

    machine: Machine
    nodes: int = 1
    ranks_per_node: int = 1
    threads: int = 1

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class ScalingRow:
    """The same run on another number of nodes. `efficiency`: against the first row."""

    nodes: int
    ranks: int
    step_ms: float
    ns_per_day: float
    node_hours_per_ns: float
    efficiency: float


@dataclass(frozen=True)
class Prediction:
    """Times of a step by part in milliseconds; memory and disk in gigabytes."""

    machine: str
    title: str
    source: str
    core: str
    core_speed: float
    """Over the core on which the steps were measured."""
    nodes: int
    ranks_per_node: int
    threads: int
    grid: tuple[int, int, int]
    torus: str | None
    """Value of [COMM] torus that the placement of ranks asks for."""
    fft: str | None
    """Value of [COMM] fft that is the fastest one; None for one rank."""
    fft_by_node: bool
    """Whether [COMM] fft_by_node makes it faster still."""
    atoms_per_rank: float
    step_ms: float
    parts_ms: dict[str, float]
    timestep_fs: float
    ns_per_day: float
    memory_gb: dict[str, float]
    """Of a rank, of a node, and what a node has."""
    run: dict[str, float]
    """Steps with minimisation, seconds, node-hours and disk of the run that the settings describe."""
    microsecond: dict[str, float]
    """Steps, days, node-hours and disk of a microsecond."""
    scaling: tuple[ScalingRow, ...]
    errors: tuple[TableError, ...]
    """Of the tables measured on this machine or its kind of network first, then of all tables together."""

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def communication(self) -> float:
        """Share of a step that the network takes."""
        return 1 - self.parts_ms["work"] / self.step_ms

    def as_dict(self) -> dict:
        """Plain data for JSON."""
        return {**asdict(self), "communication": self.communication}

    def lines(self) -> list[str]:
        """For people."""
        return [*self._cost_lines(), *self._scaling_lines(), "", *self._certainty_lines()]

    def _cost_lines(self) -> list[str]:
        parts = ", ".join(f"{name} {_number(value)}" for name, value in self.parts_ms.items() if value > 0)
        grid, memory = " x ".join(map(str, self.grid)), self.memory_gb
        lines = [
            f"machine: {self.title}",
            f"job: {_count(self.nodes, 'node')}, {_count(self.ranks, 'rank')} of {_count(self.threads, 'thread')}; "
            f"{grid} domains of {self.atoms_per_rank:,.0f} atoms",
            f"step: {_number(self.step_ms)} ms ({parts})",
            f"speed: {_number(self.ns_per_day)} ns/day at {self.timestep_fs:g} fs; communication is "
            f"{100 * self.communication:.0f} % of a step",
            f"memory: {memory['rank']:.2g} GB a rank, {memory['node']:.3g} of {memory['available']:g} GB a node",
            f"this run: {self.run['steps']:,.0f} steps in {span(self.run['seconds'])}, "
            f"{_number(self.run['node_hours'])} node-hours, {_size(self.run['disk_gb'])} on disk",
            f"1 microsecond: {self.microsecond['steps']:,.0f} steps in {span(86400 * self.microsecond['days'])}, "
            f"{_number(self.microsecond['node_hours'])} node-hours, {_size(self.microsecond['disk_gb'])} on disk"]
        given = (("torus", self.torus), ("fft", self.fft), ("fft_by_node", "YES" if self.fft_by_node else None))
        keys = [f"{key} = {value}" for key, value in given if value]
        return lines + ([f"control file: with {', '.join(keys)} in [COMM]"] if keys else [])

    def _scaling_lines(self) -> list[str]:
        """The table; none for a machine of one node."""
        if len(self.scaling) < 2:
            return []
        lines = ["", "     nodes      ranks    ms/step     ns/day  node-h/ns  efficiency"]
        for row in self.scaling:
            mark = ">" if row.nodes == self.nodes else " "
            numbers = "".join(f"{_number(value):>11}" for value in (row.step_ms, row.ns_per_day, row.node_hours_per_ns))
            lines.append(f"{mark}{row.nodes:9,d}{row.ranks:11,d}{numbers}{100 * row.efficiency:10.0f} %")
        return lines

    def _certainty_lines(self) -> list[str]:
        core = measured.core()
        lines = [f"work: measured on one core of {core.name}, {core.clock_ghz:g} GHz, {core.instruction_set}, "
                 f"on {core.date}"]
        if not math.isclose(self.core_speed, 1.0):
            lines.append(f"      {self.core} taken as {self.core_speed:.2g} times as fast")
        for error in self.errors:
            lines += [f"network: predicts {_count(error.entries, 'published figure')} of {error.table} "
                      f"({error.source})",
                      f"      with a mean error of {100 * error.mean:.1f} %, at worst {100 * error.worst:+.1f} % "
                      f"({error.worst_entry})"]
        if self.errors and self.communication > 0:
            mean = self.errors[0].mean
            lines.append(f"together: an error of {100 * mean:.1f} % in communication is one of "
                         f"{100 * mean * self.communication:.1f} % in this step")
        return lines


def predict(run: Run, job: Job, nearby: bool = True) -> Prediction:
    """What `run` costs as `job`, and, with `nearby`, as the same job on fewer and more nodes.

    Raises BadInputError when the machine is too small, a rank needs more memory than there is, or domains would be
    narrower than the halo allows.
    """
    system = checked(run, job)
    parts, torus, fft, by_node = parts_of_step(system, job)
    step = sum(parts.values())
    memory = measured.rank_memory(system.atoms_a_rank)
    steps = run.minimise_steps + run.steps
    long_steps = MICROSECOND / run.timestep
    static_gb = run.disk_gb - run.frame_gb * (run.steps // run.frame_period)
    node_seconds = step * job.nodes / 3600
    return Prediction(
        machine=job.machine.name, title=job.machine.title, source=job.machine.source, core=job.machine.node.core.name,
        core_speed=job.machine.node.core.speed, nodes=job.nodes, ranks_per_node=job.ranks_per_node, threads=job.threads,
        grid=system.grid, torus=torus, fft=fft, fft_by_node=by_node,
        atoms_per_rank=system.atoms_a_rank, step_ms=1e3 * step,
        parts_ms={name: 1e3 * value for name, value in parts.items()}, timestep_fs=run.timestep,
        ns_per_day=_ns_per_day(run, step),
        memory_gb={"rank": memory / 1e9, "node": memory * job.ranks_per_node / 1e9,
                   "available": job.machine.node.memory_gb},
        run={"steps": steps, "seconds": steps * step, "node_hours": steps * node_seconds, "disk_gb": run.disk_gb},
        microsecond={"steps": long_steps, "days": long_steps * step / 86400, "node_hours": long_steps * node_seconds,
                     "disk_gb": static_gb + run.frame_gb * (long_steps // run.frame_period)},
        scaling=_nearby(run, job) if nearby else (), errors=table_errors(job.machine))


def checked(run: Run, job: Job) -> Decomposition:
    """The domains of a job. Raises BadInputError with the remedy when it cannot run."""
    machine, node = job.machine, job.machine.node
    if job.nodes > machine.nodes:
        raise BadInputError(f"--nodes {job.nodes}: {machine.name} has {_count(machine.nodes, 'node')}: ask for "
                            "fewer or choose another machine")
    if job.ranks_per_node * job.threads > node.cores:
        raise BadInputError(
            f"{_count(job.ranks_per_node, 'rank')} of {_count(job.threads, 'thread')} want "
            f"{_count(job.ranks_per_node * job.threads, 'core')}, a node of {machine.name} has {node.cores}: lower "
            "--ranks-per-node or --threads")
    if job.ranks > MOST_RANKS or job.nodes > MOST_NODES:
        raise BadInputError(
            f"{_count(job.ranks, 'rank')} on {_count(job.nodes, 'node')} are more than the simulator traces "
            f"({MOST_RANKS:,} on {MOST_NODES:,}): lower --nodes, or --ranks-per-node with more --threads")
    needed = job.ranks_per_node * measured.rank_memory(run.atoms / job.ranks)
    if needed > 1e9 * node.memory_gb:
        raise BadInputError(
            f"{_count(job.ranks_per_node, 'rank')} a node with {run.atoms / job.ranks:,.0f} atoms each want "
            f"{needed / 1e9:.3g} GB, a node of {machine.name} has {node.memory_gb:g} GB: {_memory_remedy(run, job)}")
    reach = halo_reach(run.settings)
    system = Decomposition(run.edge, run.atoms, choose_grid(run.edge, job.ranks, reach), run.settings)
    if min(system.domain) < reach / MOST_LAYERS:
        domain = " x ".join(f"{edge:.1f}" for edge in system.domain)
        raise BadInputError(
            f"{_count(job.ranks, 'rank')} cut {run.atoms:,} atoms into domains of {domain} angstrom, narrower than "
            f"half of the halo's reach of {reach:.1f}: use at most {most_ranks(run):,} ranks, by lower --nodes, or "
            "--ranks-per-node with more --threads")
    return system


def most_ranks(run: Run) -> int:
    """As many domains as are wide enough for the halo."""
    return math.prod(max(1, int(edge * MOST_LAYERS / halo_reach(run.settings))) for edge in run.edge)


def table_errors(machine: Machine) -> tuple[TableError, ...]:
    """Of the tables nearest to a machine, then of all of them; none for a machine without a network."""
    if machine.network.kind == "none":
        return ()
    tables = recorded()
    nearest = [table_error(machine.tables, tables[machine.tables])] if machine.tables else []
    return (*nearest, table_error(ALL, all_entries(tables)))


def _memory_remedy(run: Run, job: Job) -> str:
    """The least power of two times as many nodes that hold the run, or what else helps."""
    nodes, available = job.nodes, 1e9 * job.machine.node.memory_gb
    while nodes <= min(job.machine.nodes, MOST_NODES, MOST_RANKS // job.ranks_per_node):
        if job.ranks_per_node * measured.rank_memory(run.atoms / (nodes * job.ranks_per_node)) <= available:
            return f"use --nodes {nodes} or more"
        nodes *= 2
    return "use fewer ranks of more --threads, or a machine with more memory"


def parts_of_step(system: Decomposition, job: Job) -> tuple[dict[str, float], str | None, str | None, bool]:
    """Seconds of a step by part, and the values of [COMM] torus, fft and fft_by_node with which it takes them."""
    block = choose_block(system.grid, job.ranks_per_node) if job.machine.blocks else None
    placement = Placement(system.grid, job.ranks_per_node, block)
    topology = job.machine.network.topology(job.nodes, placement.node_grid)
    torus = "x".join(map(str, topology.shape)) if block and job.nodes > 1 and topology.n_nodes == job.nodes else None
    network = (job.machine.speed, topology)
    scheme, by_node, _ = best_scheme(system, placement, *network)
    parts = step_time(system, placement, *network, job.machine.node.core.speed, job.threads)
    return parts, torus, scheme.upper() if job.ranks > 1 else None, by_node


def _ns_per_day(run: Run, step: float) -> float:
    return 86400 / step * run.timestep * 1e-6


def _nearby(run: Run, job: Job) -> tuple[ScalingRow, ...]:
    """Rows of the numbers of nodes on which the run is possible, ascending."""
    rows: list[ScalingRow] = []
    for factor in NEARBY:
        nodes = round(factor * job.nodes)
        if nodes != factor * job.nodes:
            continue
        other = Job(job.machine, nodes, job.ranks_per_node, job.threads)
        try:
            system = checked(run, other)
        except BadInputError:
            continue
        step = sum(parts_of_step(system, other)[0].values())
        speed = _ns_per_day(run, step)
        rows.append(ScalingRow(nodes, other.ranks, 1e3 * step, speed, 24 * nodes / speed,
                               speed / nodes / (rows[0].ns_per_day / rows[0].nodes) if rows else 1.0))
    return tuple(rows)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _number(value: float) -> str:
    """Three figures, and all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _size(gigabytes: float) -> str:
    for unit, size in (("PB", 1e6), ("TB", 1e3)):
        if gigabytes >= size:
            return f"{_number(gigabytes / size)} {unit}"
    return f"{_number(gigabytes)} GB"
