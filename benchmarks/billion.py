"""From a solute to a verified shard set of 1e6, 1e7, 1e8 or 1e9 atoms: time, memory, disk.

    python benchmarks/billion.py FOLDER [--atoms 1.05e9] [--solute solute_clean.h5] [--threads 2] [--keep]
    python benchmarks/billion.py FOLDER --bricks        (five bricks alone, compared with those of the full run)

The box has the shape and, at 1e9, the size of the source's: 1907 x 2252 x 2485 angstrom. The solute is copies of one
built nucleosome spread over it (benchmarks/spread_nucleosomes.py) unless a solute file is given. All bricks are
written as zstd-1 PDB, BinaryCIF and .cbb, then every file is read again and compared with the manifest. At 1e9 the
folder needs 40 GB of disk; the shards are removed at the end unless --keep. What the full run gave is in
benchmarks/billion.json; --bricks decides all waters and ions again, makes five bricks, and needs 1 GB of disk. Memory
is the largest resident set of this process plus those of its workers, looked up while they run.
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

import numpy as np

BOX = np.array([1907.0, 2252.0, 2485.0])
ATOMS = 1.0445e9
NUCLEOSOMES = 469
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


def compare_bricks(solute, section, threads, folder):
    """Make the recorded bricks alone; exit code 1 when one differs."""
    from chromabuild.solvate import solvate

    recorded = json.loads(RECORD.read_text())["bricks"]
    manifest = measured("bricks", lambda: solvate(solute, section, 1, threads, folder, only=map(int, recorded)))
    made = {str(int(shard.name[6:])): shard.files["cbb"]["blake3"] for shard in manifest.shards}
    print("the same bricks as in the full run" if made == recorded else f"DIFFERENT: {made} instead of {recorded}")
    shutil.rmtree(folder)
    sys.exit(made != recorded)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--atoms", type=float, default=1.05e9)
    parser.add_argument("--solute", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--bricks", action="store_true")
    arguments = parser.parse_args()

    from chromabuild.config import SolvateSection
    from chromabuild.shards import verify_shards
    from chromabuild.solute import Solute
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
    stop, peak = threading.Event(), [0]
    watcher = threading.Thread(target=watch_memory, args=(stop, peak))
    watcher.start()
    start = time.monotonic()
    try:
        solute = Solute.open(solute_file)
        system = measured("plan", lambda: prepare(solute, section, 1, arguments.threads, folder / "shards"))
        print(f"{system.n_atoms} atoms, {solute.n_atoms} of them solute, {system.grid.n_bricks} bricks, "
              f"box {' x '.join(f'{edge:g}' for edge in box)}", flush=True)
        del system
        if arguments.bricks:
            return compare_bricks(solute, section, arguments.threads, folder / "shards")
        manifest = measured("write", lambda: solvate(solute, section, 1, arguments.threads, folder / "shards"))
        measured("verify", lambda: verify_shards(folder / "shards", threads=arguments.threads))
    finally:
        wall = time.monotonic() - start
        stop.set()
        watcher.join()
    for suffix in ("pdb.zst", "bcif", "cbb"):
        size = sum(shard.files[suffix]["bytes"] for shard in manifest.shards)
        print(f"{suffix:12s} {size / 1e9:8.3f} GB {size / manifest.atoms:6.2f} bytes/atom")
    print(json.dumps({"atoms": manifest.atoms, "counts": manifest.counts, "shards": len(manifest.shards),
                      "seconds": round(wall, 1), "peak_gigabytes": round(peak[0] / 1e9, 3),
                      "threads": arguments.threads, "manifest": json.loads(
                          (folder / "shards" / "manifest.json").read_text())["blake3"]}))
    if not arguments.keep:
        shutil.rmtree(folder / "shards")


if __name__ == "__main__":
    main()
