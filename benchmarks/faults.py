"""Kill, harm, fill and crowd a small build, and count what was lost.

A small build (DNA alone, so that every stage takes seconds) goes through the whole chain once, undisturbed. Then

- every stage is killed at random moments, the engine's too, and asked for again;
- the disk fails at the calls of every stage that change files, one by one: full, over quota, broken;
- random bits of all files of the output folder are flipped, and `chromabuild verify` is asked;
- harmed and made-up files are given to every reader;
- several `chromabuild all` are started in one folder at once;
- commands beside the chain, such as exports, are stopped, killed and crowded, and their disks fail.

With --journal a run that was stopped goes on where it was, and a run of more trials makes those that are missing; what
is saved says how many came from the file. Parts share the --seconds. Journals of runs side by side can be joined:

    python benchmarks/faults.py --share 1 2 --journal one --seconds 2200 &
    python benchmarks/faults.py --share 2 2 --journal other --seconds 2200; wait
    cat one other > faults.journal
    python benchmarks/faults.py --journal faults.journal --seconds 0 --save

The exit code is 1 when a file was torn, lost, left over or other than undisturbed, when a failure was not told in one
sentence with its exit code, or when a flip was not noticed.
"""

import os
import sys
import tempfile
from pathlib import Path

from common.fault_trials import preload

if __name__ == "__main__" and not {"-h", "--help"} & {*sys.argv}:
    preload(Path(tempfile.gettempdir()) / f"failing-disk-{os.getuid()}.so")

import collections
import contextlib
import errno
import importlib
import pkgutil
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace

from common.command import Benchmark
from common.command_trials import STOPS, Walk, names_of
from common.fault_trials import (
    REPOSITORY,
    Build,
    chromabuild,
    count_calls,
    failed_once,
    killed_once,
    wait_for,
)
from common.input_readers import readers
from common.journal import Journal
from common.mutated_inputs import FAULTS, MADE, OUTCOMES, SEVERAL, harm

PARTS = ("kills", "disks", "flips", "inputs", "company", "commands")
ERRORS = {errno.ENOSPC: "full", errno.EDQUOT: "over quota", errno.EIO: "broken"}
SEQUENCE = "ACGTTGCATGCATC"
SECONDS, FILES = "seconds of stages", "files with flips"
"""Keys of what a journal has beside trials, for tables that are made without a build."""


def shares(total: int, build: Build) -> dict[str, int]:
    """Trials of each stage, fewer of those that take long."""
    weight = {stage: 1 / max(1.0, build.seconds[stage]) ** 0.5 for stage in build.stages}
    return {stage: max(2, round(total * weight[stage] / sum(weight.values()))) for stage in build.stages}


def some_of(calls: int, trials: int, name: str) -> list[int]:
    """Calls, from 1 on, that are to fail; those of fewer trials are among those of more."""
    order = [*range(1, calls + 1)]
    random.Random(name).shuffle(order)
    return order[:trials]


def counted(journal: Journal, key: str, count: Callable[[], int]) -> int:
    """How many calls there are, counted where the journal lacks it; 0: another run counts them, or time is up."""
    if journal.todo([key]) and not journal.is_late:
        journal[key] = count()
    return sum(journal.results([key]))


def tried(journal: Journal, keys: list[str], trial: Callable[[str], dict]) -> collections.Counter:
    """Make the trials that the journal lacks; how often each thing was found in all of them.

    A trial gives names of what may be lost to the cases, and ``as``, the name of how it ended.
    """
    for key in journal.todo(keys):
        if journal.is_late:
            break
        found = journal[key] = trial(key)
        lost = {what: cases for what, cases in found.items() if what != "as" and cases}
        if lost:
            print(f"  {key}: {str(lost)[:1000]}", flush=True)
    counts: collections.Counter = collections.Counter()
    for found in journal.results(keys):
        counts["trials"] += 1
        counts[str(found["as"])] += 1
        counts.update(what for what, cases in found.items() if what != "as" and cases)
    return counts


def kills(benchmark: Benchmark, build: Build, journal: Journal, total: int) -> int:
    """Trials of each stage, and what was lost."""
    title = "Stages killed (SIGKILL) at random moments and run again"
    table = benchmark.table("kills", title, stage="", **{
        "killed at work": "d", "torn files": "d", "part files left": "d", "second runs that failed": "d",
        "other bytes": "d"})

    def trial(key: str) -> dict:
        stage = key.split()[1]
        return killed_once(build, stage, random.Random(key).uniform(0.02, 1.05 * build.seconds[stage]))

    keys = {stage: [f"kills {stage} {k}" for k in range(n)] for stage, n in shares(total, build).items()}
    # In such an order that a run that ends early has killed all stages, each in its share.
    for _, key in sorted((k / len(of_stage), key) for of_stage in keys.values() for k, key in enumerate(of_stage)):
        tried(journal, [key], trial)
    lost = 0
    for stage in build.stages:
        counts = tried(journal, keys[stage], trial)
        table.row(stage, *(counts[key] for key in ("killed", "torn", "left", "failed", "different")))
        lost += sum(counts[key] for key in ("torn", "left", "failed", "different"))
    return lost


def disks(benchmark: Benchmark, build: Build, journal: Journal, total: int) -> int:
    """Failures at the calls of each stage, and what was lost; of stages of fewer calls than trials at each of them."""
    title = "Disks that are full, over quota or broken from one call on, and mended"
    table = benchmark.table("disks", title, stage="", **{
        "calls that change files": "d", "tried": "d", "exit code 6": "d", "exit code 0": "d",
        "not told in one sentence": "d", "torn files": "d", "part files left": "d", "second runs that failed": "d",
        "other bytes": "d"})

    def trial(key: str) -> dict:
        _, call, _, stage = key.split()
        return failed_once(build, stage, int(call), random.Random(key).choice([*ERRORS]))

    lost = 0
    for stage, trials in shares(total, build).items():
        if not (calls := counted(journal, f"disks of {stage}", partial(count_calls, build, stage))):
            continue
        counts = tried(journal, [f"disks {call} of {stage}" for call in some_of(calls, trials, stage)], trial)
        keys = ("code 6", "code 0", "unclean", "torn", "left", "failed", "different")
        table.row(stage, calls, counts["trials"], *(counts[key] for key in keys))
        lost += sum(counts[key] for key in keys[2:])
    return lost


def flips(benchmark: Benchmark, build: Build, journal: Journal, total: int) -> int:
    """Bits of files that are flipped, and how many were not noticed."""
    table = benchmark.table("flips", "Single bits flipped in files of the output folder", **{
        "files": "d", "flips": "d", "noticed by verify": "d", "not noticed": "d"})

    @cache
    def files() -> list[Path]:
        shutil.copytree(build.root / "alone", build.root / "flipped")
        return sorted(path for path in (build.root / "flipped" / "results").rglob("*")
                      if path.is_file() and not path.name.startswith(".") and path.stat().st_size)

    def trial(key: str) -> dict:
        folder = build.root / "flipped"
        rng = random.Random(key)
        path = rng.choice(files())
        kept = path.read_bytes()
        at, bit = rng.randrange(len(kept)), 1 << rng.randrange(8)
        path.write_bytes(kept[:at] + bytes([kept[at] ^ bit]) + kept[at + 1:])
        ended = wait_for(chromabuild(folder, "verify"), folder)
        path.write_bytes(kept)
        is_noticed = ended.code == 5 and ended.is_clean
        return {"as": "noticed" if is_noticed else "missed", "missed in": [] if is_noticed else [
            f"{path.relative_to(folder)}, byte {at}, bit {bit}: {ended.code}: {ended.told[-300:]}"]}

    number = counted(journal, FILES, lambda: len(files()))
    counts = tried(journal, [f"flips {k}" for k in range(total)], trial)
    table.row(number, *(counts[key] for key in ("trials", "noticed", "missed")))
    return counts["missed"]


def inputs(benchmark: Benchmark, build: Build, journal: Journal, total: int) -> int:
    """Harmed and made-up files of every format, and what readers made of them."""
    folder, chunk = build.root / "inputs", 200 if total >= 20_000 else 20
    shutil.copytree(build.root / "alone", folder / "build")
    every = readers(folder / "build", REPOSITORY)
    weight = {reader.name: reader.share / max(len(reader.content), 2000) ** 0.5 for reader in every}
    kinds = (*FAULTS, SEVERAL, MADE)
    found: dict[str, dict[str, collections.Counter]] = {}
    for reader in every:
        found[reader.name] = {kind: collections.Counter() for kind in kinds}
        chunks = max(1, round(total * weight[reader.name] / sum(weight.values()) / chunk))
        keys = [f"inputs {k * chunk}-{(k + 1) * chunk} {reader.name}" for k in range(chunks)]
        for key in journal.todo(keys):
            if journal.is_late:
                break
            counts, examples = harm(reader, range(*map(int, key.split()[1].split("-"))), folder)
            journal[key] = counts
            for outcome, told in examples.items():
                print(*(f"  {reader.name}: {outcome}: {text[:300]}" for text in told), sep="\n", flush=True)
        for result in journal.results(keys):
            for kind, outcomes in result.items():
                found[reader.name][kind].update(outcomes)
    words = {"read": "read", "refused": "refused in a sentence", "traceback": "traceback", "hang": "beyond 10 s",
             "crash": "crash", "loss": "records lost in silence"}
    table = benchmark.table("inputs", "Harmed and made-up files given to their readers", format="", files="d",
                            **dict.fromkeys(words.values(), "d"))
    for name, by_kind in found.items():
        total_of = sum(by_kind.values(), collections.Counter())
        table.row(name, sum(total_of.values()), *(total_of[key] for key in words))
    title = "The same by fault: refused of given, and * where anything was lost, crashed or hung"
    table = benchmark.table("mutations", title, format="", **dict.fromkeys(kinds, ""))
    for name, by_kind in found.items():
        table.row(name, *(_share(by_kind[kind]) for kind in kinds))
    return sum(outcomes[key] for by_kind in found.values() for outcomes in by_kind.values() for key in OUTCOMES[2:])


def _share(outcomes: collections.Counter) -> str:
    given = sum(outcomes.values())
    is_bad = any(outcomes[key] for key in OUTCOMES[2:])
    return f"{outcomes['refused']}/{given}{'*' * is_bad}" if given else ""


def company(benchmark: Benchmark, build: Build, journal: Journal, rounds: int) -> int:
    """Processes that work in one folder at once."""
    table = benchmark.table("company", "Several `chromabuild all` in one folder at once", processes="d", rounds="d", **{
        "ended well": "d", "told that another is at work": "d", "ended otherwise": "d", "part files left": "d",
        "other bytes": "d"})
    lost = 0
    for n in (2, 10):
        keys = [f"company {n} {k}" for k in range(rounds)]
        for key in journal.todo(keys):
            if journal.is_late:
                break
            rng, folder = random.Random(key), build.fresh(build.stages[0])
            started, ends = [], []
            for _ in range(n):
                started.append(chromabuild(folder, "all", "--until", build.stages[-1]))
                time.sleep(rng.uniform(0, 0.3))
            for pid in started:
                ended = wait_for(pid, folder)
                ends.append(ended.code)
                if ended.code not in (0, 9):
                    print(f"  {n} processes: {ended.code}: {ended.told[-300:]}", flush=True)
            different = build.differ(build.stages[-1], folder / "results")
            if different:
                print(f"  {n} processes: {different}", flush=True)
            journal[key] = {"ends": ends, "left": any((folder / "results").rglob("*.part")), "different": different}
        made = journal.results(keys)
        codes = collections.Counter(code for result in made for code in result["ends"])
        otherwise = sum(number for code, number in codes.items() if code not in (0, 9))
        left, different = (sum(bool(result[key]) for result in made) for key in ("left", "different"))
        table.row(n, len(made), codes[0], codes[9], otherwise, left, different)
        lost += otherwise + left + different + sum(0 not in result["ends"] for result in made)
    return lost


def commands(benchmark: Benchmark, build: Build, journal: Journal, calls: int) -> int:
    """Commands beside the chain: so many calls at which the disk fails, every signal once, and two at once."""
    title = "Commands beside the chain: disks that fail, signals, two at once, and the same command again"
    table = benchmark.table("commands", title, command="", **{
        "calls that change files": "d", "tried": "d", "exit code 6": "d", "told otherwise": "d", "torn files": "d",
        "files or processes left": "d", "second runs that failed": "d", "other bytes": "d"})
    walk, lost = cache(partial(Walk, build)), 0

    def trial(key: str) -> dict:
        _, how, at, _, name = key.split(" ", 4)
        if how == "disk":
            return walk().disk_fails(name, int(at), random.Random(key).choice([*ERRORS]))
        if how == "crowd":
            return walk().crowded(name)
        return walk().stopped(name, how, random.Random(key).uniform(0.1, 0.9))

    for name in names_of(build.stages):
        if not (number := counted(journal, f"commands of {name}", lambda name=name: walk().count_calls(name))):
            continue
        counts = tried(journal, [*(f"commands disk {call} of {name}" for call in some_of(number, calls, name)),
                                 *(f"commands {how} 0 of {name}" for how in (*STOPS, "crowd"))], trial)
        if not counts["trials"]:
            continue
        left = counts["left"] + counts["left after"] + counts["at work"]
        found = [counts["unclean"], counts["torn"], left, counts["failed"], counts["different"]]
        table.row(name, number, counts["trials"], counts["code 6"], *found)
        lost += sum(found)
    return lost


def import_all() -> None:
    """Load what commands load, so that forked ones begin with their work."""
    for name in ("h5py", "matplotlib.pyplot", "openmm.app", "scipy.optimize", "scipy.spatial"):
        importlib.import_module(name)
    for name in ("chromabuild", "mesoscale"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith(("__main__", ".matrix_reader")):  # programs; the latter has a thread
                with contextlib.suppress(ImportError):  # of an extra that is not installed
                    importlib.import_module(module.name)


def main() -> None:
    """Make the build, disturb it, tell what was lost."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add("--kills", type=int, default=500)
    add("--disks", type=int, default=400, help="trials, shared out to the stages; from about 2000 on at every call")
    add("--flips", type=int, default=1000)
    add("--inputs", type=int, default=100_000)
    add("--rounds", type=int, default=3)
    add("--calls", type=int, default=10, help="at which the disk of each command beside the chain fails")
    add("--until", default="report", help="the last stage that is disturbed (at least solvate)")
    add("--journal", type=Path, help="file to which the results of trials are appended; those in it are not repeated")
    add("--share", type=int, nargs=2, default=(1, 1), metavar=("K", "N"),
        help="of N runs side by side with journals of their own, this is the K-th")
    add("--seconds", type=float, default=1e9, help="no trial begins later; tables count those that were made")
    given = benchmark.start(quick={"kills": 4, "disks": 8, "flips": 8, "inputs": 400, "rounds": 1, "calls": 1,
                                    "until": "solvate"})
    import_all()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "duplex.fa").write_text(f">duplex\n{SEQUENCE}\n")
        journal = Journal(given.journal, given.seconds, given.share)
        if given.seconds > 0 or "inputs" in given.parts:
            build = Build(root, ("--fasta", str(root / "duplex.fa")), given.until)
            journal[SECONDS] = build.seconds
        else:  # tables alone: no trial begins
            build = SimpleNamespace(stages=[*journal[SECONDS]], seconds=journal[SECONDS])
        print(", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in build.seconds.items()), flush=True)
        lost, parts = 0, {"inputs": (inputs, given.inputs), "flips": (flips, given.flips),
                          "company": (company, given.rounds), "kills": (kills, given.kills),
                          "disks": (disks, given.disks), "commands": (commands, given.calls)}
        chosen = [parts[name] for name in parts if name in given.parts]
        for k, (part, number) in enumerate(chosen):
            journal.share_out(len(chosen) - k)
            lost += part(benchmark, build, journal, number)
        vars(given).update(journal=None, share=None, results_of_this_run=journal.made,
                           results_of_earlier_runs=journal.kept)
    benchmark.finish()
    sys.exit(lost > 0)


if __name__ == "__main__":
    main()
