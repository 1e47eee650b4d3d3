"""Table 1 of Bohm et al. (2008), Car-Parrinello steps of water on Blue Gene/L, beside the network simulator.

Every entry of the table, the time with and without the topology-aware map, and where a step's time goes. Five constants
are fitted on the column of 1,024 nodes; all other columns are predicted. The messages of all runs were simulated once,
in about 25 minutes of one core, and are kept in chromabuild/scaling/data/planewave_loads.json; --simulate simulates
them anew and writes that file. --save draws docs/images/planewave_network.png, too.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from common.command import Benchmark

from chromabuild.scaling.published import bluegene_planewave as paper
from chromabuild.scaling.published.comparison import mean_deviation

FIGURE = Path(__file__).resolve().parent.parent / "docs/images/planewave_network.png"


def simulate(jobs: int) -> None:
    """Simulate the messages of all runs and keep them."""
    runs = paper.runs()
    with ProcessPoolExecutor(jobs) as pool:
        found = dict(zip(runs, pool.map(paper.simulate, *zip(*runs, strict=True)), strict=True))
    paper.write_loads(found)


def draw() -> None:
    """Seconds a step of coprocessor mode, and what the topology-aware map gains."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), dpi=110)
    for number, waters in enumerate((8, 16, 32, 64, 128, 256)):
        keys = [key for key, entry in paper.entry_of().items() if key[:2] == (waters, paper.CO) and entry]
        nodes = [key[2] for key in keys]
        left.loglog(nodes, [paper.seconds(*key) for key in keys], "-", color=f"C{number}", label=f"{waters} waters")
        left.loglog(nodes, [paper.measured()[key] for key in keys], "o", color=f"C{number}", ms=4)
    left.axvline(paper.FITTED, color="0.7", lw=0.8, zorder=0)
    left.set_xlabel("nodes (fitted at the grey line)")
    left.set_ylabel("seconds a step")
    left.set_title("lines: simulated; points: published", fontsize=10)
    left.legend(frameon=False, fontsize=8, loc="lower left", ncols=2)
    for waters, marker in ((32, "o"), (256, "s")):
        rows = np.array([row[1:] for row in paper.topology_ratios() if row[0] == waters], dtype=float)
        for column, (style, label) in enumerate((("k", "published"), ("C0", "simulated, by lot"),
                                                 ("C1", "simulated, in order")), 1):
            if np.isnan(rows[:, column]).all():
                continue
            right.semilogx(rows[:, 0], rows[:, column], style + marker + "-", ms=4, label=f"{waters} waters, {label}")
    right.set_ylim(bottom=0)
    right.set_xlabel("nodes")
    right.set_title("time without the topology map over time with it", fontsize=10)
    right.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURE)


def main() -> None:
    """Print all tables."""
    benchmark = Benchmark(__doc__, computed="network simulation, independent of the machine")
    benchmark.parser.add_argument("--simulate", type=int, metavar="JOBS", help="simulate the messages anew")
    given = benchmark.start(quick={"simulate": None})
    if given.simulate:
        simulate(given.simulate)
        given.simulate = None
    nodes = [str(n) for n in paper.NODES]
    steps = benchmark.table("steps", "Seconds a step, published: simulated (deviation in %); 1,024 nodes are fitted",
                            waters="", run="", **dict.fromkeys(nodes, ""))
    entries = paper.entry_of()
    for waters, run in paper.TABLE:
        steps.row(waters, run, *(_cell(entries, (waters, run, n)) for n in paper.NODES))
    errors = benchmark.table("errors", "Deviations of the predicted entries", run="", entries="",
                             **{"mean, %": ".0f", "worst, %": "+.0f", "worst entry": ""})
    for run in (paper.CO, paper.VN, paper.MPI, paper.NO_TOPOLOGY, paper.NO_SPLINE):
        chosen = [entry for key, entry in entries.items() if key[1] == run and entry and not entry.fitted]
        worst = max(chosen, key=lambda entry: abs(entry.deviation))
        errors.row(run, len(chosen), 100 * mean_deviation(chosen), 100 * worst.deviation, worst.name)
    ratios = benchmark.table("topology", "Time without the topology-aware map over time with it", waters="", nodes=",",
                             published=".2f", **{"simulated, by lot": ".2f", "simulated, in order": ".2f"})
    for row in paper.topology_ratios():
        ratios.row(*row)
    cables = benchmark.table("cables", "Seconds a step that are lost without the map, and what all its bytes take "
                             "through the busiest cable of each stage, objects by lot, one stage after the other",
                             waters="", nodes=",", lost=".3g", **{"through cables": ".3g"})
    for waters, nodes, *_ in paper.topology_ratios():
        lost = paper.measured()[waters, paper.NO_TOPOLOGY, nodes] - paper.measured()[waters, paper.CO, nodes]
        cables.row(waters, nodes, lost, paper.cable_seconds(waters, paper.NO_TOPOLOGY, nodes))
    parts = benchmark.table("stages", "Simulated milliseconds of a step by stage", waters="", run="", nodes=",",
                            **dict.fromkeys(("I", "II", "III, IV, IX", "V, VI", "VII", "VIII"), ".3g"))
    for waters, run, n in ((32, paper.CO, 1024), (32, paper.NO_TOPOLOGY, 1024), (32, paper.CO, 8192),
                           (32, paper.NO_TOPOLOGY, 8192), (256, paper.CO, 1024), (256, paper.NO_TOPOLOGY, 1024),
                           (256, paper.CO, 8192), (256, paper.NO_TOPOLOGY, 8192)):
        parts.row(waters, run, n, *(1e3 * paper.seconds(waters, run, n, stage)
                                    for stage in ("I", "II", "III, IV, IX", "V, VI", "VII", "VIII")))
    fitted = benchmark.table("constants", "Constants fitted on the column of 1,024 nodes", constant="", value=".3g",
                             unit="")
    transform, product, message, mpi, cable = paper.constants()
    fitted.row("transforms and sums over the grid", 1e-9 / transform, "Gflop/s a core")
    fitted.row("matrix products", 1e-9 / product, "Gflop/s a core")
    fitted.row("a message sent or received, own layer", 1e6 * message, "us")
    fitted.row("a message sent or received, MPI", 1e6 * mpi, "us")
    fitted.row("time of the busiest cable that counts", cable, "of its bytes over 175 MB/s")
    benchmark.finish()
    if given.save:
        draw()


def _cell(entries: dict[tuple[int, str, int], paper.Entry | None], key: tuple[int, str, int]) -> str:
    if key not in entries:
        return ""
    entry = entries[key]
    if entry is None:
        return f"{paper.measured()[key]:g}: not simulated"
    return f"{entry.paper:g}: {entry.ours:.3g} ({100 * entry.deviation:+.0f})"


if __name__ == "__main__":
    sys.exit(main())
