"""From a solute to a verified shard set of 1e6, 1e7, 1e8 or 1e9 atoms: time, memory, disk.

    python benchmarks/billion.py FOLDER [--atoms 1.05e9] [--solute solute_clean.h5] [--threads 2] [--keep]
    python benchmarks/billion.py FOLDER --bricks [--solute solute_clean.h5]     (five bricks alone, compared)

The box has the shape and, at 1e9, the size of the source's: 1907 x 2252 x 2485 angstrom. The solute is copies of one
built nucleosome spread over it (benchmarks/spread_nucleosomes.py) unless a solute file is given. All bricks are
written as zstd-1 PDB, BinaryCIF and .cbb, then every file is read again and compared with the manifest. At 1e9 the
folder needs 40 GB of disk; the shards are removed at the end unless --keep. Memory is the largest sum of the
proportional set sizes of this process and its workers, looked up while they run.

A full run leaves record.json in the folder: what it made, and what its bricks cannot know of themselves. Those of two
solutes, the copies and the yeast locus, are in benchmarks/billion.json. --bricks makes five bricks of a recorded run
from their neighbourhoods alone (lone_bricks.py), without any pass over the box, and compares; it needs 1 GB of disk.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import lone_bricks
import numpy as np

BOX = np.array([1907.0, 2252.0, 2485.0])
ATOMS = 1.0445e9
NUCLEOSOMES = 469
SEED = 1
BRICKS = (0, 1234, 5462, 8888, 10924)
RECORD = Path(__file__).with_suffix(".json")


def watch_memory(stop, peak):
    """Largest sum of the proportional set sizes of this process and its children, bytes."""
    while not stop.wait(0.5):
        total = 0
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        for pid in (str(os.getpid()), *children):
            try:
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += 1024 * int(rollup.split("Pss:")[1].split()[0])
            except (OSError, IndexError):
                continue
        peak[0] = max(peak[0], total)


def cpu_seconds():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF,
                                                                        resource.RUSAGE_CHILDREN)))


def measured(name, action):
    """Run and print wall and CPU time."""
    wall, cpu = time.monotonic(), cpu_seconds()
    result = action()
    print(f"{name:12s} {time.monotonic() - wall:8.1f} s wall {cpu_seconds() - cpu:8.1f} s CPU", flush=True)
    return result


def record(system, manifest, measurements):
    """What a full run made, and what is needed to make five of its bricks again alone."""
    bricks = [k for k in BRICKS if k < len(manifest.shards)]
    last_ion, before = lone_bricks.record(system.plan, system.grid, SEED, bricks)
    files = manifest.shards[0].files
    return {
        "atoms": manifest.atoms, "box": manifest.box, "grid": manifest.grid, "counts": manifest.counts,
        "solute": manifest.inputs["solute"], **measurements, "last_ion": last_ion,
        "files": {suffix: sum(shard.files[suffix]["bytes"] for shard in manifest.shards) for suffix in files},
        "bricks": {str(k): {"cbb": manifest.shards[k].files["cbb"]["blake3"], "before": before[k]} for k in bricks}}


def compare_bricks(solute, section, folder):
    """Make the recorded bricks alone; exit code 1 when one differs."""
    from blake3 import blake3

    from chromabuild.solvate import brick_grid
    from chromabuild.solvate.placement import place_solute

    placed, digest = measured("solute", lambda: place_solute(solute, section, folder))
    run = next((run for run in json.loads(RECORD.read_text()) if run["solute"] == digest), None)
    if run is None or not np.array_equal(run["box"], placed.box / 1000):
        sys.exit(f"{RECORD} has no run of this solute in this box")
    grid, wrong = brick_grid(placed.box, section), []
    for k, brick in run["bricks"].items():
        content = measured(f"brick {k}", lambda k=k, brick=brick: lone_bricks.lone_brick(
            placed, grid, SEED, {key: n for key, n in run["counts"].items() if key != "solute"}, run["last_ion"],
            int(k), brick["before"]))
        if blake3(content).hexdigest() != brick["cbb"]:
            wrong.append(k)
    print(f"{run['atoms']} atoms: " + (f"OTHER BRICKS THAN IN THE FULL RUN: {wrong}" if wrong
                                       else f"the same {len(run['bricks'])} bricks as in the full run"))
    shutil.rmtree(folder)
    sys.exit(bool(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--atoms", type=float, default=1.05e9)
    parser.add_argument("--solute", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--bricks", action="store_true")
    arguments = parser.parse_args()

    from chromabuild.base.settings import SolvateSection
    from chromabuild.molecule.solute import Solute
    from chromabuild.shards import verify_shards
    from chromabuild.solvate import prepare, solvate

    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = (1 if arguments.bricks else 36) * arguments.atoms, shutil.disk_usage(folder).free
    if free < needed:
        sys.exit(f"{folder} has {free / 1e9:.0f} GB free, {needed / 1e9:.0f} GB are needed")
    scale = min(1.0, (arguments.atoms / ATOMS) ** (1 / 3))
    box = tuple(np.round(BOX * scale, 3).tolist())
    solute_file = arguments.solute or folder / "solute.h5"
    if arguments.solute is None:
        copies = max(1, round(NUCLEOSOMES * scale**3))
        # In a process of its own: what making the model solute takes is not what is measured.
        subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1])\n"
                        "from spread_nucleosomes import write_spread\n"
                        "write_spread(sys.argv[2], eval(sys.argv[3]), int(sys.argv[4]))",
                        str(Path(__file__).parent), str(solute_file), repr(box), str(copies)], check=True)
    section = SolvateSection(box=box)
    if arguments.bricks:
        return compare_bricks(Solute.open(solute_file), section, folder / "shards")
    stop, peak = threading.Event(), [0]
    watcher = threading.Thread(target=watch_memory, args=(stop, peak))
    watcher.start()
    start = time.monotonic()
    try:
        solute = Solute.open(solute_file)
        system = measured("plan", lambda: prepare(solute, section, SEED, arguments.threads, folder / "shards"))
        print(f"{system.n_atoms} atoms, {solute.n_atoms} of them solute, {system.grid.n_bricks} bricks, "
              f"box {' x '.join(f'{edge:g}' for edge in box)}", flush=True)
        manifest = measured("write", lambda: solvate(solute, section, SEED, arguments.threads, folder / "shards"))
        measured("verify", lambda: verify_shards(folder / "shards", threads=arguments.threads))
    finally:
        wall = time.monotonic() - start
        stop.set()
        watcher.join()
    made = record(system, manifest, {
        "seconds": round(wall, 1), "peak_gigabytes": round(peak[0] / 1e9, 3), "threads": arguments.threads})
    (folder / "record.json").write_text(json.dumps(made) + "\n")
    for suffix, size in made["files"].items():
        print(f"{suffix:12s} {size / 1e9:8.3f} GB {size / manifest.atoms:6.2f} bytes/atom")
    print(json.dumps({key: made[key] for key in ("atoms", "counts", "seconds", "peak_gigabytes", "threads")}))
    if not arguments.keep:
        shutil.rmtree(folder / "shards")


if __name__ == "__main__":
    main()
