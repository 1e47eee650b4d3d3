"""Peak memory of chromamd on one rank, and the times of `chromamd setup` and of a run's start, for boxes of water.

The start of a run is all that comes before its first step, the first energies included.
"""

from pathlib import Path

from common.command import Benchmark
from common.engine import equilibrated_cell, replicated, set_up, smooth_size, water_topology, write_system
from common.md_peers import run_chromamd

BOXES = {"w4k": (1, 1, 1), "w100k": (3, 3, 3), "w300k": (4, 4, 5), "w2m": (8, 8, 10), "w10m": (14, 14, 14)}


def main() -> None:
    """Measure the boxes, smallest first."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--systems", nargs="+", choices=BOXES, default=["w100k", "w300k", "w2m", "w10m"])
    add("--cores", type=int, choices=(1, 2), default=1)
    add("--steps", type=int, default=5)
    add("--work", type=Path, default=Path("engine_memory"), help="folder of the inputs")
    given = benchmark.start(quick={"systems": ["w4k"]})
    given.work.mkdir(parents=True, exist_ok=True)
    table = benchmark.table("peak", f"Peak memory per atom (kB) of a run of {given.steps} steps, wall times of "
                            f"`chromamd setup` and of a run without a step, 1 rank, {given.cores} thread(s)",
                            **{"atoms (water)": "", "peak memory per atom, kB": ".3f", "set-up, s": ".1f",
                               "start, s": ".1f"})
    cell = equilibrated_cell(given.work.resolve())
    for name in given.systems:
        folder = (given.work / name).resolve()
        position, box = replicated(cell, BOXES[name])
        write_system(folder, water_topology(len(position) // 3, hydrogen_lj=True), position, box)
        made = set_up(folder, folder / "start().rst")
        grid = [smooth_size(length) for length in box]
        used = run_chromamd(folder, grid, given.steps, given.cores)
        started = min(run_chromamd(folder, grid, 0, given.cores).wall for _ in range(3))
        table.row(len(position), 1e6 * used.memory / len(position), made.wall, started)
    benchmark.finish()


if __name__ == "__main__":
    main()
