"""Euler exponential splines of chromaqm beside its direct sums: errors by order, times by number of waters, memory.

Errors: one water in a cube of 12 bohr, LDA, 70 Ry, hard GTH oxygen, at four places on the grid, as the error of a
spline depends on the place. Times and memory: waters in a cube at 1 g/cm^3, 70 Ry, BLYP, potentials of Quantum ESPRESSO
(--pseudo), Car-Parrinello dynamics on one core from random states; a step is the difference of the processor time of
two runs over the difference of their steps. States on the grid are not kept: those of the largest system need too much.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.results import spread
from planewave import ATOMS, UPF, waters

from chromabuild.quantum.chromaqm import executable

PLACES = np.array([(0, 0, 0), (.05, .03, .1), (.1, .13, .02), (.14, .08, .06)])
"""Bohr, within a cell of the grid."""
SUMS = {"direct": ("DIRECT", "DIRECT"), "local": ("SPLINE", "DIRECT"), "nonlocal": ("DIRECT", "SPLINE"),
        "both": ("SPLINE", "SPLINE")}


def run(folder: Path, atoms: str, settings: str) -> tuple[float, float]:
    """Processor seconds and peak memory (GB) of chromaqm on one core."""
    (folder / "atoms.xyz").write_text(f"{len(atoms.splitlines())}\n\n{atoms}\n")
    (folder / "run.inp").write_text(f"[INPUT]\natomfile = atoms.xyz\n{settings}\n[OUTPUT]\nresultfile = result.json\n")
    with open(folder / "out", "w", encoding="utf-8") as out:
        process = subprocess.Popen([str(executable()), "run", "run.inp"], cwd=folder, stdout=out,
                                   stderr=subprocess.STDOUT, env=os.environ | {"OMP_NUM_THREADS": "1"})
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"chromaqm failed: {(folder / 'out').read_text()[-600:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9


def sums(kind: str, order: int = 12) -> str:
    """Keys of [ELECTRONS]."""
    local, nonlocal_ = SUMS[kind]
    return f"local_sums = {local}\nnonlocal_sums = {nonlocal_}\nspline_order = {order}"


def errors(benchmark: Benchmark, orders: list[int]) -> None:
    table = benchmark.table("errors", "Splines less direct sums: energy, largest of four places (Ha), and force on "
                            "oxygen (Ha/bohr)", order="d", local=".1e", nonlocal_=".1e", mean_of_nonlocal=".1e",
                            force_rms=".1e")
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, order in [("direct", 12), *((k, o) for o in orders for k in ("local", "nonlocal"))]:
            results = []
            for place in PLACES:
                atoms = "\n".join("{} {:.6f} {:.6f} {:.6f}".format(element, *(np.array(xyz, float) + place))
                                  for element, *xyz in map(str.split, ATOMS["water"].splitlines()))
                run(folder, atoms, f"length_unit = BOHR\n[SYSTEM]\nbox = 12\n[ELECTRONS]\ncutoff = 70\n"
                    f"functional = PZ\n{sums(kind, order)}\n[MINIMIZE]\ntolerance = 1e-9")
                results.append(json.loads((folder / "result.json").read_text()))
            found[kind, order] = [np.array([result[key] for result in results]) for key in ("total", "forces")]
    energy, force = found["direct", 12]
    for order in orders:
        local, other = (found[kind, order][0] - energy for kind in ("local", "nonlocal"))
        table.row(order, float(abs(local).max()), float(abs(other).max()), float(other.mean()),
                  float(np.sqrt(np.mean((found["nonlocal", order][1] - force)[:, 0]**2))))


def times(benchmark: Benchmark, sizes: list[int], rounds: int, pseudo: Path) -> None:
    table = benchmark.table("times", "Processor time of a step (s) and peak memory (GB), sums direct or by splines of "
                            "order 12", waters="d", grid="d", direct=".2f", local_splines=".2f", both_splines=".2f",
                            memory_direct=".2f", memory_both=".2f")
    for n in sizes:
        atoms, edge = waters(n)
        files = "".join(f"upf{k} = {element} {pseudo / file}\n" for k, (element, file) in enumerate(UPF.items(), 1))
        step: dict[str, list[float]] = {kind: [] for kind in ("direct", "local", "both")}
        memory = {}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for _ in range(rounds):
                for kind, values in step.items():
                    few = 1 if n > 16 else 4
                    settings = (f"{files}[SYSTEM]\nbox = {edge}\n[ELECTRONS]\ncutoff = 70\nmemory = 0\n{sums(kind)}\n"
                                "[MINIMIZE]\ntolerance = 1e4\n[DYNAMICS]\ntimestep = 0.01\nnsteps = ")
                    ends = [run(folder, atoms, f"{settings}{k}") for k in (1, 1 + few)]
                    values.append((ends[1][0] - ends[0][0]) / few)
                    memory[kind] = ends[1][1]
            grid = json.loads((folder / "result.json").read_text())["grid"][0]
        table.row(n, grid, *(spread(values) for values in step.values()), memory["direct"], memory["both"])


def main() -> None:
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--pseudo", type=Path, default=Path("/usr/share/espresso/pseudo"))
    benchmark.parser.add_argument("--orders", type=int, nargs="*", default=[6, 8, 10, 12])
    benchmark.parser.add_argument("--waters", type=int, nargs="*", default=[8, 16, 32, 64])
    benchmark.parser.add_argument("--rounds", type=int, default=1)
    given = benchmark.start(quick={"orders": [6], "waters": []})
    if given.orders:
        errors(benchmark, given.orders)
    if given.waters:
        times(benchmark, given.waters, given.rounds, given.pseudo)
    benchmark.finish()


if __name__ == "__main__":
    main()
