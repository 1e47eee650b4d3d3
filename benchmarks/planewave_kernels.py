"""Kernels of chromaqm beside the peak of a core: products of states and their transforms.

Waters in a cube at 1 g/cm^3, 70 Ry, one core, processor time. The peak is that of a matrix product of NumPy's BLAS
(3,000 rows, the same core, in turns). The potential needs its states twice, there and back. The driver is that of the
tests: cmake -S tests/planewave/fortran -B BUILD.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.results import ratios, spread
from planewave import WATER_VOLUME

BOHR = 0.529177210903


def peak(n: int = 3000) -> float:
    """Gflop/s of a matrix product."""
    a = np.random.default_rng(1).normal(size=(n, n))
    start = time.process_time()
    a @ a
    return 2e-9 * n**3 / (time.process_time() - start)


def kernels(driver: Path, waters: int, repeats: int) -> dict[str, float]:
    """Gflop/s of each kernel."""
    edge = (waters * WATER_VOLUME) ** (1 / 3) / BOHR
    done = subprocess.run([driver, "kernels", str(edge), str(4 * waters), str(repeats)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"qm_driver failed: {done.stderr}")
    rows = [line.split() for line in done.stdout.splitlines()]
    return {name: 1e-9 * float(operations) / float(seconds) for name, operations, seconds in rows}


def main() -> None:
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--driver", type=Path, default=Path("build/qm/qm_driver"))
    benchmark.parser.add_argument("--waters", type=int, nargs="*", default=[8, 32])
    benchmark.parser.add_argument("--rounds", type=int, default=3)
    benchmark.parser.add_argument("--repeats", type=int, default=2)
    given = benchmark.start(quick={"waters": [1], "rounds": 1})
    table = benchmark.table("rates", "Kernels of states (Gflop/s), and their fraction of the peak", waters="d",
                            kernel="", rate=".1f", peak=".1f", fraction=".2f")
    for waters in given.waters:
        best, found = [], []
        for _ in range(given.rounds):
            best.append(peak())
            found.append(kernels(given.driver.resolve(), waters, given.repeats))
        for name in found[0]:
            rates = [one[name] for one in found]
            table.row(waters, name, spread(rates), spread(best), ratios(rates, best))
    benchmark.finish()


if __name__ == "__main__":
    main()
