"""Atoms per second of writing a solvated system as text and as BinaryCIF: ours, gemmi's and MDAnalysis' PDB writers.

Water in one brick. One core, CPU time, best of five for us and gemmi, one run of MDAnalysis. In-memory times exclude
the disk, which all writers share; gemmi and MDAnalysis write to a file in /dev/shm, we make the same bytes in memory
and write them there.
"""

import os
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gemmi
import MDAnalysis
import numpy as np
from blake3 import blake3
from common.command import Benchmark
from common.timing import cpu_seconds

from chromabuild.shards.bcif import bcif_bytes
from chromabuild.shards.brick import Brick, template_index
from chromabuild.shards.brick_file import brick_bytes
from chromabuild.shards.pdb import format_brick, pdb_bytes
from chromabuild.solvate.water import Tiling, water_tile


def water_brick(n_atoms):
    """A cube of tiled water with about ``n_atoms`` atoms as one brick."""
    tile = water_tile()
    edge = round((n_atoms / 3 / tile.n_molecules) ** (1 / 3) * tile.edge)
    tiling = Tiling((edge, edge, edge), tile)
    slots = np.flatnonzero((tiling.unwrapped_oxygens(np.arange(tiling.n_tiles)).reshape(-1, 3) < edge).all(1))
    segment, number = np.divmod(np.arange(len(slots)), 9999)
    digits = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", dtype=np.uint8)
    letter = np.full(len(slots), ord("W"), dtype=np.uint8)
    names = np.stack([letter, *(digits[segment // 36**k % 36] for k in (2, 1, 0))], axis=1)
    box = np.full(3, edge)
    return Brick(box, np.zeros(3, dtype=int), box, tiling.molecules(slots).reshape(-1, 3),
                 np.full(len(slots), template_index("HOH"), dtype=np.uint16), 3 * np.arange(len(slots)),
                 (number + 1).astype(np.int32), names, np.zeros(len(slots), dtype=np.uint8),
                 np.tile(np.array([1, 0], dtype=np.int32), (len(slots), 1)))


def cpu_time(action, repeats):
    """Least CPU time of one call, seconds."""
    return min(cpu_seconds(action) for _ in range(repeats))


def main() -> None:
    """Time all writers."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--atoms", type=int, default=1_000_000)
    given = benchmark.start(quick={"atoms": 30_000}, packages=("gemmi", "MDAnalysis"))
    brick = water_brick(given.atoms)
    text = np.empty((brick.n_atoms, 81), dtype=np.int8)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        (folder / "ours.pdb").write_bytes(pdb_bytes(brick, compress=False))
        structure = gemmi.read_pdb(str(folder / "ours.pdb"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            universe = MDAnalysis.Universe(str(folder / "ours.pdb"))
            rows = [
                ("chromabuild, PDB lines (Fortran kernel)", cpu_time(lambda: format_brick(brick, text), 5)),
                ("chromabuild, PDB file", cpu_time(lambda: (folder / "a.pdb").write_bytes(pdb_bytes(brick, False)), 5)),
                ("chromabuild, PDB + zstd-1 + blake3", cpu_time(lambda: blake3(pdb_bytes(brick, True)).digest(), 5)),
                ("chromabuild, BinaryCIF", cpu_time(lambda: bcif_bytes(brick), 5)),
                ("chromabuild, .cbb", cpu_time(lambda: brick_bytes(brick), 5)),
                ("gemmi, PDB file", cpu_time(lambda: structure.write_pdb(str(folder / "b.pdb")), 5)),
                ("MDAnalysis, PDB file", cpu_time(lambda: universe.atoms.write(str(folder / "c.pdb")), 1)),
            ]
    table = benchmark.table("writing", f"Output of {brick.n_atoms:,} atoms of water, 1 core: million atoms per second",
                            program="", **{"CPU time, s": ".3f", "million atoms/s": ".2f"})
    for label, seconds in rows:
        table.row(label, seconds, brick.n_atoms / seconds / 1e6)
    benchmark.finish()


if __name__ == "__main__":
    main()
