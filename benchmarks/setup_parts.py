"""65,536 restart files set up in parts by independent processes: time to write, verify, repair and read back.

A small solvated system is cut into 32 x 32 x 64 domains, so that files are many and small, in folders of 256. Parts of
4,096 domains are processes of `chromamd setup` that know nothing of each other. One of them is killed half way and
started again; the part that is all domains reads and checks every file. `chromamd verify` reads them once more. Reading
back is a set-up of 8 domains from all files, whose atoms are compared with those of a set-up straight from the bricks.

The second table has domains of the size that 65,536 of 1.05e9 atoms have: what a process takes for one, and what that
makes for all.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.parts import control, set_up, verify
from common.solutes import write_spread

from chromabuild.base.settings import SolvateSection
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.solute import Solute
from chromabuild.simulate.executable import executable
from chromabuild.simulate.restart_file import path_of_rank, read_restart
from chromabuild.solvate import solvate

GRID, COARSE = (32, 32, 64), (2, 2, 2)
TREE = "(by256)/start_().rst"
PARTS = 16
ATOMS_A_DOMAIN = 15_980
"""1.0473e9 over 65,536."""
WHOLE = 65_536
ATOMS_A_CUBIC_ANGSTROM = 0.0981


def kill_half_way(file: Path, last: Path) -> None:
    """Start a part and kill it when the file in its middle is there."""
    process = subprocess.Popen([executable(), "setup", file], stdout=subprocess.DEVNULL)
    while not last.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()


def main() -> None:
    """The small files, then domains of real size."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--atoms", type=float, default=1e6)
    add("--workers", type=int, default=16, help="parts at work at a time")
    add("--work", type=Path, default=Path("setup_parts"), help="folder of the files")
    given = benchmark.start(quick={"atoms": 6e5})
    grid = (8, 8, 16) if given.quick else GRID
    folder = given.work.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tree").mkdir(parents=True)
    box = (round((given.atoms / ATOMS_A_CUBIC_ANGSTROM) ** (1 / 3), 3),) * 3
    write_spread(folder / "solute.h5", box, 1)
    solute = Solute.open(folder / "solute.h5")
    manifest = solvate(solute, SolvateSection(box=box), 1, 2, folder / "shards")
    make_topology(solute, manifest.counts).write(folder / "topology.h5")
    bricks, tree = folder / "shards" / "bricks.txt", folder / "tree" / TREE

    n = int(np.prod(grid))
    size = n // PARTS
    topology = folder / "topology.h5"
    parts = [control(folder / f"part{k}.inp", topology, bricks, tree, grid, (k * size, (k + 1) * size - 1))
             for k in range(PARTS)]
    everything = control(folder / "all.inp", topology, bricks, tree, grid, (0, n - 1))
    table = benchmark.table("files", f"{n:,} restart files of {manifest.atoms:,} atoms in parts of {size:,} domains, "
                            f"{given.workers} processes at a time", operation="", files=",",
                            **{"wall time, s": ".1f", "CPU time, s": ".1f", "memory of a process, GB": ".3f"})
    begin = time.monotonic()
    kill_half_way(parts[0], path_of_rank(tree, size // 2))
    left = len(list((folder / "tree" / "0").glob("*.rst"))) if size > 256 else 0
    with ThreadPoolExecutor(given.workers) as pool:
        used = list(pool.map(set_up, parts))
    table.row("write in parts, one killed half way", n, time.monotonic() - begin, sum(one.cpu for one in used),
              max(one.memory for one in used))
    print(parts[0].with_suffix(".out").read_text(), "in the first folder after the kill:", left)
    one = set_up(everything)
    print(everything.with_suffix(".out").read_text())
    table.row("the part that is all: read and check every file", n, one.wall, one.cpu, one.memory)
    paths = [path_of_rank(tree, k) for k in range(n)]
    one = verify(paths, folder)
    table.row("chromamd verify", n, one.wall, one.cpu, one.memory)
    lost = paths[::997]
    for k, path in enumerate(lost):
        path.unlink() if k % 2 else path.write_bytes(path.read_bytes()[:-9])
    one = set_up(everything)
    print(everything.with_suffix(".out").read_text())
    table.row(f"the same with {len(lost)} files lost or cut short", n, one.wall, one.cpu, one.memory)
    straight, back = folder / "straight_().rst", folder / "back_().rst"
    set_up(control(folder / "straight.inp", topology, bricks, straight, COARSE))
    one = set_up(control(folder / "back.inp", topology, tree, back, COARSE))
    table.row("read back: set-up of 8 domains from all files", n, one.wall, one.cpu, one.memory)
    ends = [read_restart(pattern, manifest.atoms, 8) for pattern in (straight, back)]
    apart = np.abs(ends[0].position - ends[1].position) / ends[0].box
    same = np.array_equal(ends[0].velocity, ends[1].velocity) and np.abs(apart - np.round(apart)).max() < 1e-13
    print("read back: the atoms of a set-up straight from the bricks" if same else "ATOMS DIFFER")
    folders = sorted(path for path in (folder / "tree").iterdir() if path.is_dir())
    print(f"{len(folders)} folders, {max(len(os.listdir(path)) for path in folders)} files in the largest")
    shutil.rmtree(folder / "tree")

    edge = max(2, round((manifest.atoms / ATOMS_A_DOMAIN) ** (1 / 3)))
    (folder / "tree").mkdir()
    one = set_up(control(folder / "real.inp", topology, bricks, tree, (edge, edge, edge), (0, edge**3 - 1)))
    table = benchmark.table("domain", f"Domains of {manifest.atoms // edge**3:,} atoms: CPU time of one, and of "
                            f"{WHOLE:,} in any number of processes", **{
                                "domains made": "", "CPU time of one, s": ".3f", "CPU time of all, h": ".2f",
                                "disk of all, GB": ".0f"})
    disk = sum(path.stat().st_size for path in (folder / "tree").rglob("*.rst"))
    table.row(edge**3, one.cpu / edge**3, one.cpu / edge**3 * WHOLE / 3600, disk / edge**3 * WHOLE / 1e9)
    shutil.rmtree(folder)
    benchmark.finish()
    if not same:
        sys.exit("the atoms that were read back differ")


if __name__ == "__main__":
    main()
