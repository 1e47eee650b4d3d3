"""Damage is found 1,000 times of 1,000: a flipped bit or a truncation anywhere in any file, with its old time stamp."""

import json
import os
import random
import shutil

import pytest

from chromabuild.base.errors import IntegrityError
from chromabuild.base.settings import SolvateSection
from chromabuild.shards import Manifest, read_shards, verify_shards
from chromabuild.solvate import solvate

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def small(solute, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    solvate(solute, SolvateSection(brick_edge=40.0, padding=5.0), 1, 1, folder)
    return folder


def parts_of_the_set(folder):
    return [path for path in sorted(folder.iterdir()) if path.is_file() and path.suffix != ".h5"]


def test_a_sound_set_passes(small):
    assert verify_shards(small) == verify_shards(small, shallow=True) == Manifest.read(small)


def test_every_flipped_bit_is_found(small):
    rng = random.Random(11)
    paths = parts_of_the_set(small)
    assert len(paths) >= 4 * 3 + 2
    for _ in range(200):
        path = rng.choice(paths)
        content, stamp = path.read_bytes(), path.stat()
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        with pytest.raises(IntegrityError, match=path.name.replace(".", r"\.")):
            verify_shards(small)
        path.write_bytes(content)
    verify_shards(small)


def test_every_truncation_is_found(small):
    rng = random.Random(12)
    for _ in range(100):
        path = rng.choice(parts_of_the_set(small))
        content, stamp = path.read_bytes(), path.stat()
        path.write_bytes(content[:rng.randrange(len(content))])
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        for shallow in (False, True):
            with pytest.raises(IntegrityError, match=path.name.replace(".", r"\.")):
                verify_shards(small, shallow=shallow)
        path.write_bytes(content)


def test_missing_files_are_named(small, tmp_path):
    shutil.copytree(small, tmp_path / "copy")
    (tmp_path / "copy" / "brick_00002.cbb").unlink()
    with pytest.raises(IntegrityError, match=r"brick_00002\.cbb is missing"):
        verify_shards(tmp_path / "copy")
    with pytest.raises(IntegrityError, match=r"brick_00002\.cbb"):
        read_shards(tmp_path / "copy")
    with pytest.raises(IntegrityError, match="does not exist: the shards are not complete"):
        verify_shards(tmp_path / "nothing")


def test_sums_are_checked(small, tmp_path):
    """A manifest with a correct hash of its own whose numbers do not add up."""
    for change, message in (("counts", "in its counts"), ("net_charge", "charge"), ("grid", "grid"), ("box", "fill")):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(small, tmp_path / "copy")
        manifest = Manifest.read(small)
        if change == "counts":
            manifest.counts = manifest.counts | {"water": manifest.counts["water"] + 1}
        elif change == "net_charge":
            manifest.net_charge = 1
        elif change == "grid":
            manifest.grid = (1, 1, 1)
        else:
            manifest.box = tuple(edge + 1 for edge in manifest.box)
        manifest.write(tmp_path / "copy")
        with pytest.raises(IntegrityError, match=message):
            verify_shards(tmp_path / "copy")


def test_format_is_checked(small, tmp_path):
    shutil.copytree(small, tmp_path / "copy")
    path = tmp_path / "copy" / "manifest.json"
    content = json.loads(path.read_text())
    for change in ({"version": 99}, {"format": "other"}):
        path.write_text(json.dumps(content | change))
        with pytest.raises(IntegrityError, match="not a shard manifest of version 1"):
            verify_shards(tmp_path / "copy")
    for text in ("", "[]", "{", "\xff\xfe"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(IntegrityError, match=r"manifest\.json"):
            verify_shards(tmp_path / "copy")
