"""Claim: clash detection is several times faster than the peers' neighbour searches, and gives the same pairs.

    python benchmarks/clash_detection.py [--atoms 1000000] [--rounds 5] [--threads 1]

Two clouds: ``sparse``, forty dense clumps in a box mostly empty (chromatin in its bounding box), and ``dense``, one
filled box; atoms keep at least 1.35 A from each other but for 500 planted pairs, in random order. Programs take turns
within each round; the median of process CPU time (all threads) is shown, and the ratio to ours.
"""

import argparse
import statistics
import time

import numpy as np
from MDAnalysis.lib.distances import self_capped_distance
from scipy.spatial import cKDTree

from chromabuild.clash import close_pairs

THRESHOLD = 0.9


def cloud(n, clumps, seed=1):
    """(n, 3) float32: jittered lattices of 0.1 atoms per cubic angstrom, shuffled, with 500 planted close pairs."""
    random = np.random.default_rng(seed)
    side = int(np.ceil((n / clumps) ** (1 / 3)))
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 2.15
    edge = (n * 100.0) ** (1 / 3) if clumps > 1 else 0.0
    grid = np.arange(int(np.ceil(clumps ** (1 / 3))))
    corner = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)[:clumps] * max(
        edge / len(grid), side * 2.15 + 5.0)
    position = (corner[:, None] + lattice[None]).reshape(-1, 3)[:n]
    position = position + random.uniform(-0.4, 0.4, position.shape)
    random.shuffle(position)
    position[:500] = position[500:1000] + 0.3
    return position.astype(np.float32)


def ours(position, threads):
    return close_pairs(position, THRESHOLD, threads=threads)[0]


def scipy_tree(position, threads):
    tree = cKDTree(position, balanced_tree=False, compact_nodes=False)
    return tree.query_pairs(THRESHOLD, output_type="ndarray")


def mdanalysis(position, threads):
    return self_capped_distance(position, THRESHOLD, method="pkdtree", return_distances=False)


PROGRAMS = {"chromabuild": ours, "SciPy cKDTree": scipy_tree, "MDAnalysis pkdtree": mdanalysis}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atoms", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    for name, clumps in (("sparse", 40), ("dense", 1)):
        position = cloud(arguments.atoms, clumps)
        times = {program: [] for program in PROGRAMS}
        walls = {program: [] for program in PROGRAMS}
        counts = {}
        for _ in range(arguments.rounds):
            for program, run in PROGRAMS.items():
                wall, start = time.perf_counter(), time.process_time()
                counts[program] = len(run(position, arguments.threads))
                times[program].append(time.process_time() - start)
                walls[program].append(time.perf_counter() - wall)
        reference = statistics.median(times["chromabuild"])
        extent = np.ptp(position, axis=0)
        print(f"{name}: {len(position)} atoms in {extent[0]:.0f} x {extent[1]:.0f} x {extent[2]:.0f} A")
        for program, values in times.items():
            median = statistics.median(values)
            print(f"  {program:20s} {counts[program]:7d} pairs  CPU {median:7.3f} s  wall "
                  f"{statistics.median(walls[program]):7.3f} s  {len(position) / median / 1e6:6.2f} Matom/s  "
                  f"{median / reference:5.1f} x ours")


if __name__ == "__main__":
    main()
