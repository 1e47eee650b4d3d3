"""Kill, harm, fill and crowd a small build, and count what was lost.

A small build (DNA alone, so that every stage takes seconds) goes through the whole chain once, undisturbed. Then

- every stage is killed at random moments, the engine's too, and asked for again;
- the disk fails at the calls of every stage that change files, one by one: full, over quota, broken;
- random bits of all files of the output folder are flipped, and `chromabuild verify` is asked;
- harmed files are given to every reader;
- several `chromabuild all` are started in one folder at once.

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
import errno
import random
import shutil
import signal
import time

from common.command import Benchmark
from common.fault_trials import (
    REPOSITORY,
    Build,
    chromabuild,
    count_calls,
    failed_once,
    killed_once,
    wait_for,
)
from common.mutated_inputs import OUTCOMES, harm, readers

PARTS = ("kills", "disks", "flips", "inputs", "company")
ERRORS = {errno.ENOSPC: "full", errno.EDQUOT: "over quota", errno.EIO: "broken"}
SEQUENCE = "ACGTTGCATGCATCGATCGATTACGCTAGCGGACT"


def shares(total: int, build: Build) -> dict[str, int]:
    """Trials of each stage, fewer of those that take long."""
    weight = {stage: 1 / max(1.0, build.seconds[stage]) ** 0.5 for stage in build.stages}
    return {stage: max(2, round(total * weight[stage] / sum(weight.values()))) for stage in build.stages}


def kills(benchmark: Benchmark, build: Build, total: int, rng: random.Random) -> int:
    """Trials of each stage, and what was lost."""
    title = "Stages killed (SIGKILL) at random moments and run again"
    table = benchmark.table("kills", title, stage="", trials="d", **{
        "killed at work": "d", "torn files": "d", "part files left": "d", "second runs that failed": "d",
        "other bytes": "d"})
    lost = 0
    for stage, trials in shares(total, build).items():
        counts: collections.Counter = collections.Counter()
        for _ in range(trials):
            found = killed_once(build, stage, rng.uniform(0.02, 1.05 * build.seconds[stage]))
            counts["killed"] += bool(found.pop("killed"))
            for what, cases in found.items():
                counts[what] += bool(cases)
                if cases:
                    print(f"  {stage}: {what}: {cases[:3]}", flush=True)
        table.row(stage, trials, *(counts[key] for key in ("killed", "torn", "left", "failed", "different")))
        lost += sum(counts[key] for key in ("torn", "left", "failed", "different"))
    return lost


def disks(benchmark: Benchmark, build: Build, total: int, rng: random.Random) -> int:
    """Failures at the calls of each stage, and what was lost."""
    title = "Disks that are full, over quota or broken from one call on, and mended"
    table = benchmark.table("disks", title, stage="", **{
        "calls that change files": "d", "tried": "d", "exit code 6": "d", "exit code 0": "d",
        "not told in one sentence": "d", "torn files": "d", "part files left": "d", "second runs that failed": "d",
        "other bytes": "d"})
    lost = 0
    for stage, trials in shares(total, build).items():
        calls, counts = count_calls(build, stage), collections.Counter()
        chosen = range(1, calls + 1) if calls <= trials else sorted(rng.sample(range(1, calls + 1), trials))
        for call in chosen:
            found = failed_once(build, stage, call, rng.choice([*ERRORS]))
            counts[f"code {found.pop('code')}"] += 1
            for what, cases in found.items():
                counts[what] += bool(cases)
                if cases:
                    print(f"  {stage}, call {call}: {what}: {cases[:3]}", flush=True)
        keys = ("code 6", "code 0", "unclean", "torn", "left", "failed", "different")
        table.row(stage, calls, len(chosen), *(counts[key] for key in keys))
        lost += sum(counts[key] for key in keys[2:])
    return lost


def flips(benchmark: Benchmark, build: Build, total: int, rng: random.Random) -> int:
    """Bits of files that are flipped, and how many were not noticed."""
    table = benchmark.table("flips", "Single bits flipped in files of the output folder", **{
        "files": "d", "flips": "d", "noticed by verify": "d", "not noticed": "d"})
    folder = build.root / "flipped"
    shutil.copytree(build.root / "alone", folder)
    files = sorted(path for path in (folder / "results").rglob("*")
                   if path.is_file() and not path.name.startswith(".") and path.stat().st_size)
    missed = 0
    for _ in range(total):
        path = rng.choice(files)
        at, bit = rng.randrange(path.stat().st_size), 1 << rng.randrange(8)
        kept = path.read_bytes()
        path.write_bytes(kept[:at] + bytes([kept[at] ^ bit]) + kept[at + 1:])
        ended = wait_for(chromabuild(folder, "verify"), folder)
        if ended.code != 5 or not ended.is_clean:
            missed += 1
            print(f"  {path.relative_to(folder)}, byte {at}: {ended.code}: {ended.told[-300:]}", flush=True)
        path.write_bytes(kept)
    table.row(len(files), total, total - missed, missed)
    return missed


def inputs(benchmark: Benchmark, build: Build, total: int, seed: int) -> int:
    """Harmed files of every format, and what readers made of them."""
    table = benchmark.table("inputs", "Harmed files given to their readers", format="", files="d", **{
        "read": "d", "refused in a sentence": "d", "traceback": "d", "beyond 10 s": "d", "crash": "d",
        "records lost in silence": "d"})
    folder = build.root / "inputs"
    shutil.copytree(build.root / "alone", folder / "build")
    named = {name: next(REPOSITORY.glob(f"**/{name}")) for name in ("demo.fa", "demo.dyads.bed")}
    contacts = folder / "contacts.bedpe"
    contacts.write_text("".join(f"chrXIII\t{k}\t{k + 50}\tchrXIII\t{k + 300}\t{k + 350}\tc{k}\t1.5\n"
                                for k in range(42700, 42900, 20)))
    every = readers(folder / "build", named["demo.fa"], named["demo.dyads.bed"], contacts)
    weight = {reader.name: reader.share / max(len(reader.content), 2000) ** 0.5 for reader in every}
    lost = 0
    for reader in every:
        n = max(10, round(total * weight[reader.name] / sum(weight.values())))
        counts, examples = harm(reader, range(seed * 10**7, seed * 10**7 + n), folder)
        table.row(reader.name, n, *(counts[key] for key in OUTCOMES))
        for outcome, told in examples.items():
            print(*(f"  {outcome}: {text[:300]}" for text in told), sep="\n", flush=True)
        lost += sum(counts[key] for key in OUTCOMES[2:])
    return lost


def company(benchmark: Benchmark, build: Build, rounds: int, rng: random.Random) -> int:
    """Processes that work in one folder at once."""
    table = benchmark.table("company", "Several `chromabuild all` in one folder at once", processes="d", rounds="d", **{
        "ended well": "d", "told that another is at work": "d", "ended otherwise": "d", "part files left": "d",
        "other bytes": "d"})
    lost = 0
    for n in (2, 10):
        counts: collections.Counter = collections.Counter()
        for _ in range(rounds):
            folder = build.fresh(build.stages[0])
            started = []
            for _ in range(n):
                started.append(chromabuild(folder, "all", "--until", build.stages[-1]))
                time.sleep(rng.uniform(0, 0.3))
            for pid in started:
                ended = wait_for(pid, folder)
                counts[ended.code] += 1
                counts["otherwise"] += ended.code not in (0, 9)
                if ended.code not in (0, 9):
                    print(f"  {n} processes: {ended.code}: {ended.told[-300:]}", flush=True)
            counts["left"] += any((folder / "results").rglob("*.part"))
            different = build.differ(build.stages[-1], folder / "results")
            counts["different"] += bool(different)
            if different:
                print(f"  {n} processes: {different}", flush=True)
        table.row(n, rounds, counts[0], counts[9], counts["otherwise"], counts["left"], counts["different"])
        lost += counts["otherwise"] + counts["left"] + counts["different"] + (counts[0] < rounds)
    return lost


def main() -> None:
    """Make the build, disturb it, tell what was lost."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add("--kills", type=int, default=500)
    add("--disks", type=int, default=400)
    add("--flips", type=int, default=1000)
    add("--inputs", type=int, default=100_000)
    add("--rounds", type=int, default=3)
    add("--seed", type=int, default=1)
    add("--until", default="report", help="the last stage that is disturbed (at least solvate)")
    given = benchmark.start(quick={"kills": 5, "disks": 12, "flips": 8, "inputs": 400, "rounds": 1, "until": "solvate"})
    import h5py  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import openmm.app  # noqa: F401
    import scipy.optimize
    import scipy.spatial  # noqa: F401

    import chromabuild.api
    import chromabuild.cli
    import chromabuild.pipeline.chain  # noqa: F401

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "duplex.fa").write_text(f">duplex\n{SEQUENCE}\n")
        build = Build(root, ("--fasta", str(root / "duplex.fa")), given.until)
        print(", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in build.seconds.items()), flush=True)
        rng, lost = random.Random(given.seed), 0
        if "inputs" in given.parts:
            lost += inputs(benchmark, build, given.inputs, given.seed)
        if "flips" in given.parts:
            lost += flips(benchmark, build, given.flips, rng)
        if "disks" in given.parts:
            lost += disks(benchmark, build, given.disks, rng)
        if "company" in given.parts:
            lost += company(benchmark, build, given.rounds, rng)
        if "kills" in given.parts:
            lost += kills(benchmark, build, given.kills, rng)
    benchmark.finish()
    sys.exit(lost > 0)


if __name__ == "__main__":
    main()
