"""One MD step of chromamd in waters of three and of four points with the same number of molecules.

A cube of copies of the bundled tile of water, minimised and run for 1 ps at 300 K in each model; cutoff 9 angstrom,
PME, rigid waters, 2 fs, velocity rescaling. Models take turns in each round; a step costs the difference of a long and
a short run over the difference in their steps. On one core processor time counts, on two the time of the clock.
"""

from functools import partial
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.engine import run, set_up, write_system
from common.results import ratios, spread
from common.timing import in_turns

from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.solvate.water import water_tile

ENERGY = {"cutoffdist": 9, "switchdist": 9, "pairlistdist": 10.5}
MODELS = ("tip3p", "opc", "tip4pew")
STEPS = (20, 220)


def dynamics(steps: int) -> dict[str, dict[str, object]]:
    """Sections of a run."""
    return {"ENERGY": ENERGY, "CONSTRAINTS": {"rigid_bond": True},
            "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": steps},
            "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 300, "tau_t": 0.1}}


def make(folder: Path, model: str, tiles: int) -> int:
    """Restart files of the equilibrated cube in ``folder``; gives the number of molecules."""
    tile = water_tile(model)
    shift = np.stack(np.meshgrid(*[np.arange(tiles)] * 3, indexing="ij"), -1).reshape(-1, 1, 1, 3) * tile.edge
    molecule = (tile.position[None] + shift).reshape(-1, WATER_MODELS[model].n_atoms, 3) / 1000
    box = np.full(3, tiles * tile.edge / 1000)
    molecule -= box * np.floor(molecule[:, :1] / box)  # a brick owns a water by its oxygen
    topology = make_topology(None, {"water": len(molecule)}, water=model)
    write_system(folder, topology, molecule.reshape(-1, 3), box)
    set_up(folder, folder / "built().rst", energy=ENERGY)
    run(folder, folder / "built().rst", {"ENERGY": ENERGY, "MINIMIZE": {"nsteps": 200}}, folder / "low().rst")
    run(folder, folder / "low().rst", dynamics(500), folder / "start().rst")
    return len(molecule)


def a_step(folder: Path, cores: int) -> float:
    """Milliseconds."""
    short, long = (run(folder, folder / "start().rst", dynamics(steps), threads=cores).clock(cores) for steps in STEPS)
    return 1000 * (long - short) / (STEPS[1] - STEPS[0])


def main() -> None:
    """Time all models."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--tiles", type=int, default=2, help="copies of the tile along each axis, two or more")
    add("--cores", type=int, choices=(1, 2), default=1)
    add("--rounds", type=int, default=5)
    add("--work", type=Path, default=Path("water_models"), help="folder of the inputs")
    given = benchmark.start(quick={"rounds": 1}, packages=("openmm",))
    table = benchmark.table("step", f"Time per step on {given.cores} core(s), and relative to TIP3P: median "
                            "[minimum-maximum] of all rounds", model="", molecules="", atoms="",
                            **{"time per step, ms": ".1f", "time / tip3p": ".2f"})
    work = given.work.resolve()
    molecules = {model: make(work / model, model, given.tiles) for model in MODELS}
    cost = in_turns({model: partial(a_step, work / model, given.cores) for model in MODELS}, given.rounds)
    for model, values in cost.items():
        table.row(model, molecules[model], molecules[model] * WATER_MODELS[model].n_atoms, spread(values),
                  None if model == "tip3p" else ratios(values, cost["tip3p"]))
    benchmark.finish()


if __name__ == "__main__":
    main()
