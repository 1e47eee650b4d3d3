"""Memory of all processes of the stage `relax`, what a step of it costs, and what it leaves.

--solute is one that was built, such as `results/solute_clean.h5` of the 83 kb locus; without it, nucleosomes turned at
random on a lattice, as in dry_relaxation.py, and as few steps as one asks for. The stage does what it does in a build:
force field, bricks, set-up, minimisation, Langevin dynamics, clash check. The memory of a part is the largest sum of
the proportional set sizes of its processes.

A step costs the processor time of the engine between the first and the last row of its log over steps and atoms: lists
that are made anew in between count, what comes before the first step does not. The last step of dynamics finds terms
and lists anew, some µs an atom, so that a short run overstates its cost.
"""

import subprocess
import sys
import time
from pathlib import Path

from common.command import Benchmark
from common.memory import MemoryWatch, family

from chromabuild.base.settings import RelaxSection, Settings
from chromabuild.clash import check
from chromabuild.molecule.solute import Solute
from chromabuild.simulate.relaxation import TIMESTEP, relax

PACKING = 210.0
"""Angstrom of box edge a nucleosome, on a cubic lattice."""
TICKS = 100.0
"""A second of /proc/PID/stat."""
FAULTS = {"pairs_below_threshold": "pairs below the threshold of clashes", "bad_overlaps": "bad overlaps",
          "heavy_pairs_below_2": "pairs of heavy atoms below 2 Å",
          "ring_piercings": "rings pierced", "chirality_errors": "centres of the wrong hand",
          "cis_peptides": "cis peptides", "twisted_peptides": "twisted peptides"}
MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
from common.solutes import write_spread
write_spread(sys.argv[2], 3 * (float(sys.argv[3]),), int(sys.argv[4]))
"""


def engine() -> tuple[str, float]:
    """The control file of the engine that runs now and its processor seconds; empty and 0 where none does."""
    for pid in family():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if Path(words[0]).name.startswith("chromamd") and len(words) > 2:
            return f"chromamd, {Path(words[2]).stem.lstrip('0123456789-')}", (int(used[11]) + int(used[12])) / TICKS
    return "", 0.0


def main() -> None:
    """Make the solute, then the stage."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--solute", type=Path, help="solute.h5 in place of copies of a nucleosome")
    add("--copies", type=int, default=36, help="nucleosomes")
    add("--minimise-steps", type=int, default=40)
    add("--steps", type=int, default=40, help="of dynamics")
    add("--threads", type=int, default=1)
    add("--work", type=Path, default=Path("relax_stage"), help="folder of the files")
    given = benchmark.start(quick={"copies": 1, "minimise_steps": 10, "steps": 10})
    given.work.mkdir(parents=True, exist_ok=True)
    file = given.solute or given.work / "solute.h5"
    edge = PACKING * round(given.copies ** (1 / 3) + 0.5) + 1
    if not file.is_file():  # in a process of its own: its memory is not that of the stage
        subprocess.run([sys.executable, "-c", MAKE, Path(__file__).parent, file, str(edge), str(given.copies)],
                       check=True)
    section = RelaxSection(minimise_steps=given.minimise_steps, length=f"{TIMESTEP * given.steps:g} fs")
    settings = Settings(relax=section)
    used: dict[str, list[float]] = {}
    part = ["force field and bricks"]

    def note(name: str, share: float) -> None:
        used.setdefault(name, []).append(engine()[1])
        if share >= 1.0:
            part[0] = "what the engine leaves"

    before = check(Solute.read(file), settings.clash.threshold, given.threads).data["before"]
    begin = time.monotonic()
    with MemoryWatch(lambda: engine()[0] or part[0]) as memory:
        solute, summary = relax(Solute.read(file), settings, given.work, given.threads, note)
        part[0] = "clash check"
        after = check(solute, settings.clash.threshold, given.threads).data["before"]
    wall = time.monotonic() - begin
    table = benchmark.table("memory", f"Memory of the stage relax, all processes: {solute.n_atoms:,} atoms, "
                            f"{given.minimise_steps} + {given.steps} steps on {given.threads} thread(s), {wall:.0f} s",
                            part="", GB=".3f", **{"bytes/atom": ".0f"})
    for name, size in memory.peak.items():
        table.row(name, size / 1e9, size / solute.n_atoms)
    table = benchmark.table("step", "Processor time of a step", phase="", **{"µs/atom/step": ".2f"})
    for name, steps in (("minimise", given.minimise_steps), ("relax", given.steps)):
        table.row(name, 1e6 * (used[name][-1] - used[name][0]) / steps / solute.n_atoms)
    table = benchmark.table("outcome", "What the stage changes", quantity="", before=",", after=",")
    table.row("potential energy of the minimisation, kcal/mol per atom",
              *(round(summary[f"energy_{when}_kcal_per_mol"] / solute.n_atoms, 3) for when in ("before", "after")))
    table.row("base pairs", *(sum(duplex["base_pairs"] for duplex in found["duplexes"]) for found in (before, after)))
    for name, words in FAULTS.items():
        table.row(words, *(found[name]["count"] if isinstance(found[name], dict) else found[name]
                           for found in (before, after)))
    print(summary)
    benchmark.finish()


if __name__ == "__main__":
    main()
