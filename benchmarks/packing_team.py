"""Packing of halo messages by one thread, by an OpenMP region and by a team of threads that wait spinning.

Compiles packing_team.c, whose head says what is timed, with gcc. "alone": one packing after the other; "in a step":
each after an OpenMP region of computation.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common.command import Benchmark

SOURCE = Path(__file__).with_suffix(".c")


def main() -> None:
    """Compile, run, keep the table."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--threads", type=int, default=2)
    given = benchmark.start(quick={})
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "packing_team"
        done = subprocess.run(["gcc", "-O3", "-march=native", "-fopenmp", SOURCE, "-o", binary, "-lpthread"],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{SOURCE} does not compile (Debian: apt install gcc):\n{done.stderr}")
        text = subprocess.run([binary], check=True, capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": str(given.threads)}).stdout
    table = benchmark.table("packing", f"Time (µs) to pack a message with {given.threads} threads: median of 200 "
                            "repetitions", way="", atoms_packed="", alone=".2f", in_a_step=".2f", computation=".1f")
    for line in text.splitlines()[2:]:
        *way, atoms, alone, in_step, computation = line.split()
        table.row(" ".join(way), int(atoms), float(alone), float(in_step), float(computation))
    benchmark.finish()


if __name__ == "__main__":
    main()
