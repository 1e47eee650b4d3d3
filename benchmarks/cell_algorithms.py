"""The real-space algorithms of Jung et al. (2019, doi:10.1002/jcc.25840) beside the engine's lists and kernels.

Their lists of atoms for pairs of cells (Algorithms 1 and 2) or marks and whole cells (3 and 4), with coordinates as
arrays of structures (AoS) or structures of arrays (SoA), on a box of TIP3P water: cutoff 12, list 13.5, switch from 10
angstrom. Single precision, one thread, linear tables. Times are those of 2,000 steps with a list every 10, from the
best of five computations. The program is compiled into --build when it is not there.
"""

import subprocess
from pathlib import Path

from common.command import Benchmark
from common.kernels import program


def main() -> None:
    """Run the program and keep its table."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--side", type=int, default=31, help="waters an axis (31: 89,373 atoms)")
    add("--repeats", type=int, default=5)
    add("--build", type=Path, default=Path("build/forces"))
    given = benchmark.start(quick={"side": 14, "repeats": 1})
    command = [program("cell_algorithms", given.build), given.side, 12, 13.5, 10, given.repeats]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    table = benchmark.table("algorithms", "Neighbour-list algorithms of Jung et al. (2019) and of chromamd: "
                            f"{3 * given.side**3:,} atoms, 2,000 steps, 1 core", algorithm="",
                            **{"list, MiB": ".1f", "pairs per step": "", "lists, s": ".1f", "forces, s": ".1f",
                               "total, s": ".1f", "rms difference": ".1e"})
    for line in done.stdout.splitlines()[2:]:
        memory, pairs, *seconds = line[22:].split()
        table.row(line[:22].strip(), float(memory), int(pairs), *map(float, seconds))
    benchmark.finish()


if __name__ == "__main__":
    main()
