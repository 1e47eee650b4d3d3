"""Largest resident set of `chromabuild export`, by program and size of the box.

One nucleosome in boxes of water; every export is a process of its own. What does not grow with the box is streamed.
A program with "-after" takes coordinates at the end of a phase, one step of minimisation.

--builds: folders in which such a phase is done, in place of boxes that are made.
"""

import json
import shutil
import tempfile
from pathlib import Path

from common.built_boxes import COMMAND, SOLUTE, SOLVENT, build, start
from common.command import Benchmark
from common.timing import measured

PHASE = "settle"
PROGRAMS = ("gromacs", "openmm", "amber", "namd", "genesis", "lammps", "namd-after", "wet.cif", "wet.bcif",
            "wet-after.bcif")


def built(folder: Path, edge: float) -> Path:
    """A nucleosome in a box of water with its force field, and one step of minimisation."""
    start(folder, f"solvate.box=[{edge:g},{edge:g},{edge:g}]", "simulate.protocol=null",
          f'simulate.phases=[{{"name": "{PHASE}", "kind": "minimise", "steps": 1}}]')
    build(folder, (*SOLUTE, *SOLVENT, "run"))
    return folder


def main() -> None:
    """Build, export, keep the table."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--edges", type=float, nargs="+", default=[130.0, 215.0, 368.0],
                                  help="of the boxes, angstrom")
    benchmark.parser.add_argument("--builds", nargs="+", default=[], metavar="FOLDER")
    benchmark.parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    given = benchmark.start(quick={"edges": [130.0], "programs": ["gromacs"], "builds": []})
    table = benchmark.table("peak", "`chromabuild export`: largest resident set", program="", atoms=",",
                            **{"memory, MB": ",.0f", "processor, s": ".1f", "files, MB": ",.0f"})
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        builds = [Path(one).resolve() for one in given.builds] or [built(work / f"{edge:g}", edge)
                                                                  for edge in given.edges]
        for program in given.programs:
            for project in builds:
                target = work / "exported"
                words = ["structure", target / program, "--water", "1e9"] if "." in program else \
                    [program.removesuffix("-after"), "-o", target]
                if "after" in program:
                    words += ["--after", PHASE]
                used = measured([*COMMAND, "export", *words, "--force"], work / "log", folder=project)
                size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
                atoms = json.loads((project / "results" / "shards" / "manifest.json").read_text())["atoms"]
                table.row(program, atoms, 1000 * used.memory, used.cpu, size / 1e6)
                shutil.rmtree(target)
    if given.builds:
        given.builds = given.edges = None  # results name no folders of a machine
    benchmark.finish()


if __name__ == "__main__":
    main()
