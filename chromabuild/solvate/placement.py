"""The solute in its box, on disk in the order of a grid of cells, so that any region of it can be read alone.

The solute stays in one piece, in the middle of the box: of a box whose edges lean it reaches out. Cells and regions are
those of its residues wrapped into the box, made straight.

placed.h5, format ``chromabuild-placed-solute``: residues sorted by the cell that holds their reference atom (cells
x fastest), in global order within a cell. Groups ``residue`` (first_atom i8: global id, template u2, number i4,
segment u2, in_entity (r,2) i4: entity and place in its sequence), ``atom/position`` (n,3) i4 in 0.001 angstrom,
``cell`` (first_residue, first_atom: (cells + 1,) i8), ``segment`` (name, chain). Writing it takes a chunk of positions
at a time, reading a region takes the region.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np
from blake3 import blake3

from chromabuild.base.box_vectors import SHAPES, box_of, folded, lattice_steps, tilt_of, vectors_of
from chromabuild.base.checked_json import checked_text
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path, locked
from chromabuild.base.hdf5_file import written_hdf5
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.entities import entity_of_molecules, place_in_molecule
from chromabuild.molecule.residues import library_needed, modification_counts, residue_library
from chromabuild.molecule.solute import LEAST_RESIDUE_NUMBER, MAX_RESIDUES_PER_SEGMENT, Solute
from chromabuild.shards.brick import template_sizes
from chromabuild.shards.manifest import LOCK_NAME, RECORD_FOLDER, file_digest, file_error
from chromabuild.solvate.ions import SPECIES, formal_charges

FORMAT = "chromabuild-placed-solute"
VERSION = 2
PLACED_NAME = "placed.h5"
PLACED_RECORD = "placed.json"
FARTHEST_NEIGHBOUR = 1.3
"""Of images that are 1 apart at least: those whose cells share a face are 1, in an octahedron also 1.155 apart, all
others 1.414 in a dodecahedron and 1.633 in an octahedron."""
FARTHEST_CORNER = 0.7072
"""From the middle of a dodecahedron, of the same distance; of an octahedron 0.645."""
LOWEST_COORDINATE = -999_999
CELL_EDGE = 50_000
"""0.001 angstrom, about: half a brick, so that a brick reads few residues that it does not hold."""

_ATOMS_A_CHUNK = 1 << 18
_RESIDUE_COLUMNS = ("first_atom", "template", "number", "segment", "in_entity")


@dataclass(frozen=True)
class Region:
    """Residues of a part of the box, in global order."""

    first_atom: np.ndarray
    """(r,) int64 global id of each residue's first atom."""
    template: np.ndarray
    """(r,) uint16 library index."""
    number: np.ndarray
    """(r,) int32."""
    segment: np.ndarray
    """(r,) uint16."""
    in_entity: np.ndarray
    """(r, 2) int32 entity, and place in its sequence from 1."""
    position: np.ndarray
    """(n, 3) int32 of all their atoms, 0.001 angstrom."""

    @cached_property
    def size(self) -> np.ndarray:
        """(r,) int64 atoms of each residue."""
        return template_sizes()[self.template].astype(np.int64)

    @cached_property
    def start(self) -> np.ndarray:
        """(r,) int64 row of ``position`` at which each residue begins."""
        return np.cumsum(self.size) - self.size

    @property
    def reference(self) -> np.ndarray:
        """(r, 3) int32 positions of the reference atoms (first heavy atoms), 0.001 angstrom."""
        return self.position[self.start + reference_in_residue()[self.template]]

    def select(self, chosen: np.ndarray) -> "Region":
        """The residues ``chosen`` (indices, ascending)."""
        size = self.size[chosen]
        begin = np.cumsum(size) - size
        atoms = np.repeat(self.start[chosen] - begin, size) + np.arange(size.sum())
        return Region(self.first_atom[chosen], self.template[chosen], self.number[chosen], self.segment[chosen],
                      self.in_entity[chosen], self.position[atoms])


class PlacedSolute:
    """An open placed.h5. Lengths in 0.001 angstrom."""

    def __init__(self, path: Path) -> None:
        """Open the file for reading."""
        self._file = h5py.File(path, "r", locking=False)  # cluster file systems may know no locks
        attributes = self._file.attrs
        self.box: np.ndarray = attributes["box"][...]
        """(3,) int64, the diagonal of its vectors."""
        self.vectors = box_of(self.box, attributes.get("tilt", np.zeros(3, dtype=np.int64)))
        """(3,) int64 edges, or (3, 3) vectors where they lean."""
        self.cells: np.ndarray = attributes["cells"][...]
        """(3,) int64 cells along each axis."""
        self.reach = int(attributes["reach"])
        """How far an atom may be from the reference atom of its residue along an axis."""
        self.charge = int(attributes["charge"])
        """Net formal charge, e."""
        self.entities = int(attributes["entities"])
        """How many there are."""
        self.n_atoms: int = self._file["atom/position"].shape[0]
        self.n_residues: int = self._file["residue/template"].shape[0]
        self.segment_name = self._file["segment/name"][...].view(np.uint8).reshape(-1, 4)
        """(s, 4) uint8, ASCII."""
        self.segment_chain = self._file["segment/chain"][...].view(np.uint8)
        """(s,) uint8, ASCII."""
        self._first_residue = self._file["cell/first_residue"][...]
        self._first_atom = self._file["cell/first_atom"][...]

    def modifications(self) -> dict[str, int]:
        """How many residues are modified, by the name of the residue."""
        column, counts = self._file["residue/template"], np.zeros(len(residue_library()), dtype=np.int64)
        for start in range(0, len(column), _ATOMS_A_CHUNK):
            counts += np.bincount(column[start:start + _ATOMS_A_CHUNK], minlength=len(counts))
        return modification_counts(counts)

    def residues_in(self, lower: np.ndarray, upper: np.ndarray) -> Region:
        """Residues whose reference atoms, wrapped into the box, lie in its part [lower, upper), straight."""
        first, last = self._cell_of(lower), self._cell_of(upper - 1)
        region = self._read(self._runs(first, last))
        reference = straight_in(region.reference, self.vectors)
        inside = np.flatnonzero(((reference >= lower) & (reference < upper)).all(1))
        return region.select(inside[np.argsort(region.first_atom[inside])])

    def layer(self, lower: int, upper: int) -> Region:
        """Residues with an atom that may be at a height in [lower, upper), through the box face too.

        Positions are those of residues whose reference atoms are at heights of the box; of images, moved by its third
        vector: they continue the layer.
        """
        third = vectors_of(self.vectors)[2].astype(np.int32)
        height = int(self.box[2])
        pieces = []
        for image in (-1, 0, 1):
            bottom = max(0, lower - self.reach - image * height)
            top = min(height, upper + self.reach - image * height)
            if bottom < top:
                first = self._cell_of(np.array([0, 0, bottom]))
                last = self._cell_of(np.array([*(self.box[:2] - 1), top - 1]))
                piece = self._read(self._runs(first, last))
                moved = folded(piece.reference, self.vectors, (2,)) - piece.reference + image * third
                piece.position[:] += np.repeat(moved, piece.size, axis=0)
                pieces.append(piece)
        return Region(*(np.concatenate(parts) for parts in zip(*(
            (p.first_atom, p.template, p.number, p.segment, p.in_entity, p.position) for p in pieces), strict=True)))

    def _cell_of(self, position: np.ndarray) -> np.ndarray:
        return position * self.cells // self.box

    def _runs(self, first: np.ndarray, last: np.ndarray) -> Iterator[tuple[int, int]]:
        """Ranges of consecutive cell numbers that cover the cells first..last (both included)."""
        nx, ny, _ = self.cells
        begin = end = -1
        for z in range(first[2], last[2] + 1):
            for y in range(first[1], last[1] + 1):
                row = nx * (y + ny * z)
                if row + first[0] != end:
                    if end > begin:
                        yield begin, end
                    begin = row + first[0]
                end = row + last[0] + 1
        yield begin, end

    def _read(self, runs: Iterator[tuple[int, int]]) -> Region:
        columns = [self._file[f"residue/{name}"] for name in _RESIDUE_COLUMNS]
        position = self._file["atom/position"]
        parts = [[column[:0]] for column in (*columns, position)]
        for begin, end in runs:
            residues = slice(*self._first_residue[[begin, end]])
            if residues.start < residues.stop:
                for part, column in zip(parts, columns, strict=False):
                    part.append(column[residues])
                parts[-1].append(position[slice(*self._first_atom[[begin, end]])])
        return Region(*(np.concatenate(part) for part in parts))


def reference_in_residue() -> np.ndarray:
    """(t,) int64 per residue of the library: the atom that decides where the residue is, its first heavy one."""
    return np.array([next((i for i, element in enumerate(t.elements) if element != "H"), 0)
                     for t in residue_library().values()])


def place_solute(solute: Solute, section: SolvateSection, folder: Path) -> tuple[PlacedSolute, str]:
    """Choose the box, move the solute's centre to the middle of it, write placed.h5 (or keep the one that is there).

    Gives the open file and a hash of the solute. Raises BadInputError for a solute that cannot be named or numbered
    beside the solvent and for a box that is too small or too large, ResourceError when the folder cannot be written.
    """
    _check_names(solute)
    measured = _measure(solute, section)
    box, shift = _choose_box(measured, section)
    inputs = {"solute": measured.digest, "box": box.tolist(), "molecules": solute.molecule_name, "version": VERSION}
    path, record = folder / PLACED_NAME, folder / RECORD_FOLDER / PLACED_RECORD
    if not _is_placed(path, record, inputs):
        with locked(folder / RECORD_FOLDER / LOCK_NAME):
            if not _is_placed(path, record, inputs):  # another process may have placed it meanwhile
                _place(path, record, inputs, solute, box, shift)
    return PlacedSolute(path), measured.digest


def _is_placed(path: Path, record: Path, inputs: dict) -> bool:
    """Whether placed.h5 is there, sound, and made from these inputs."""
    try:
        known = json.loads(record.read_bytes())
        # A damaged HDF5 file can do anything to its reader, so its hash is checked before it is opened.
        return known["inputs"] == inputs and not file_error(path, known["file"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _place(path: Path, record: Path, inputs: dict, solute: Solute, box: np.ndarray, shift: np.ndarray) -> None:
    with written_hdf5(path) as file:
        _write(file, solute, box, shift)
    with atomic_path(record) as part:
        part.write_text(checked_text({"inputs": inputs, "file": file_digest(path)}))


def _check_names(solute: Solute) -> None:
    """Refuse names and numbers of the solute that cannot stand beside the solvent's."""
    numbers, least, most = solute.residue_number, LEAST_RESIDUE_NUMBER, MAX_RESIDUES_PER_SEGMENT
    outside = numbers[(numbers < least) | (numbers > most)]
    if len(outside):
        raise BadInputError(f"the solute has residue number {outside[0]}, shards hold {least} to {most}: number the "
                            "residues anew in each segment")
    keys = np.sort(solute.residue_segment.astype(np.int64) * (most - least + 1) + (numbers - least))
    twice = keys[1:][keys[1:] == keys[:-1]]
    if len(twice):
        segment, number = divmod(int(twice[0]), most - least + 1)
        number += least
        raise BadInputError(f"the solute's segment {solute.segment_name[segment]} has residue number {number} twice: "
                            "number its residues anew")
    letters = {"W", *(ion.segment_letter for ion in SPECIES.values())}
    for name in solute.segment_name:
        counted = len(name) == 4 and name[1:].isascii() and name[1:].isalnum() and name[1:].upper() == name[1:]
        if counted and name[0] in letters:
            raise BadInputError(f"the solute's segment {name} is named like a segment of water or ions "
                                f"({', '.join(sorted(letters))} and three digits or capitals): give it another name")


def _chunks(solute: Solute) -> Iterator[tuple[slice, np.ndarray]]:
    """Whole residues, and the positions of their atoms (n, 3) int64 in 0.001 angstrom."""
    first_atom = solute.residue_first_atom
    residue = 0
    while residue < solute.n_residues:
        last = int(np.searchsorted(first_atom, first_atom[residue] + _ATOMS_A_CHUNK, side="right")) - 1
        chunk = slice(residue, max(last, residue + 1))
        position = solute.position[first_atom[chunk.start]:first_atom[chunk.stop]]
        if not np.isfinite(position).all():
            atom = int(first_atom[chunk.start] + np.flatnonzero(~np.isfinite(position).all(1))[0])
            raise BadInputError(f"atom {atom} of the solute has no finite position: run chromabuild build again")
        yield chunk, np.rint(position.astype(np.float64) * 1000).astype(np.int64)
        residue = chunk.stop


@dataclass(frozen=True)
class _Measured:
    """Lengths in 0.001 angstrom."""

    lower: np.ndarray
    """(3,) int64 lowest coordinates."""
    upper: np.ndarray
    """(3,) int64 highest ones."""
    width: np.ndarray
    """(k,) along ``directions_of`` of the shape of the box."""
    digest: str
    """A hash of what the shards show of the solute."""


def directions_of(section: SolvateSection) -> np.ndarray:
    """(k, 3) translations to the nearest images in a box of this shape in which images are 1 apart; none of a
    rectangular one."""
    if section.shape == "rectangular":
        return np.zeros((0, 3))
    steps = lattice_steps(SHAPES[section.shape])
    # Only those to the images whose cells share a face with the middle one's.
    return steps[(steps**2).sum(axis=1) < FARTHEST_NEIGHBOUR**2]


def _measure(solute: Solute, section: SolvateSection) -> _Measured:
    hasher = blake3()
    for array in (solute.residue_template, solute.residue_number, solute.residue_segment,
                  solute.molecule_first_residue):
        hasher.update(np.ascontiguousarray(array).data.cast("B"))
    if solute.links:
        hasher.update(np.array(solute.links, dtype=np.int64).data.cast("B"))
    names = [entry.name for entry in library_needed(solute.residue_template)]
    hasher.update(json.dumps([solute.segment_name, solute.segment_chain, names]).encode())
    lower, upper = np.full(3, np.iinfo(np.int64).max), np.full(3, np.iinfo(np.int64).min)
    directions = directions_of(section)
    least, most = np.full(len(directions), np.inf), np.full(len(directions), -np.inf)
    for _, position in _chunks(solute):
        hasher.update(position.data.cast("B"))
        lower, upper = np.minimum(lower, position.min(0)), np.maximum(upper, position.max(0))
        for k, (x, y, z) in enumerate(directions):
            along = x * position[:, 0] + y * position[:, 1] + z * position[:, 2]
            least[k], most[k] = min(least[k], along.min()), max(most[k], along.max())
    width = (most - least) / np.linalg.norm(directions, axis=1)
    return _Measured(lower, upper, width, hasher.hexdigest())


def _choose_box(solute: _Measured, section: SolvateSection) -> tuple[np.ndarray, np.ndarray]:
    """The box, (3,) int64 edges or (3, 3) vectors, 0.001 angstrom, and (3,) what brings the solute into its middle."""
    extent = solute.upper - solute.lower
    if section.shape != "rectangular":
        # Between two images, along the line that joins a point of one with the same point of the other, lie twice the
        # padding at least.
        apart = (solute.width + 2000 * section.padding) / np.linalg.norm(directions_of(section), axis=1)
        box = leaning_box(section.shape, float(apart.max()))
        check_filling(box)
        middle = box.sum(axis=0) // 2
        return box, middle - (solute.lower + solute.upper) // 2
    if section.edges is None:
        box = extent + 2 * round(section.padding * 1000)
    else:
        box = np.rint(np.array(section.edges) * 1000).astype(np.int64)
    check_filling(box)
    if section.edges is not None:
        check_room(extent / 1000, section)
    return box, (box - extent) // 2 - solute.lower


def leaning_box(shape: str, distance: float) -> np.ndarray:
    """(3, 3) int64 vectors, 0.001 angstrom, of a box of this shape whose images are no nearer than a distance."""
    vectors = np.ceil(np.abs(SHAPES[shape]) * 6 * np.ceil(distance / 6) - 1e-3) * np.sign(SHAPES[shape])
    vectors[1, 1] = 2 * vectors[2, 1]  # programs want edges to lean by no more than half of those before
    return vectors.astype(np.int64)


def straight_in(position: np.ndarray, box: np.ndarray) -> np.ndarray:
    """(n, 3) int64 positions, 0.001 angstrom, wrapped into a box and made straight by the shear that takes its vectors
    to the axes; rounded down, and the same for all images of a point."""
    vectors = vectors_of(box)
    inside = folded(position, vectors.astype(np.int64))
    tilt = tilt_of(vectors)
    if not tilt.any():
        return inside.astype(np.int64)
    (a, b, c), (b_x, c_x, c_y) = np.diag(vectors), tilt
    x, y, z = inside.T.astype(float)
    y = y - z * (c_y / c)
    turns = np.floor(y / b)
    y -= turns * b
    x = x - turns * b_x - y * (b_x / b) - z * (c_x / c)
    x -= np.floor(x / a) * a
    # Rounding may put what lies on an upper face, which is the lower one, beside it.
    return np.minimum(np.floor(np.stack([x, y, z], axis=1)), np.diag(vectors) - 1).astype(np.int64)


def check_filling(box: np.ndarray) -> None:
    """Raises BadInputError for a box, (3,) edges or (3, 3) vectors, 0.001 angstrom, that water cannot fill."""
    vectors = vectors_of(box)
    check_edges(np.diag(vectors))
    if tilt_of(vectors).any():
        # Its corners lie as far from its middle as two of these at most.
        lowest = float((vectors.sum(axis=0) / 2).min() - np.linalg.norm(vectors[0]) * FARTHEST_CORNER)
        if lowest < LOWEST_COORDINATE:
            raise BadInputError(f"a box whose images are {vectors[0, 0] / 1000:.0f} A apart reaches to coordinates of "
                                f"{lowest / 1000:.0f} A, and columns of PDB files begin at -999.999: use a smaller "
                                "padding, or leave solvate.box empty")


def check_room(extent: np.ndarray, section: SolvateSection) -> None:
    """Raises BadInputError for a `solvate.box` that a solute of this extent (3,), angstrom, does not go into."""
    box = np.array(section.edges)
    if (extent >= box).any():
        axis = int(np.argmax(extent - box))
        raise BadInputError(f"solvate.box = {box[axis]:g} A along {'xyz'[axis]} is smaller than the solute "
                            f"({extent[axis]:.3f} A): give a larger box or leave it empty")


def check_edges(box: np.ndarray) -> None:
    """Raises BadInputError for edges (3,), 0.001 angstrom, of a box that cannot be filled with water."""
    if box.min() < 20_000:
        raise BadInputError(f"the box edge of {box.min() / 1000:.3f} A is below 20 A: use a larger padding or box")
    if box.max() > np.iinfo(np.int32).max:  # positions in bricks are 32-bit thousandths of an angstrom
        raise BadInputError(f"the box edge of {box.max() / 1000:g} A is beyond the 2,147,483 A that a brick's "
                            "coordinates reach: use a smaller padding or box")


def _write(file: h5py.File, solute: Solute, box: np.ndarray, shift: np.ndarray) -> None:
    """Fill placed.h5; ``box`` (3,) or (3, 3) and ``shift`` (3,) int64, 0.001 angstrom."""
    vectors = vectors_of(box).astype(np.int64)
    box = np.diag(vectors)
    cells = np.maximum(1, box // CELL_EDGE)
    n_cells = int(cells.prod())
    in_residue = reference_in_residue()
    cell = np.empty(solute.n_residues, dtype=np.int32)
    reach = 0
    for chunk, position in _chunks(solute):
        position += shift
        size = np.diff(solute.residue_first_atom[chunk.start:chunk.stop + 1])
        start = np.cumsum(size) - size
        reference = position[start + in_residue[solute.residue_template[chunk]]]
        x, y, z = (straight_in(reference, vectors) * cells // box).T
        cell[chunk] = x + cells[0] * (y + cells[1] * z)
        reach = max(reach, int(np.abs(position - np.repeat(reference, size, axis=0)).max()))
    order = np.argsort(cell, kind="stable")
    size = template_sizes()[solute.residue_template].astype(np.int64)
    place = np.empty(solute.n_residues, dtype=np.int64)  # where each residue's atoms go
    place[order] = np.cumsum(size[order]) - size[order]

    file.attrs["format"] = FORMAT
    file.attrs["version"] = VERSION
    file.attrs["provenance"] = json.dumps(solute.provenance, sort_keys=True)
    file.attrs["box"], file.attrs["cells"], file.attrs["reach"] = box, cells, reach
    if tilt_of(vectors).any():
        file.attrs["tilt"] = vectors[[1, 2, 2], [0, 0, 1]]
    file.attrs["charge"] = int(formal_charges()[solute.residue_template].sum())
    file["residue/first_atom"] = solute.residue_first_atom[:-1][order]
    file["residue/template"] = solute.residue_template[order]
    file["residue/number"] = solute.residue_number[order].astype(np.int32)
    file["residue/segment"] = solute.residue_segment[order]
    molecule, in_molecule = place_in_molecule(solute)
    entity = np.array(entity_of_molecules(solute))
    file["residue/in_entity"] = np.stack([entity[molecule], in_molecule], axis=1)[order].astype(np.int32)
    file.attrs["entities"] = int(entity.max(initial=0))
    file["segment/name"] = np.array([name.ljust(4).encode("ascii") for name in solute.segment_name], dtype="S4")
    file["segment/chain"] = np.array([chain.encode("ascii") for chain in solute.segment_chain], dtype="S1")
    first_residue = np.searchsorted(cell[order], np.arange(n_cells + 1))
    file["cell/first_residue"] = first_residue
    file["cell/first_atom"] = np.append(place[order], solute.n_atoms)[first_residue]
    stored = file.create_dataset("atom/position", (solute.n_atoms, 3), np.int32)
    for chunk, position in _chunks(solute):
        # In the order of their places: neighbours along the chain are mostly neighbours in the file too.
        by_place = np.argsort(place[chunk])
        chosen = size[chunk][by_place]
        start = (np.cumsum(size[chunk]) - size[chunk])[by_place]
        begin = np.cumsum(chosen) - chosen
        atoms = np.repeat(start - begin, chosen) + np.arange(chosen.sum())
        moved = (position[atoms] + shift).astype(np.int32)
        target = place[chunk][by_place]
        breaks = np.flatnonzero(target[1:] != target[:-1] + chosen[:-1]) + 1
        for a, b in zip([0, *breaks], [*breaks, len(target)], strict=True):
            rows = slice(begin[a], begin[b - 1] + chosen[b - 1])
            stored[target[a]:target[a] + (rows.stop - rows.start)] = moved[rows]
