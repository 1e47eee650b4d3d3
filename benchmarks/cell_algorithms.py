"""The real-space algorithms of Jung et al. (2019, doi:10.1002/jcc.25840) beside the engine's lists and kernels.

Their lists of atoms for pairs of cells (Algorithms 1 and 2) or marks and whole cells (3 and 4), with coordinates as
arrays of structures (AoS) or structures of arrays (SoA), on a box of TIP3P water: cutoff 12, list 13.5, switch from 10
angstrom. Single precision, one thread, linear tables. Times are those of 2,000 steps with a list every 10, from the
best of five computations. Lists and marks are default integers, lists stand one after the other. The program is
compiled into --build when it is not there. Published: tables 1 and 2 of the paper, 92,224 atoms (ApoA1) on 32 ranks of
8 threads.
"""

import subprocess
from pathlib import Path

from common.command import Benchmark
from common.kernels import program

PUBLISHED = {"Algorithms 1, 2 (AoS)": (305.88, 47_364_470, 46.37), "Algorithms 1, 2 (SoA)": (305.88, 47_364_470, 40.31),
             "Algorithms 3, 4 (AoS)": (48.40, 122_404_436, 107.37),
             "Algorithms 3, 4 (SoA)": (48.40, 122_404_436, 32.01)}
"""MiB of the list, pairs per step, seconds."""


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
                               "total, s": ".1f", "rms difference": ".1e",
                               "published: list, MiB": ".1f", "published: pairs per step": "",
                               "published: total, s": ".1f"})
    for line in done.stdout.splitlines()[2:]:
        memory, pairs, *seconds = line[22:].split()
        name = line[:22].strip()
        table.row(name, float(memory), int(pairs), *map(float, seconds), *PUBLISHED.get(name, (None,) * 3))
    benchmark.finish()


if __name__ == "__main__":
    main()
