"""Time and memory of `chromabuild import` by format and size: a nucleosome in water.

`chromabuild export` writes the systems: cubes of three-point water in AMBER's force field (GROMACS' top, AMBER's
prmtop) and in CHARMM's (psf), and rhombic dodecahedra of OPC water, which has a virtual site. Velocities, drawn at
300 K, are given with --velocities as a binary file of NAMD. Every import is a process of its own with one thread; it
must tell that it kept the velocities. Time goes with the size of the files and, a hundred times more an atom, with the
atoms of molecules that differ, which OpenMM's readers take one by one.

--atoms: about so many; the smallest box holds the solute and 1 nm of water around it.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from common.built_boxes import COMMAND, SOLUTE, SOLVENT, build, call, start
from common.command import Benchmark
from common.timing import measured

from chromabuild.base.constants import BOLTZMANN
from chromabuild.forcefield.topology_file import Topology

FILES = {"gromacs": ("system.top", "system.gro"), "amber": ("system.prmtop", "system.rst7"),
         "namd": ("system.psf", "system.coor", "system.prm", "--xsc", "system.xsc")}
CASES = (("amber14", "tip3p", "cube", ("gromacs", "amber")), ("charmm36m", "tip3p", "cube", ("namd",)),
         ("amber14", "opc", "dodecahedron", ("gromacs", "amber")))
DENSITY = {"tip3p": 0.0995, "opc": 0.1330}
"""Atoms in a cubic angstrom of the box."""
EXTENT, LEAST = 125.0, 10.0
"""Angstrom: of the solute, about, and of water around it."""


def box(shape: str, water: str, atoms: float) -> list[str]:
    """Settings of a box with about so many atoms."""
    volume = atoms / DENSITY[water]
    edge = (volume if shape == "cube" else volume * 2**0.5) ** (1 / 3)
    padding = max(LEAST, (edge - EXTENT) / 2)
    if shape != "cube":
        return [f"solvate.box={shape}", f"solvate.padding={padding:.1f}"]
    return [f"solvate.box=[{edge:.1f},{edge:.1f},{edge:.1f}]" if padding > LEAST else f"solvate.padding={padding}"]


def write_velocities(path: Path, mass: np.ndarray, temperature: float = 300.0) -> None:
    """NAMD's binary file of velocities; sites without mass are at rest."""
    random = np.random.default_rng(1)
    width = np.sqrt(np.divide(BOLTZMANN * temperature, mass, out=np.zeros_like(mass), where=mass > 0))
    with path.open("wb") as file:
        np.array([len(mass)], dtype="<i4").tofile(file)
        for rows in np.array_split(width, max(1, len(width) // 1_000_000)):
            (random.standard_normal((len(rows), 3)) * rows[:, None]).astype("<f8").tofile(file)


def main() -> None:
    """Build, export, import, keep the table."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--atoms", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    given = benchmark.start(quick={"atoms": [1e5]}, packages=("openmm",))
    table = benchmark.table("imports", "`chromabuild import` of a nucleosome in water, with velocities, one core",
                            files="", water="", box="",
                            **{"atoms": ",", "of different molecules": ",", "files, MB": ",.0f", "processor, s": ".1f",
                               "memory, MB": ",.0f"})
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        start(work / "solute", "simulate.protocol=null",
              'simulate.phases=[{"name": "settle", "kind": "minimise", "steps": 1}]')
        build(work / "solute", SOLUTE)
        for atoms in given.atoms:
            for force_field, water, shape, programs in CASES:
                build_folder = shutil.copytree(work / "solute", work / "system")
                settings = [f"dynamics.force_field={force_field}", f"solvate.water={water}", *box(shape, water, atoms)]
                build(build_folder, SOLVENT, *settings)
                topology = Topology.read(build_folder / "results" / "topology.h5")
                write_velocities(work / "velocities", topology.masses())
                for program in programs:
                    exported = work / "exported"
                    call(build_folder, "export", program, "-o", exported, *(w for s in settings for w in ("--set", s)))
                    files = [name if name.startswith("--") else exported / name for name in FILES[program]]
                    used = measured([*COMMAND, "import", *files, "--velocities", work / "velocities", "-o",
                                     work / "imported", "--json"], work / "log")
                    summary = json.loads((work / "log").read_text())
                    if not summary["velocities"].startswith("kept"):
                        sys.exit(f"velocities: {summary['velocities']}")
                    different = sum(t.n_atoms for t in Topology.read(work / "imported" / "topology.h5").templates)
                    size = sum(path.stat().st_size for path in files if isinstance(path, Path))
                    size += (work / "velocities").stat().st_size
                    table.row(program, water, shape, summary["atoms"], different, size / 1e6, used.cpu,
                              1000 * used.memory)
                    benchmark.keep()
                    shutil.rmtree(exported)
                    shutil.rmtree(work / "imported")
                shutil.rmtree(build_folder)
    benchmark.finish()


if __name__ == "__main__":
    main()
