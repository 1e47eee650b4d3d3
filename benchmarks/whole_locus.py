"""The whole 83 kb locus in the box of its source, 1.05e9 atoms, from FASTA to 65,536 restart files: time, memory, disk.

The stages are the commands that users run, each in a process of its own. `chromamd setup` then cuts the bricks into
32 x 32 x 64 domains. Each part is a process that knows nothing of the others: it writes its files, a second one reads
and checks them, `chromamd verify` checks their checksums, and here atoms are counted and their numbers summed before
the files are removed, since all of them would need 57 GB of disk. A part that is made once more at the end must have
the bytes that it had. Together the parts must hold each atom once.

--quick: the bundled demo in 64 domains.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import yaml
from common.command import Benchmark
from common.parts import atoms_of, control, set_up, verify
from common.timing import measured

from chromabuild.simulate.restart_file import path_of_rank

BOX = [1907.0, 2252.0, 2485.0]
"""Angstrom: of Jung et al., J. Comput. Chem. 2019."""
GRID, QUICK_GRID = (32, 32, 64), (4, 4, 4)
PARTS = 16
STAGES = ("scaffold", "build", "clash", "solvate", "topology")
COMMAND = (sys.executable, "-P", "-m", "chromabuild.cli")


def size_of(folder: Path) -> float:
    """GB of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e9


def digest(paths: list[Path]) -> str:
    """Of the bytes of files in their order."""
    whole = hashlib.blake2b()
    for path in paths:
        whole.update(path.read_bytes())
    return whole.hexdigest()


def main() -> None:
    """The stages, then the parts."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--threads", type=int, default=2)
    add("--work", type=Path, default=Path("whole_locus"), help="folder of the build")
    given = benchmark.start(quick={})
    folder = given.work.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    example = "demo" if given.quick else "chrXIII"
    measured([*COMMAND, "init", "--example", example, "--force", folder], folder / "init.log")
    if not given.quick:
        settings = yaml.safe_load((folder / "locus.yaml").read_text())
        settings["solvate"]["box"] = BOX
        (folder / "locus.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    results = folder / "results"
    table = benchmark.table("chain", "The 83 kb locus in the box of its source, 1.05e9 atoms, from FASTA to restart "
                            f"files, {given.threads} threads", operation="", files=",",
                            **{"wall time, s": ".0f", "CPU time, s": ".0f", "memory of a process, GB": ".2f",
                               "disk, GB": ".1f"})
    disk = 0.0
    for stage in STAGES:
        used = measured([*COMMAND, stage, "--threads", given.threads], folder / f"{stage}.log", folder=folder,
                        threads=given.threads)
        before, disk = disk, size_of(results)
        table.row(f"`chromabuild {stage}`", None, used.wall, used.cpu, used.memory, disk - before)
    used = measured([*COMMAND, "verify"], folder / "verify.log", folder=folder)
    table.row("`chromabuild verify`", None, used.wall, used.cpu, used.memory, None)

    n_atoms = json.loads((results / "shards" / "manifest.json").read_text())["atoms"]
    grid = QUICK_GRID if given.quick else GRID
    n = int(np.prod(grid))
    size = n // PARTS
    tree = folder / "start" / "(by256)" / "start_().rst"
    inputs = (results / "topology.h5", results / "shards" / "bricks.txt")
    seen = np.zeros(3, dtype=np.uint64)
    rows: dict[str, list[tuple[float, ...]]] = {"write": [], "check": [], "verify": []}
    first_bytes = ""
    for k in range(PARTS):
        shutil.rmtree(folder / "start", ignore_errors=True)
        (folder / "start").mkdir()
        part = control(folder / f"part{k}.inp", *inputs, tree, grid, (k * size, (k + 1) * size - 1))
        paths = [path_of_rank(tree, rank) for rank in range(k * size, (k + 1) * size)]
        for name, one in (("write", set_up(part)), ("check", set_up(part)), ("verify", verify(paths, folder))):
            rows[name].append((one.wall, one.cpu, one.memory, size_of(folder / "start")))
        for path in paths:
            seen += atoms_of(path)
        if k == 0:
            first_bytes = digest(paths)
        print(f"part {k}: {rows['write'][-1]}, {seen[0]:,} atoms so far", flush=True)
    shutil.rmtree(folder / "start")
    (folder / "start").mkdir()
    set_up(folder / "part0.inp")
    same = digest([path_of_rank(tree, rank) for rank in range(size)]) == first_bytes
    shutil.rmtree(folder / "start")
    names = {"write": f"`chromamd setup`, {PARTS} parts of {size:,} domains", "check": "the same again: read and check",
             "verify": "`chromamd verify`"}
    for name, used in rows.items():
        wall, cpu, memory, written = zip(*used, strict=True)
        table.row(names[name], n, sum(wall), sum(cpu), max(memory), sum(written) if name == "write" else None)
    expected = (n_atoms, n_atoms * (n_atoms - 1) // 2, (n_atoms - 1) * n_atoms * (2 * n_atoms - 1) // 6)
    whole = seen.tolist() == [value % 2**64 for value in expected]
    print(f"{n_atoms:,} atoms; each atom once: {whole}; the same bytes again: {same}")
    benchmark.finish()
    if not (whole and same):
        sys.exit("atoms are missing or doubled" if not whole else "a part made again has other bytes")


if __name__ == "__main__":
    main()
