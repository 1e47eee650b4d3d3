"""Claim: what tables of the pair interaction (table = YES) cost in accuracy and in time beside the formulas.

    python benchmarks/pair_tables.py errors|times [BUILD_FOLDER]

Runs kernel_benchmark_mixed and _double (built with CHROMAMD_BUILD_TESTS=ON in BUILD_FOLDER, default build/dev) on
31,944 atoms of water: cutoff 12 angstrom, Lennard-Jones switched from 10, one thread. Errors are those of the
real-space forces against the formulas in double precision, rms and largest, over the rms force; times the processor
time of a computation of the forces, and of forces with energies, the best of five.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

DENSITIES = {0: [20], 1: [5, 10, 20, 50, 100, 200, 500], 3: [5, 10, 20, 50, 100]}
INSTRUCTION_SETS = {3: "AVX-512", 2: "AVX2"}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in ("errors", "times"):
        raise SystemExit(__doc__)
    build = Path(sys.argv[2] if len(sys.argv) == 3 else "build/dev").resolve()
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "errors":
            errors(build, Path(folder))
        else:
            times(build, Path(folder))


def errors(build, folder):
    reference = run(build, folder, "double", 0, 20, repeats=1)[2]
    rms = np.sqrt(np.mean(np.sum(reference**2, axis=1)))
    print("order density   double: rms  largest    mixed: rms  largest")
    for order, densities in DENSITIES.items():
        for density in densities:
            row = f"{order:5d} {density:7d}"
            for kind in ("double", "mixed"):
                force = run(build, folder, kind, order, density, repeats=1)[2]
                error = np.linalg.norm(force - reference, axis=1) / rms
                row += f"      {np.sqrt(np.mean(error**2)):9.1e} {error.max():9.1e}"
            print(row, flush=True)


def times(build, folder):
    print("build  set      order density  forces (ms)  with energies (ms)")
    for kind, sets in (("mixed", INSTRUCTION_SETS), ("double", [3])):
        for instruction_set in sets:
            for order, density in ((0, 20), (1, 20), (1, 100), (3, 20), (0, 20)):
                forces, energies, _ = run(build, folder, kind, order, density, 5, instruction_set)
                print(f"{kind:6s} {INSTRUCTION_SETS[instruction_set]:8s} {order:5d} {density:7d}  {forces:11.1f}  "
                      f"{energies:18.1f}", flush=True)


def run(build, folder, kind, order, density, repeats, instruction_set=3):
    """Milliseconds of the forces, of forces and energies, and the forces (n, 3)."""
    settings = [22, 12, 13.5, 10, instruction_set, repeats, order, density, folder / "forces"]
    done = subprocess.run([build / f"tests/engine/fortran/kernel_benchmark_{kind}", *map(str, settings)], check=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    found = {line[:17].strip(): float(line[17:].split()[0]) for line in done.stdout.splitlines() if " ms" in line}
    return found["forces"], found["forces and energy"], np.fromfile(folder / "forces").reshape(-1, 3)


if __name__ == "__main__":
    main()
