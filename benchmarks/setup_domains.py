"""Restart set-up: time and memory of `chromamd setup` at 1e7 atoms to 64 domains, and the memory model at 1e9 atoms.

    python benchmarks/setup_domains.py FOLDER [--atoms 1e7] [--threads 2]

The system is that of benchmarks/billion.py. Set up by one rank, by two, and redistributed from 4 x 4 x 4 to 8 x 4 x 2
domains. The model of a rank for 65,536 domains of the billion: the program with the topology of 10,000 bp and
their histones is measured; the rest is counted from sizes.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from spread_nucleosomes import one_nucleosome, write_spread

from chromabuild.base.settings import SolvateSection
from chromabuild.forcefield import make_topology
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.simulate import chromamd
from chromabuild.simulate.chromamd import write_control
from chromabuild.solvate import solvate

BOX = np.array([1907.0, 2252.0, 2485.0])
ATOMS = 1.0467e9
DOMAINS = 65_536
LOCUS, LOCUS_MEASURED = 83_000, 10_000  # base pairs
BRICK_EDGE, REACH = 100.0, 25.0  # angstrom; the reach is setup's residue_reach


def run(command, control, ranks=1, expected=0):
    """Wall and CPU seconds and the largest resident set of a rank (GB) of one engine command."""
    script = ("import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
              "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1e6); "
              "sys.exit(code)")
    line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, *line, chromamd.executable(), command, str(control)],
                          capture_output=True, text=True)
    if done.returncode != expected:
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


def locus(base_pairs):
    """The residues of one nucleosome's histones and of two strands of random DNA, without positions."""
    library, names = residue_library(), residue_names()
    unit = one_nucleosome()
    bases = np.random.default_rng(1).choice(list("ACGT"), base_pairs)
    strands = [bases, np.array([dict(zip("ACGT", "TGCA", strict=True))[base] for base in bases[::-1]])]
    molecules = []
    for strand in strands:
        residues = [f"D{strand[0]}5", *(f"D{base}" for base in strand[1:-1]), f"D{strand[-1]}3"]
        molecules.append(np.array([names.index(name) for name in residues]))
    for first, last in pairwise(unit.molecule_first_residue):
        residues = unit.residue_template[first:last]
        if library[names[residues[0]]].kind == "amino acid":
            molecules.append(residues)
    lengths = [len(residues) for residues in molecules]
    template = np.concatenate(molecules).astype(np.uint16)
    n = sum(len(library[names[k]].atoms) for k in template)
    k = len(molecules)
    return Solute(np.zeros((n, 3), np.float32), template, np.concatenate([np.arange(1, m + 1) for m in lengths]),
                  np.repeat(np.arange(k), lengths).astype(np.uint16), [f"S{i:03d}" for i in range(k)], ["A"] * k,
                  np.concatenate([[0], np.cumsum(lengths)]), [f"chain-{i}" for i in range(k)], np.full(k, -1, np.int32))


def memory_of_topology(folder, base_pairs):
    """Resident set (GB) of a rank that has read the topology of a locus and no atoms: a merge that finds no frames."""
    folder.mkdir(exist_ok=True)
    make_topology(locus(base_pairs), {}).write(folder / "topology.h5")
    inputs = {"topologyfile": folder / "topology.h5", "dcdfile": folder / "absent_().dcd"}
    write_control(folder / "merge.inp", {"INPUT": inputs, "OUTPUT": {"dcdfile": folder / "merged.dcd"}})
    return run("merge", folder / "merge.inp", expected=3)[2]


def model(folder):
    """Memory of a rank at 65,536 domains of the billion, by what it holds."""
    small, large = (memory_of_topology(folder / "dna", n) for n in (100, LOCUS_MEASURED))
    per_domain = ATOMS / DOMAINS
    edge = (BOX.prod() / DOMAINS) ** (1 / 3)
    bricks = np.prod(np.round(BOX / BRICK_EDGE))
    brick_atoms = ATOMS / bricks
    touched = ((edge + 2 * REACH + BRICK_EDGE) / BRICK_EDGE) ** 3
    print(f"a rank with histones and 100 bp: {small * 1e3:.2f} MB; {LOCUS_MEASURED} bp: {large * 1e3:.2f} MB")
    rows = [
        ("program, MPI, HDF5, pieces of topology", f"measured, with {LOCUS_MEASURED:,} bp", large * 1e3),
        ("which piece stands where", f"{LOCUS - LOCUS_MEASURED:,} more bp x 16 bytes",
         (LOCUS - LOCUS_MEASURED) * 16 / 1e6),
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
