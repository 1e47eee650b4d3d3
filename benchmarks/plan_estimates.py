"""What `chromabuild plan` says before anything is built, beside what the build then takes.

Arrays of 1, 4 and 12 nucleosomes with tight and loose linkers, DNA alone, a circle and the bundled demo, each from a
new folder: `plan --json`, then every stage on one thread in a process of its own. Memory is the largest
resident set of a stage's process; time is processor time, which other work on the machine disturbs little.
The dynamics is a few steps (--steps), and left out beyond --largest atoms. --packing folds arrays of several lengths
with and without walls, and builds nothing.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from common.command import Benchmark
from common.results import Table
from common.timing import measured

COMMAND = (sys.executable, "-P", "-m", "chromabuild.cli")
STAGES = ("scaffold", "build", "clash", "solvate", "topology", "run")
CASES = {"1 nucleosome": "1x601:197", "1 nucleosome, no linkers": "1x601:147", "4 nucleosomes": "4x601:197",
         "4, tight linkers": "4x601:167", "4, loose linkers": "4x601:237", "12 nucleosomes": "12x601:197",
         "DNA of 300 bp": "DNA 300", "circle of 336 bp": "circle 336", "demo": "demo"}
PARTS = {"solute": ("solute.h5", "solute_clean.h5"), "shards": ("shards",), "topology": ("topology.h5", "topology.psf"),
         "trajectory": ("md/*.dcd",)}
"""Of the disk, by the names of the plan: what a run of some steps leaves beside is not what a long one does."""


def begin(folder: Path, case: str) -> None:
    """A project of a case in a new folder. Bare sequences repeat a spacer of no meaning."""
    kind, _, length = case.partition(" ")
    options: list[object] = ["--array", case]
    if length:
        sequence = ("GCATGTAAGTTCAGTCGATACGTTAGCAAGCTGATCGTCAACTGGCC" * 20)[:int(length)]
        (folder / "bare.fa").write_text(f">bare\n{sequence}\n")
        options = ["--fasta", folder / "bare.fa", *(["--circular"] if kind == "circle" else [])]
    elif case == "demo":
        options = ["--example", "demo"]
    subprocess.run([*COMMAND, "init", *map(str, options), folder], check=True, stdout=subprocess.DEVNULL)


def result_of(folder: Path, *words: object) -> dict:
    """What a command prints as JSON."""
    line = [*COMMAND, *map(str, words), "--json"]
    return json.loads(subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout)


def rows(folder: Path, settings: list[str], largest: float) -> Iterator[tuple[str, float, float]]:
    """(what, predicted, true) of a case: atoms; memory in GB and time in seconds of each stage; disk in GB."""
    words = [word for setting in settings for word in ("--set", setting)]
    plan = result_of(folder, "plan", "--threads", 1, *words)
    took, needed = {}, {}
    for stage in STAGES:
        if stage == "run" and plan["atoms"] > largest:
            break
        used = measured([*COMMAND, stage, "--threads", 1, *words], folder / f"{stage}.log", 1, folder=folder)
        took[stage], needed[stage] = used.cpu, used.memory
        print(f"  {folder.name}, {stage}: {used.cpu:.2f} s, {needed[stage]:.3f} GB", flush=True)
    results = folder / "results"
    manifest = json.loads((results / "shards" / "manifest.json").read_text())
    yield "atoms", plan["atoms"], manifest["atoms"]
    for stage, value in needed.items():
        yield f"memory, {stage}", plan["memory"][stage], value
    for name, patterns in PARTS.items():
        files = [path for pattern in patterns for found in results.glob(pattern)
                 for path in (found.rglob("*") if found.is_dir() else [found]) if path.is_file()]
        if name != "trajectory" or "run" in took:
            yield f"disk, {name}", plan["disk"][name], sum(path.stat().st_size for path in files) / 1e9
    for stage, value in took.items():
        yield f"time, {stage}", plan["seconds"][stage], value


def packing(folder: Path, table: Table, counts: list[int]) -> None:
    """Fold arrays as the defaults do, and without walls."""
    for count in counts:
        cells: list[float] = []
        for way in ("free", "compact"):
            home = folder / f"{count}_{way}"
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            begin(home, f"{count}x601:197")
            plan = result_of(home, "plan", "--fold", "--threads", 1, "--set", f"scaffold.packing={way}")
            cells += [plan["atoms"]]
        table.row(count, *cells, cells[-1] / count)


def main() -> None:
    """Plan and build every case."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--cases", nargs="+", choices=CASES, default=list(CASES))
    add("--steps", type=int, default=2, help="of minimisation and as many of dynamics")
    add("--largest", type=float, default=1.5e5, help="atoms up to which the dynamics runs")
    add("--packing", nargs="*", type=int, default=[], help="numbers of nucleosomes to fold with and without walls")
    add("--work", type=Path, default=Path("plan_estimates"), help="folder of the builds")
    given = benchmark.start(quick={"cases": ["DNA of 300 bp"], "steps": 1})
    work = given.work.resolve()
    if given.packing:
        table = benchmark.table("packing", "Atoms at default settings, arrays of 601 with a repeat of 197 bp",
                                nucleosomes="", **{"without walls": ",.0f", "default": ",.0f",
                                                   "default, a nucleosome": ",.0f"})
        packing(work, table, given.packing)
        benchmark.finish()
        return
    phases = (f"[{{name: minimise, kind: minimise, steps: {given.steps}}}, "
              f"{{name: dynamics, steps: {given.steps}, timestep: 1, trajectory_period: 1}}]")
    table = benchmark.table("cases", "What `plan` says before the build, over what it then takes", case="", what="",
                            said=".4g", taken=".4g", ratio=".2f")
    worst: dict[str, list[float]] = {}
    for case in given.cases:
        home = work / case.replace(" ", "_").replace(",", "")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        begin(home, CASES[case])
        for what, said, taken in rows(home, [f"simulate.phases={phases}"], given.largest):
            table.row(case, what, said, taken, said / taken)
            worst.setdefault(what, []).append(said / taken)
    summary = benchmark.table("summary", f"What `plan` says before the build over what it takes, "
                              f"{len(given.cases)} loci", what="", least=".2f", most=".2f")
    for what, ratios in worst.items():
        summary.row(what, min(ratios), max(ratios))
    benchmark.finish()


if __name__ == "__main__":
    main()
