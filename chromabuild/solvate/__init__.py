"""Water, ions and bricks: from a solute to a ShardSet (docs/formats.md, section 4)."""

import json
import re
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from blake3 import blake3

from chromabuild.config import SolvateSection
from chromabuild.errors import BadInputError, ResourceError
from chromabuild.shards.manifest import BRICKS_NAME, MANIFEST_NAME, RECORD_FOLDER, Manifest, Shard
from chromabuild.solute import Solute
from chromabuild.solvate.bricks import BrickGrid, SolvatedSystem, finished_shard, shard_name, write_brick
from chromabuild.solvate.plan import input_key, make_plan, place_solute, read_plan, write_plan

__all__ = ["prepare", "solvate"]

_BYTES_AN_ATOM = {True: 55, False: 120}
"""Disk that the three files need (zstd PDB 17-20, PDB 81, BinaryCIF 10-15, .cbb 20), by compression."""


def prepare(solute: Solute, section: SolvateSection, seed: int, threads: int, folder: str | Path) -> SolvatedSystem:
    """Place the solute, decide all waters and ions (or read plan.h5 of an earlier run) and lay the grid of bricks.

    Raises BadInputError for a box or salt that cannot be met, ResourceError when plan.h5 cannot be written.
    """
    folder = Path(folder)
    placed = place_solute(solute, section)
    inputs = input_key(placed, section.salt, seed)
    plan = read_plan(folder, placed, inputs)
    if plan is None:
        plan = make_plan(placed, section.salt, seed, threads)
        write_plan(plan, folder, inputs)
    grid = BrickGrid.of_edge(placed.box, section.brick_edge)
    bricks = json.dumps([grid.counts, section.compress])
    return SolvatedSystem(placed, plan, grid, section.compress,
                          inputs | {"bricks": blake3(bricks.encode()).hexdigest()})


def solvate(solute: Solute, section: SolvateSection, seed: int, threads: int, folder: str | Path,
            progress: Callable[[int, int], None] | None = None, only: Iterable[int] | None = None) -> Manifest:
    """Write the ShardSet of a solvated solute into ``folder`` (``results/shards``).

    ``progress(done, total)`` is called after every brick. ``only`` makes these bricks alone, with the same bytes as a
    full run. Bricks of an earlier run with the same inputs are kept if they verify. manifest.json and bricks.txt are
    written once every brick is there; the manifest returned lists the bricks that are.
    Raises BadInputError for inputs that cannot be met, ResourceError when the disk is full or the folder unwritable;
    what was finished stays and the same call continues.
    """
    folder = Path(folder)
    system = prepare(solute, section, seed, threads, folder)
    n_bricks = system.grid.n_bricks
    wanted = list(range(n_bricks)) if only is None else sorted(set(only))
    if wanted and not 0 <= wanted[0] <= wanted[-1] < n_bricks:
        raise BadInputError(f"brick {wanted[0] if wanted[0] < 0 else wanted[-1]} does not exist: "
                            f"the box has bricks 0 to {n_bricks - 1}")
    shards: dict[int, Shard] = {}
    with ThreadPoolExecutor(max(1, threads)) as pool:
        finished = pool.map(lambda k: finished_shard(system, k, folder), range(n_bricks))
        shards |= {k: shard for k, shard in enumerate(finished) if shard is not None}
        missing = [k for k in wanted if k not in shards]
        _require_disk(system, len(missing), folder)
        _remove_other_manifest(system, folder)
        running = {pool.submit(write_brick, system, k, folder): k for k in missing}
        try:
            for done, future in enumerate(as_completed(running), start=len(wanted) - len(missing) + 1):
                shards[running[future]] = future.result()
                if progress is not None:
                    progress(done, len(wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    manifest = _manifest(system, [shards[k] for k in sorted(shards)])
    if len(shards) == n_bricks:
        manifest.write(folder)
        if only is None:  # other processes may be at work on single bricks
            _remove_strangers(system, folder)
    return manifest


def _manifest(system: SolvatedSystem, shards: list[Shard]) -> Manifest:
    counts = system.counts
    return Manifest(
        box=tuple((system.grid.box / 1000).tolist()), grid=system.grid.counts, atoms=system.n_atoms, counts=counts,
        net_charge=system.placed.charge + counts["sodium"] - counts["chloride"], inputs=system.inputs, shards=shards)


def _require_disk(system: SolvatedSystem, n_bricks: int, folder: Path) -> None:
    """Refuse to begin what cannot end, while the old files are untouched."""
    needed = n_bricks / system.grid.n_bricks * system.n_atoms * _BYTES_AN_ATOM[system.compress]
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ResourceError(f"{folder} has {free / 1e9:.3f} GB free, the shards need about {needed / 1e9:.3f} GB: "
                            "free space or choose another output folder")


def _remove_other_manifest(system: SolvatedSystem, folder: Path) -> None:
    """A manifest of other inputs must not stand beside the new bricks."""
    try:
        if json.loads((folder / MANIFEST_NAME).read_bytes())["inputs"] == system.inputs:
            return
    except (OSError, ValueError, KeyError, TypeError):
        pass
    for name in (MANIFEST_NAME, BRICKS_NAME):
        (folder / name).unlink(missing_ok=True)


def _remove_strangers(system: SolvatedSystem, folder: Path) -> None:
    """Remove bricks of earlier, different runs and leftovers of killed ones: the set is complete without them."""
    suffixes = {"json", "bcif", "cbb", "pdb.zst" if system.compress else "pdb"}
    known = {f"{shard_name(k)}.{suffix}" for k in range(system.grid.n_bricks) for suffix in suffixes}
    leftover = re.compile(r"\.(brick_\d{5,}\.\S+|manifest\.json|bricks\.txt|plan\.h5|plan\.json)\.\d+\.part")
    shard_file = re.compile(r"brick_\d{5,}\.(pdb|pdb\.zst|bcif|cbb|json)")
    for path in (*folder.iterdir(), *(folder / RECORD_FOLDER).iterdir()):
        if leftover.fullmatch(path.name) or (shard_file.fullmatch(path.name) and path.name not in known):
            path.unlink(missing_ok=True)
