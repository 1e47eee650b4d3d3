"""Claim: what `overlap = YES` and `pme_ranks` of chromamd hide of communication and reciprocal space.

    python benchmarks/overlap.py [--tiles 3] [--ranks 2] [--steps 100] [--rounds 3] [--pme-ranks 1] [--work FOLDER]

Water from the bundled tile side by side (3: 40,581 atoms), rigid, cutoff 12 angstrom, PME of order 4 on 1.2 angstrom,
2 fs, constant energy, one thread a rank. The ways take turns in each round; of each the median of the milliseconds a
step of every part of the timing table is shown, less a run of few steps.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from chromabuild.simulate.chromamd import executable
from chromabuild.solvate.water import water_tile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "engine"))
import systems

FEW = 10
PARTS = ["real space", "reciprocal", "bonded", "pair list", "communication", "constraints", "integration", "total"]


def make_water(folder: Path, tiles: int) -> None:
    """Topology and bricks."""
    tile = water_tile()
    shift = np.stack(np.meshgrid(*[np.arange(tiles)] * 3, indexing="ij"), -1).reshape(-1, 1, 1, 3) * tile.edge
    position = (tile.position.reshape(1, -1, 3, 3) + shift).reshape(-1, 3) / 1000
    runs = [(systems.water(), len(position) // 3)]
    systems.write_topology(folder / "t.h5", runs)
    systems.write_bricks(folder, runs, position, np.full(3, tiles * tile.edge / 1000))
    print(f"{len(position)} atoms", flush=True)


def set_up(folder: Path, domains: int) -> None:
    """Restart files of so many domains."""
    start = folder / f"start{domains}_().rst"
    control = systems.control(folder / "setup.inp", OUTPUT={"rstfile": start},
                              INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"},
                              BOUNDARY={"domain_x": domains, "domain_y": 1, "domain_z": 1})
    subprocess.run([executable(), "setup", control], check=True, stdout=subprocess.DEVNULL)


def launch(folder: Path, ranks: int, steps: int, comm: dict, start: Path) -> str:
    """The log of a run from these restart files."""
    control = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
        ENERGY={"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5},
        COMM={"transport": "PERSISTENT", **comm}, CONSTRAINTS={"rigid_bond": "YES"},
        DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": 1000})
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), executable(), "run",
                           control], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def parts_of(log: str) -> dict[str, float]:
    """Seconds of each part."""
    return {part: float(re.search(rf"^ *{part} +([0-9.]+)", log, re.MULTILINE)[1]) for part in PARTS}


def run(folder: Path, ranks: int, steps: int, comm: dict) -> dict[str, float]:
    """Seconds of each part."""
    domains = ranks - comm.get("pme_ranks", 0)
    return parts_of(launch(folder, ranks, steps, comm, folder / f"start{domains}_().rst"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiles", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pme-ranks", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("overlap_benchmark"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    make_water(arguments.work, arguments.tiles)
    ways = {"as it comes": {}, "overlap": {"overlap": "YES"}}
    if arguments.pme_ranks:
        ways |= {"pme_ranks": {"pme_ranks": arguments.pme_ranks}}
    for domains in {arguments.ranks - comm.get("pme_ranks", 0) for comm in ways.values()}:
        set_up(arguments.work, domains)
    found = {way: [] for way in ways}
    for _ in range(arguments.rounds):
        for way, comm in ways.items():
            short, long = (run(arguments.work, arguments.ranks, steps, comm) for steps in (FEW, FEW + arguments.steps))
            found[way].append({part: 1000 * (long[part] - short[part]) / arguments.steps for part in PARTS})
    print("ms/step       " + "".join(f"{part:>15}" for part in PARTS))
    for way, rounds in found.items():
        print(f"{way:14}" + "".join(f"{statistics.median(r[part] for r in rounds):15.2f}" for part in PARTS))


if __name__ == "__main__":
    main()
