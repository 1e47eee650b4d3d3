"""A bundled locus from FASTA to dynamics: time and memory of every stage, and what came of it.

The stages are the commands that users run, each in a process of its own. chrXIII is 83 kb of yeast with 468
nucleosomes, demo its first four; --base-pairs takes the beginning of the sequence alone. Settings are those of the
example unless --set changes them (scaffold.tails=flexible, scaffold.sweeps=200, ...); --until leaves out the later
stages. The largest model that has been run, 50 million atoms (12 GB of memory, 50 CPU minutes for the last stage):

    python benchmarks/locus.py --base-pairs 26000 --seeds 1 --until run \\
        --set 'simulate.phases=[{name: minimise, kind: minimise, steps: 15}, {name: dynamics, steps: 3, timestep: 1}]'
"""

import json
import sys
from pathlib import Path

from common.command import Benchmark
from common.shortened import shorten
from common.timing import measured

from chromabuild.pipeline.stages import STAGES

NAMES = [stage.name for stage in STAGES]
COMMAND = (sys.executable, "-P", "-m", "chromabuild.cli")


def figures(summary: object, prefix: str = "") -> dict[str, object]:
    """Numbers and words of a stage's summary by the path of their keys; short lists as words."""
    if isinstance(summary, dict):
        parts = [figures(part, f"{prefix}{key} ") for key, part in summary.items()]
        return {name: value for part in parts for name, value in part.items()}
    if isinstance(summary, list) and summary and all(isinstance(item, int | float | str) for item in summary):
        summary = ", ".join(map(str, summary))
    return {prefix.strip(): summary} if isinstance(summary, int | float | str) else {}


def main() -> None:
    """Run the stages with every seed."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--example", choices=("demo", "chrXIII"), default="chrXIII")
    add("--base-pairs", type=int, help="of the beginning of the locus; all without it")
    add("--seeds", nargs="+", type=int, default=[1, 2, 3])
    add("--until", choices=NAMES, default="clash")
    add("--threads", type=int, default=2)
    add("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of locus.yaml")
    add("--work", type=Path, default=Path("locus"), help="folder of the builds")
    given = benchmark.start(quick={"example": "demo", "seeds": [1], "until": "scaffold", "set": ["scaffold.sweeps=20"]})
    stages = benchmark.table("time", f"Time and memory of each stage: locus {given.example}, {given.threads} threads",
                             folding_seed="", stage="", **{"wall time, s": ".1f", "CPU time, s": ".1f",
                                                           "peak memory, GB": ".2f"})
    found: dict[str, dict[int, dict[str, object]]] = {stage: {} for stage in NAMES[:NAMES.index(given.until) + 1]}
    for seed in given.seeds:
        folder = (given.work / f"{given.example}_{seed}").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        measured([*COMMAND, "init", "--example", given.example, "--force", folder], folder / "init.log")
        if given.base_pairs:
            shorten(folder, given.base_pairs)
        for stage, summaries in found.items():
            options = [word for setting in given.set for word in ("--set", setting)]
            log = folder / f"{stage}.json"
            used = measured([*COMMAND, stage, "--seed", seed, "--threads", given.threads, "--json", *options], log,
                            folder=folder, threads=given.threads)
            stages.row(seed, stage, used.wall, used.cpu, used.memory)
            text = log.read_text()
            summaries[seed] = figures(json.loads(text[text.index("{"):text.rindex("}") + 1]).get("summary", {}))
            if stage == "clash":
                report = json.loads((folder / "results" / "clash_report.json").read_text())
                summaries[seed] |= {f"{count} {when}": report[when][count]["count"] for when in ("before", "after")
                                    for count in ("severe_pairs", "ring_piercings", "threaded_strands")}
    for stage, summaries in found.items():
        table = benchmark.table(stage, f"Summary of `chromabuild {stage}`: locus {given.example}", quantity="",
                                **{f"seed {seed}": ".4g" for seed in summaries})
        for quantity in summaries[given.seeds[0]]:
            table.row(quantity, *(summary.get(quantity) for summary in summaries.values()))
    benchmark.finish()


if __name__ == "__main__":
    main()
