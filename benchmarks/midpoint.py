"""Claim: what the midpoint method of chromamd imports, sends and costs beside the half shell.

    python benchmarks/midpoint.py [--tiles 3] [--domains 2x1x1,2x2x2] [--steps 100] [--rounds 3] [--work FOLDER]

Water and settings of benchmarks/overlap.py, one thread a rank. Of rank 0 the ghosts, messages and bytes (one way) of a
step from the log; of each part of the timing table the median of the milliseconds a step, less a run of few steps, and
the processor time of all ranks.
"""

import argparse
import re
import resource
import statistics
import subprocess
from pathlib import Path

from overlap import FEW, PARTS, executable, launch, make_water, parts_of, systems

METHODS = ["HALF_SHELL", "MIDPOINT"]


def set_up(folder: Path, domains: list[int]) -> None:
    """Restart files of these domains."""
    control = systems.control(
        folder / "setup.inp", OUTPUT={"rstfile": folder / "start_().rst"},
        INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"},
        BOUNDARY={f"domain_{axis}": n for axis, n in zip("xyz", domains, strict=True)})
    subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(domains[0] * domains[1] * domains[2]),
                    executable(), "setup", control], check=True, stdout=subprocess.DEVNULL)


def run(folder: Path, ranks: int, steps: int, method: str) -> tuple[dict[str, float], str]:
    """Seconds of each part, with those of all processors, and the log's line on the halo."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = launch(folder, ranks, steps, {"method": method, "transport": "PERSISTENT"}, folder / "start_().rst")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = {**parts_of(log), "processors": after.ru_utime - before.ru_utime}
    return seconds, next(line for line in log.splitlines() if "halo:" in line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiles", type=int, default=3)
    parser.add_argument("--domains", default="2x1x1,2x2x2")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("midpoint_benchmark"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    make_water(arguments.work, arguments.tiles)
    for text in arguments.domains.split(","):
        domains = [int(n) for n in text.split("x")]
        ranks = domains[0] * domains[1] * domains[2]
        set_up(arguments.work, domains)
        found = {method: [] for method in METHODS}
        lines = {}
        for _ in range(arguments.rounds):
            for method in METHODS:
                short, _ = run(arguments.work, ranks, FEW, method)
                long, lines[method] = run(arguments.work, ranks, FEW + arguments.steps, method)
                found[method].append({part: 1000 * (long[part] - short[part]) / arguments.steps for part in long})
        print(f"{text}, ms/step  ghosts messages   bytes" + "".join(f"{part:>14}" for part in [*PARTS, "processors"]))
        for method, rounds in found.items():
            counts = re.search(r"has (\d+) ghosts and sends (\d+) messages, (\d+) bytes", lines[method]).groups()
            print(f"{method:14}" + "{:>9}{:>9}{:>8}".format(*counts) + "".join(
                f"{statistics.median(r[part] for r in rounds):14.2f}" for part in [*PARTS, "processors"]), flush=True)


if __name__ == "__main__":
    main()
