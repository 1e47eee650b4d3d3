"""Dynamics survive kill -9: killed at random moments, continued, compared byte by byte; and what checkpoints cost.

A trial is a run of the deterministic mode on one or two ranks that writes a checkpoint after every step or every 0.1 s.
It is killed, mpirun and all ranks at once, at random moments until it is through; one kill in five is a SIGUSR1, after
which it writes a checkpoint and ends with code 7. Energy table, trajectory and last restart files must have the bytes
of an undisturbed run, and nothing may be left over. The exit code is 1 when something was lost, repeated, torn or left.
The cost is that of water: size and time of a set, and time of a step with and without looks at clock and signals.
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

from common import engine
from common.command import Benchmark
from common.timing import measured

from chromabuild.simulate import chromamd

ENERGY = {"cutoffdist": 8, "switchdist": 8, "pairlistdist": 9, "deterministic": True}
STEPS = 100
INTERVALS = {"every step": 1e-9, "every 0.1 s": 0.1 / 60}


def control(root: Path, folder: Path, ranks: int, interval: float | None, frames: str) -> Path:
    """A control file of dynamics at constant pressure; ``interval``: minutes between checkpoints, None: none at all."""
    folder.mkdir()
    kept = {} if interval is None else {"checkpoint": folder / "check_().rst", "checkpoint_interval": interval}
    path = folder / "run.inp"
    chromamd.write_control(path, {
        "INPUT": {"topologyfile": root / "topology.h5", "rstfile": root / f"start{ranks}_().rst",
                  "continue": None if interval is None else True},
        "OUTPUT": {"logfile": folder / "run.log", "dcdfile": folder / frames, "rstfile": folder / "end_().rst", **kept},
        "ENERGY": ENERGY, "CONSTRAINTS": {"rigid_bond": True},
        "ENSEMBLE": {"ensemble": "NPT", "tpcontrol": "LANGEVIN", "temperature": 300, "barostat": "MTK"},
        "DYNAMICS": {"nsteps": STEPS, "timestep": 0.002, "eneout_period": 7, "crdout_period": 3, "barostat_period": 4}})
    return path


def started(inp: Path, ranks: int) -> subprocess.Popen:
    """The engine with its launcher in a process group of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    with open(inp.with_suffix(".out"), "w") as out:
        return subprocess.Popen([*chromamd.launch_command(ranks), "run", str(inp)], stdout=out, stderr=out,
                                env=environment, start_new_session=True)


def result(folder: Path) -> dict[str, object]:
    """Energy table, and bytes of the trajectory and of the last restart files."""
    rows = [line for line in (folder / "run.log").read_text().splitlines() if line.startswith("INFO:")]
    files = [*folder.glob("end_*.rst"), *folder.glob("frames.*")]
    return {"rows": rows, **{path.name: path.read_bytes() for path in files}}


def trial(inp: Path, ranks: int, longest: float, rng: random.Random, counts: collections.Counter) -> None:
    """Kill and continue until the run is through; after five times it may go to its end."""
    for attempt in range(6):
        process = started(inp, ranks)
        if attempt == 5:
            process.wait()
        time.sleep(rng.uniform(0.1, longest))
        if process.poll() is not None:
            break
        if rng.random() < 0.2:
            process.send_signal(signal.SIGUSR1)
            stopped = process.wait()
            counts["stopped"] += stopped == 7
            if stopped == 0:
                break
        else:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            counts["killed"] += 1
    counts["failed"] += process.returncode != 0


def survive(benchmark: Benchmark, root: Path, trials: int, rng: random.Random) -> bool:
    """The table of the trials; whether all was well."""
    counts = collections.Counter()
    for kind, (frames, ranks) in enumerate([(f"frames.{end}", ranks) for end in ("dcd", "xtc") for ranks in (1, 2)]):
        whole = root / f"whole{kind}"
        inp = control(root, whole, ranks, None, frames)
        begin = time.monotonic()
        started(inp, ranks).wait()
        longest = time.monotonic() - begin
        reference = result(whole)
        for k in range(kind, trials, 4):
            folder = root / f"trial{k}"
            interval = list(INTERVALS.values())[k // 4 % 2]
            trial(control(root, folder, ranks, interval, frames), ranks, longest, rng, counts)
            found = result(folder)
            counts["different"] += found != reference
            counts["left"] += len([*folder.glob("*.part")]) + len([*folder.glob("check_*.rst")]) - ranks
            counts["continued"] += "continued from" in (folder / "run.log").read_text()
            shutil.rmtree(folder)
    table = benchmark.table("trials", "Dynamics killed at random moments and continued", trials="", killed="", **{
        "stopped by SIGUSR1": "", "went on from a checkpoint": "", "failed": "", "runs that differ": "",
        "left over": ""})
    table.row(trials, *(counts[key] for key in ("killed", "stopped", "continued", "failed", "different", "left")))
    return not any(counts[key] for key in ("failed", "different", "left"))


def cost(benchmark: Benchmark, root: Path, tiles: tuple[int, ...], steps: int) -> None:
    """The table of what a checkpoint costs."""
    table = benchmark.table("cost", "What checkpoints cost, one rank", atoms=",", **{
        "size of a set, MB": ".2f", "time of a set, ms": ".1f", "step without, ms": ".3f",
        "step with looks, ms": ".3f"})
    for tile in tiles:
        folder = root / f"water{tile}"
        position, _ = engine.tiled_water(folder, tile)
        engine.set_up(folder, folder / "start_().rst", energy=ENERGY)
        seconds = {}
        for name, interval in {"none": None, "looks": 0, "each": 1e-9}.items():
            outputs = {} if interval is None else {"checkpoint": folder / f"{name}_().rst",
                                                   "checkpoint_interval": interval}
            inp = folder / f"{name}.inp"
            chromamd.write_control(inp, {
                "INPUT": {"topologyfile": folder / "topology.h5", "rstfile": folder / "start_().rst"},
                "OUTPUT": {"logfile": folder / f"{name}.log", **outputs}, "ENERGY": ENERGY | {"deterministic": False},
                "DYNAMICS": {"nsteps": steps, "timestep": 0.001, "eneout_period": steps},
                "CONSTRAINTS": {"rigid_bond": True}, "ENSEMBLE": {"temperature": 300}})
            measured([*chromamd.launch_command(1), "run", inp], folder / f"{name}.out")
            seconds[name] = engine.parts_of((folder / f"{name}.log").read_text())["total"] / steps
        size = sum(path.stat().st_size for path in folder.glob("each_*")) / 1e6
        table.row(len(position), size, 1000 * (seconds["each"] - seconds["none"]), 1000 * seconds["none"],
                  1000 * seconds["looks"])


def main() -> None:
    """Kill, continue, compare; then the cost."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--trials", type=int, default=100)
    add("--seed", type=int, default=1)
    add("--tiles", type=int, nargs="+", default=[1, 2, 3])
    add("--steps", type=int, default=200, help="of the runs that measure the cost")
    given = benchmark.start(quick={"trials": 4, "tiles": [1], "steps": 20})
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        engine.tiled_water(root, 1)
        for ranks in (1, 2):
            engine.set_up(root, root / f"start{ranks}_().rst", (ranks, 1, 1), energy=ENERGY)
        well = survive(benchmark, root, given.trials, random.Random(given.seed))
        cost(benchmark, root, tuple(given.tiles), given.steps)
    benchmark.finish()
    sys.exit(not well)


if __name__ == "__main__":
    main()
