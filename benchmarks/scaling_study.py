"""Strong and weak scaling of chromamd from 1,024 to 65,536 ranks by the network simulator, 5 min.

Boxes of 0.1 atoms a cubic angstrom on the bundled machines infiniband (fat tree), dragonfly and torus, 32 ranks a node
in blocks of 2 x 4 x 4 domains. The work of a rank is the one that benchmarks/measure_step.py measured. --figure draws
docs/images/scaling.png. A run of the GATA4 model's size stands beside what Jung et al. (2019) reached. The atoms that a
domain imports follow from the volumes of half shell and midpoint method.
"""

from functools import partial
from pathlib import Path

import numpy as np
from common.command import Benchmark

from chromabuild.scaling import measured
from chromabuild.scaling.apart import step_apart
from chromabuild.scaling.cost import NetworkSpeed, Topology
from chromabuild.scaling.machine import find_machine
from chromabuild.scaling.measured import StepSettings
from chromabuild.scaling.prediction import Job, Run, predict
from chromabuild.scaling.step import (
    DENSITY,
    SCHEMES,
    Decomposition,
    Placement,
    best_scheme,
    fft_time,
    step_time,
    work_time,
)

NODE_BLOCK = (2, 4, 4)
RANK_GRIDS = {1024: (8, 8, 16), 2048: (8, 16, 16), 4096: (16, 16, 16), 8192: (16, 16, 32), 16_384: (16, 32, 32),
              32_768: (32, 32, 32), 65_536: (32, 32, 64)}
TABLE_RANKS = (1024, 4096, 16_384, 32_768, 65_536)
MACHINES = {"fat tree": "infiniband", "dragonfly": "dragonfly", "3D torus": "torus"}
WEAK = 1e9 / 65_536
"""Atoms a rank."""
REACH = 13.5
"""Angstrom, of the pair list."""


def placed(ranks: int) -> Placement:
    """Where the ranks are."""
    return Placement(RANK_GRIDS[ranks], 32, NODE_BLOCK)


def network(name: str, ranks: int) -> tuple[NetworkSpeed, Topology]:
    """The machine with as many nodes as the ranks fill."""
    machine = find_machine(MACHINES[name])
    return machine.speed, machine.network.topology(ranks // 32, placed(ranks).node_grid)


def strong(atoms: float, ranks: int) -> Decomposition:
    """A cube of so many atoms."""
    return Decomposition(((atoms / DENSITY) ** (1 / 3),) * 3, atoms, RANK_GRIDS[ranks])


def weak(ranks: int) -> Decomposition:
    """Cubic domains of WEAK atoms each."""
    edge = (WEAK / DENSITY) ** (1 / 3)
    return Decomposition(tuple(edge * p for p in RANK_GRIDS[ranks]), WEAK * ranks, RANK_GRIDS[ranks])


SERIES = {"strong_1e8": ("Strong scaling of 10⁸ atoms", partial(strong, 1e8)),
          "strong_1e9": ("Strong scaling of 10⁹ atoms", partial(strong, 1e9)),
          "weak": (f"Weak scaling at {WEAK:,.0f} atoms per rank", weak)}


def imports(benchmark: Benchmark) -> None:
    """Atoms that a cubic domain imports, by the volumes of docs/explanation/domains.md."""
    table = benchmark.table("imports", f"Atoms imported by a cubic domain (0.1 atoms per Å³, reach {REACH} Å)",
                            atoms_per_rank=",.0f", half_shell=",.0f", midpoint=",.0f", **{"difference, %": ".0f"})
    for atoms in (1e8 / 65_536, WEAK, 1e8 / 1024, 1e9 / 1024):
        a, r = (atoms / DENSITY) ** (1 / 3), REACH
        half = DENSITY * (3 * a**2 * r + 3 * np.pi / 2 * a * r**2 + 2 * np.pi / 3 * r**3)
        midpoint = DENSITY * (3 * a**2 * r + 3 * np.pi / 4 * a * r**2 + np.pi / 6 * r**3)
        table.row(atoms, float(half), float(midpoint), float(100 * (midpoint / half - 1)))


def gata4(benchmark: Benchmark) -> None:
    """The box and atoms of the GATA4 model; 1 ns a day is the source's speed at 2 fs for 1e9 atoms on 65,536 ranks of
    two cores, 0.43 that at 1 fs of its table 3."""
    table = benchmark.table("gata4", "Predicted speed of 1.05 · 10⁹ atoms (GATA4 model), 2 fs", machine="", nodes=",",
                            ranks=",", threads="", cores=",", work=",.1f", communication=",.1f", step=",.1f", fft="",
                            **{"ns/day": ".2f", "ns/day of the source": ""})
    run = Run((1907.0, 2252.0, 2485.0), 1_050_000_000, StepSettings(), 0, 1000, 2.0, 0.0, 0.0, 1000)
    for name, nodes, ranks, threads, source in (
            ("oakforest", 2048, 32, 2, "1"), ("infiniband", 2048, 32, 1, ""), ("infiniband", 4096, 32, 1, "")):
        found = predict(run, Job(find_machine(name), nodes, ranks, threads), nearby=False)
        work = found.parts_ms["work"]
        table.row(name, nodes, found.ranks, threads, found.ranks * threads, float(work), float(found.step_ms - work),
                  float(found.step_ms), found.fft, float(found.ns_per_day), source)


def ways(benchmark: Benchmark) -> None:
    """What brings 1e9 atoms on 65,536 ranks of the fat tree below 25 ms a step."""
    ranks = 65_536
    system, net = strong(1e9, ranks), network("fat tree", ranks)
    table = benchmark.table("ways", "Predicted time per step (ms) of 10⁹ atoms on 65,536 ranks of the fat tree", way="",
                            cores=",", **{"real space and halo": ",.1f", "reciprocal space": ",.1f"}, step=",.1f")
    reciprocal = work_time(system, reciprocal=True)

    def row(way: str, threads: int, seconds: float) -> None:
        parts = step_time(system, placed(ranks), *net, threads=threads)
        here = reciprocal / measured.thread_gain(threads) + parts["bricks"] + seconds
        total = sum(parts.values()) - parts["FFT"] + seconds
        table.row(way, ranks * threads, float(1e3 * (total - here)), float(1e3 * here), float(1e3 * total))

    by_rank = min(fft_time(system, placed(ranks), *net, scheme) for scheme in SCHEMES)
    best = best_scheme(system, placed(ranks), *net)[-1]
    row("each rank sends its own messages", 1, by_rank)
    row("fft_by_node = YES", 1, best)
    apart = step_apart(system.edge, 1e9, 32, 4, *net)
    table.row(f"pme_ranks = {apart.pme_ranks}", ranks, apart.real, apart.reciprocal + apart.between, apart.step)
    row("fft_by_node = YES, two threads a rank as the source", 2, best)


SINGLE = {"imports": imports, "gata4": gata4, "ways": ways}
"""Tables that are no series."""


def plot(results: dict[str, dict[str, list[float]]], path: Path) -> None:
    """`results`: series -> network -> milliseconds a step for each of RANK_GRIDS."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharex=True)
    ranks = np.array(list(RANK_GRIDS))
    for axis, (series, lines) in zip(axes, results.items(), strict=True):
        for (name, values), style in zip(lines.items(), ("o-", "s--", "^:"), strict=True):
            axis.loglog(ranks, values, style, label=name, markersize=4)
        first = min(values[0] for values in lines.values())
        axis.loglog(ranks, first * (ranks[0] / ranks if series != "weak" else np.ones(len(ranks))), color="grey",
                    linewidth=0.8, label="ideal")
        axis.set_title(SERIES[series][0], fontsize=10)
        axis.set_xlabel("ranks")
        if series == "weak":
            axis.set_yscale("linear")
            axis.set_ylim(0, 100)
    axes[0].set_ylabel("ms per step")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> None:
    """All series on all networks."""
    benchmark = Benchmark(__doc__, computed="network simulation, independent of the machine")
    add = benchmark.parser.add_argument
    add("--tables", nargs="+", choices=[*SINGLE, *SERIES], default=[*SINGLE, *SERIES], help="only these")
    add("--ranks", nargs="+", type=int, choices=RANK_GRIDS, default=list(RANK_GRIDS), help="ascending")
    add("--figure", type=Path, help="a PNG file of all series at all ranks")
    given = benchmark.start(quick={"tables": ["imports", "strong_1e8"], "ranks": [1024], "figure": None})
    if given.figure and not set(SERIES) <= set(given.tables):
        benchmark.parser.error("--figure draws all series: leave out --tables")
    for name, make in SINGLE.items():
        if name in given.tables:
            make(benchmark)
    results: dict[str, dict[str, list[float]]] = {}
    for series in (name for name in SERIES if name in given.tables):
        title, make = SERIES[series]
        table = benchmark.table(series, f"Predicted time per step (ms), {title[0].lower()}{title[1:]}", network="",
                                ranks=",", atoms_per_rank=",.0f", computation=",.2f", halo=",.2f", bricks=",.2f",
                                **{"FFT (2d)": ",.2f", "FFT (1d)": ",.2f", "FFT (2d by node)": ",.2f"}, step=",.2f",
                                **{"efficiency, %": ".0f", "ns/day": ".1f"})
        results[series] = {}
        for name in MACHINES:
            line = results[series].setdefault(name, [])
            for ranks in given.ranks:
                system = make(ranks)
                parts = step_time(system, placed(ranks), *network(name, ranks))
                total = 1e3 * sum(parts.values())
                line.append(total)
                if ranks not in TABLE_RANKS:
                    continue
                ideal = line[0] * (1 if make is weak else given.ranks[0] / ranks)
                ways_of_fft = (1e3 * fft_time(system, placed(ranks), *network(name, ranks), scheme, by_node)
                               for scheme, by_node in (("2d", False), ("1d", False), ("2d", True)))
                table.row(name, ranks, float(system.atoms_a_rank), *(1e3 * float(parts[part]) for part in
                          ("work", "halo", "bricks")), *ways_of_fft, float(total),
                          float(100 * ideal / total), float(86.4 * 2e-3 / total * 1e3))
    benchmark.finish()
    if given.figure:
        plot(results, given.figure)


if __name__ == "__main__":
    main()
