"""Water, ions and bricks: from a solute to a ShardSet (docs/reference/file-formats.md)."""

import json
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from blake3 import blake3

from chromabuild.base.errors import BadInputError, ResourceError
from chromabuild.base.files import locked
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.shards.manifest import BRICKS_NAME, LOCK_NAME, MANIFEST_NAME, RECORD_FOLDER, Manifest, Shard
from chromabuild.solvate.bound_ions import check_bound_ions
from chromabuild.solvate.bricks import FILES_VERSION, BrickGrid, SolvatedSystem, finished_shard, shard_name
from chromabuild.solvate.ions import SPECIES
from chromabuild.solvate.layout import input_key, make_layout
from chromabuild.solvate.layout_file import LAYOUT_NAME, StoredLayout, read_layout, write_layout
from chromabuild.solvate.placement import place_solute
from chromabuild.solvate.workers import write_bricks

__all__ = ["Part", "brick_grid", "disk_needed", "prepare", "solvate"]


@dataclass(frozen=True)
class Part:
    """One of ``of`` equal shares of the bricks, counted from 0: what one job of many makes."""

    index: int
    of: int

    def bricks(self, n_bricks: int) -> range:
        """The bricks of this share."""
        return range(self.index * n_bricks // self.of, (self.index + 1) * n_bricks // self.of)

    def share(self, index: int, of: int) -> "Part":
        """One of ``of`` shares of this share; together they have exactly its bricks."""
        return Part(self.index * of + index, self.of * of)


_BYTES = {"pdb.zst": (12.6, 20.0), "pdb": (81.0, 81.0), "bcif": (10.8, 9.0), "cbb": (6.4, 6.3)}
"""Disk that an atom of solvent, and one of the solute, takes in each file (measured)."""
_PLACED_BYTES = 13.0


def disk_needed(n_atoms: int, n_solute: int, compress: bool) -> float:
    """Bytes of a shard set."""
    files = ("pdb.zst" if compress else "pdb", "bcif", "cbb")
    once = _PLACED_BYTES * n_solute + 0.05 * n_atoms
    return once + sum(solvent * (n_atoms - n_solute) + own * n_solute for solvent, own in (_BYTES[f] for f in files))


def brick_grid(box: np.ndarray, section: SolvateSection) -> BrickGrid:
    """The bricks of a box (3,) in 0.001 angstrom."""
    return BrickGrid.of_edge(box, section.brick_edge)


def prepare(solute: Solute, section: SolvateSection, seed: int, threads: int, folder: str | Path) -> SolvatedSystem:
    """Place the solute, decide all waters and ions (or read both of an earlier run) and lay the grid of bricks.

    Only slices of ``solute.position`` are read. Raises BadInputError for a box or salt that cannot be met,
    ResourceError when the folder cannot be written.
    """
    folder = Path(folder)
    placed, solute_hash = place_solute(solute, section, folder)
    inputs = input_key(solute_hash, placed.vectors, section, seed)
    layout = read_layout(folder, placed.vectors, inputs, section.water)
    if layout is None:
        with locked(folder / RECORD_FOLDER / LOCK_NAME):
            # Another process may have made it meanwhile.
            layout = read_layout(folder, placed.vectors, inputs, section.water)
            if layout is None:
                write_layout(make_layout(placed, section, seed, threads), folder, inputs)
                layout = StoredLayout(folder / LAYOUT_NAME, placed.vectors, section.water)
    grid = brick_grid(placed.box, section)
    bricks = json.dumps([grid.counts, section.compress, FILES_VERSION])
    return SolvatedSystem(placed, layout, grid, section.compress,
                          inputs | {"bricks": blake3(bricks.encode()).hexdigest()})


def solvate(solute: Solute, section: SolvateSection, seed: int, threads: int, folder: str | Path,
            progress: Callable[[int, int], None] | None = None, only: Iterable[int] | Part | None = None) -> Manifest:
    """Write the ShardSet of a solvated solute into ``folder`` (``results/shards``).

    ``progress(done, total)`` is called after every brick. ``only`` makes these bricks alone, with the same bytes as a
    full run (none of them: placed.h5 and plan.h5, which jobs that work side by side need first). Bricks of an earlier
    run with the same inputs are kept if they verify. manifest.json and bricks.txt are written once every brick is
    there; the manifest returned lists the bricks that are.
    Raises BadInputError for inputs that cannot be met, ResourceError when the disk is full or the folder unwritable;
    what was finished stays and the same call continues.
    """
    folder = Path(folder)
    check_bound_ions(solute, section)
    system = prepare(solute, section, seed, threads, folder)
    n_bricks = system.grid.n_bricks
    if only is None:
        wanted = range(n_bricks)
    else:
        wanted = sorted(set(only.bricks(n_bricks) if isinstance(only, Part) else only))
    if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < n_bricks:
        raise BadInputError(f"brick {wanted[0] if wanted[0] < 0 else wanted[-1]} does not exist: "
                            f"the box has bricks 0 to {n_bricks - 1}")
    present = [finished_shard(system.inputs, k, folder, shallow=True) is not None for k in wanted]
    _require_disk(system, len(wanted) - sum(present), folder)
    _remove_other_manifest(system, folder)
    shards: dict[int, Shard] = {}

    def finished(k: int, shard: Shard) -> None:
        shards[k] = shard
        if progress is not None:
            progress(len(shards), len(wanted))

    write_bricks(system, list(wanted), folder, threads, finished)
    if only is not None:  # other processes may be at work on the rest; each knows its own by their hashes
        for k in range(n_bricks):
            shard = None if k in shards else finished_shard(system.inputs, k, folder, shallow=True)
            if shard is not None:
                shards[k] = shard
    manifest = _manifest(system, [shards[k] for k in sorted(shards)])
    if len(shards) == n_bricks:
        manifest.write(folder)
        if only is None:
            _remove_strangers(system, folder)
    return manifest


def _manifest(system: SolvatedSystem, shards: list[Shard]) -> Manifest:
    counts = system.counts
    charge = system.placed.charge + sum(ion.charge * counts.get(key, 0) for key, ion in SPECIES.items())
    return Manifest(
        box=tuple((system.grid.box / 1000).tolist()), grid=system.grid.counts, atoms=system.n_atoms, counts=counts,
        net_charge=charge, inputs=system.inputs, modifications=system.placed.modifications(), shards=shards,
        water=system.water, tilt=tuple((np.array(system.layout.tiling.tilt) / 1000).tolist()))


def _require_disk(system: SolvatedSystem, n_bricks: int, folder: Path) -> None:
    """Refuse to begin what cannot end, while the old files are untouched."""
    share = n_bricks / system.grid.n_bricks
    needed = 1.1 * share * disk_needed(system.n_atoms, system.placed.n_atoms, system.compress)
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
    leftover = re.compile(r"\.(brick_\d{5,}\.\S+|manifest\.json|bricks\.txt|(?:plan|placed)\.(?:h5|json))\.\d+\.part")
    shard_file = re.compile(r"brick_\d{5,}\.(pdb|pdb\.zst|bcif|cbb|json)")
    for path in (*folder.iterdir(), *(folder / RECORD_FOLDER).iterdir()):
        if leftover.fullmatch(path.name) or (shard_file.fullmatch(path.name) and path.name not in known):
            path.unlink(missing_ok=True)
