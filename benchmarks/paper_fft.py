"""Axis overlap, chopping and rank subsets of the distributed FFT against none of them, on two networks.

Transforms of a complex grid in double precision as Fang, Deng and Martyna (Comput. Phys. Commun. 176, 531, 2007) time
them: forward, from bricks to bricks (scheme qcdoc), in one piece, in chunks, and in chunks with the return along one
axis beside the way along the next. Half of the ranks are on either of two nodes, network namespaces (common/nodes.py)
joined by a cable of --megabits; beside them the same ranks on one node. Neighbours along the last axis that is cut or,
scattered, along the first are on the other node. `wire`: bytes that cross the cable over its bandwidth, the T_model of
the paper.

Then the transposes of Eleftheriou et al. (IBM Research Report, 2007): schemes 1d and columns with lines on all ranks,
every second rank, or as many as there are lines, on ranks that share the cores, beside the planner's choice; a forward
and a backward transform of a real grid as PME has it.

All settings take turns in each round. Wall time of the slowest rank: median (least) of the rounds. Ranks that share
cores with each other or with other programs make the median long; ratios are those of the least.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import nodes
from common.command import Benchmark
from common.kernels import fft_library

ROOT = Path(__file__).resolve().parents[1]
GRIDS = {2: (1, 1, 2), 4: (1, 2, 2), 8: (2, 2, 2), 27: (3, 3, 3), 64: (4, 4, 4)}


def rank_main(options: argparse.Namespace) -> None:
    """One rank: times all cases in turn and writes its times (ms) and what it sent."""
    import numpy
    from chromafft import Fft, start_mpi, stop_mpi, wait_for_all
    rank, _ = start_mpi()
    cases = []
    for case in options.cases:
        fft = Fft(tuple(case.pop("n")), **case)
        grid = numpy.random.default_rng(rank).normal(size=fft.real_layout.size).astype(fft.grid_type)
        cases.append((fft, grid, numpy.empty(fft.wave_layout.size, fft.wave_type), []))
    for turn in range(options.rounds + 1):
        for fft, grid, waves, times in cases:
            wait_for_all()
            start = time.perf_counter()
            fft.start(1, grid, waves)
            fft.finish()
            if options.both_ways:
                fft.start(2, waves, grid)
                fft.finish()
                grid /= grid.size
            if turn:
                times.append(1e3 * (time.perf_counter() - start))
    Path(f"{options.results}.{rank}").write_text(json.dumps(
        [{"times": times, "counts": fft.counts(), "choice": fft.choice()[0]} for fft, _, _, times in cases]))
    for fft, *_ in cases:
        fft.close()
    stop_mpi()


def timed(folder: Path, ranks: int, pair: nodes.Pair | None, scatter: bool, library: Path,
          **given: object) -> list[dict]:
    """Of each case the slowest rank's ms of each round, the messages and bytes of all ranks, and what was chosen."""
    results = folder / "times"
    command = [sys.executable, __file__, "rank", json.dumps(given | {"results": str(results)})]
    environment = {"CHROMAFFT_LIBRARY": str(library), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                   "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "PYTHONPATH": os.pathsep.join([str(ROOT / "fortran/fft"), *filter(None, sys.path)])}
    if pair is None:
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        subprocess.run([*launch, *command], env=os.environ | environment, check=True, timeout=600)
    else:
        pair.mpirun(ranks, command, scatter, environment)
    found = [json.loads(Path(f"{results}.{rank}").read_text()) for rank in range(ranks)]
    return [{"ms": [max(turn) for turn in zip(*(one["times"] for one in case), strict=True)],
             "messages": max(sum(count[1] for count in one["counts"]) for one in case),
             "bytes": max(sum(count[2] for count in one["counts"]) for one in case),
             "choice": case[0]["choice"]} for case in zip(*found, strict=True)]


def spread_of(times: list[float]) -> dict[str, float]:
    """The cell of a table."""
    return {"median": statistics.median(times), "least": min(times)}


def wire_ms(n: int, megabits: float) -> float:
    """The time that the cable takes for the bytes of a transform in one direction: along the axis that crosses it half
    of the points go to the other node, there and back."""
    return 1e3 * 2 * 16 * n**3 / 4 * 8 / (megabits * 1e6)


def overlap(benchmark: Benchmark, folder: Path, given: argparse.Namespace, library: Path) -> None:
    """The table of ways, networks and grids."""
    table = benchmark.table(
        "overlap", "Forward transform of a complex grid (double precision) from bricks to bricks",
        ranks="", grid="", network="", chunks="", **{"axes overlap": "", "wire, ms": ".1f", "time, ms": ".1f",
                                                     "least / one piece": ".2f"})
    ways = [(1, False), *itertools.product(given.chunks, (False, True))]
    networks = [("one node", 0, False)]
    for megabits in given.megabits:
        networks.append((f"{megabits} Mbit/s across the last axis", megabits, False))
        networks.append((f"{megabits} Mbit/s across the first axis", megabits, True))
    with nodes.two_namespaces(folder / "nodes") as pair:
        for ranks, n, (network, megabits, scatter) in itertools.product(given.ranks, given.sizes, networks):
            if scatter and ranks == 2:
                continue
            pair.limit(megabits)
            cases = [{"n": [n] * 3, "scheme": "qcdoc", "transport": "persistent", "grid": GRIDS[ranks], "real": False,
                      "n_chunks": chunks, "overlap_axes": axes} for chunks, axes in ways]
            found = timed(folder, ranks, pair if megabits else None, scatter, library, cases=cases,
                          rounds=given.rounds, both_ways=False)
            for (chunks, axes), result in zip(ways, found, strict=True):
                table.row(ranks, f"{n}^3", network, chunks, "yes" if axes else "no",
                          wire_ms(n, megabits) if megabits else None,
                          spread_of(result["ms"]), min(result["ms"]) / min(found[0]["ms"]))


def subsets(benchmark: Benchmark, folder: Path, given: argparse.Namespace, library: Path) -> None:
    """The table of transposes among subsets of ranks."""
    table = benchmark.table(
        "subsets", "Forward and backward transform of a real grid (single precision), lines on subsets of the ranks",
        ranks="", grid="", scheme="", subset="", **{"messages of a rank": "", "kB of a rank": ".1f", "time, ms": ".1f",
                                                    "least / planner's": ".2f"})
    for ranks in given.many:
        for n in given.small:
            named = [("model", "full"), *itertools.product(("1d", "columns"), ("full", "compressed", "expanded"))]
            cases = [{"n": [n] * 3, "scheme": scheme, "subset": subset, "single": True,
                      "grid": GRIDS[ranks], "wave_order": (2, 0, 1)} for scheme, subset in named]
            found = timed(folder, ranks, None, False, library, cases=cases, rounds=given.rounds, both_ways=True)
            for (scheme, subset), result in zip(named, found, strict=True):
                if scheme == "model":
                    scheme, subset = result["choice"].split()[:2]
                    scheme += " (planner)"
                table.row(ranks, f"{n}^3", scheme, subset, result["messages"], result["bytes"] / 1000,
                          spread_of(result["ms"]), min(result["ms"]) / min(found[0]["ms"]))


def main() -> None:
    """Both tables."""
    if len(sys.argv) > 2 and sys.argv[1] == "rank":
        rank_main(argparse.Namespace(**json.loads(sys.argv[2])))
        return
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--build", type=Path, default=ROOT / "build/fft", help="folder of libchromafft.so")
    add("--sizes", type=int, nargs="+", default=[64])
    add("--ranks", type=int, nargs="+", default=[2, 8], choices=(2, 4, 8))
    add("--megabits", type=int, nargs="*", default=[200, 1000], help="of the cable; none: one node only")
    add("--chunks", type=int, nargs="+", default=[2, 4])
    add("--many", type=int, nargs="*", default=[8, 64], choices=(8, 27, 64), help="ranks of the second table")
    add("--small", type=int, nargs="+", default=[8], help="its grids")
    add("--rounds", type=int, default=9)
    given = benchmark.start(quick={"sizes": [16], "ranks": [2], "megabits": [], "many": [8], "small": [8], "rounds": 2})
    reason = nodes.missing()
    if reason:
        sys.exit(f"two nodes cannot be had: {reason}")
    library = fft_library(given.build)
    with tempfile.TemporaryDirectory() as name:
        overlap(benchmark, Path(name), given, library)
        subsets(benchmark, Path(name), given, library)
    benchmark.finish()


if __name__ == "__main__":
    main()
