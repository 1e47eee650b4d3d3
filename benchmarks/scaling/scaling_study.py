"""Strong and weak scaling of chromamd from 1,024 to 65,536 ranks: tables and docs/images/scaling.png.

    python benchmarks/scaling/scaling_study.py        (4 min)

Boxes of 0.1 atoms a cubic angstrom on the bundled machines infiniband, dragonfly and torus, 32 ranks a node in blocks
of 2 x 4 x 4 domains. docs/explanation/network-simulation.md lists the assumptions.
"""

from functools import partial
from pathlib import Path

import numpy as np

from chromabuild.scaling.cost import NetworkSpeed, Topology
from chromabuild.scaling.machine import find_machine
from chromabuild.scaling.step import DENSITY, Decomposition, Placement, fft_time, step_time

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "scaling.png"
NODE_BLOCK = (2, 4, 4)
RANK_GRIDS = {1024: (8, 8, 16), 2048: (8, 16, 16), 4096: (16, 16, 16), 8192: (16, 16, 32), 16_384: (16, 32, 32),
              32_768: (32, 32, 32), 65_536: (32, 32, 64)}
TABLE_RANKS = (1024, 4096, 16_384, 32_768, 65_536)
MACHINES = {"fat tree": "infiniband", "dragonfly": "dragonfly", "3D torus": "torus"}


def placed(ranks: int) -> Placement:
    return Placement(RANK_GRIDS[ranks], 32, NODE_BLOCK)


def network(name: str, ranks: int) -> tuple[NetworkSpeed, Topology]:
    machine = find_machine(MACHINES[name])
    return machine.speed, machine.network.topology(ranks // 32, placed(ranks).node_grid)


def strong(atoms: float, ranks: int) -> Decomposition:
    """A cube of so many atoms."""
    return Decomposition(((atoms / DENSITY) ** (1 / 3),) * 3, atoms, RANK_GRIDS[ranks])


def weak(ranks: int, atoms_a_rank: float = 1e9 / 65_536) -> Decomposition:
    """Cubic domains of so many atoms each."""
    edge = (atoms_a_rank / DENSITY) ** (1 / 3)
    return Decomposition(tuple(edge * p for p in RANK_GRIDS[ranks]), atoms_a_rank * ranks, RANK_GRIDS[ranks])


def row(system: Decomposition, name: str, parts: dict[str, float], reference: float) -> str:
    total = sum(parts.values())
    other = fft_time(system, placed(system.ranks), *network(name, system.ranks), "1d")
    return (f"| {name} | {system.ranks:,} | {system.atoms_a_rank:,.0f} | {1e3 * parts['work']:.2f} | "
            f"{1e3 * parts['halo']:.2f} | {1e3 * parts['bricks']:.2f} | {1e3 * parts['FFT']:.2f} | {1e3 * other:.2f} | "
            f"{1e3 * total:.2f} | {100 * reference / total:.0f} % | {86.4 * 2e-6 / total * 1e3:.1f} |")


HEADER = ("| network | ranks | atoms a rank | work | halo | bricks | FFT (2d) | 1d would be | step, ms | efficiency | "
          "ns/day |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|")


def plot(results: dict[str, dict[str, list[float]]]) -> None:
    """`results`: panel -> network -> milliseconds a step for each of RANK_GRIDS."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharex=True)
    ranks = np.array(list(RANK_GRIDS))
    for axis, (title, lines) in zip(axes, results.items(), strict=True):
        for (name, values), style in zip(lines.items(), ("o-", "s--", "^:"), strict=True):
            axis.loglog(ranks, values, style, label=name, markersize=4)
        first = min(values[0] for values in lines.values())
        axis.loglog(ranks, first * (ranks[0] / ranks if "weak" not in title else np.ones(len(ranks))), color="grey",
                    linewidth=0.8, label="ideal")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("ranks")
        if "weak" in title:
            axis.set_yscale("linear")
            axis.set_ylim(0, 100)
    axes[0].set_ylabel("ms a step")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=100)


def main() -> None:
    results: dict[str, dict[str, list[float]]] = {}
    for title, make in (("1e8 atoms", partial(strong, 1e8)), ("1e9 atoms", partial(strong, 1e9)),
                        ("weak, 15,259 atoms a rank", weak)):
        print(f"\n### {title}\n\n{HEADER}")
        results[title] = {}
        for name in MACHINES:
            for ranks in RANK_GRIDS:
                system = make(ranks)
                parts = step_time(system, placed(ranks), *network(name, ranks))
                line = results[title].setdefault(name, [])
                line.append(1e3 * sum(parts.values()))
                reference = line[0] / 1e3 * (1 if make is weak else min(RANK_GRIDS) / ranks)
                if ranks in TABLE_RANKS:
                    print(row(system, name, parts, reference), flush=True)
    plot(results)


if __name__ == "__main__":
    main()
