"""What `chromabuild plan` says before anything is built, beside what the build then takes.

Arrays of 1 to 45 nucleosomes with tight and loose linkers, in walls and in the smallest box, with and without a dry
relaxation, DNA alone, a circle, the bundled demo and 26 kb of the bundled locus in walls, each from a new folder:
`plan --json`, then every stage, exports and an analysis, on one thread in a process of its own. Memory is that of all
processes of a stage together, or the largest resident set of one where that is more (short peaks); time is processor
time, which other work on the machine disturbs little. The dynamics is a few steps (--steps), and left out beyond
--largest atoms. --packing folds arrays of several lengths with and without walls, and builds nothing.
"""

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from common.command import Benchmark
from common.memory import MemoryWatch
from common.results import Table
from common.timing import measured

import chromabuild
import mesoscale
from chromabuild.pipeline.needs import analysis_memory, export_memory

COMMAND = (sys.executable, "-P", "-m", "chromabuild.cli")
STAGES = ("scaffold", "build", "clash", "relax", "solvate", "topology", "run", "report")
SMALLEST = ("scaffold.choose=smallest-box",)
RELAXED = ("relax.enabled=true", "relax.minimise_steps=20", "relax.length=40 fs")
CASES = {"1 nucleosome": ("1x601:197", *RELAXED), "1 nucleosome, no linkers": ("1x601:147",),
         "4 nucleosomes": ("4x601:197",), "4, tight linkers": ("4x601:167", *RELAXED),
         "4, loose linkers": ("4x601:237",), "4, smallest box": ("4x601:197", *SMALLEST),
         "12 nucleosomes": ("12x601:197",), "12, smallest box": ("12x601:197", *SMALLEST),
         "45 nucleosomes": ("45x601:197",), "DNA of 300 bp": ("DNA 300",), "DNA of 1000 bp": ("DNA 1000",),
         "circle of 336 bp": ("circle 336",), "demo": ("demo",),
         "yeast, 26 kb": ("chrXIII", "scaffold.confinement_radius=")}
"""What is built, and settings."""
PARTS = {"solute": ("solute.h5", "solute_clean.h5", "solute_relaxed.h5"), "shards": ("shards",),
         "topology": ("topology.h5", "topology.psf"),
         "trajectory": ("md/*.dcd",)}
"""Of the disk, by the names of the plan: what a run of some steps leaves beside is not what a long one does."""
AGAIN, SHORT = ("scaffold", "build", "clash", "topology"), 10.0
"""Stages that are measured twice where they take fewer processor seconds: the lesser time counts, which other work has
disturbed less. The others would find what is there."""
COMMANDS = {"export gromacs": (("export", "gromacs", "--force"), partial(export_memory, "gromacs")),
            "export amber": (("export", "amber", "--force"), partial(export_memory, "amber")),
            "export structure": (("export", "structure", "solute.cif", "--force"), partial(export_memory, "structure")),
            "analyse": (("analyse", "trajectory", "--topology", "results/solute_clean.h5", "--measure", "dna",
                         "--output", "tables", "--threads", 1), partial(analysis_memory, processes=0))}
"""Beside the stages: words, and what they ask for, bytes for so many atoms of the solute."""


def begin(folder: Path, case: str) -> None:
    """A project of a case in a new folder. Bare sequences repeat a spacer of no meaning."""
    kind, _, length = case.partition(" ")
    options: list[object] = ["--array", case]
    if length:
        sequence = ("GCATGTAAGTTCAGTCGATACGTTAGCAAGCTGATCGTCAACTGGCC" * 30)[:int(length)]
        (folder / "bare.fa").write_text(f">bare\n{sequence}\n")
        options = ["--fasta", folder / "bare.fa", *(["--circular"] if kind == "circle" else [])]
    elif case == "demo":
        options = ["--example", "demo"]
    elif case == "chrXIII":
        options = ["--example", "chrXIII", "--region", "chrXIII:36,501-62,500"]
    subprocess.run([*COMMAND, "init", *map(str, options), folder], check=True, stdout=subprocess.DEVNULL)


def result_of(folder: Path, *words: object) -> dict:
    """What a command prints as JSON."""
    line = [*COMMAND, *map(str, words), "--json"]
    return json.loads(subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout)


def used_by(folder: Path, plan: dict, words: list[str], largest: float, keep: bool) -> dict[str, tuple[float, float]]:
    """Seconds and GB that each stage of a planned build took. They lie in taken.json beside the project; with ``keep``
    what is there already stands."""
    record = folder.with_name("taken.json")
    found = json.loads(record.read_text()) if keep and record.is_file() else {}
    for stage in (*STAGES, *COMMANDS):
        is_left_out = stage in STAGES and stage not in plan["seconds"] or stage == "run" and plan["atoms"] > largest
        if stage in found or is_left_out:
            continue
        line = (*COMMANDS[stage][0],) if stage in COMMANDS else (stage, "--threads", 1, *words)
        with MemoryWatch(interval=0.1, skipped=2) as together:  # this process, and the one that measures
            used = measured([*COMMAND, *line], folder / f"{stage}.log", 1, folder=folder)
        seconds = used.cpu
        if stage in AGAIN and seconds < SHORT:
            seconds = min(seconds, measured([*COMMAND, *line], folder / f"{stage}.log", 1, folder=folder).cpu)
        found[stage] = seconds, max(used.memory, together.largest / 1e9)
        print(f"  {folder.parent.name}, {stage}: {used.cpu:.2f} s, {found[stage][1]:.3f} GB", flush=True)
        record.write_text(json.dumps(found))
    return found


def disk_of(results: Path, patterns: tuple[str, ...]) -> float:
    """GB of files and of what lies in folders."""
    found = [one for pattern in patterns for path in results.glob(pattern)
             for one in (path.rglob("*") if path.is_dir() else [path]) if one.is_file()]
    return sum(path.stat().st_size for path in found) / 1e9


def rows(folder: Path, locus: str, settings: list[str], largest: float, keep: bool
         ) -> Iterator[tuple[str, float, float]]:
    """(what, predicted, true) of a case: atoms; memory in GB and time in seconds of each stage; disk in GB."""
    words = [word for setting in settings for word in ("--set", setting)]
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    for name in ("plan", "build"):  # a plan beside its build would know the box
        if name == "plan":
            shutil.rmtree(folder / name, ignore_errors=True)
        if not (folder / name).exists():
            (folder / name).mkdir(parents=True)
            begin(folder / name, locus)
    plan = result_of(folder / "plan", "plan", "--threads", 1, *words)
    used = used_by(folder / "build", plan, words, largest, keep)
    results = folder / "build" / "results"
    yield "atoms", plan["atoms"], json.loads((results / "shards" / "manifest.json").read_text())["atoms"]
    for stage, (_, memory) in used.items():
        said = COMMANDS[stage][1](plan["solute_atoms"]) / 1e9 if stage in COMMANDS else plan["memory"][stage]
        yield f"memory, {stage}", said, memory
    for name, patterns in PARTS.items():
        if name != "trajectory" or "run" in used:
            yield f"disk, {name}", plan["disk"][name], disk_of(results, patterns)
    for stage, (seconds, _) in used.items():
        if stage in STAGES:
            yield f"time, {stage}", plan["seconds"][stage], seconds


def home_of(work: Path, case: str) -> Path:
    """Where a case is planned and built."""
    return work / case.replace(" ", "_").replace(",", "")


def packing(work: Path, table: Table, counts: list[int], keep: bool) -> None:
    """Atoms of arrays folded as the defaults do, and without walls; with ``keep`` those of a build that is there."""
    for count in counts:
        cells: list[float] = []
        for way in ("free", "compact"):
            array = f"{count}x601:197"
            case = next((name for name, what in CASES.items() if what[0] == array), array)
            home = home_of(work, case) / "build" if way == "compact" else work / f"{count}_{way}"
            is_built = keep and (home / "results" / "shards" / "manifest.json").is_file()
            if not is_built:
                shutil.rmtree(home, ignore_errors=True)
                home.mkdir(parents=True)
                begin(home, array)
            plan = result_of(home, "plan", *([] if is_built else ["--fold"]), "--threads", 1, "--set",
                             f"scaffold.packing={way}")
            cells += [plan["atoms"]]
        table.row(count, *cells, cells[-1] / count)


def compile_all() -> None:
    """Make the byte code that an installation has, so that no stage takes the time for it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for package in (chromabuild, mesoscale):
        compileall.compile_dir(package.__path__[0], quiet=1)


def main() -> None:
    """Plan and build every case."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--cases", nargs="+", choices=CASES, default=list(CASES))
    add("--steps", type=int, default=2, help="of minimisation and as many of dynamics")
    add("--largest", type=float, default=1.5e5, help="atoms up to which the dynamics runs")
    add("--packing", nargs="*", type=int, default=[], help="numbers of nucleosomes to fold with and without walls")
    add("--work", type=Path, default=Path("plan_estimates"), help="folder of the builds")
    add("--keep", action="store_true", help="what earlier runs took stands (taken.json in --work); plans are made anew")
    given = benchmark.start(quick={"cases": ["DNA of 300 bp"], "steps": 1})
    compile_all()
    work = given.work.resolve()
    if given.packing:
        table = benchmark.table("packing", "Atoms at default settings, arrays of 601 with a repeat of 197 bp",
                                nucleosomes="", **{"without walls": ",.0f", "default": ",.0f",
                                                   "default, a nucleosome": ",.0f"})
        packing(work, table, given.packing, given.keep)
        benchmark.finish()
        return
    phases = (f"[{{name: minimise, kind: minimise, steps: {given.steps}}}, "
              f"{{name: dynamics, steps: {given.steps}, timestep: 1, trajectory_period: 1}}]")
    table = benchmark.table("cases", "What `plan` says before the build, over what it then takes", case="", what="",
                            said=".4g", taken=".4g", ratio=".2f")
    worst: dict[str, list[float]] = {}
    for case in given.cases:
        home = home_of(work, case)
        locus, *settings = CASES[case]
        for what, said, true in rows(home, locus, [f"simulate.phases={phases}", *settings], given.largest, given.keep):
            table.row(case, what, said, true, said / true)
            worst.setdefault(what, []).append(said / true)
    summary = benchmark.table("summary", f"What `plan` says before the build over what it takes, "
                              f"{len(given.cases)} loci", what="", least=".2f", most=".2f")
    for what, ratios in worst.items():
        summary.row(what, min(ratios), max(ratios))
    benchmark.finish()


if __name__ == "__main__":
    main()
