"""Largest resident set of `chromabuild export` and `chromabuild import`, by program and size of the box.

One nucleosome in boxes of water; every export is a process of its own. What does not grow with the box is streamed.
A program with "-after" takes coordinates at the end of a phase, one step of minimisation. What was exported is imported
where `chromabuild import` knows the format: its time goes with the atoms of molecules that differ, which OpenMM's
readers take one by one.

--builds: folders in which such a phase is done, in place of boxes that are made.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from common.command import Benchmark
from common.timing import measured

from chromabuild.forcefield.topology_file import Topology

PHASE = "settle"
PROGRAMS = ("gromacs", "openmm", "amber", "namd", "genesis", "lammps", "namd-after", "wet.cif", "wet.bcif",
            "wet-after.bcif")
IMPORTED = {"gromacs": ("system.top", "system.gro"), "amber": ("system.prmtop", "system.rst7"),
            "namd": ("system.psf", "system.pdb", "system.prm", "--xsc", "system.xsc")}
"""What the import is given; NAMD's psf where the force field is CHARMM's."""
COMMAND = [sys.executable, "-m", "chromabuild.cli"]


def built(folder: Path, edge: float) -> Path:
    """A nucleosome in a box of water with its force field, and one step of minimisation."""
    settings = [f"solvate.box=[{edge:g},{edge:g},{edge:g}]", "scaffold.sweeps=100", "simulate.protocol=null",
                f'simulate.phases=[{{"name": "{PHASE}", "kind": "minimise", "steps": 1}}]']
    for words in (["init", folder, "--array", "1x601:147", *(word for one in settings for word in ("--set", one))],
                  *([stage] for stage in ("scaffold", "build", "clash", "solvate", "topology", "run"))):
        subprocess.run([*COMMAND, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       cwd=folder if words[0] != "init" else None)
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
    imports = benchmark.table("import", "`chromabuild import` of what was exported", program="", atoms=",",
                              **{"force field": "", "atoms of different molecules": ",", "memory, MB": ",.0f",
                                 "processor, s": ".1f"})
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        builds = [Path(one).resolve() for one in given.builds] or [built(work / f"{edge:g}", edge)
                                                                  for edge in given.edges]
        for program in given.programs:
            for build in builds:
                target = work / "exported"
                words = ["structure", target / program, "--water", "1e9"] if "." in program else \
                    [program.removesuffix("-after"), "-o", target]
                if "after" in program:
                    words += ["--after", PHASE]
                used = measured([*COMMAND, "export", *words, "--force"], work / "log", folder=build)
                size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
                atoms = json.loads((build / "results" / "shards" / "manifest.json").read_text())["atoms"]
                table.row(program, atoms, 1000 * used.memory, used.cpu, size / 1e6)
                names = IMPORTED.get(program, ("none",))
                if (target / names[0]).exists():
                    files = [name if name.startswith("--") else target / name for name in names]
                    used = measured([*COMMAND, "import", *files, "-o", work / "imported"], work / "log")
                    topology = Topology.read(work / "imported" / "topology.h5")
                    different = sum(template.n_atoms for template in topology.templates)
                    imports.row(program, atoms, Topology.read(build / "results" / "topology.h5").force_field, different,
                                1000 * used.memory, used.cpu)
                    shutil.rmtree(work / "imported")
                shutil.rmtree(target)
    if given.builds:
        given.builds = given.edges = None  # results name no folders of a machine
    benchmark.finish()


if __name__ == "__main__":
    main()
