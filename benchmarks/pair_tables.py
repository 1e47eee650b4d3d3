"""What tables of the pair interaction (table = YES) cost in accuracy and in time beside the formulas.

31,944 atoms of water: cutoff 12 angstrom, Lennard-Jones switched from 10, one thread. Errors are those of the
real-space forces against the formulas in double precision, rms and largest, over the rms force; times the processor
time of a computation of the forces, and of forces with energies, the best of five. The program of the kernels is
compiled into --build when it is not there.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.kernels import program

DENSITIES = {0: [20], 1: [5, 10, 20, 50, 100, 200, 500], 3: [5, 10, 20, 50, 100]}
NAMES = {0: "formulas", 1: "linear", 3: "cubic"}
INSTRUCTION_SETS = {"AVX-512": 3, "AVX2": 2}


def compute(path: Path, folder: Path, side: int, order: int, density: int, repeats: int,
            instruction_set: int = 3) -> tuple[float, float, np.ndarray]:
    """Milliseconds of the forces, of forces and energies, and the forces (n, 3)."""
    settings = [side, 12, 13.5, 10, instruction_set, repeats, order, density, folder / "forces"]
    done = subprocess.run([path, *map(str, settings)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
                          capture_output=True, text=True)
    found = {line[:17].strip(): float(line[17:].split()[0]) for line in done.stdout.splitlines() if " ms" in line}
    return found["forces"], found["forces and energy"], np.fromfile(folder / "forces").reshape(-1, 3)


def main() -> None:
    """Errors, then times."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--what", nargs="+", choices=("errors", "times"), default=["errors", "times"])
    add("--side", type=int, default=22, help="waters an axis")
    add("--build", type=Path, default=Path("build/forces"))
    given = benchmark.start(quick={"side": 14, "what": ["times"]})
    paths = {kind: program(f"kernel_benchmark_{kind}", given.build) for kind in ("mixed", "double")}
    atoms = 3 * given.side**3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "errors" in given.what:
            table = benchmark.table("errors", "Error of tabulated real-space forces relative to analytic forces in "
                                    f"double precision, in units of the rms force: {atoms:,} atoms of water",
                                    order="", density="",
                                    **{"double: rms": ".1e", "double: largest": ".1e", "mixed: rms": ".1e",
                                       "mixed: largest": ".1e"})
            reference = compute(paths["double"], folder, given.side, 0, 20, 1)[2]
            rms = np.sqrt(np.mean(np.sum(reference**2, axis=1)))
            for order, densities in DENSITIES.items():
                for density in densities:
                    cells = []
                    for path in (paths["double"], paths["mixed"]):
                        force = compute(path, folder, given.side, order, density, 1)[2]
                        error = np.linalg.norm(force - reference, axis=1) / rms
                        cells += [float(np.sqrt(np.mean(error**2))), float(error.max())]
                    table.row(NAMES[order], density if order else None, *cells)
        if "times" in given.what:
            table = benchmark.table("times", f"CPU time (ms) of the real-space forces of {atoms:,} atoms of water, "
                                    "1 core", precision="", instruction_set="", order="", density="",
                                    forces=".1f", with_energies=".1f")
            widest = benchmark.machine["instruction_set"]
            sets = {key: value for key, value in INSTRUCTION_SETS.items() if key == "AVX2" or key == widest}
            for kind, path in paths.items():
                for label, number in sets.items():
                    for order, density in ((0, 20), (1, 20), (1, 100), (3, 20)):
                        forces, energies, _ = compute(path, folder, given.side, order, density, 5, number)
                        table.row(kind, label, NAMES[order], density if order else None, forces, energies)
    benchmark.finish()


if __name__ == "__main__":
    main()
