"""Restart set-up: time and memory of `chromamd setup` at 1e7 atoms to 64 domains, and the memory model at 1e9 atoms.

    python benchmarks/setup_domains.py FOLDER [--atoms 1e7] [--threads 2]

The system is that of benchmarks/billion.py. Set up by one rank, by two, and redistributed from 4 x 4 x 4 to 8 x 4 x 2
domains. The model of a rank for 65,536 domains of the billion: what grows with the locus is measured on DNA of 1,000
and 2,000 bp and continued to 83,000; the rest is counted from sizes.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from spread_nucleosomes import write_spread

from chromabuild.backends import chromamd
from chromabuild.backends.chromamd import write_control
from chromabuild.config import SolvateSection
from chromabuild.residues import residue_library, residue_names
from chromabuild.shards.brick_file import BrickFile, packed
from chromabuild.solute import Solute
from chromabuild.solvate import solvate
from chromabuild.topology import make_topology

BOX = np.array([1907.0, 2252.0, 2485.0])
ATOMS = 1.0467e9
DOMAINS = 65_536
BRICK_EDGE, REACH = 100.0, 25.0  # angstrom; the reach is setup's residue_reach


def run(command, control, ranks=1):
    """Wall and CPU seconds and the largest resident set of a rank (GB) of one engine command."""
    script = ("import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
              "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1e6); "
              "sys.exit(code)")
    line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, *line, chromamd.executable(), command, str(control)],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    print("   ", *(text for text in done.stdout.splitlines() if text.startswith("setup: ")), sep=" ")
    cpu, memory = map(float, done.stdout.split()[-2:])
    return time.monotonic() - start, cpu, memory


def set_up(folder, source, target, grid, ranks=1):
    """chromamd setup."""
    key = "rstfile" if "()" in str(source) else "shardfile"
    write_control(folder / "setup.inp", {
        "INPUT": {"topologyfile": folder / "topology.h5", key: source}, "OUTPUT": {"rstfile": target},
        "BOUNDARY": dict(zip(("domain_x", "domain_y", "domain_z"), grid, strict=True))})
    return run("setup", folder / "setup.inp", ranks)


def memory_of_dna(folder, base_pairs):
    """Resident set (GB) of setting up one domain of a strand of DNA far from everything: the topology."""
    folder.mkdir(exist_ok=True)
    library, names = residue_library(), residue_names()
    bases = np.random.default_rng(1).choice(list("ACGT"), base_pairs)
    residues = [f"D{bases[0]}5", *(f"D{base}" for base in bases[1:-1]), f"D{bases[-1]}3"]
    template = np.array([names.index(name) for name in residues], dtype=np.uint16)
    n = sum(len(library[name].atoms) for name in residues)
    solute = Solute(np.zeros((n, 3), np.float32), template, np.arange(1, base_pairs + 1, dtype=np.int32),
                    np.zeros(base_pairs, np.uint16), ["DI00"], ["A"], np.array([0, base_pairs]), ["DNA-I"],
                    np.array([-1], np.int32))
    make_topology(solute, {}).write(folder / "topology.h5")
    box = np.array([100.0, 100.0, 100.0])
    position = np.full((n, 3), 50_000, dtype=np.int32)
    (folder / "brick.cbb").write_bytes(packed(BrickFile(box, np.zeros(3), box, np.arange(n), position)))
    (folder / "bricks.txt").write_text("chromabuild-bricks 1\nbox 100 100 100\ngrid 1 1 1\n"
                                       f"atoms {n}\nbrick.cbb {n} 0 0 0 100 100 100\n")
    memory = set_up(folder, folder / "bricks.txt", folder / "r().rst", (1, 1, 1))[2]
    return memory - 200e-9 * n  # the domain itself: brick, ids, positions, velocities


def model(folder):
    """Memory of a rank at 65,536 domains of the billion, by what it holds."""
    small, large = memory_of_dna(folder / "dna", 1000), memory_of_dna(folder / "dna", 2000)
    per_pair = 2 * (large - small) / 1000  # GB; two strands
    program = small - (large - small)
    per_domain = ATOMS / DOMAINS
    edge = (BOX.prod() / DOMAINS) ** (1 / 3)
    bricks = np.prod(np.round(BOX / BRICK_EDGE))
    brick_atoms = ATOMS / bricks
    touched = ((edge + 2 * REACH + BRICK_EDGE) / BRICK_EDGE) ** 3
    rows = [
        ("program, MPI, HDF5", "", program * 1e3),
        ("topology of 83,000 bp", f"{per_pair * 1e6:.1f} kB a base pair", per_pair * 83_000 * 1e3),
        ("list of bricks", f"{bricks:.0f} x 120 bytes", bricks * 120 / 1e6),
        ("one brick: file, ids, positions", f"{brick_atoms:.0f} atoms x 39 bytes", brick_atoms * 39 / 1e6),
        ("domain: ids, positions, velocities", f"{per_domain:.0f} atoms x 56 bytes, grown by half",
         per_domain * 84 / 1e6),
    ]
    print(f"memory of a rank, {ATOMS:.4g} atoms in {DOMAINS} domains of {edge:.0f} angstrom; "
          f"{touched:.0f} of {bricks:.0f} bricks read")
    for name, detail, megabytes in rows:
        print(f"    {name:36s} {megabytes:9.2f} MB  {detail}")
    print(f"    {'sum':36s} {sum(row[2] for row in rows):9.2f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--atoms", type=float, default=1e7)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    scale = (arguments.atoms / ATOMS) ** (1 / 3)
    box = tuple(np.round(BOX * scale, 3).tolist())
    write_spread(folder / "solute.h5", box, max(1, round(469 * scale**3)))
    solute = Solute.open(folder / "solute.h5")
    manifest = solvate(solute, SolvateSection(box=box), 1, arguments.threads, folder / "shards")
    make_topology(solute, manifest.counts).write(folder / "topology.h5")
    bricks = folder / "shards" / "bricks.txt"
    rows = [("bricks to 4 x 4 x 4, 1 rank", (bricks, folder / "a().rst", (4, 4, 4), 1)),
            ("bricks to 4 x 4 x 4, 2 ranks", (bricks, folder / "b().rst", (4, 4, 4), 2)),
            ("4 x 4 x 4 to 8 x 4 x 2, 1 rank", (folder / "a().rst", folder / "c().rst", (8, 4, 2), 1))]
    print(json.dumps({"atoms": manifest.atoms, "bricks": len(manifest.shards)}))
    for name, job in rows:
        wall, cpu, memory = set_up(folder, *job)
        print(f"{name:32s} {wall:7.1f} s wall {cpu:7.1f} s CPU  {manifest.atoms / cpu / 1e6:6.2f} M atoms/s  "
              f"{memory:6.3f} GB a rank", flush=True)
    same = all((folder / f"a{k}.rst").read_bytes() == (folder / f"b{k}.rst").read_bytes() for k in range(64))
    print("one and two ranks write the same files" if same else "FILES DIFFER")
    model(folder)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
