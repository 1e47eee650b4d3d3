"""Time and memory of relaxing a solute without its water: chromamd with charges in implicit solvent, open boundaries.

Solutes of 4, 36 and 469 nucleosomes, turned at random on a lattice; 469 have the base pairs and nucleosomes of the
83 kb yeast locus. `--solute FILE` takes a solute_clean.h5 instead. Minimisation, then Langevin dynamics of 2 fs with
rigid bonds to hydrogen and heavy atoms held, with the settings of section `relax`; `--cutoffs` compares others.

A step costs the difference of a long and a short run over the difference in their steps, so that set-up does not count.
Memory is that of the whole dynamics. Bricks and force field are made once and kept in `--work`.
"""

from pathlib import Path

from common.command import Benchmark
from common.solutes import nucleosome, write_spread
from common.timing import Usage, measured

from chromabuild.base.settings import RelaxSection, Settings
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.solute import Solute
from chromabuild.shards.lone_bricks import write_lone_bricks
from chromabuild.simulate import chromamd
from chromabuild.simulate.protocol import Solvent, Task, phase_named, plan_phases
from chromabuild.simulate.relaxation import dry_dynamics, relax_phases
from chromabuild.solvate.ions import debye_length

COPIES = {"n30k": 1, "n100k": 4, "n1m": 36, "n13m": 469}
PACKING = 150.0
"""Angstrom of box edge a nucleosome, on a cubic lattice."""
STEPS = {"minimise": (10, 160), "relax": (20, 120)}
"""Steps of the short and of the long run. Dynamics begins where the long minimisation ends."""


def make(folder: Path, solute_file: Path | None, copies: int) -> int:
    """``topology.h5`` and bricks; gives the number of atoms."""
    folder.mkdir(parents=True, exist_ok=True)
    if solute_file is None:
        solute_file = folder / "solute.h5"
        per_edge = round(copies ** (1 / 3) + 0.5)
        reach = 2 * float((nucleosome().position ** 2).sum(axis=1).max()) ** 0.5
        edge = per_edge * max(PACKING, reach) + 1
        write_spread(solute_file, (edge, edge, edge), copies)
    solute = Solute.read(solute_file)
    if not (folder / "bricks" / "bricks.txt").is_file():
        make_topology(solute, {}).write(folder / "topology.h5")
        write_lone_bricks(solute.position, solute.residue_first_atom, folder / "bricks")
    return solute.n_atoms


def run(folder: Path, section: RelaxSection, kind: str, steps: int, ranks: int, threads: int) -> Usage:
    """A phase of the relaxation with another number of steps, from restart files that are there."""
    settings = Settings(relax=section)
    dynamics = dry_dynamics(section, settings.dynamics.model_copy(update={"ranks": ranks}))
    simulate = relax_phases(section.model_copy(update={"minimise_steps": steps}), 310.0)
    phases = plan_phases(simulate)
    solvent = Solvent(section.dielectric, section.dielectric_form, debye_length(settings.solvate) / 1000)
    task = Task(dynamics, 1, folder / "topology.h5", folder / "bricks" / "bricks.txt", folder, threads, solvent)
    phase = phase_named(phases, kind)
    sections = chromamd.phase_sections(task, phase)
    if kind == "relax":
        sections["DYNAMICS"]["nsteps"] = steps
    end = folder / f"{kind}{ranks}_().rst"
    start = folder / (f"minimise{ranks}_().rst" if kind == "relax" else f"start{ranks}_().rst")
    sections["INPUT"]["rstfile"] = start
    sections["OUTPUT"] = {"rstfile": end if kind == "minimise" else None, "logfile": folder / f"{kind}{ranks}.log"}
    control = folder / f"{kind}.inp"
    chromamd.write_control(control, sections)
    return measured([*chromamd.launch_command(ranks), "run", control], folder / f"{kind}.out", threads)


def main() -> None:
    """Measure the systems, smallest first."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--systems", nargs="*", choices=COPIES, default=["n100k", "n1m"])
    add("--solute", type=Path, help="a solute of your own, instead of the systems")
    add("--cutoffs", nargs="+", type=float, default=[RelaxSection().cutoff])
    add("--ranks", type=int, default=1)
    add("--threads", type=int, default=1)
    add("--work", type=Path, default=Path("dry_relaxation"), help="folder of the inputs")
    given = benchmark.start(quick={"systems": ["n30k"]})
    table = benchmark.table(
        "speed", f"Relaxation without water on {given.ranks} rank(s) of {given.threads} thread(s)", solute="", atoms="",
        cutoff=".0f", **{"minimisation, µs/atom/step/core": ".2f", "dynamics, µs/atom/step/core": ".2f",
                         "peak memory, bytes/atom": ".0f"})
    systems = {given.solute.stem: given.solute} if given.solute else dict.fromkeys(given.systems)
    cores = given.ranks * given.threads
    for name, file in systems.items():
        folder = (given.work / name).resolve()
        atoms = make(folder, file, COPIES.get(name, 0))
        for cutoff in given.cutoffs:
            section = RelaxSection(cutoff=cutoff)
            control = folder / "setup.inp"
            chromamd.write_control(control, {
                "INPUT": {"topologyfile": folder / "topology.h5", "shardfile": folder / "bricks" / "bricks.txt"},
                "OUTPUT": {"rstfile": folder / f"start{given.ranks}_().rst"},
                "ENERGY": {"electrostatic": "DEBYE", "cutoffdist": cutoff, "switchdist": cutoff,
                           "pairlistdist": cutoff + 1.5}, "BOUNDARY": {"type": "NOBC"}})
            measured([*chromamd.launch_command(given.ranks), "setup", control], folder / "setup.out")
            cost, memory = [], 0.0
            for kind, (short, long) in STEPS.items():
                used = [run(folder, section, kind, steps, given.ranks, given.threads) for steps in (short, long)]
                spent = [one.cpu if cores == 1 else one.wall * cores for one in used]
                cost.append(1e6 * (spent[1] - spent[0]) / (long - short) / atoms)
                memory = max(one.memory for one in used) * given.ranks
            table.row(name, atoms, cutoff, *cost, 1e9 * memory / atoms)
    benchmark.finish()


if __name__ == "__main__":
    main()
