"""Restart set-up: time and memory of `chromamd setup` at 1e7 atoms to 64 domains, and the memory model at 1e9 atoms.

The system is that of benchmarks/billion.py. Set up by one rank, by two, and redistributed from 4 x 4 x 4 to 8 x 4 x 2
domains. The model of a rank for 65,536 domains of the billion: the program with the topology of 10,000 bp and
their histones is measured; the rest is counted from sizes.
"""

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.solutes import nucleosome, write_spread
from common.timing import Usage, measured

from chromabuild.base.settings import SolvateSection
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.simulate import chromamd
from chromabuild.simulate.chromamd import write_control
from chromabuild.solvate import solvate

BOX = np.array([1907.0, 2252.0, 2485.0])
ATOMS = 1.0467e9
DOMAINS = 65_536
LOCUS = 83_000  # base pairs
BRICK_EDGE, REACH = 100.0, 25.0  # angstrom; the reach is setup's residue_reach


def set_up(folder: Path, source: Path, target: Path, grid: tuple[int, int, int], ranks: int = 1) -> Usage:
    """``chromamd setup``."""
    key = "rstfile" if "()" in str(source) else "shardfile"
    write_control(folder / "setup.inp", {
        "INPUT": {"topologyfile": folder / "topology.h5", key: source}, "OUTPUT": {"rstfile": target},
        "BOUNDARY": dict(zip(("domain_x", "domain_y", "domain_z"), grid, strict=True))})
    return measured([*chromamd.launch_command(ranks), "setup", folder / "setup.inp"], folder / "setup.out")


def locus(base_pairs: int) -> Solute:
    """The residues of one nucleosome's histones and of two strands of random DNA, without positions."""
    library, names = residue_library(), residue_names()
    unit = nucleosome()
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


def memory_of_topology(folder: Path, base_pairs: int) -> float:
    """Resident set (GB) of a rank that has read the topology of a locus and no atoms: a merge that finds no frames."""
    folder.mkdir(exist_ok=True)
    make_topology(locus(base_pairs), {}).write(folder / "topology.h5")
    inputs = {"topologyfile": folder / "topology.h5", "dcdfile": folder / "absent_().dcd"}
    write_control(folder / "merge.inp", {"INPUT": inputs, "OUTPUT": {"dcdfile": folder / "merged.dcd"}})
    command = [*chromamd.launch_command(1), "merge", folder / "merge.inp"]
    # The merge ends with "no frames", which is what is wanted here.
    return measured(["sh", "-c", '"$@" || test $? -eq 3', "sh", *command], folder / "merge.out").memory


def model(folder: Path, benchmark: Benchmark, base_pairs: int) -> None:
    """Memory of a rank at 65,536 domains of the billion, by what it holds."""
    small, large = (memory_of_topology(folder / "dna", n) for n in (100, base_pairs))
    per_domain = ATOMS / DOMAINS
    edge = (BOX.prod() / DOMAINS) ** (1 / 3)
    bricks = np.prod(np.round(BOX / BRICK_EDGE))
    brick_atoms = ATOMS / bricks
    touched = ((edge + 2 * REACH + BRICK_EDGE) / BRICK_EDGE) ** 3
    rows = [
        ("program, MPI, HDF5, pieces of topology", f"measured, with {base_pairs:,} bp ({small * 1e3:.2f} with 100 bp)",
         large * 1e3),
        ("which piece stands where", f"{LOCUS - base_pairs:,} more bp x 16 bytes",
         (LOCUS - base_pairs) * 16 / 1e6),
        ("list of bricks", f"{bricks:.0f} x 120 bytes", bricks * 120 / 1e6),
        ("one brick: file, ids, positions", f"{brick_atoms:.0f} atoms x 39 bytes", brick_atoms * 39 / 1e6),
        ("domain: ids, positions, velocities", f"{per_domain:.0f} atoms x 56 bytes, grown by half",
         per_domain * 84 / 1e6),
    ]
    table = benchmark.table("memory", f"Memory per rank for one of {DOMAINS:,} domains ({edge:.0f} Å) of "
                            f"{ATOMS:.4g} atoms, {touched:.0f} of {bricks:,.0f} bricks read",
                            part="", MB=".2f", composition="")
    for name, detail, megabytes in rows:
        table.row(name, megabytes, detail)
    table.row("sum", sum(row[2] for row in rows), None)


def main() -> None:
    """Set up three times, then the model."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--atoms", type=float, default=1e7)
    add("--threads", type=int, default=2)
    add("--base-pairs", type=int, default=10_000, help="of the topology whose memory is measured")
    add("--work", type=Path, default=Path("setup_domains"), help="folder of the files")
    given = benchmark.start(quick={"atoms": 1e6, "base_pairs": 200})
    folder = given.work.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    scale = (given.atoms / ATOMS) ** (1 / 3)
    box = tuple(np.round(BOX * scale, 3).tolist())
    write_spread(folder / "solute.h5", box, max(1, round(469 * scale**3)))
    solute = Solute.open(folder / "solute.h5")
    manifest = solvate(solute, SolvateSection(box=box), 1, given.threads, folder / "shards")
    make_topology(solute, manifest.counts).write(folder / "topology.h5")
    bricks = folder / "shards" / "bricks.txt"
    jobs = {"bricks to 4 x 4 x 4, one rank": (bricks, folder / "a().rst", (4, 4, 4), 1),
            "bricks to 4 x 4 x 4, two ranks": (bricks, folder / "b().rst", (4, 4, 4), 2),
            "4 x 4 x 4 to 8 x 4 x 2, one rank": (folder / "a().rst", folder / "c().rst", (8, 4, 2), 1)}
    table = benchmark.table("setup", f"`chromamd setup`: {manifest.atoms:,} atoms in {len(manifest.shards)} bricks "
                            "distributed to 64 domains",
                            operation="", **{"wall time, s": ".1f", "CPU time, s": ".1f", "memory per rank, GB": ".3f"})
    for name, job in jobs.items():
        used = set_up(folder, *job)
        table.row(name, used.wall, used.cpu, used.memory)
    same = all((folder / f"a{k}.rst").read_bytes() == (folder / f"b{k}.rst").read_bytes() for k in range(64))
    print("one and two ranks write the same files" if same else "FILES DIFFER")
    model(folder, benchmark, given.base_pairs)
    shutil.rmtree(folder)
    benchmark.finish()


if __name__ == "__main__":
    main()
