"""Memory of a rank and time while all ranks write a trajectory of all atoms, 1e6 to 1e8 atoms on 1 to 4 ranks.

Boxes of water run with a frame every step and without; the largest resident set is that of the largest rank. A driver
that only writes frames goes beyond what a simulation fits in: its atoms are made up, its ranks own them in no order,
and it waits for the disk at the end. Beside it stands `dd` with as many bytes (`conv=fsync`).
"""

import re
import subprocess
import sys
import time
from pathlib import Path

from common.command import Benchmark
from common.engine import equilibrated_cell, parts_of, replicated, run, set_up, water_topology, write_system
from common.kernels import program
from common.results import spread

from chromabuild.simulate import chromamd

BOXES = {"w30k": (2, 2, 2), "w1m": (6, 6, 8), "w10m": (14, 14, 14)}
DOMAINS = {1: (1, 1, 1), 2: (1, 1, 2), 4: (1, 2, 2)}
STEPS = 2


def frame_bytes(atoms: int) -> int:
    """Of a frame of a DCD: cell, and three records with their marks."""
    return 56 + 3 * (4 * atoms + 8)


def simulate(benchmark: Benchmark, work: Path, names: list[str], ranks: list[int]) -> None:
    """The table of running simulations."""
    table = benchmark.table(
        "run", f"Boxes of water, {STEPS} steps, a frame of all atoms every step: largest resident set of a rank and "
        "time of a frame", atoms="", ranks="", **{
            "memory without frames, MB": ",.0f", "with frames, MB": ",.0f", "a frame, s": ".3f", "MB/s": ",.0f"})
    cell = equilibrated_cell(work)
    for name in names:
        folder = work / name
        position, box = replicated(cell, BOXES[name])
        n_atoms = len(position)
        write_system(folder, water_topology(n_atoms // 3, hydrogen_lj=True), position, box)
        del position
        for n in ranks:
            set_up(folder, folder / "start_().rst", DOMAINS[n])
            used, output = {}, {}
            for kind, frames in {"none": None, "all": folder / "all.dcd"}.items():
                used[kind] = run(folder, folder / "start_().rst", {
                    "OUTPUT": {"dcdfile": frames, "logfile": folder / f"{kind}.log"},
                    "ENERGY": {"cutoffdist": 8, "switchdist": 8, "pairlistdist": 9},
                    "DYNAMICS": {"nsteps": STEPS, "timestep": 0.001, "eneout_period": STEPS,
                                 "crdout_period": 1 if frames else 0},
                    "CONSTRAINTS": {"rigid_bond": True}, "ENSEMBLE": {"temperature": 300}}, ranks=n, name=kind)
                output[kind] = parts_of((folder / f"{kind}.log").read_text(), ["output"])["output"]
            seconds = (output["all"] - output["none"]) / STEPS
            table.row(n_atoms, n, 1000 * used["none"].memory, 1000 * used["all"].memory, seconds,
                      frame_bytes(n_atoms) / 1e6 / seconds)
            (folder / "all.dcd").unlink()
            for path in folder.glob("start_*.rst"):
                path.unlink()


def write_frames(benchmark: Benchmark, work: Path, driver: Path, sizes: list[float], ranks: list[int],
                 rounds: int) -> None:
    """The table of the driver."""
    table = benchmark.table(
        "frames", "A program that only writes frames, two a file, and waits for the disk: largest resident set of a "
        "rank and time of a frame, beside `dd`", atoms="", ranks="", **{
            "memory before, MB": ",.0f", "at most, MB": ",.0f", "bytes more an atom of the rank": ".0f",
            "a frame, s": ".3f", "MB/s": ",.0f", "dd, MB/s": ",.0f"})
    path = work / "frames.dcd"
    for atoms in (3 * round(size / 3) for size in sizes):
        for n in ranks:
            seconds, disk = [], []
            for _ in range(rounds):
                command = [*chromamd.launch_command(n)[:-1], driver, path, atoms, "all", 2, 0, 0]
                done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"frames_driver failed: {done.stderr}")
                figures = re.fullmatch(r"SECONDS +(\S+) BEFORE +(\S+) AFTER +(\S+)\s*", done.stdout)
                a_frame, before, after = map(float, figures.groups())
                seconds.append(a_frame)
                path.unlink()
                disk.append(dd_speed(path, 2 * frame_bytes(atoms)))
            megabytes = frame_bytes(atoms) / 1e6
            table.row(atoms, n, before, after, 1e6 * (after - before) * n / atoms, spread(seconds),
                      spread(megabytes / s for s in seconds), spread(disk))


def dd_speed(path: Path, size: int) -> float:
    """MB/s with which dd writes and syncs so many bytes."""
    megabytes = max(1, size >> 20)
    begin = time.perf_counter()
    subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={megabytes}", "conv=fsync"], check=True,
                   capture_output=True)
    speed = megabytes * 2**20 / 1e6 / (time.perf_counter() - begin)
    path.unlink()
    return speed


def main() -> None:
    """The driver alone, then simulations."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--systems", nargs="*", choices=BOXES, default=["w1m", "w10m"])
    add("--atoms", nargs="*", type=float, default=[1e6, 1e7, 1e8], help="of the program that only writes frames")
    add("--ranks", nargs="+", type=int, choices=DOMAINS, default=[1, 2, 4])
    add("--rounds", type=int, default=3, help="of the program that only writes frames")
    add("--work", type=Path, default=Path("trajectory_memory"), help="folder of the files, on the disk to be measured")
    add("--build", type=Path, default=Path("build/forces"), help="build folder of the driver")
    given = benchmark.start(quick={"systems": ["w30k"], "atoms": [1e6], "ranks": [1, 2], "rounds": 1})
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    write_frames(benchmark, work, program("frames_driver", given.build), given.atoms, given.ranks, given.rounds)
    simulate(benchmark, work, given.systems, given.ranks)
    benchmark.finish()


if __name__ == "__main__":
    main()
