"""A bundled locus from FASTA to shards and force field: time, memory and size of every stage, and what came of it.

The stages are the commands that users run, each in a process of its own: scaffold, build, clash, solvate, topology.
chrXIII is 83 kb of yeast with 468 nucleosomes, demo its first four. Settings are those of the example unless --set
changes them (scaffold.tails=flexible, scaffold.sweeps=200, ...); --until leaves out the later stages.
"""

import json
import sys
from pathlib import Path

from common.command import Benchmark
from common.timing import measured

STAGES = ("scaffold", "build", "clash", "solvate", "topology")
COMMAND = (sys.executable, "-P", "-m", "chromabuild.cli")


def figures(summary: object, prefix: str = "") -> list[tuple[str, object]]:
    """Numbers and words of a stage's summary, by the path of their keys."""
    if isinstance(summary, dict):
        return [row for key, value in summary.items() for row in figures(value, f"{prefix}{key} ")]
    return [(prefix.strip(), summary)] if isinstance(summary, int | float | str) else []


def main() -> None:
    """Run the stages with every seed."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--example", choices=("demo", "chrXIII"), default="chrXIII")
    add("--seeds", nargs="+", type=int, default=[1, 2, 3])
    add("--until", choices=STAGES, default="clash")
    add("--threads", type=int, default=2)
    add("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of locus.yaml")
    add("--work", type=Path, default=Path("locus"), help="folder of the builds")
    given = benchmark.start(quick={"example": "demo", "seeds": [1], "until": "scaffold", "set": ["scaffold.sweeps=20"]})
    stages = benchmark.table("stages", f"The locus {given.example}, {given.threads} threads", seed="", stage="", **{
        "wall, s": ".1f", "CPU, s": ".1f", "memory, GB": ".2f"})
    found = benchmark.table("found", f"What the stages say of the locus {given.example}", seed="", stage="",
                            quantity="", value="")
    for seed in given.seeds:
        folder = (given.work / f"{given.example}_{seed}").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        measured([*COMMAND, "init", "--example", given.example, "--force", folder], folder / "init.log")
        for stage in STAGES[:STAGES.index(given.until) + 1]:
            options = [word for setting in given.set for word in ("--set", setting)]
            log = folder / f"{stage}.json"
            used = measured([*COMMAND, stage, "--seed", seed, "--threads", given.threads, "--json", *options], log,
                            folder=folder, threads=given.threads)
            stages.row(seed, stage, used.wall, used.cpu, used.memory)
            text = log.read_text()
            for quantity, value in figures(json.loads(text[text.index("{"):text.rindex("}") + 1]).get("summary", {})):
                found.row(seed, stage, quantity, value)
    benchmark.finish()


if __name__ == "__main__":
    main()
