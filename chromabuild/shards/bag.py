"""A shard set as a bag (BagIt 1.0, RFC 8493): the form in which archives take data."""

import errno
import hashlib
import os
import shutil
from pathlib import Path

from chromabuild import __version__
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import cannot_write, part_of, remove_leftovers
from chromabuild.shards.integrity import verify_shards
from chromabuild.shards.manifest import BRICKS_NAME, MANIFEST_NAME

_BLOCK = 1 << 22


def write_bag(folder: str | Path, target: str | Path) -> int:
    """Make the folder ``target`` a bag of the verified shard set ``folder``; gives the number of payload files.

    Files are linked where the file system can, else copied. The bag appears whole or not at all.
    Raises BadInputError when ``target`` exists, IntegrityError when the set does not verify, ResourceError when it
    cannot be written.
    """
    folder, target = Path(folder), Path(target)
    there = f"{target} exists: give a bag a new folder"
    if target.exists():
        raise BadInputError(there)
    manifest = verify_shards(folder)
    names = [MANIFEST_NAME, BRICKS_NAME,
             *(f"{shard.name}.{suffix}" for shard in manifest.shards for suffix in shard.files)]
    remove_leftovers(target.parent, [target.name])
    part = part_of(target)
    try:
        (part / "data").mkdir(parents=True)
        for name in names:
            _link_or_copy(folder / name, part / "data" / name)
        size = sum((folder / name).stat().st_size for name in names)
        tags = {
            "bagit.txt": "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
            "bag-info.txt": f"Bag-Software-Agent: chromabuild {__version__}\nPayload-Oxum: {size}.{len(names)}\n",
            "manifest-sha256.txt": "".join(f"{_sha256(folder / name)}  data/{name}\n" for name in names),
        }
        for name, text in tags.items():
            (part / name).write_text(text, encoding="utf-8")
        (part / "tagmanifest-sha256.txt").write_text(
            "".join(f"{_sha256(part / name)}  {name}\n" for name in tags), encoding="utf-8")
        part.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # another process has made it meanwhile
            raise BadInputError(there) from error
        raise cannot_write(target, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return len(names)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while block := handle.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
