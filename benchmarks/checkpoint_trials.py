"""Runs survive kill -9, signals and full disks: stopped at random moments, continued, compared byte by byte.

A trial is a phase of the deterministic mode on one or two ranks: minimisation, heating while restraints are released,
or dynamics at constant pressure. It writes a checkpoint after every step or every 0.1 s. At random moments it is killed
(SIGKILL to mpirun and all ranks), stopped (SIGUSR1 as by chromabuild, SIGTERM to all processes as by a scheduler at the
end of a job), or its disk is full from one call on that changes a file; then it is started again, until it is through.
Energy table, trajectory and last restart files must have the bytes of an undisturbed run, and nothing may be left over.
The exit code is 1 when something was lost, repeated, torn or left.

The cost is that of water: size and time of a set, and time of a step with and without looks at clock and signals.
"""

import collections
import errno
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
from common.fault_trials import disk_that_fails, failing_disk
from common.timing import measured

from chromabuild.simulate import chromamd

ENERGY = {"cutoffdist": 8, "switchdist": 8, "pairlistdist": 9, "deterministic": True}
STEPS = 100
DYNAMICS = {"DYNAMICS": {"nsteps": STEPS, "timestep": 0.002, "eneout_period": 7, "crdout_period": 3,
                         "barostat_period": 4}, "CONSTRAINTS": {"rigid_bond": True}}
PHASES: dict[str, dict[str, dict[str, object]]] = {
    "minimise": {"MINIMIZE": {"method": "SD", "nsteps": STEPS, "eneout_period": 7, "crdout_period": 3}},
    "heat": {**DYNAMICS, "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 200,
                                      "temperature_end": 300},
             "SELECTION": {"group1": "ai:1-300"},
             "RESTRAINTS": {"nfunctions": 1, "function1": "POSI", "constant1": 5, "constant_end1": 0,
                            "select_index1": 1}},
    "produce": {**DYNAMICS, "ENSEMBLE": {"ensemble": "NPT", "tpcontrol": "LANGEVIN", "temperature": 300,
                                         "barostat": "MTK"}}}
INTERVALS = {"every step": 1e-9, "every 0.1 s": 0.1 / 60}
FAULTS = {"killed": 6, "stopped by SIGUSR1": 2, "stopped by SIGTERM": 1, "disk full": 1}
"""How often each happens, of ten times."""
MOST_FAULTS = 5
"""Of a trial, which may then go to its end."""
PATIENCE = 60
"""Seconds for a stopped run to end, before it is killed."""
FULL_DISK = 6
"""Exit code."""


def control(root: Path, folder: Path, phase: str, ranks: int, interval: float | None, frames: str) -> Path:
    """A control file of a phase; ``interval``: minutes between checkpoints, None: none at all."""
    folder.mkdir()
    kept = {} if interval is None else {"checkpoint": folder / "check_().rst", "checkpoint_interval": interval}
    path = folder / "run.inp"
    chromamd.write_control(path, {
        "INPUT": {"topologyfile": root / "topology.h5", "rstfile": root / f"start{ranks}_().rst",
                  "reffile": root / "bricks.txt" if phase == "heat" else None,
                  "continue": None if interval is None else True},
        "OUTPUT": {"logfile": folder / "run.log", "dcdfile": folder / frames, "rstfile": folder / "end_().rst", **kept},
        "ENERGY": ENERGY, **PHASES[phase]})
    return path


def started(inp: Path, ranks: int, disk: dict[str, str] | None = None) -> subprocess.Popen:
    """The engine with its launcher in a process group of its own; ``disk``: variables of one that fails."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
                                "HWLOC_COMPONENTS": "-pci,-linuxio,-opencl"} | (disk or {})
    line = chromamd.launch_command(ranks, variables=tuple(disk or ()))
    with open(inp.with_suffix(".out"), "w") as out:
        return subprocess.Popen([*line, "run", str(inp)], stdout=out, stderr=out, env=environment,
                                start_new_session=True)


def result(folder: Path) -> dict[str, object]:
    """Energy table, and bytes of the trajectory and of the last restart files."""
    rows = [line for line in (folder / "run.log").read_text().splitlines() if line.startswith("INFO:")]
    files = [*folder.glob("end_*.rst"), *folder.glob("frames.*")]
    return {"rows": rows, **{path.name: path.read_bytes() for path in files}}


def trial(inp: Path, ranks: int, longest: float, calls: int, library: Path, rng: random.Random,
          counts: collections.Counter) -> None:
    """Disturb and continue until the run is through; ``longest``: seconds of an undisturbed one, in which it makes so
    many ``calls`` that change files."""
    for attempt in range(MOST_FAULTS + 1):
        fault = rng.choices([*FAULTS], [*FAULTS.values()])[0] if attempt < MOST_FAULTS else None
        if fault == "disk full":
            disk = disk_that_fails(inp.parent, inp.parent.with_suffix(".calls"), rng.randrange(1, calls), errno.ENOSPC)
            process = started(inp, ranks, disk | {"LD_PRELOAD": str(library)})
        else:
            process = started(inp, ranks)
        if fault in (None, "disk full"):
            process.wait()
        else:
            time.sleep(rng.uniform(0.1, longest))
        if process.poll() == 0:
            break
        if fault == "stopped by SIGUSR1":
            process.send_signal(signal.SIGUSR1)
        elif fault is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM if fault == "stopped by SIGTERM" else signal.SIGKILL)
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # as a scheduler does: mpirun may hang where a rank ended before it joined
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            fault, code = "killed", -signal.SIGKILL
        if code == 0:
            break
        counts[fault] += 1
        # A signal may come before the engine heeds it; then the engine ends by the signal itself, and so mpirun says.
        fine = {"stopped by SIGUSR1": (7, -signal.SIGUSR1, 128 + signal.SIGUSR1), "disk full": (FULL_DISK,)}.get(fault)
        counts["failed"] += fine is not None and code not in fine
        if fine is not None and code not in fine:
            print(fault, code, inp.with_suffix(".out").read_text()[-500:])
    counts["failed"] += process.returncode != 0


def survive(benchmark: Benchmark, root: Path, trials: int, rng: random.Random) -> bool:
    """The table of the trials; whether all was well."""
    library = failing_disk(root / "failing-disk.so")
    counts = {phase: collections.Counter() for phase in PHASES}
    kinds = [(f"frames.{end}", ranks) for end in ("dcd", "xtc") for ranks in (1, 2)]
    for number, phase in enumerate(PHASES):
        for kind, (frames, ranks) in enumerate(kinds):
            mine = range(number + len(PHASES) * kind, trials, len(PHASES) * len(kinds))
            if not mine:
                continue
            whole = root / f"whole-{phase}{kind}"
            counter = whole.with_suffix(".calls")
            inp = control(root, whole, phase, ranks, None, frames)
            begin = time.monotonic()
            started(inp, ranks, disk_that_fails(whole, counter, 0, errno.ENOSPC) | {"LD_PRELOAD": str(library)}).wait()
            longest, calls = time.monotonic() - begin, int.from_bytes(counter.read_bytes(), "little")
            reference, count = result(whole), counts[phase]
            for k in mine:
                folder = root / f"trial{k}"
                interval = list(INTERVALS.values())[k // (len(PHASES) * len(kinds)) % 2]
                trial(control(root, folder, phase, ranks, interval, frames), ranks, longest, calls, library, rng, count)
                found = result(folder)
                count["trials"] += 1
                count["different"] += found != reference
                count["left"] += len([*folder.glob("*.part")]) + len([*folder.glob("check_*.rst")]) - ranks
                count["continued"] += "continued from" in (folder / "run.log").read_text()
                shutil.rmtree(folder)
    table = benchmark.table("trials", "Phases stopped at random moments and continued", phase="", trials="", **{
        **dict.fromkeys(FAULTS, ""), "went on from a checkpoint": "", "failed": "", "runs that differ": "",
        "left over": ""})
    for phase, count in counts.items():
        table.row(phase, *(count[key] for key in ("trials", *FAULTS, "continued", "failed", "different", "left")))
    return not any(count[key] for count in counts.values() for key in ("failed", "different", "left"))


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
