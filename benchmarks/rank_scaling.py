"""Strong and weak scaling of chromamd on this machine, beside what the simulator predicts of the same runs, 2 h.

TIP3P water on a lattice, relaxed; 12 angstrom cutoff, PME, rigid waters, 2 fs. A step is a long less a short run by the
clock, so the machine must do nothing else; configurations take turns in every round. Strong: boxes of --sides waters an
axis on all ranks and threads; weak: cubes of --weak-side waters an axis on every rank. The prediction is that of
`chromabuild plan` for the bundled `workstation`, with the speed of this core from the run of one rank and thread of the
largest box (that row agrees by construction). Ranks and threads beyond the cores take turns on them, and the prediction
is for as many times longer.
"""

import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.engine import run, set_up, turned_waters, water_topology, write_system
from common.results import Table, spread
from common.timing import in_turns

from chromabuild.scaling.machine import Machine, find_machine
from chromabuild.scaling.measured import StepSettings, step_cost
from chromabuild.scaling.prediction import Job, parts_of_step
from chromabuild.scaling.step import Decomposition, work_time

SPACING = 3.104
"""Angstrom between waters on the starting lattice: liquid density."""
GRIDS = {1: (1, 1, 1), 2: (2, 1, 1), 4: (2, 2, 1), 8: (2, 2, 2)}
ENERGY = {"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5}
COLUMNS = {"atoms": ",", "ranks": "", "threads": "", "measured, ms": ",.1f", "predicted, ms": ",.1f",
           "predicted / measured": ".2f", "efficiency, %": ".0f"}


class Box:
    """Waters on a lattice of so many along each axis, relaxed on a grid of domains."""

    def __init__(self, folder: Path, waters: tuple[int, int, int], ranks: int) -> None:
        place = np.stack(np.meshgrid(*map(np.arange, waters), indexing="ij"), axis=-1).reshape(-1, 3)
        self.folder, self.ranks, self.atoms = folder, ranks, 3 * len(place)
        self.edge = tuple(float(n * SPACING) for n in waters)
        position = turned_waters((place + 0.5) * SPACING, np.random.default_rng(1))
        write_system(folder, water_topology(len(place)), position, np.array(self.edge))
        set_up(folder, folder / "start().rst", GRIDS[ranks])
        run(folder, folder / "start().rst", {"ENERGY": ENERGY, "MINIMIZE": {"nsteps": 60}},
            folder / "relaxed().rst", ranks=ranks)

    def step(self, steps: tuple[int, int], threads: int) -> float:
        """Seconds of a step by the clock: that of `steps` less a shorter run."""
        short, long = (run(self.folder, self.folder / "relaxed().rst", {
            "ENERGY": ENERGY, "CONSTRAINTS": {"rigid_bond": True}, "ENSEMBLE": {"temperature": 300},
            "DYNAMICS": {"nsteps": n, "timestep": 0.002, "eneout_period": 1000}}, ranks=self.ranks,
            threads=threads).wall for n in steps)
        return (long - short) / (steps[1] - steps[0])

    def system(self) -> Decomposition:
        """As the model has it."""
        return Decomposition(self.edge, self.atoms, GRIDS[self.ranks], StepSettings())

    def predicted(self, machine: Machine, cores: int, threads: int) -> float:
        """Seconds of a step by the model."""
        parts = parts_of_step(self.system(), Job(machine, 1, self.ranks, threads))[0]
        return sum(parts.values()) * max(1.0, self.ranks * threads / cores)


def this_machine(cores: int, box: Box, seconds: float) -> Machine:
    """The bundled workstation with the core of this one, on which a step of a box takes so many seconds."""
    model = find_machine("workstation")
    slower = seconds / work_time(box.system())
    each = 1e6 * slower * float(step_cost(StepSettings())[1][-1])
    core = model.node.core.model_copy(update={"microseconds_per_atom": each})
    return model.model_copy(update={"node": model.node.model_copy(update={"cores": cores, "core": core})})


def fill(table: Table, found: dict[tuple[Box, int], list[float]], machine: Machine, cores: int, weak: bool) -> None:
    """A row for each box and number of threads; efficiency is over the first row of the same box, or of all boxes."""
    first: dict[int, float] = {}
    for (box, threads), seconds in found.items():
        measured, ours = spread(1e3 * value for value in seconds), 1e3 * box.predicted(machine, cores, threads)
        work = measured["median"] / (1 if weak else box.atoms) * (1 if weak else box.ranks * threads)
        best = first.setdefault(0 if weak else box.atoms, work)
        table.row(box.atoms, box.ranks, threads, measured, float(ours), float(ours / measured["median"]),
                  float(100 * best / work))


def main() -> None:
    """Measure both series."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--sides", nargs="+", type=int, default=[22, 46, 100], help="waters an axis of the strong boxes, ascending")
    add("--weak-side", type=int, default=22, help="waters an axis of a domain of the weak series")
    add("--ranks", nargs="+", type=int, choices=GRIDS, default=list(GRIDS))
    add("--threads", nargs="+", type=int, default=[1, 2])
    add("--steps", nargs=2, type=int, default=[10, 110], metavar=("SHORT", "LONG"))
    add("--rounds", type=int, default=3)
    add("--work", type=Path, help="parent of the folder of the inputs")
    given = benchmark.start(quick={"sides": [10], "weak_side": 10, "ranks": [1, 2], "threads": [1], "steps": [2, 12],
                                   "rounds": 1})
    cores = benchmark.machine["cores"]
    with tempfile.TemporaryDirectory(dir=given.work) as name:
        work = Path(name)
        strong = [Box(work / f"strong{side}_{ranks}", (side,) * 3, ranks) for side in given.sides
                  for ranks in given.ranks]
        weak = [Box(work / f"weak_{ranks}", tuple(given.weak_side * n for n in GRIDS[ranks]), ranks)
                for ranks in given.ranks]
        series = {kind: {(box, threads): [] for box in boxes for threads in given.threads}
                  for kind, boxes in (("strong", strong), ("weak", weak))}
        jobs = {key: (lambda box=key[0], threads=key[1]: box.step(tuple(given.steps), threads))
                for found in series.values() for key in found}
        times = in_turns(jobs, given.rounds)
    largest = strong[-len(given.ranks)]
    machine = this_machine(cores, largest, spread(times[largest, given.threads[0]])["median"])
    for kind, title in (("strong", "Strong scaling"), ("weak", "Weak scaling")):
        table = benchmark.table(kind, f"{title} of chromamd, time of a step, and prediction", **COLUMNS)
        fill(table, {key: times[key] for key in series[kind]}, machine, cores, kind == "weak")
    benchmark.finish()


if __name__ == "__main__":
    main()
