"""Selected atoms of all shards as one PDB file."""

from pathlib import Path

import numpy as np
import zstandard

from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.files import atomic_path
from chromabuild.shards.brick_file import read_brick
from chromabuild.shards.manifest import Manifest, Shard
from chromabuild.shards.pdb import COMPRESSION_LEVEL, LINE_LENGTH, header_line
from chromabuild.shards.selection import parse_selection


def merge_shards(folder: str | Path, selection: str, target: str | Path) -> int:
    """Write the selected atoms in global order to ``target`` (``.pdb`` or ``.pdb.zst``); gives their number.

    Lines are those of the shards; the chain letter of a segment is that of the first shard that holds it. Memory:
    one shard and 90 bytes a selected atom. Raises BadInputError for a bad selection or name, or when nothing is
    selected, IntegrityError for shards that are missing or damaged, ResourceError when the target cannot be written.
    """
    folder, target = Path(folder), Path(target)
    if not target.name.endswith((".pdb", ".pdb.zst")):
        raise BadInputError(f"{target} is neither .pdb nor .pdb.zst: give the merged file one of these endings")
    wanted = parse_selection(selection)
    manifest = Manifest.read(folder)
    ids, lines = [], []
    for shard in manifest.shards:
        text = _lines(folder, shard)
        chosen = wanted(text)
        if chosen.any():
            ids.append(read_brick(folder / f"{shard.name}.cbb").global_id[chosen])
            lines.append(text[chosen])
    if not ids:
        raise BadInputError(f"no atom of {folder} is selected by '{selection}': select others")
    order = np.argsort(np.concatenate(ids))
    merged = np.concatenate(lines)[order]
    merged[:, 21] = _one_letter_a_segment(merged)
    content = header_line(np.array(manifest.box)) + merged.tobytes() + f"{'END':80}\n".encode()
    if target.name.endswith(".zst"):
        content = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL).compress(content)
    with atomic_path(target) as part:
        part.write_bytes(content)
    return len(merged)


def _lines(folder: Path, shard: Shard) -> np.ndarray:
    """(atoms, 81) uint8 lines of a shard."""
    suffix = next(suffix for suffix in shard.files if suffix.startswith("pdb"))
    path = folder / f"{shard.name}.{suffix}"
    try:
        content = path.read_bytes()
        if suffix.endswith("zst"):
            content = zstandard.ZstdDecompressor().decompress(content)
        return np.frombuffer(content, dtype=np.uint8).reshape(-1, LINE_LENGTH)[1:-1][:shard.atoms]
    except (OSError, ValueError, zstandard.ZstdError) as error:
        raise IntegrityError(f"cannot read {path} ({error}): run chromabuild solvate again") from None


def _one_letter_a_segment(lines: np.ndarray) -> np.ndarray:
    """(n,) uint8 chain letters, the first of each segment."""
    segment = np.ascontiguousarray(lines[:, 72:76]).view("<u4").ravel()
    _, first, member = np.unique(segment, return_index=True, return_inverse=True)
    return lines[first, 21][member]
