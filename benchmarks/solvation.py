"""Solvating a nucleosome: ours (water, ions, all shard files) beside GROMACS' `gmx solvate` (water only, one PDB file).

One core, CPU time and largest resident set, in turn. Ours writes zstd PDB, BinaryCIF and .cbb with checksums and places
ions; gmx solvate places no ions. Without GROMACS (apt install gromacs) only ours is timed.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

from common import peers
from common.command import Benchmark
from common.results import ratios, spread
from common.solutes import write_spread
from common.timing import measured

from chromabuild.shards.merge import merge_shards

OURS = """
import sys
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import solvate
edge = float(sys.argv[2])
print(solvate(Solute.open(sys.argv[1]), SolvateSection(box=(edge, edge, edge)), 1, 1, sys.argv[3]).atoms)
"""


def main() -> None:
    """Time both in turn on every size."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--atoms", type=float, nargs="+", default=[1e6, 4e6])
    add("--rounds", type=int, default=3)
    given = benchmark.start(quick={"atoms": [7e5], "rounds": 1})
    gmx = peers.gromacs()
    if gmx:
        benchmark.peer("GROMACS", peers.gromacs_version(gmx))
    table = benchmark.table("solvation", "Solvation of a nucleosome with 177 base pairs in a cube, 1 core", program="",
                            **{"edge, Å": ".0f", "atoms": "", "CPU time, s": ".2f", "peak memory, GB": ".3f",
                               "time per atom / chromabuild": ".1f"})
    for wanted in given.atoms:
        edge = round((wanted / 0.098) ** (1 / 3), 3)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_spread(folder / "solute.h5", (edge, edge, edge), 1)
            path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            ours = [sys.executable, "-c", OURS, folder / "solute.h5", edge, folder / "shards"]
            measured(ours, folder / "ours.log", environment=path)
            merge_shards(folder / "shards", "solute", folder / "solute.pdb")
            theirs = [gmx, "-quiet", "-nobackup", "solvate", "-cp", folder / "solute.pdb", "-cs", "spc216.gro", "-box",
                      *[edge / 10] * 3, "-o", folder / "gmx.pdb"]
            runs = {"chromabuild": [], "gmx solvate": []} if gmx else {"chromabuild": []}
            for _ in range(given.rounds):
                shutil.rmtree(folder / "shards")
                runs["chromabuild"].append(measured(ours, folder / "ours.log", environment=path))
                if gmx:
                    runs["gmx solvate"].append(measured(theirs, folder / "gmx.log", folder=folder))
            atoms = {"chromabuild": int((folder / "ours.log").read_text().split()[-1])}
            if gmx:
                with open(folder / "gmx.pdb") as lines:
                    atoms["gmx solvate"] = sum(line.startswith(("ATOM", "HETATM")) for line in lines)
            cost = {label: [run.cpu / atoms[label] for run in used] for label, used in runs.items()}
            for label, used in runs.items():
                ratio = None if label == "chromabuild" else ratios(cost[label], cost["chromabuild"])
                table.row(label, edge, atoms[label], spread(run.cpu for run in used),
                          max(run.memory for run in used), ratio)
    benchmark.finish()


if __name__ == "__main__":
    main()
