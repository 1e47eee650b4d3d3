"""Atoms of upright boxes, rhombic dodecahedra and truncated octahedra.

Arrays of nucleosomes are folded and built as the defaults do, and one in a sphere; the plan has the atoms of each box
once the solute is there (within 2 %). Beside it, what the plan says of the dodecahedron before anything is built.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from common.command import Benchmark
from plan_estimates import result_of

CASES = {"1 nucleosome": ("1x601:167",), "4 nucleosomes": ("4x601:197",), "12 nucleosomes": ("12x601:197",),
         "12, in a sphere of 14 nm": ("12x601:197", "scaffold.confinement_radius=14")}
"""Arrays, and settings."""
SHAPES = {"upright": "", "dodecahedron": "dodecahedron", "octahedron": "octahedron"}


def begin(folder: Path, array: str) -> None:
    """A project of an array in a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "chromabuild.cli", "init", folder, "--array", array]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def atoms_of(folder: Path, array: str, settings: list[str], keep: bool) -> dict[str, int]:
    """By shape, and of the dodecahedron ``before`` the build."""
    words = [word for setting in settings for word in ("--set", setting)]
    plan = ("plan", "--threads", 1, *words)
    begin(folder / "plan", array)
    found = {"before": result_of(folder / "plan", *plan, "--set", "solvate.box=dodecahedron")["atoms"]}
    if not (keep and (folder / "build" / "results" / "solute.h5").is_file()):
        begin(folder / "build", array)
        result_of(folder / "build", "all", "--until", "build", "--threads", 1, *words)
    return found | {shape: result_of(folder / "build", *plan, "--set", f"solvate.box={word}")["atoms"]
                    for shape, word in SHAPES.items()}


def main() -> None:
    """Plan all boxes."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--cases", nargs="+", choices=CASES, default=list(CASES))
    add("--keep", action="store_true", help="solutes that are built already in --work stand")
    add("--work", type=Path, default=Path("box_shapes"), help="folder of the builds")
    given = benchmark.start(quick={"cases": ["1 nucleosome"]})
    work = given.work.resolve()
    table = benchmark.table("shapes", "Atoms in boxes with 10 angstrom of padding, relative to the upright box; plan: "
                            "of the dodecahedron, what it says before the build over what it says then",
                            solute="", upright=",.0f", **{"dodecahedron / upright": ".2f",
                                                          "octahedron / upright": ".2f", "plan": ".2f"})
    for case in given.cases:
        array, *settings = CASES[case]
        atoms = atoms_of(work / case.replace(" ", "_").replace(",", ""), array, settings, given.keep)
        table.row(case, atoms["upright"], atoms["dodecahedron"] / atoms["upright"],
                  atoms["octahedron"] / atoms["upright"], atoms["before"] / atoms["dodecahedron"])
    benchmark.finish()


if __name__ == "__main__":
    main()
