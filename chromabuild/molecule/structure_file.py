"""Atoms of a PDB or mmCIF file of any origin: every one of them, or a number for what is left out.

Files of simulations repeat chain ids and residue numbers (copies of a complex, waters beyond 9,999). So a residue here
is a run of atoms, not a name: it ends where chain, number or name change, at TER, and where an atom comes again.
"""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path

import gemmi
import numpy as np
import zstandard

from chromabuild.base.box_vectors import reduced, vectors_from_angles
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.binary_cif_file import HARMED, read_categories
from chromabuild.molecule.residues import residue_names

_PDB_WIDTH = 80
_COORDINATES_END = 54
"""Column at which an atom's line of a PDB file may end: the format's later fields are optional."""
LONG_RESIDUES = ("TIP3", "TIP4", "TIP5", "SPCE", *(name for name in residue_names() if len(name) == 4))
"""Names that reach into column 21, which otherwise begins a chain id of two letters."""
_ELEMENTS = {gemmi.Element(number).name.upper(): number for number in range(1, 119)} | {"D": 1}
_ITEMS = {
    "chain": ("auth_asym_id", "label_asym_id"), "number": ("auth_seq_id", "label_seq_id"),
    "residue": ("auth_comp_id", "label_comp_id"), "name": ("auth_atom_id", "label_atom_id"),
    "insertion": ("pdbx_PDB_ins_code",), "alternative": ("label_alt_id",), "element": ("type_symbol",),
    "model": ("pdbx_PDB_model_num",), "x": ("Cartn_x",), "y": ("Cartn_y",), "z": ("Cartn_z",),
}  # fmt: skip
"""Items of _atom_site; the first that a file has is read."""
_CELL = ("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma")
PACKED = ("", ".gz", ".zst")


@dataclass
class StructureFile:
    """The first model of a file: n atoms in r residues, in the order of the file."""

    position: np.ndarray
    """(n, 3) float64, angstrom."""
    element: np.ndarray
    """(n,) uint8, atomic numbers."""
    name: list[str]
    """Of each atom."""
    residue: np.ndarray
    """(n,) int32, from 0."""
    residue_name: list[str]
    residue_label: list[str]
    """``segid:resname:resid``; the chain stands for a segment that has no name."""
    piece: np.ndarray
    """(r,) int32: pieces of chains, within which residues follow each other."""
    box: np.ndarray | None
    """(3,) edges of the box of a simulation, or (3, 3) vectors where they lean, angstrom; None for a crystal's cell or
    none."""
    alternatives: int
    """Atoms left out because they are further alternative locations."""
    further_models: int
    """Models left out."""

    @classmethod
    def read(cls, path: str | Path) -> "StructureFile":
        """A PDB, mmCIF or BinaryCIF file, plain, .gz or .zst. Raises BadInputError naming the line that is wrong."""
        if any(str(path).endswith(f".bcif{packed}") for packed in PACKED):
            return _read_binary_cif(Path(path))
        if str(path).endswith(".cbb"):
            raise BadInputError(f"{path} holds coordinates alone: name the .bcif or .pdb.zst file beside it, or the "
                                "whole folder of shards")
        try:
            text, is_mmcif = _text_of(Path(path))
            return _read_mmcif(text, path) if is_mmcif else _read_pdb(text, path)
        except (OSError, RuntimeError, ValueError, EOFError, zstandard.ZstdError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise BadInputError(f"cannot read {path} as PDB or mmCIF ({why}): give a valid file") from None

    @property
    def left_out(self) -> str:
        """What of the file is not here, as a phrase; empty when nothing is."""
        parts = []
        if self.alternatives:
            parts.append(f"{self.alternatives} atoms in further alternative locations")
        if self.further_models:
            parts.append(f"{self.further_models} further model{'s' * (self.further_models > 1)}")
        return " and ".join(parts)


@dataclass
class _Table:
    """Rows of a file as arrays of str, without a decision on them yet."""

    chain: np.ndarray
    segment: np.ndarray
    number: np.ndarray
    """With the insertion code."""
    residue: np.ndarray
    name: np.ndarray
    alternative: np.ndarray
    """Empty where an atom has one location."""
    element: np.ndarray
    """(n,) uint8."""
    position: np.ndarray
    ended: np.ndarray
    """(n,) bool: TER stands before this row."""


def _content_of(path: Path) -> tuple[bytes, str]:
    """What is in a file, unpacked, and its name without the suffix of the packing."""
    content = path.read_bytes()
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(content).read(), path.stem
    return (gzip.decompress(content), path.stem) if path.suffix == ".gz" else (content, path.name)


def _text_of(path: Path) -> tuple[str, bool]:
    """The text of a file, and whether it is mmCIF: by its name, else by how it begins."""
    content, name = _content_of(path)
    # Remarks hold names in any encoding; nothing that is read here does.
    text = content.decode("ascii", "replace").replace("\ufffd", "?")
    suffix = Path(name).suffix.lower()
    if suffix in (".cif", ".mmcif"):
        return text, True
    return text, suffix not in (".pdb", ".ent") and text.lstrip().lower().startswith("data_")


def _read_pdb(text: str, path: str | Path) -> StructureFile:
    """Fixed columns of wwPDB's format 3.3, with segment names in columns 73 to 76 as simulation programs write them."""
    lines = text.splitlines()
    rows, ended, further_models, break_before, box = [], [], 0, False, None
    ends = False
    for k, line in enumerate(lines):
        record = line[:6]
        if record in ("ATOM  ", "HETATM"):
            if not ends:
                rows.append(k)
                ended.append(break_before)
                break_before = False
        elif record[:3] == "TER":
            break_before = True
        elif record == "ENDMDL" or (record.rstrip() == "END" and rows):
            ends = True
        elif record.rstrip() == "MODEL" and rows:
            further_models, ends = further_models + 1, True
        elif record == "CRYST1":
            box = _pdb_box(line, path, k + 1)
    if not rows:
        raise BadInputError(f"{path} holds no atoms: give a PDB, mmCIF or chromabuild solute file")
    short = next((k for k in rows if len(lines[k].rstrip()) < _COORDINATES_END), None)
    last = rows[-1]
    if short is None and last == len(lines) - 1 and len(rows) > 1 and not text.endswith("\n") \
            and len(lines[last]) < len(lines[rows[-2]]):
        short = last
    if short is not None:
        raise BadInputError(f"{path}, line {short + 1}: the line ends at column {len(lines[short])}, within an atom: "
                            "the file is cut or damaged, fetch or write it again")
    if last == len(lines) - 1 and any(line[:6] == "SEQRES" for line in lines[:rows[0]]):
        raise BadInputError(f"{path}, line {last + 1}: the file ends with an atom, without the END that follows the "
                            "SEQRES of an entry: fetch or write it again, or add END if this is all")
    if not lines[last].isascii() or any(len(lines[k]) > _PDB_WIDTH for k in rows):
        lines = [line[:_PDB_WIDTH] for line in lines]
    table = np.frombuffer("".join(lines[k].ljust(_PDB_WIDTH) for k in rows).encode("ascii"), "S1")
    table = table.reshape(len(rows), _PDB_WIDTH)
    numbers = np.array(rows) + 1

    def column(first: int, last: int) -> np.ndarray:
        """Columns first to last, counted from 1 as the format does, without blanks around."""
        return np.char.strip(np.ascontiguousarray(table[:, first - 1:last]).view(f"S{last - first + 1}")[:, 0]
                             .astype(str))

    name, long_residue = column(13, 16), column(18, 21)
    is_long = np.isin(long_residue, LONG_RESIDUES)
    return _structure(_Table(
        chain=np.where(is_long, column(22, 22), column(21, 22)), segment=column(73, 76),
        number=np.char.add(column(23, 26), column(27, 27)), residue=np.where(is_long, long_residue, column(18, 20)),
        name=name, alternative=column(17, 17),
        element=_pdb_elements(column(77, 78), table[:, 12] != b" ", name),
        position=_coordinates([column(31, 38), column(39, 46), column(47, 54)], numbers, path),
        ended=np.array(ended)), box, further_models)


def _pdb_box(line: str, path: str | Path, number: int) -> np.ndarray | None:
    try:
        cell = [float(line[a:b]) for a, b in ((6, 15), (15, 24), (24, 33), (33, 40), (40, 47), (47, 54))]
    except ValueError:
        raise BadInputError(f"{path}, line {number}: the cell {line[6:54].strip()!r} is not six numbers: "
                            "correct CRYST1 or leave it out") from None
    return _simulation_box(cell, line[55:66].strip())


def _pdb_elements(given: np.ndarray, is_left: np.ndarray, name: np.ndarray) -> np.ndarray:
    """(n,) atomic numbers: as given, else from a name, whose element ends in column 14.

    ``is_left``: the name begins in column 13, as that of a two-letter element or of a hydrogen with four characters.
    """
    found = np.array([_ELEMENTS.get(symbol.upper(), 0) for symbol in given.tolist()], dtype=np.uint8)
    for k in np.flatnonzero(found == 0).tolist():
        letters = name[k].lstrip("0123456789'")
        two = _ELEMENTS.get(letters[:2].upper(), 0) if is_left[k] and len(name[k]) < 4 else 0
        found[k] = two or _ELEMENTS.get(letters[:1].upper(), 0)
    return found


def _read_mmcif(text: str, path: str | Path) -> StructureFile:
    document = gemmi.cif.read_string(text)
    block = next((b for b in document if b.find_loop("_atom_site.Cartn_x") or b.find_value("_atom_site.Cartn_x")), None)
    if block is None:
        raise BadInputError(f"{path} holds no atoms: give a PDB, mmCIF or chromabuild solute file")
    category = block.find_mmcif_category("_atom_site.")
    tags = [tag.removeprefix("_atom_site.") for tag in category.tags]
    columns = {}
    for key, items in _ITEMS.items():
        place = next((tags.index(item) for item in items if item in tags), None)
        if place is None and key in ("name", "x", "y", "z"):
            raise BadInputError(f"{path} has no _atom_site.{items[0]}: give an mmCIF file with atoms and coordinates")
        columns[key] = np.array([gemmi.cif.as_string(value) for value in category.column(place)]
                                if place is not None else [""] * len(category))
    _refuse_cut(text, block, path)
    cell = [gemmi.cif.as_number(block.find_value(f"_cell.{item}") or "?") for item in _CELL]
    group = gemmi.cif.as_string(block.find_value("_symmetry.space_group_name_H-M") or "?")
    return _of_columns(columns, "type_symbol" in tags, cell, group, path)


def _read_binary_cif(path: Path) -> StructureFile:
    try:
        found = read_categories(_content_of(path)[0], ("_atom_site", "_cell", "_symmetry"))
        sites, cells = found.get("_atom_site", {}), found.get("_cell", {})
        cell = [float(cells[item][0]) if item in cells else np.nan for item in _CELL]
        group = str(found.get("_symmetry", {}).get("space_group_name_H-M", ["?"])[0])
        n = len(next(iter(sites.values()), ()))
        columns = {key: next((sites[item] for item in items if item in sites), np.full(n, ""))
                   for key, items in _ITEMS.items()}
        if n:
            return _of_columns({key: column if key in "xyz" else column.astype(str) for key, column in columns.items()},
                               "type_symbol" in sites, cell, group, path)
    except (*HARMED, OSError, EOFError, zstandard.ZstdError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise BadInputError(f"cannot read {path} as BinaryCIF ({why}): fetch or write it again") from None
    raise BadInputError(f"{path} holds no atoms: give a PDB, mmCIF or chromabuild solute file")


def _of_columns(columns: dict[str, np.ndarray], has_elements: bool, cell: list[float], group: str,
                path: str | Path) -> StructureFile:
    """Of columns of _atom_site by the keys of ``_ITEMS``."""
    model = columns["model"]
    chosen = model == model[0]
    columns = {key: column[chosen] for key, column in columns.items()}
    element = np.array([_ELEMENTS.get(symbol.upper(), 0) for symbol in columns["element"].tolist()], dtype=np.uint8)
    if not has_elements:
        element = _pdb_elements(columns["element"], np.zeros(len(element), dtype=bool), columns["name"])
    return _structure(_Table(
        chain=columns["chain"], segment=np.full(len(element), ""), residue=columns["residue"], name=columns["name"],
        number=np.char.add(columns["number"], columns["insertion"]), alternative=columns["alternative"],
        element=element, ended=np.zeros(len(element), dtype=bool),
        position=_coordinates([columns[axis] for axis in "xyz"], None, path)),
        _simulation_box(cell, group) if np.isfinite(cell).all() else None, len(set(model.tolist())) - 1)


def _refuse_cut(text: str, block: gemmi.cif.Block, path: str | Path) -> None:
    """Refuse a file that ends within its table of atoms, where its other tables are closed by ``#``, or where chains
    that it lists are not in it.

    CIF itself has no mark for the end of a table, so that a table cut between two rows is a valid one.
    """
    if "\n_" in text[text.rfind("_atom_site."):] or text.rstrip().rsplit("\n", 1)[-1].startswith("#"):
        return
    last = text.rstrip().count("\n") + 1
    if re.search(r"\n#\s*\nloop_\s+_atom_site\.", text):
        raise BadInputError(f"{path}, line {last}: the file ends within its table of atoms, without the # that closes "
                            "its other tables: fetch or write it again")
    present = {*block.find_values("_atom_site.label_asym_id")}
    lost = [name for name in block.find_values("_struct_asym.id") if present and name not in present]
    if lost:
        raise BadInputError(f"{path}, line {last}: the file ends with a table of atoms that lacks chain {lost[0]}, "
                            "which _struct_asym lists: fetch or write it again")


def _coordinates(columns: list[np.ndarray], lines: np.ndarray | None, path: str | Path) -> np.ndarray:
    """(n, 3) float64 of three columns of text. Raises BadInputError for what is no finite number."""
    try:
        position = np.stack([column.astype(np.float64) for column in columns], axis=1)
        wrong = ~np.isfinite(position)
    except ValueError:
        wrong = np.array([[not _is_number(value) for value in column.tolist()] for column in columns]).T
    if wrong.any():
        row, axis = np.argwhere(wrong)[0]
        place = f"line {lines[row]}" if lines is not None else f"atom {row + 1}"
        raise BadInputError(f"{path}, {place}: {'xyz'[axis]} = {str(columns[axis][row])!r} is not a number: the "
                            "file is damaged, or its coordinates are too large for their columns")
    return position


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _simulation_box(cell: list[float], group: str) -> np.ndarray | None:
    if group.replace(" ", "") not in ("", "P1") or min(cell[:3]) <= 10.0:
        return None
    if max(abs(angle - 90.0) for angle in cell[3:]) < 1e-3:
        return np.array(cell[:3])
    try:
        return reduced(vectors_from_angles(np.array(cell[:3]), np.array(cell[3:])))
    except BadInputError:  # no cell at all, as some programs write it
        return None


def _structure(table: _Table, box: np.ndarray | None, further_models: int) -> StructureFile:
    """Residues and pieces of chains, and one location of every atom."""
    n = len(table.name)
    alternative = table.alternative != ""
    same_chain = (table.chain[1:] == table.chain[:-1]) & (table.segment[1:] == table.segment[:-1]) & ~table.ended[1:]
    same_number = same_chain & (table.number[1:] == table.number[:-1])
    # Residues of two names at one place are alternatives of each other.
    other_residue = alternative[1:] & alternative[:-1] & (table.alternative[1:] != table.alternative[:-1])
    same = same_number & ((table.residue[1:] == table.residue[:-1]) | other_residue)
    begins = np.concatenate([[True], ~same])
    begins |= _repeated(table, np.cumsum(begins) - 1)
    run = np.cumsum(begins) - 1
    kept = _one_location(table, run)

    first = np.flatnonzero(begins)
    number = _leading_numbers(table.number[first])
    new_piece = np.concatenate([[True], ~same_chain[first[1:] - 1] | (number[1:] < number[:-1])])
    present = np.zeros(len(first), dtype=bool)
    present[run[kept]] = True
    renumbered = np.cumsum(present) - 1
    labels = [f"{segment or chain}:{name}:{place}" for segment, chain, name, place in
              zip(*(column[first[present]].tolist() for column in
                    (table.segment, table.chain, table.residue, table.number)), strict=True)]
    return StructureFile(
        position=table.position[kept], element=table.element[kept], name=table.name[kept].tolist(),
        residue=renumbered[run[kept]].astype(np.int32), residue_name=table.residue[first[present]].tolist(),
        residue_label=labels, piece=np.cumsum(new_piece)[present].astype(np.int32) - 1, box=box,
        alternatives=n - len(kept), further_models=further_models)


def _repeated(table: _Table, run: np.ndarray) -> np.ndarray:
    """(n,) bool: atoms that begin a residue since their run has one of that name and alternative location already."""
    begins = np.zeros(len(run), dtype=bool)
    _, name = np.unique(table.name, return_inverse=True)
    _, location = np.unique(table.alternative, return_inverse=True)
    key = (run.astype(np.int64) * (name.max() + 1) + name) * (location.max() + 1) + location
    order = np.argsort(key, kind="stable")
    again = order[1:][key[order[1:]] == key[order[:-1]]]
    for doubtful in np.unique(run[again]):
        seen: set[int] = set()
        for k in range(*np.searchsorted(run, [doubtful, doubtful + 1])):
            if int(key[k]) in seen:
                begins[k] = True
                seen = set()
            seen.add(int(key[k]))
    return begins


def _one_location(table: _Table, run: np.ndarray) -> np.ndarray:
    """Ascending rows that stay: atoms with one location, and of each residue those of the location that comes first.

    A residue whose every atom is an alternative and which was there before, at another location, is left out.
    """
    n_runs = run[-1] + 1
    alternative = np.flatnonzero(table.alternative != "")
    if not len(alternative):
        return np.arange(len(run))
    chosen = np.full(n_runs, "", dtype=table.alternative.dtype)
    chosen[run[alternative[::-1]]] = table.alternative[alternative[::-1]]
    kept = (table.alternative == "") | (table.alternative == chosen[run])
    single = np.zeros(n_runs, dtype=bool)
    single[run[table.alternative == ""]] = True
    first = np.searchsorted(run, np.arange(n_runs))
    before: dict[tuple[str, str, str], str] = {}
    for k in np.unique(run[alternative]).tolist():
        key = (str(table.chain[first[k]]), str(table.segment[first[k]]), str(table.number[first[k]]))
        if not single[k] and before.get(key, chosen[k]) != chosen[k]:
            kept[run == k] = False
        before.setdefault(key, str(chosen[k]))
    return np.flatnonzero(kept)


def _leading_numbers(text: np.ndarray) -> np.ndarray:
    """(r,) int64 of residue numbers with insertion codes; 0 for what is none."""
    found = []
    for value in text.tolist():
        digits = value.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        found.append(int(digits) if re.fullmatch(r"-*[0-9]{1,18}", digits) and "--" not in digits else 0)
    return np.array(found, dtype=np.int64)
