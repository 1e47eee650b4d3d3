"""From a solute to a verified shard set of 1e6, 1e7, 1e8 or 1e9 atoms: time, memory, disk.

The box has the shape and, at 1e9, the size of the source's: 1907 x 2252 x 2485 angstrom. The solute is copies of
one nucleosome spread over it unless a solute file is given. All bricks are written as zstd-1 PDB, BinaryCIF and .cbb,
then every file is read again and compared with the manifest. At 1e9 the folder needs 40 GB of disk; the shards are
removed at the end unless --keep. Memory is the largest sum of the proportional set sizes of this process and its
workers, looked up while they run.
"""

import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.memory import MemoryWatch

from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.shards import verify_shards
from chromabuild.solvate import prepare, solvate

BOX = np.array([1907.0, 2252.0, 2485.0])
ATOMS = 1.0445e9
NUCLEOSOMES = 469
SEED = 1
DISK = 36
"""Bytes an atom."""


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF,
                                                                        resource.RUSAGE_CHILDREN)))


def timed(name: str, action: Callable[[], object]) -> object:
    """What the action gives; prints its wall and CPU time."""
    wall, cpu = time.monotonic(), cpu_seconds()
    result = action()
    print(f"{name:12s} {time.monotonic() - wall:8.1f} s wall {cpu_seconds() - cpu:8.1f} s CPU", flush=True)
    return result


def main() -> None:
    """Plan, write, verify."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--atoms", type=float, default=1.05e9)
    add("--solute", type=Path, help="solute.h5 in place of copies of a nucleosome")
    add("--threads", type=int, default=2)
    add("--keep", action="store_true")
    add("--work", type=Path, default=Path("billion"), help="folder of the shards")
    given = benchmark.start(quick={"atoms": 1e6})
    folder = given.work
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = DISK * given.atoms, shutil.disk_usage(folder).free
    if free < needed:
        sys.exit(f"{folder} has {free / 1e9:.0f} GB free, {needed / 1e9:.0f} GB are needed: choose another --work")
    scale = min(1.0, (given.atoms / ATOMS) ** (1 / 3))
    box = tuple(np.round(BOX * scale, 3).tolist())
    solute_file = given.solute or folder / "solute.h5"
    if given.solute is None:
        # In a process of its own: what making the model solute takes is not what is measured.
        copies = max(1, round(NUCLEOSOMES * scale**3))
        subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1])\n"
                        "from common.solutes import write_spread\n"
                        "write_spread(sys.argv[2], eval(sys.argv[3]), int(sys.argv[4]))",
                        str(Path(__file__).parent), str(solute_file), repr(box), str(copies)], check=True)
    section = SolvateSection(box=box)
    wall, cpu = time.monotonic(), cpu_seconds()
    with MemoryWatch() as memory:
        solute = Solute.open(solute_file)
        system = timed("plan", lambda: prepare(solute, section, SEED, given.threads, folder / "shards"))
        manifest = timed("write", lambda: solvate(solute, section, SEED, given.threads, folder / "shards"))
        timed("verify", lambda: verify_shards(folder / "shards", threads=given.threads))
    wall, cpu = time.monotonic() - wall, cpu_seconds() - cpu
    size = {suffix: sum(shard.files[suffix]["bytes"] for shard in manifest.shards) / 1e9
            for suffix in manifest.shards[0].files}
    table = benchmark.table("sizes", "Solvation of a system: from the solute to verified shards", atoms="",
                            solute_atoms="", bricks="", **{
                                "wall time, s": ".1f", "CPU time, s": ".1f", "peak memory, GB": ".3f",
                                **{f"{suffix}, GB": ".3f" for suffix in size}})
    table.row(manifest.atoms, solute.n_atoms, system.grid.n_bricks, wall, cpu, memory.largest / 1e9, *size.values())
    if not given.keep:
        shutil.rmtree(folder / "shards")
    benchmark.finish()


if __name__ == "__main__":
    main()
