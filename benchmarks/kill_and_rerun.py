"""Shards survive kill -9: killed at random moments, started again, compared byte by byte.

A trial starts from nothing (every fourth: in the middle of replacing another, finished set), is killed at a random
moment, is looked through for torn files under final names, runs again and is compared with an undisturbed run: same
bytes, nothing done twice, nothing left over. Every tenth is a command of its own with two worker processes, whose
parent is killed; the others are forked from this process, which has everything loaded already. The exit code is 1 when
a file was torn, written twice, left over or other than undisturbed.
"""

import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # a forked process must not inherit a pool of threads

from common.command import Benchmark
from common.solutes import duplex

from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.shards import verify_shards
from chromabuild.solvate import solvate

SECTION = {"brick_edge": 17.0, "padding": 5.0}
SCRIPT = f"""
import sys
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import solvate
if __name__ == "__main__":
    solute = Solute.read(sys.argv[1])
    print("ready", flush=True)
    solvate(solute, SolvateSection(**{SECTION}), 1, 2, sys.argv[2])
"""


def files_of(folder):
    """Content and time of every finished file of a brick, manifest and list included."""
    paths = [path for pattern in ("brick_*", "bricks.txt", "manifest.json") for path in folder.glob(pattern)]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def contents_of(folder):
    return {name: content for name, (content, _) in files_of(folder).items()}


def forked(solute, folder):
    """Process number of a child that makes the shards of ``folder`` and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            solvate(solute, SolvateSection(**SECTION), 1, 1, folder)
        finally:
            os._exit(0)
    return pid


def commanded(command, folder):
    """Process number of a command with two workers that is about to make the shards."""
    process = subprocess.Popen([*command, str(folder)], stdout=subprocess.PIPE, env=os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    process.stdout.readline()
    return process.pid


def seconds(start):
    """Wall time of an undisturbed run."""
    begin = time.monotonic()
    os.waitpid(start(), 0)
    return time.monotonic() - begin


def main() -> None:
    """Kill, look, run again, compare."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--trials", type=int, default=200)
    add("--seed", type=int, default=1)
    given = benchmark.start(quick={"trials": 12})
    trials, rng = given.trials, random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "run.py").write_text(SCRIPT)
        command = [sys.executable, str(root / "run.py"), str(root / "solute.h5")]
        duplex(24).write(root / "solute.h5")
        solute = Solute.read(root / "solute.h5")
        solvate(solute, SolvateSection(**SECTION), 1, 1, root / "reference")
        reference = contents_of(root / "reference")
        solvate(solute, SolvateSection(**SECTION | {"salt": 0.4}), 1, 1, root / "other")
        other = contents_of(root / "other")
        longest = [seconds(lambda: forked(solute, root / "timed")), seconds(lambda: commanded(command, root / "pool"))]
        counts = collections.Counter()
        for trial in range(trials):
            folder = root / f"trial{trial}"
            if trial % 4 == 3:
                shutil.copytree(root / "other", folder)
            pool = trial % 10 == 9
            pid = commanded(command, folder) if pool else forked(solute, folder)
            time.sleep(rng.uniform(0, longest[pool]))
            os.kill(pid, signal.SIGKILL)
            counts["killed"] += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
            if pool:
                time.sleep(0.05)  # the kernel ends the workers with their parent
            before = files_of(folder) if folder.exists() else {}
            counts["torn"] += sum(content not in (reference[name], other.get(name))
                                  for name, (content, _) in before.items())
            counts["manifests"] += "manifest.json" in before
            if before.get("manifest.json", (None,))[0] == other["manifest.json"]:  # nothing of it may be replaced yet
                counts["torn"] += {name: content for name, (content, _) in before.items()} != other
            recorded = {path.stem for path in (folder / "records").glob("brick_*")
                        if path.read_bytes() == (root / "reference" / "records" / path.name).read_bytes()}
            done = [name for name in reference if name.split(".")[0] in recorded]
            counts["bricks"] += len(recorded)
            counts["torn"] += sum(before.get(name, (None,))[0] != reference[name] for name in done)
            solvate(solute, SolvateSection(**SECTION), 1, 1, folder)
            after = files_of(folder)
            counts["twice"] += sum(after[name][1] != before[name][1] for name in done)
            counts["different"] += {name: content for name, (content, _) in after.items()} != reference
            counts["left"] += len([*folder.rglob("*.part")])
            verify_shards(folder)
            shutil.rmtree(folder)
    table = benchmark.table("trials", "Recovery of `chromabuild solvate` after SIGKILL at random times", trials="", **{
        "killed while running": "", "bricks complete at the kill": "", "manifests complete at the kill": "",
        "truncated files": "", "finished files rewritten": "", "files left over": "", "final sets that differ": ""})
    table.row(trials, *(counts[key] for key in ("killed", "bricks", "manifests", "torn", "twice", "left", "different")))
    benchmark.finish()
    sys.exit(any(counts[key] for key in ("torn", "twice", "left", "different")))


if __name__ == "__main__":
    main()
