"""What the midpoint method of chromamd imports, sends and costs beside the half shell.

Water from the bundled tile side by side (3: 40,581 atoms), cutoff 12 angstrom, one thread a rank. Of rank 0 the ghosts,
messages and bytes (one way) of a step from the log; of each part of the timing table the median of the milliseconds a
step, less a run of few steps, and the processor time of all ranks. Ranks beyond the cores take turns on them.
"""

import re
import statistics
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.engine import PARTS, parts_of, run, set_up, tiled_water

FEW = 10
METHODS = {"half shell": "HALF_SHELL", "midpoint": "MIDPOINT"}
SETTINGS = {"ENERGY": {"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5}, "CONSTRAINTS": {"rigid_bond": True}}


def seconds(folder: Path, ranks: int, steps: int, method: str) -> dict[str, float]:
    """Seconds of each part, and of all processors."""
    used = run(folder, folder / "start_().rst", {
        **SETTINGS, "COMM": {"transport": "PERSISTENT", "method": method},
        "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": 1000}}, ranks=ranks)
    return {**parts_of((folder / "run.out").read_text()), "processors": used.cpu}


def main() -> None:
    """Time both methods in turn."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--tiles", type=int, default=3)
    add("--domains", default="2x1x1,2x2x2")
    add("--steps", type=int, default=100)
    add("--rounds", type=int, default=3)
    add("--work", type=Path, default=Path("midpoint_benchmark"))
    given = benchmark.start(quick={"tiles": 2, "domains": "2x1x1", "steps": 10, "rounds": 1})
    work = given.work.resolve()
    position, _ = tiled_water(work, given.tiles)
    shown = [*PARTS, "processors"]
    table = benchmark.table(
        "step", f"Half-shell and midpoint methods: {len(position):,} atoms of water, time per step in ms", domains="",
        method="", ghosts_of_rank_0="", messages="", bytes_sent_by_rank_0="",
        **{part.replace(" ", "_"): ".2f" for part in shown})
    for text in given.domains.split(","):
        domains = tuple(int(n) for n in text.split("x"))
        ranks = int(np.prod(domains))
        set_up(work, work / "start_().rst", domains)
        found: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
        counts = {}
        for _ in range(given.rounds):
            for method, key in METHODS.items():
                short = seconds(work, ranks, FEW, key)
                long = seconds(work, ranks, FEW + given.steps, key)
                log = (work / "run.out").read_text()
                counts[method] = re.search(r"has (\d+) ghosts and sends (\d+) messages, (\d+) bytes", log).groups()
                found[method].append({part: 1000 * (long[part] - short[part]) / given.steps for part in shown})
        for method, rounds in found.items():
            table.row(text.replace("x", " x "), method, *map(int, counts[method]),
                      *(statistics.median(one[part] for one in rounds) for part in shown))
    benchmark.finish()


if __name__ == "__main__":
    main()
