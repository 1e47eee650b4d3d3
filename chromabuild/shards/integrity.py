"""Is a ShardSet what was written, and does it add up?"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import box_of
from chromabuild.base.checked_json import is_unharmed
from chromabuild.base.errors import IntegrityError
from chromabuild.shards.brick_file import read_brick
from chromabuild.shards.manifest import BRICKS_NAME, RECORD_FOLDER, Manifest, Shard, count_atoms, file_error
from chromabuild.shards.stored import StoredPositions, runs_of

_REMEDY = "run chromabuild solvate again"


def verify_shards(folder: str | Path, shallow: bool = False, threads: int = 1) -> Manifest:
    """Check every file of a ShardSet against its manifest and the manifest against itself.

    Sizes and blake3 hashes of all files (``shallow``: sizes only), atom counts, charges, brick bounds, bricks.txt, and
    the contents of the binary bricks. Returns the manifest; raises IntegrityError naming the first file that is wrong.
    """
    folder = Path(folder)
    manifest = Manifest.read(folder)
    _check_sums(folder, manifest)
    _check_records(folder, shallow)
    try:
        bricks = (folder / BRICKS_NAME).read_bytes()
    except OSError:
        bricks = b""
    if bricks != manifest.bricks_text().encode():
        raise IntegrityError(f"{folder / BRICKS_NAME} does not agree with the manifest: {_REMEDY}")
    pool = ThreadPoolExecutor(threads)
    try:
        for _ in pool.map(lambda shard: _check_shard(folder, manifest, shard, shallow), manifest.shards):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
    return manifest


def _check_shard(folder: Path, manifest: Manifest, shard: Shard, shallow: bool) -> None:
    for suffix, entry in shard.files.items():
        path = folder / f"{shard.name}.{suffix}"
        problem = file_error(path, entry, shallow)
        if problem:
            raise IntegrityError(f"{path} {problem}: {_REMEDY}")
    if not shallow:
        path = folder / f"{shard.name}.cbb"
        brick = read_brick(path)
        if (len(brick.global_id) != shard.atoms or not np.array_equal(brick.box, manifest.box)
                or not np.array_equal(brick.lower, shard.lower) or not np.array_equal(brick.upper, shard.upper)
                or (np.diff(brick.global_id) <= 0).any()
                or (len(brick.global_id) and (brick.global_id[0] < 0 or brick.global_id[-1] >= manifest.atoms))):
            raise IntegrityError(f"{path} does not agree with the manifest: {_REMEDY}")


def _check_records(folder: Path, shallow: bool) -> None:
    """Records of what the shards were made from, and files that the making of all of them shares, where they are."""
    for path in sorted((folder / RECORD_FOLDER).glob("*.json")):
        if not is_unharmed(path):
            raise IntegrityError(f"{path} is damaged: {_REMEDY}")
        entry = json.loads(path.read_bytes()).get("file")
        shared = folder / f"{path.stem}.h5"
        problem = entry and file_error(shared, entry, shallow)
        if problem:
            raise IntegrityError(f"{shared} {problem}: {_REMEDY}")


def _check_sums(folder: Path, manifest: Manifest) -> None:
    atoms = sum(shard.atoms for shard in manifest.shards)
    counted = count_atoms(manifest.counts, manifest.water)
    charge = sum(shard.charge for shard in manifest.shards)
    volume = sum(np.prod(np.subtract(shard.upper, shard.lower)) for shard in manifest.shards)
    problem = None
    if len(manifest.shards) != np.prod(manifest.grid):
        problem = f"lists {len(manifest.shards)} bricks for a grid of {manifest.grid}"
    elif not atoms == counted == manifest.atoms:
        problem = f"has {atoms} atoms in its bricks and {counted} in its counts instead of {manifest.atoms}"
    elif charge != manifest.net_charge:
        problem = f"has a charge of {charge} e in its bricks instead of {manifest.net_charge}"
    elif not np.isclose(volume, np.prod(manifest.box), rtol=1e-9):
        problem = "has bricks that do not fill the box"
    if problem:
        raise IntegrityError(f"the manifest of {folder} {problem}: {_REMEDY}")


def store_shards(path: str | Path) -> tuple[np.ndarray, StoredPositions]:
    """What ``read_shards`` gives, brick by brick on disk: 12 bytes an atom."""
    path, box, n, names = _listed(path)
    stored = StoredPositions(n, path.parent)
    found = []
    for ids, place in _bricks(path, n, names):
        for rows in runs_of(ids):
            stored.put(int(ids[rows.start]), place[rows])
        found.append(np.array([(ids[rows.start], rows.stop - rows.start) for rows in runs_of(ids)],
                              dtype=np.int64).reshape(-1, 2))
    runs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *found])
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    follows = np.append(runs[:, 0], n) == np.concatenate([[0], runs.sum(axis=1)])
    if not follows.all():
        atom = int(np.concatenate([[0], runs.sum(axis=1)])[np.flatnonzero(~follows)[0]])
        raise IntegrityError(f"the bricks of {path} do not hold atom {atom} and each of its neighbours once: {_REMEDY}")
    return box, stored


def read_shards(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """The box, (3,) edges or (3, 3) vectors where they lean, and (N, 3) float64 positions in global atom order,
    angstrom, of a shard set that fits in memory.

    ``path`` is the folder or its bricks.txt. Raises IntegrityError when a file is missing or damaged, or the bricks do
    not hold every atom exactly once.
    """
    path, box, n, names = _listed(path)
    position = np.empty((n, 3))
    times_seen = np.zeros(n, dtype=np.uint8)
    for ids, place in _bricks(path, n, names):
        position[ids] = place / 1000
        times_seen[ids] += 1
    if (times_seen != 1).any():
        atom = int(np.flatnonzero(times_seen != 1)[0])
        raise IntegrityError(f"the bricks of {path} hold atom {atom} {times_seen[atom]} times: {_REMEDY}")
    return box, position


def _bricks(path: Path, n: int, names: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids (k,) and positions (k, 3), 0.001 angstrom, of the atoms of each brick, of a system of ``n`` atoms."""
    for name in names:
        brick = read_brick(path.parent / name)
        ids = brick.global_id
        if len(ids) and (ids.min() < 0 or ids.max() >= n):
            raise IntegrityError(f"{path.parent / name} holds atom ids outside 0 to {n - 1}: {_REMEDY}")
        yield ids, brick.position


def _listed(path: str | Path) -> tuple[Path, np.ndarray, int, list[str]]:
    """bricks.txt, the box, (3,) or (3, 3), the number of atoms, and the names of the bricks' files."""
    path = Path(path)
    path = path / BRICKS_NAME if path.is_dir() else path
    try:
        _, box_line, _, atoms_line, *brick_lines = path.read_text(encoding="ascii").splitlines()
        box = np.array([float(word) for word in box_line.split()[1:]])
        n = int(atoms_line.split()[1])
        names = [line.split()[0] for line in brick_lines]
        if len(box) not in (3, 6):
            raise ValueError(f"{len(box)} numbers of a box")
    except (OSError, ValueError, IndexError) as error:
        raise IntegrityError(f"cannot read {path} as a list of bricks ({error}): {_REMEDY}") from None
    return path, box_of(box[:3], box[3:]), n, names
