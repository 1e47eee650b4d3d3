"""Atoms of upright boxes, rhombic dodecahedra and truncated octahedra, and chromamd's step in them.

Arrays of nucleosomes are folded and built as the defaults do, and one in a sphere; the plan has the atoms of each box
once the solute is there (within 2 %). Beside it, what the plan says of the dodecahedron before anything is built.

Steps: a duplex of 12 base pairs in a cube, and in the shapes with the same distance between its images; 2 fs at 300 K,
cutoff 9 angstrom, PME, after a minimisation. Boxes take turns in each round, processor seconds of one core count.
"""

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.engine import run, set_up
from common.results import ratios, spread
from common.solutes import duplex
from common.timing import in_turns
from plan_estimates import result_of

from chromabuild.base.settings import SolvateSection
from chromabuild.forcefield.assign import make_topology
from chromabuild.shards.manifest import Manifest
from chromabuild.solvate import solvate

CASES = {"1 nucleosome": ("1x601:167",), "4 nucleosomes": ("4x601:197",), "12 nucleosomes": ("12x601:197",),
         "12, in a sphere of 14 nm": ("12x601:197", "scaffold.confinement_radius=14")}
"""Arrays, and settings."""
SHAPES = {"upright": "", "dodecahedron": "dodecahedron", "octahedron": "octahedron"}
ENERGY = {"cutoffdist": 9, "switchdist": 9, "pairlistdist": 10.5}
STEPS = (20, 120)


def begin(folder: Path, array: str) -> None:
    """A project of an array in a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "chromabuild.cli", "init", folder, "--array", array]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def atoms_of(folder: Path, array: str, settings: list[str], keep: bool) -> dict[str, int]:
    """By shape, and of the dodecahedron ``before`` the build."""
    words = [word for setting in settings for word in ("--set", setting)]
    plan = ("plan", "--threads", 1, *words)
    begin(folder / "plan", array)
    found = {"before": result_of(folder / "plan", *plan, "--set", "solvate.box=dodecahedron")["atoms"]}
    if not (keep and (folder / "build" / "results" / "solute.h5").is_file()):
        begin(folder / "build", array)
        result_of(folder / "build", "all", "--until", "build", "--threads", 1, *words)
    return found | {shape: result_of(folder / "build", *plan, "--set", f"solvate.box={word}")["atoms"]
                    for shape, word in SHAPES.items()}


def make(folder: Path, section: SolvateSection) -> Manifest:
    """Restart files of the duplex in its box, minimised."""
    solute = duplex(12)
    manifest = solvate(solute, section, 1, 1, folder / "shards")
    make_topology(solute, manifest.counts, net_charge=manifest.net_charge).write(folder / "topology.h5")
    set_up(folder, folder / "built().rst", shards=folder / "shards" / "bricks.txt", energy=ENERGY)
    run(folder, folder / "built().rst", {"ENERGY": ENERGY, "MINIMIZE": {"nsteps": 200}}, folder / "start().rst")
    return manifest


def dynamics(steps: int) -> dict[str, dict[str, object]]:
    """Sections of a run."""
    return {"ENERGY": ENERGY, "CONSTRAINTS": {"rigid_bond": True},
            "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": steps},
            "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 300, "tau_t": 0.1}}


def a_step(folder: Path) -> float:
    """Milliseconds."""
    short, long = (run(folder, folder / "start().rst", dynamics(steps)).cpu for steps in STEPS)
    return 1000 * (long - short) / (STEPS[1] - STEPS[0])


def main() -> None:
    """Plan all boxes, and time steps in them."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--cases", nargs="*", choices=CASES, default=list(CASES))
    add("--rounds", type=int, default=5)
    add("--keep", action="store_true", help="solutes that are built already in --work stand")
    add("--work", type=Path, default=Path("box_shapes"), help="folder of the builds")
    given = benchmark.start(quick={"cases": ["1 nucleosome"], "rounds": 1})
    work = given.work.resolve()
    if given.cases:
        table = benchmark.table("shapes", "Atoms in boxes with 10 angstrom of padding, relative to the upright box; "
                                "plan: of the dodecahedron, what it says before the build over what it says then",
                                solute="", upright=",.0f", **{"dodecahedron / upright": ".2f",
                                                              "octahedron / upright": ".2f", "plan": ".2f"})
        for case in given.cases:
            array, *settings = CASES[case]
            atoms = atoms_of(work / case.replace(" ", "_").replace(",", ""), array, settings, given.keep)
            table.row(case, atoms["upright"], atoms["dodecahedron"] / atoms["upright"],
                      atoms["octahedron"] / atoms["upright"], atoms["before"] / atoms["dodecahedron"])
    if given.rounds:
        leaning = {shape: make(work / shape, SolvateSection(box=shape, padding=15.0))
                   for shape in ("dodecahedron", "octahedron")}
        distance = leaning["dodecahedron"].box[0]
        made = {"cube": make(work / "cube", SolvateSection(box=(distance,) * 3)), **leaning}
        cost = in_turns({name: partial(a_step, work / name) for name in made}, given.rounds)
        table = benchmark.table("step", "Processor time of a step on one core, and relative to the cube: median "
                                "[minimum-maximum] of all rounds", box="", **{
                                    "images apart, angstrom": ".1f", "atoms": ",.0f", "atoms / cube": ".2f",
                                    "time per step, ms": ".1f", "time / cube": ".2f"})
        for name, values in cost.items():
            is_cube = name == "cube"
            table.row(name, np.linalg.norm(made[name].vectors if not is_cube else [distance], axis=-1).min(),
                      made[name].atoms, made[name].atoms / made["cube"].atoms, spread(values),
                      None if is_cube else ratios(values, cost["cube"]))
    benchmark.finish()


if __name__ == "__main__":
    main()
