"""The formatter against Python's own formatting, BinaryCIF against an independent decoder, .cbb against its layout."""

import struct
import zlib

import msgpack
import numpy as np
import pytest

from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import CHAIN_LETTERS
from chromabuild.shards.bcif import bcif_bytes
from chromabuild.shards.brick import Brick, template_index
from chromabuild.shards.brick_file import BrickFile, brick_bytes, packed, read_brick
from chromabuild.shards.pdb import pdb_bytes
from chromabuild.solvate.bricks import make_brick
from chromabuild.solvate.water import water_tile


def unlabelled(n):
    """Residues of an entity without a sequence."""
    return np.tile(np.array([1, 0], dtype=np.int32), (n, 1))


def ions(position, first_id=None, number=None):
    """A brick of Na+ at positions in thousandths."""
    n = len(position)
    box = np.array([9_999_000] * 3)
    return Brick(
        box, np.zeros(3, dtype=int), box, np.array(position, dtype=np.int32).reshape(n, 3),
        np.full(n, template_index("NA"), dtype=np.uint16),
        np.arange(n) if first_id is None else np.array(first_id, dtype=np.int64),
        np.arange(1, n + 1, dtype=np.int32) if number is None else np.array(number, dtype=np.int32),
        np.tile(np.frombuffer(b"N000", dtype=np.uint8), (n, 1)), np.zeros(n, dtype=np.uint8), unlabelled(n))


def lines(brick):
    text = bytes(pdb_bytes(brick, compress=False)).decode().splitlines()[1:-1]
    return [line for line in text if not line.startswith("TER")]


def test_coordinates_as_python_formats_them():
    rng = np.random.default_rng(0)
    special = [0, 1, -1, 999, 1000, -999, -1000, 9_999_999, -999_999, 10_000, -10_000, 99_999, 100_000, 1_000_000]
    values = np.concatenate([special, rng.integers(-999_999, 10_000_000, 29_997 - len(special))]).reshape(-1, 3)
    for line, (x, y, z) in zip(lines(ions(values)), values, strict=True):
        assert line[30:54] == f"{x / 1000:8.3f}{y / 1000:8.3f}{z / 1000:8.3f}"


@pytest.mark.parametrize("first", [0, 9_998, 99_997, 2**31 - 2, 999_999_998, 5 * 10**11])
def test_serials_wrap(first):
    ids = first + np.arange(6)
    shown = [line[6:11] for line in lines(ions(np.zeros((6, 3)), first_id=ids))]
    assert shown == [f"{(i + 1) % 100_000:5d}" for i in ids]


def test_residue_numbers_in_four_columns():
    """Negative ones too, as those of the tip of H2B; in BinaryCIF as they are."""
    numbers = [-999, -12, -2, -1, 0, 1, 9999]
    brick = ions(np.zeros((7, 3)), number=numbers)
    assert [line[22:26] for line in lines(brick)] == [f"{number:4d}" for number in numbers]
    assert columns(bcif_bytes(brick), "_atom_site")["auth_seq_id"] == numbers


@pytest.mark.parametrize("value", [10_000_000, -1_000_000])
def test_what_does_not_fit_is_refused(value):
    position = np.zeros((3, 3))
    position[2, 1] = value
    with pytest.raises(BadInputError, match=rf"atom 2 at \(0.000, {value / 1000:.3f}, 0.000\) does not fit"):
        pdb_bytes(ions(position), compress=False)


def test_every_residue_of_the_library():
    """Names, elements and numbers in their columns for all residues."""
    library = residue_library()
    n = len(library)
    sizes = np.array([len(t.atoms) for t in library.values()])
    box = np.full(3, 10_000)
    brick = Brick(box, np.zeros(3, dtype=int), box, np.zeros((sizes.sum(), 3), dtype=np.int32),
                  np.arange(n, dtype=np.uint16), np.cumsum(sizes) - sizes, np.arange(1, n + 1, dtype=np.int32),
                  np.tile(np.frombuffer(b"SEG1", dtype=np.uint8), (n, 1)), np.full(n, ord("Q"), dtype=np.uint8),
                  unlabelled(n))
    text = iter(lines(brick))
    for number, template in enumerate(library.values(), start=1):
        for name, element in zip(template.atoms, template.elements, strict=True):
            line = next(text)
            assert line[12:16].strip() == name
            assert line[17:20].strip() == template.pdb_name and line[21] == "Q" and int(line[22:26]) == number
            assert line[72:76] == "SEG1" and line[76:78] == f"{element.upper():>2}"
            if len(element) == 1 and len(name) < 4:
                assert line[12] == " " and line[13] == name[0]


def test_too_many_residues_for_chain_letters():
    n = 62 * 9999 + 1
    segment = np.stack([np.full(n, 65), *((np.arange(n) // 9999) // 36**k % 36 + 48 for k in (2, 1, 0))], axis=1)
    box = np.full(3, 10_000)
    brick = Brick(box, np.zeros(3, dtype=int), box, np.zeros((n, 3), dtype=np.int32),
                  np.full(n, template_index("NA"), dtype=np.uint16), np.arange(n),
                  (np.arange(n) % 9999 + 1).astype(np.int32),
                  segment.astype(np.uint8), np.zeros(n, dtype=np.uint8), unlabelled(n))
    with pytest.raises(BadInputError, match="brick_edge"):
        _ = brick.chain_letters


def test_segments_share_letters_when_letters_run_out():
    """100 segments of 50 residues with the numbers of one water segment in pieces: still unique, still all placed."""
    n = 5000
    segment = np.stack([np.full(n, 87), *((np.arange(n) // 50) // 36**k % 36 + 48 for k in (2, 1, 0))], axis=1)
    box = np.full(3, 10_000)
    brick = Brick(box, np.zeros(3, dtype=int), box, np.zeros((n, 3), dtype=np.int32),
                  np.full(n, template_index("NA"), dtype=np.uint16), np.arange(n),
                  (np.arange(n) * 7 % 9999 + 1).astype(np.int32),
                  segment.astype(np.uint8), np.zeros(n, dtype=np.uint8), unlabelled(n))
    keys = brick.chain_letters.astype(np.int64) * 10000 + brick.residue_number
    assert len(np.unique(keys)) == n and len(set(brick.chain_letters)) == len(CHAIN_LETTERS)


def decode(data):
    """A column of BinaryCIF, decoded as its specification says (last encoding first)."""
    types = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<u1", 5: "<u2", 6: "<u4", 32: "<f4", 33: "<f8"}
    value = data["data"]
    for step in reversed(data["encoding"]):
        kind = step["kind"]
        if kind == "ByteArray":
            value = np.frombuffer(value, types[step["type"]])
        elif kind == "IntegerPacking":
            info = np.iinfo(value.dtype)
            assert (step["byteCount"], step["isUnsigned"]) == (value.itemsize, info.min == 0)
            out, total = [], 0
            for x in value.tolist():
                total += x
                if not (x == info.max or (x == info.min and info.min < 0)):
                    out.append(total)
                    total = 0
            assert len(out) == step["srcSize"]
            value = np.array(out)
        elif kind == "RunLength":
            value = np.repeat(value[::2], value[1::2])
            assert len(value) == step["srcSize"]
        elif kind == "Delta":
            value = np.cumsum(value) + step["origin"]
        elif kind == "FixedPoint":
            value = value / step["factor"]
        elif kind == "StringArray":
            offsets = decode({"data": step["offsets"], "encoding": step["offsetEncoding"]})
            index = decode({"data": data["data"], "encoding": step["dataEncoding"]})
            text = step["stringData"]
            strings = [text[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
            value = [strings[i] for i in index]
        else:
            raise AssertionError(kind)
    return value


def columns(content, category):
    blocks = msgpack.unpackb(content)["dataBlocks"]
    assert len(blocks) == 1
    found = next(c for c in blocks[0]["categories"] if c["name"] == category)
    result = {}
    for column in found["columns"]:
        value = decode(column["data"])
        assert len(value) == found["rowCount"], column["name"]
        mask = decode(column["mask"]) if column["mask"] else np.zeros(found["rowCount"])
        result[column["name"]] = [v if m == 0 else ".?"[int(m) - 1] for v, m in zip(value, mask, strict=True)]
    return result


def test_binary_cif(shards, system):
    folder, manifest, box, _ = shards
    library = list(residue_library().values())
    for k, shard in list(enumerate(manifest.shards))[::6]:
        content = (folder / f"{shard.name}.bcif").read_bytes()
        cell = columns(content, "_cell")
        assert [cell[f"length_{a}"][0] for a in "abc"] == box.tolist() and cell["angle_beta"] == [90.0]
        atoms, brick = columns(content, "_atom_site"), make_brick(system, k)
        assert np.array_equal(np.array([atoms[f"Cartn_{a}"] for a in "xyz"]).T, brick.position / 1000)
        assert atoms["id"] == (brick.global_id + 1).tolist()
        templates = [library[t] for t in brick.residue_template]
        assert atoms["label_atom_id"] == [a for t in templates for a in t.atoms]
        assert atoms["type_symbol"] == [e.upper() for t in templates for e in t.elements]
        assert atoms["label_comp_id"] == [t.pdb_name for t in templates for _ in t.atoms]
        segments = [bytes(brick.residue_segment[r]).decode() for r in brick.atom_residue]
        assert atoms["auth_asym_id"] == atoms["label_asym_id"] == segments
        assert atoms["auth_seq_id"] == brick.residue_number[brick.atom_residue].tolist()
        polymer = [t.kind in ("amino acid", "nucleotide") for t in templates for _ in t.atoms]
        assert atoms["group_PDB"] == ["ATOM" if p else "HETATM" for p in polymer]
        entity, place = brick.residue_in_entity[brick.atom_residue].T.tolist()
        assert atoms["label_entity_id"] == list(map(str, entity))
        assert atoms["label_seq_id"] == [n if p else "." for n, p in zip(place, polymer, strict=True)]
        assert set(atoms["label_alt_id"]) == {"."} and set(atoms["pdbx_PDB_ins_code"]) == {"?"}


def test_binary_cif_of_extreme_numbers():
    """Jumps that need every width of integer packing, both signs, and the limits themselves."""
    x = [0, 127, 0, 128, 0, -128, 0, 254, -1, 255, 32767, 0, -32768, 65535, 9_999_999, -999_999, 5]
    position = np.stack([x, np.zeros(len(x)), np.arange(len(x)) * 255], axis=1)
    atoms = columns(bcif_bytes(ions(position, first_id=np.arange(len(x)) * 1000 + 10**9)), "_atom_site")
    assert np.array_equal(np.rint(np.array([atoms[f"Cartn_{a}"] for a in "xyz"]).T * 1000), position)
    assert atoms["id"] == (np.arange(len(x)) * 1000 + 10**9 + 1).tolist()


def test_empty_brick(tmp_path):
    empty = ions(np.zeros((0, 3)))
    assert lines(empty) == []
    assert columns(bcif_bytes(empty), "_atom_site")["id"] == []
    (tmp_path / "empty.cbb").write_bytes(brick_bytes(empty))
    assert len(read_brick(tmp_path / "empty.cbb").global_id) == 0


def test_brick_file_layout(tmp_path):
    brick = ions([[1, 2, 3], [4, 5, -6]], first_id=[7, 2**40])
    content = brick_bytes(brick)
    body = struct.pack("<8s2q9d", b"CBBRICK2", 2, 2, *[9999.0] * 3, *[0.0] * 3, *[9999.0] * 3)
    body += struct.pack("<q4i", 7, 1, 1, 2, 3) + struct.pack("<q4i", 2**40, 1, 4, 5, -6) + struct.pack("<6H", *[0] * 6)
    assert content == body + struct.pack("<I", zlib.crc32(body))
    path = tmp_path / "brick.cbb"
    for bad in (content[:-1], content + b"0", b"CBBRICK1" + content[8:], b"", content[:40]):
        path.write_bytes(bad)
        with pytest.raises(IntegrityError, match=r"brick\.cbb"):
            read_brick(path)
    with pytest.raises(IntegrityError, match="cannot read"):
        read_brick(tmp_path / "missing.cbb")


def test_brick_file_runs_are_split_where_they_are_wide(tmp_path):
    """Any ids and any positions come back; an atom of tiled water costs less than 7 bytes (issue: 8)."""
    rng = np.random.default_rng(4)
    path = tmp_path / "brick.cbb"
    for span in (10, 60_000, 70_000, 2**31 - 1):
        ids = np.sort(rng.choice(400, 300, replace=False)) + 2**33
        position = rng.integers(-span // 2, span // 2, (300, 3)).astype(np.int32)
        corners = np.arange(9.0).reshape(3, 3)
        path.write_bytes(packed(BrickFile(*corners, ids, position)))
        back = read_brick(path)
        assert np.array_equal(back.global_id, ids) and np.array_equal(back.position, position)
        assert np.array_equal([back.box, back.lower, back.upper], corners)
    tile = water_tile().position
    path.write_bytes(packed(BrickFile(*corners, np.arange(3 * len(tile)), tile.reshape(-1, 3))))
    assert path.stat().st_size < 7 * 3 * len(tile)
