"""Solvating a nucleosome: ours (water, ions, all shard files) and GROMACS' `gmx solvate` (water only, one PDB file).

    python benchmarks/solvation.py [atoms ...]      (default 1e6 4e6)

One core, CPU time and largest resident set, in turn, median of three. Ours writes zstd PDB, BinaryCIF and .cbb with
checksums and places ions; gmx solvate places no ions. Needs `gmx` on the path (Debian: apt install gromacs).
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

from spread_nucleosomes import write_spread

from chromabuild.shards.merge import merge_shards

OURS = """
import sys
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import solvate
edge = float(sys.argv[2])
print(solvate(Solute.open(sys.argv[1]), SolvateSection(box=(edge, edge, edge)), 1, 1, sys.argv[3]).atoms)
"""


def child(command, folder):
    """CPU seconds, resident set (GB) and output of a child process."""
    script = ("import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], capture_output=True, text=True); "
              "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(done.stdout); "
              "print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1e6, done.returncode)")
    done = subprocess.run([sys.executable, "-c", script, *map(str, command)], cwd=folder, capture_output=True,
                          text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    *output, figures = done.stdout.split("\n\n")[0].split() + done.stdout.strip().splitlines()[-1:]
    cpu, memory, code = figures.split()
    if code != "0":
        sys.exit(f"{command[0]} failed: {done.stderr}")
    return float(cpu), float(memory), output


def main():
    gmx = shutil.which("gmx") or sys.exit("gmx is not on the path: apt install gromacs")
    for n_atoms in [float(text) for text in sys.argv[1:]] or [1e6, 4e6]:
        edge = round((n_atoms / 0.098) ** (1 / 3), 3)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_spread(folder / "solute.h5", (edge, edge, edge), 1)
            child([sys.executable, "-c", OURS, folder / "solute.h5", edge, folder / "shards"], folder)
            merge_shards(folder / "shards", "solute", folder / "solute.pdb")
            times = {"ours": [], "gmx": []}
            for trial in range(3):
                ours = folder / f"ours{trial}"
                cpu, memory, output = child([sys.executable, "-c", OURS, folder / "solute.h5", edge, ours], folder)
                times["ours"].append((cpu, memory, int(output[-1])))
                shutil.rmtree(ours)
                out = folder / "gmx.pdb"
                cpu, memory, _ = child([gmx, "-quiet", "-nobackup", "solvate", "-cp", folder / "solute.pdb", "-cs",
                                        "spc216.gro", "-box", edge / 10, edge / 10, edge / 10, "-o", out], folder)
                with open(out) as lines:
                    times["gmx"].append((cpu, memory, sum(line.startswith(("ATOM", "HETATM")) for line in lines)))
            print(f"cube of {edge:g} angstrom")
            for label, runs in times.items():
                cpu = statistics.median(run[0] for run in runs)
                print(f"    {label:5s} {runs[0][2]:9d} atoms {cpu:8.2f} s CPU {runs[0][2] / cpu / 1e6:7.3f} M atoms/s "
                      f"{max(run[1] for run in runs):6.3f} GB")
            medians = [statistics.median(run[0] / run[2] for run in runs) for runs in times.values()]
            print(f"    ratio {medians[1] / medians[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
