"""What a step of chromamd costs one core, by parts: the measured half of docs/explanation/network-simulation.md.

    python benchmarks/scaling/measure_step.py [FOLDER]

Boxes of TIP3P-like water, 12 angstrom cutoff, switch from 10, PME of order 4 with spacing <= 1.2 angstrom, rigid
waters, 2 fs, one rank, one thread. The engine's own shares of wall time, applied to the processor time of a long less
a short run, so that neither set-up nor other work on the machine counts. The result goes to
chromabuild/scaling/data/measured_step.json.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support import systems  # noqa: E402

RESULT = ROOT / "chromabuild" / "scaling" / "data" / "measured_step.json"
SPACING = 3.104
"""Angstrom between waters on the starting lattice: liquid density."""
STEPS = (10, 110)
INSTRUCTION_SETS = {"avx512f": (512, "AVX-512"), "avx2": (256, "AVX2"), "sse4_1": (128, "SSE4.1")}
"""Width of a vector in bits and name, by flag of the processor, the widest first."""
PARTS = ("real space", "reciprocal", "bonded", "pair list", "communication", "constraints", "integration", "output")


def make_box(folder: Path, n_side: int) -> int:
    """Set up n_side**3 waters, minimise; returns the number of atoms."""
    rng = np.random.default_rng(1)
    place = np.stack(np.meshgrid(*[np.arange(n_side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    axis = rng.normal(size=(2, len(place), 3))
    u = axis[0] / np.linalg.norm(axis[0], axis=1, keepdims=True)
    v = axis[1] - (axis[1] * u).sum(axis=1, keepdims=True) * u
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    oxygen = (place + 0.5) * SPACING
    position = np.stack([oxygen, oxygen + 0.9572 * u, oxygen + 0.9572 * (-0.25 * u + 0.968 * v)], axis=1).reshape(-1, 3)
    runs = [(systems.water(), len(place))]
    systems.write_topology(folder / "t.h5", runs)
    systems.write_bricks(folder, runs, position, np.full(3, n_side * SPACING))
    files = {"topologyfile": folder / "t.h5"}
    execute("setup", systems.control(folder / "setup.inp", INPUT={**files, "shardfile": folder / "bricks.txt"},
                                     OUTPUT={"rstfile": folder / "start().rst"}))
    execute("run", systems.control(folder / "minimise.inp", INPUT={**files, "rstfile": folder / "start().rst"},
                                   OUTPUT={"rstfile": folder / "relaxed().rst", "logfile": folder / "minimise.log"},
                                   ENERGY=ENERGY, MINIMIZE={"nsteps": 60}))
    return len(position)


ENERGY = {"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5}


def execute(command: str, control: Path) -> float:
    """Processor time of a run."""
    process = subprocess.Popen([systems.BIN / "chromamd", command, control], env={**os.environ, "OMP_NUM_THREADS": "1"},
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"chromamd {command} failed")
    return usage.ru_utime + usage.ru_stime


def measure(folder: Path, n_side: int) -> dict:
    """Microseconds an atom and step, by part."""
    n_atoms = make_box(folder, n_side)
    spent = []
    for steps in STEPS:
        log = folder / f"run{steps}.log"
        spent.append(execute("run", systems.control(
            folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "relaxed().rst"},
            OUTPUT={"logfile": log}, ENERGY=ENERGY,
            DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": 1000},
            CONSTRAINTS={"rigid_bond": "YES"}, ENSEMBLE={"temperature": 300})))
    text = log.read_text()
    seconds = {part: float(line.split()[len(part.split())]) for part in PARTS for line in text.splitlines()
               if line.strip().startswith(part)}
    total = 1e6 * (spent[1] - spent[0]) / (STEPS[1] - STEPS[0]) / n_atoms
    whole = sum(seconds.values())
    return {"atoms": n_atoms, "microseconds_per_atom": {part: round(total * value / whole, 4)
                                                        for part, value in seconds.items()}}


def processor() -> dict[str, object]:
    """Name, instruction set and peak of this machine's cores in single precision, from /proc/cpuinfo. Two vector units
    with fused multiply-adds are assumed."""
    text = Path("/proc/cpuinfo").read_text()
    lines = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in text.split("\n") if ":" in line)
    flags = lines["flags"].split()
    bits, name = next(found for flag, found in INSTRUCTION_SETS.items() if flag in flags)
    return {"processor": lines["model name"], "instruction_set": name,
            "clock_ghz": round(float(lines["cpu MHz"]) / 1e3, 2), "single_flops_per_cycle": 2 * 2 * bits // 32}


def main() -> None:
    results = []
    for n_side in (9, 17, 26):
        with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
            results.append(measure(Path(folder), n_side))
            print(results[-1], flush=True)
    record = {"measured": date.today().isoformat(), **processor(), "boxes": results}
    RESULT.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
