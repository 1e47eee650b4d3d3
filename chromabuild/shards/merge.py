"""Selected atoms of all shards as one PDB or mmCIF file."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import zstandard

from chromabuild.base.box_vectors import edges_and_angles
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.files import atomic_path
from chromabuild.molecule.binary_cif_file import HARMED, read_categories
from chromabuild.shards.brick_file import read_brick
from chromabuild.shards.manifest import Manifest, Shard
from chromabuild.shards.pdb import COMPRESSION_LEVEL, LINE_LENGTH, header_line, polymer_ends, with_ter
from chromabuild.shards.selection import parse_selection
from chromabuild.shards.stored import StoredVectors

OUTPUTS = (".pdb", ".cif")
_ITEMS = ("group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
          "label_entity_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy", "B_iso_or_equiv",
          "auth_seq_id", "auth_asym_id", "pdbx_PDB_model_num")


class LineAtoms:
    """Atoms of PDB lines (n, 81) uint8, for a selection."""

    def __init__(self, lines: np.ndarray) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def _column(self, first: int, end: int) -> np.ndarray:
        """A text column without blanks."""
        text = np.ascontiguousarray(self._lines[:, first:end])
        return np.char.strip(text.view(f"S{end - first}").ravel())

    @property
    def name(self) -> np.ndarray:
        """Bytes."""
        return self._column(12, 16)

    @property
    def resname(self) -> np.ndarray:
        """Bytes."""
        return self._column(17, 20)

    @property
    def segid(self) -> np.ndarray:
        """Bytes."""
        return self._column(72, 76)

    @property
    def resid(self) -> np.ndarray:
        """Numbers of residues."""
        return self._column(22, 26).astype(int)

    @property
    def residue(self) -> np.ndarray:
        """Counted from 0: another one begins where a label changes."""
        key = np.concatenate([self._lines[:, 17:27], self._lines[:, 72:76]], axis=1)
        return np.concatenate([[0], np.cumsum((key[1:] != key[:-1]).any(axis=1))])

    @property
    def position(self) -> np.ndarray:
        """(n, 3) angstrom."""
        return np.ascontiguousarray(self._lines[:, 30:54]).view("S8").reshape(-1, 3).astype(float)


def merge_shards(folder: str | Path, selection: str, target: str | Path,
                 end: tuple[StoredVectors, np.ndarray] | None = None) -> int:
    """Write the selected atoms in global order to ``target`` (``OUTPUTS``, or these with .zst); gives their number.

    Lines are those of the shards; the chain letter of a segment is that of the first shard that holds it. mmCIF names
    chains by segments and numbers atoms without end. ``end``: positions (n, 3) of all atoms and box, (3,) or (3, 3),
    angstrom, in place of those of the shards; selections go by them. Memory: one shard and 90 bytes a selected atom,
    150 for mmCIF. Raises BadInputError for a bad selection or name, or when nothing is selected, IntegrityError for
    shards that are missing or damaged, ResourceError when the target cannot be written.
    """
    folder, target = Path(folder), Path(target)
    if not target.name.removesuffix(".zst").endswith(OUTPUTS):
        raise BadInputError(f"{target} is neither {' nor '.join(OUTPUTS)}: give the merged file one of these endings, "
                            "with .zst behind it or without")
    wanted = parse_selection(selection)
    manifest = Manifest.read(folder)
    box = manifest.vectors if end is None else end[1]

    wanted.look_around(lambda: (LineAtoms(text) for _, text in _shards(folder, manifest, end)), box)
    ids, lines, labels = [], [], []
    is_cif = target.name.removesuffix(".zst").endswith(".cif")
    for shard, (number, text) in zip(manifest.shards, _shards(folder, manifest, end), strict=True):
        chosen = wanted(LineAtoms(text))
        if chosen.any():
            ids.append(number[chosen])
            lines.append(text[chosen])
            if is_cif:
                labels.append(_labels(folder / f"{shard.name}.bcif")[chosen])
    if not ids:
        raise BadInputError(f"no atom of {folder} is selected by '{selection}': select others")
    number = np.concatenate(ids)
    order = np.argsort(number)
    merged = np.concatenate(lines)[order]
    if is_cif:
        content = _mmcif(merged, np.concatenate(labels)[order], number[order], box)
    else:
        merged[:, 21] = _one_letter_a_segment(merged)
        ends = polymer_ends(parse_selection("solute")(LineAtoms(merged)), merged[:, 72:76])
        content = header_line(box) + with_ter(merged, ends).tobytes() + f"{'END':80}\n".encode()
    if target.name.endswith(".zst"):
        content = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL).compress(content)
    with atomic_path(target) as part:
        part.write_bytes(content)
    return len(merged)


def _shards(folder: Path, manifest: Manifest, end: tuple[StoredVectors, np.ndarray] | None
            ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Global numbers (n,) and lines (n, 81) of every shard."""
    for shard in manifest.shards:
        text, number = _lines(folder, shard), read_brick(folder / f"{shard.name}.cbb").global_id
        if end is not None:
            text = text.copy()
            text[:, 30:54] = _columns(end[0].take(number))
        yield number, text


def _columns(position: np.ndarray) -> np.ndarray:
    """(n, 24) uint8: coordinates (n, 3), angstrom, as a PDB line has them."""
    if len(position) and not (-999.9995 < position.min() and position.max() < 9999.9995):
        raise BadInputError("atoms lie beyond the columns of a PDB file (-999.999 to 9999.999 angstrom): merge without "
                            "--after")
    text = "".join(f"{x:8.3f}{y:8.3f}{z:8.3f}" for x, y, z in position.tolist())
    return np.frombuffer(text.encode(), dtype=np.uint8).reshape(-1, 24)


def _labels(path: Path) -> np.ndarray:
    """(n, 2) texts of the atoms of a shard: entity, and place in its sequence, empty where there is none."""
    try:
        columns = read_categories(path.read_bytes(), ("_atom_site",))["_atom_site"]
        return np.stack([columns[name].astype(str) for name in ("label_entity_id", "label_seq_id")], axis=1)
    except (OSError, *HARMED) as error:
        raise IntegrityError(f"cannot read {path} ({error}): run chromabuild solvate again") from None


def _mmcif(lines: np.ndarray, labels: np.ndarray, number: np.ndarray, box: np.ndarray) -> bytes:
    """PDB lines (n, 81) of atoms ``number`` (n,), from 0, with their ``_labels`` (n, 2), as mmCIF."""
    lengths, angles = np.split(edges_and_angles(box), 2)
    head = ["data_merged", "#", *(f"_cell.length_{axis} {edge:.3f}" for axis, edge in zip("abc", lengths, strict=True)),
            *(f"_cell.angle_{name} {round(angle, 4)}" for name, angle in
              zip(("alpha", "beta", "gamma"), angles.tolist(), strict=True)),
            "_symmetry.space_group_name_H-M 'P 1'", "#", "loop_", *(f"_atom_site.{item}" for item in _ITEMS)]
    rows = []
    texts = lines.tobytes().decode("ascii").splitlines()
    for k, line, (entity, place) in zip(number.tolist(), texts, labels.tolist(), strict=True):
        name = line[12:16].strip()
        segment, residue = line[72:76].strip(), line[22:26].strip()
        rows.append(f"{line[:6].strip()} {k + 1} {line[76:78].strip()} {_quoted(name)} . {line[17:20].strip()} "
                    f"{segment} {entity} {place or '.'} {line[30:38].strip()} {line[38:46].strip()} "
                    f"{line[46:54].strip()} 1.00 0.00 {residue} {segment} 1")
    return "\n".join([*head, *rows, "#", ""]).encode()


def _quoted(name: str) -> str:
    """A name as a value of mmCIF."""
    return f'"{name}"' if "'" in name else name


def _lines(folder: Path, shard: Shard) -> np.ndarray:
    """(atoms, 81) uint8 lines of a shard."""
    suffix = next(suffix for suffix in shard.files if suffix.startswith("pdb"))
    path = folder / f"{shard.name}.{suffix}"
    try:
        content = path.read_bytes()
        if suffix.endswith("zst"):
            content = zstandard.ZstdDecompressor().decompress(content)
        lines = np.frombuffer(content, dtype=np.uint8).reshape(-1, LINE_LENGTH)[1:-1]
        return lines[lines[:, 0] != ord("T")][:shard.atoms]  # without TER
    except (OSError, ValueError, zstandard.ZstdError) as error:
        raise IntegrityError(f"cannot read {path} ({error}): run chromabuild solvate again") from None


def _one_letter_a_segment(lines: np.ndarray) -> np.ndarray:
    """(n,) uint8 chain letters, the first of each segment."""
    segment = np.ascontiguousarray(lines[:, 72:76]).view("<u4").ravel()
    _, first, member = np.unique(segment, return_index=True, return_inverse=True)
    return lines[first, 21][member]
