"""What `overlap = YES` and `pme_ranks` of chromamd hide of communication and reciprocal space.

Water from the bundled tile side by side (3: 40,581 atoms), rigid, cutoff 12 angstrom, PME of order 4 on 1.2 angstrom,
2 fs, constant energy, one thread a rank. The settings take turns in each round; of each the median of the milliseconds
a step of every part of the timing table is shown, less a run of few steps.
"""

import statistics
from pathlib import Path

from common.command import Benchmark
from common.engine import PARTS, parts_of, run, set_up, tiled_water

FEW = 10
SETTINGS = {"ENERGY": {"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5}, "CONSTRAINTS": {"rigid_bond": True}}


def seconds(folder: Path, start: Path, ranks: int, steps: int, comm: dict[str, object]) -> dict[str, float]:
    """Seconds of each part of a run."""
    run(folder, start, {**SETTINGS, "COMM": {"transport": "PERSISTENT", **comm},
                        "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": 1000}}, ranks=ranks)
    return parts_of((folder / "run.out").read_text())


def main() -> None:
    """Time the three ways."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--tiles", type=int, default=3)
    add("--ranks", type=int, default=2)
    add("--pme-ranks", type=int, default=1)
    add("--steps", type=int, default=100)
    add("--rounds", type=int, default=3)
    add("--work", type=Path, default=Path("overlap_benchmark"))
    given = benchmark.start(quick={"tiles": 2, "steps": 10, "rounds": 1})
    work = given.work.resolve()
    position, _ = tiled_water(work, given.tiles)
    ways: dict[str, dict[str, object]] = {"default": {}, "overlap = YES": {"overlap": "YES"}}
    if given.pme_ranks:
        ways[f"pme_ranks = {given.pme_ranks}"] = {"pme_ranks": given.pme_ranks}
    starts = {}
    for domains in {given.ranks - comm.get("pme_ranks", 0) for comm in ways.values()}:
        starts[domains] = work / f"start{domains}_().rst"
        set_up(work, starts[domains], (domains, 1, 1))
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(given.rounds):
        for way, comm in ways.items():
            start = starts[given.ranks - comm.get("pme_ranks", 0)]
            short, long = (seconds(work, start, given.ranks, steps, comm) for steps in (FEW, FEW + given.steps))
            found[way].append({part: 1000 * (long[part] - short[part]) / given.steps for part in PARTS})
    columns = {part.replace(" ", "_"): ".2f" for part in PARTS}
    table = benchmark.table("step", "Time per step (ms) with and without overlap of communication and computation: "
                            f"{len(position):,} atoms of water, {given.ranks} ranks",
                            setting="", **columns)
    for way, rounds in found.items():
        table.row(way, *(statistics.median(one[part] for one in rounds) for part in PARTS))
    benchmark.finish()


if __name__ == "__main__":
    main()
