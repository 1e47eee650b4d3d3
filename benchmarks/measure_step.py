"""What the network simulator takes as measured of chromamd: a step of one core by parts, two threads, and memory.

Cubes of TIP3P water, 12 angstrom cutoff, switch from 10, PME of order 4 with spacing <= 1.2 angstrom, rigid waters, 2
fs, one rank. The parts are the shares of the engine's own timing table in the processor time of a long less a short
run, so that neither set-up nor other work on the machine counts. One and two threads are compared by the clock, which
wants an idle machine. Memory is the peak of a process that runs; of the program, that of setting up the smallest box.
With --save the records of chromabuild/scaling/data (measured_step, measured_threads, measured_memory) are renewed too;
with --parts-only neither threads nor memory are measured and the records stay. --record RESULT makes measured_step of
the parts that a file of benchmarks/results holds, instead of measuring; --clock and --flops say what its core can do.
"""

import json
import re
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.engine import PARTS, parts_of, run, set_up, turned_waters, water_topology, write_system
from common.results import Result
from common.timing import Usage

DATA = Path(__file__).resolve().parents[1] / "chromabuild" / "scaling" / "data"
SPACING = 3.104
"""Angstrom between waters on the starting lattice: liquid density."""
STEPS = (10, 110)
VECTOR_BITS = {"AVX-512": 512, "AVX2": 256, "SSE4.1": 128, "NEON": 128}
ENERGY = {"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5}
SHARES = [part for part in PARTS if part != "total"] + ["output"]


def make_box(folder: Path, side: int) -> tuple[int, float]:
    """Set up side**3 waters: start().rst; the number of atoms and the peak memory (GB) of that."""
    place = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    position = turned_waters((place + 0.5) * SPACING, np.random.default_rng(1))
    write_system(folder, water_topology(len(place)), position, np.full(3, side * SPACING))
    return len(position), set_up(folder, folder / "start().rst").memory


def dynamics(folder: Path, start: Path, steps: int, timestep: float = 0.002, threads: int = 1) -> Usage:
    """A run at constant energy."""
    return run(folder, start, {
        "ENERGY": ENERGY, "CONSTRAINTS": {"rigid_bond": True}, "ENSEMBLE": {"temperature": 300},
        "DYNAMICS": {"nsteps": steps, "timestep": timestep, "eneout_period": 1000}}, threads=threads)


def a_step(folder: Path, threads: int = 1) -> Usage:
    """What a step takes; the log of the long run is left in run.out."""
    short, long = (dynamics(folder, folder / "relaxed().rst", steps, threads=threads) for steps in STEPS)
    steps = STEPS[1] - STEPS[0]
    return Usage((long.cpu - short.cpu) / steps, (long.wall - short.wall) / steps, long.memory)


def clock_ghz() -> float:
    """Of the first core, from /proc/cpuinfo."""
    found = re.search(r"^cpu MHz\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return round(float(found[1]) / 1e3, 2) if found else 0.0


def step_record(measured: str, processor: str, instruction_set: str, clock: float, flops: float,
                boxes: list[dict]) -> dict:
    """What chromabuild.scaling.measured reads of a step; ``flops``: single precision, a cycle."""
    return {"measured": measured, "processor": processor, "instruction_set": instruction_set, "clock_ghz": clock,
            "single_flops_per_cycle": flops, "boxes": boxes}


def recorded_step(path: Path, clock: float, flops: float) -> dict:
    """The record of the parts that a file of results holds."""
    result = Result.read(path)
    boxes = [{"atoms": row[0], "microseconds_per_atom": dict(zip(SHARES, row[1:-1], strict=True))}
             for row in result.tables["parts"].rows]
    return step_record(result.date, result.machine["processor"], result.machine["instruction_set"], clock, flops, boxes)


def write_records(machine: dict, boxes: list[dict], threads: dict[int, float], program: float,
                  memory: dict[int, float]) -> None:
    """The files that chromabuild.scaling.measured reads. Two vector units with fused multiply-adds are assumed.

    ``threads``: milliseconds a step of the largest box; ``program``, ``memory``: GB.
    """
    head = {"measured": date.today().isoformat(), "processor": machine["processor"]}
    flops = 2 * 2 * VECTOR_BITS.get(machine["instruction_set"], 128) // 32
    largest = boxes[-1]["atoms"]
    records = {
        "measured_step": step_record(head["measured"], machine["processor"], machine["instruction_set"], clock_ghz(),
                                     flops, boxes),
        "measured_threads": {**head, "system": f"{largest:,} atoms of TIP3P water, by the clock",
                             "milliseconds": {str(n): round(time, 1) for n, time in threads.items()}},
        "measured_memory": {**head, "system": "TIP3P water, cutoff 12 angstrom, list 13.5 angstrom, one rank",
                            "program_bytes": round(1e9 * program),
                            "runs": [{"atoms": n, "bytes_per_atom": round(1e9 * peak / n)}
                                     for n, peak in memory.items()]}}
    for name, record in records.items():
        (DATA / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    """Measure the boxes, smallest first; two threads on the largest; memory."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--sides", nargs="+", type=int, default=[9, 17, 26], help="waters an axis, ascending, 9 at least")
    add("--memory-sides", nargs="+", type=int, default=[32, 46, 93], help="boxes whose memory is measured, ascending")
    add("--parts-only", action="store_true", help="only the parts of a step")
    add("--work", type=Path, help="parent of the folder of the inputs")
    add("--record", type=Path, help="a file of results of this benchmark to make measured_step of")
    add("--clock", type=float, default=clock_ghz(), help="GHz of the core of --record")
    add("--flops", type=int, default=32, help="single-precision operations a cycle of the core of --record")
    given = benchmark.start(quick={"sides": [9], "memory_sides": [9]})
    if given.record:
        record = recorded_step(given.record, given.clock, given.flops)
        (DATA / "measured_step.json").write_text(json.dumps(record, indent=1) + "\n")
        return
    parts = benchmark.table("parts", "Processor time per atom and step (µs) by parts, 1 core", atoms=",",
                            **{part.replace(" ", "_"): ".3f" for part in SHARES}, all=".2f")
    boxes = []
    with tempfile.TemporaryDirectory(dir=given.work) as name:
        folder = Path(name)
        for side in given.sides:
            atoms, _ = make_box(folder, side)
            run(folder, folder / "start().rst", {"ENERGY": ENERGY, "MINIMIZE": {"nsteps": 60}},
                folder / "relaxed().rst")
            microseconds = 1e6 * a_step(folder).cpu / atoms
            shares = parts_of((folder / "run.out").read_text(), SHARES)
            cost = {part: round(microseconds * share / sum(shares.values()), 4) for part, share in shares.items()}
            boxes.append({"atoms": atoms, "microseconds_per_atom": cost})
            parts.row(atoms, *cost.values(), microseconds)
        if given.parts_only:
            benchmark.finish()
            return
        table = benchmark.table("threads", f"Wall time per step of {atoms:,} atoms", threads="",
                                **{"time per step, ms": ".1f"})
        threads = {n: 1e3 * a_step(folder, n).wall for n in (1, 2)}
        for n, milliseconds in threads.items():
            table.row(n, milliseconds)
        table = benchmark.table("memory", "Peak memory per atom of a process", atoms=",", bytes_per_atom=",.0f")
        programs, memory = [], {}
        for side in given.memory_sides:
            atoms, program = make_box(folder, side)
            programs.append(program)
            # Steps too short to move anything: nothing needs to be minimised.
            memory[atoms] = dynamics(folder, folder / "start().rst", 3, timestep=1e-5).memory
            table.row(atoms, 1e9 * memory[atoms] / atoms)
    benchmark.finish()
    if given.save:
        write_records(benchmark.machine, boxes, threads, programs[0], memory)


if __name__ == "__main__":
    main()
