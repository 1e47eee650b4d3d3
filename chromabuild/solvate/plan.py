"""The first pass: which slots hold water, which ions. With it every brick knows the global ids of its atoms.

The plan is independent of bricks. It holds one bit a slot (42 MB at 1e9 atoms), the number of waters before each tile,
and the slots of the ions; it is stored as plan.h5 beside the shards, so that a brick can be made alone.
"""

import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np
from blake3 import blake3

from chromabuild._kernels import solvent_overlap
from chromabuild.config import SolvateSection
from chromabuild.errors import BadInputError
from chromabuild.files import atomic_path
from chromabuild.residues import residue_library
from chromabuild.shards.manifest import RECORD_FOLDER, file_entry, file_error
from chromabuild.solute import Solute
from chromabuild.solvate.ions import MINIMUM_DISTANCE, choose_slots, formal_charges, ion_counts, slot_priorities
from chromabuild.solvate.water import Tiling, seam_changes, water_tile

FORMAT = "chromabuild-solvation-plan"
VERSION = 1
PLAN_NAME = "plan.h5"
PLAN_RECORD = "plan.json"

CLOSEST = {"H": (1.5, 1.0), "C": (2.0, 1.2), "N": (2.0, 1.2), "O": (2.0, 1.2), "P": (2.2, 1.4), "S": (2.2, 1.4)}
"""Angstrom: closest that a water's oxygen, and a water's hydrogen, may be to a solute atom of an element.

Shorter than contact distances on purpose: what matters is how many waters are left out. On a whole nucleosome (1KX5
with hydrogens) these leave out 7,507, where its volume, 0.73 mL/g of protein and 183 mL/mol of nucleotide, displaces
7,220 of our water; contact distances (2.8 angstrom to carbon) would leave out 9,478 and a layer of vacuum around the
solute. Minimisation resolves the close contacts.
"""

_TILES_A_BATCH = 2048
_LARGEST_CELL_COUNT = 1 << 22


@dataclass(frozen=True)
class PlacedSolute:
    """A solute moved into the box."""

    solute: Solute
    box: np.ndarray
    """(3,) int64, 0.001 angstrom."""
    position: np.ndarray
    """(n, 3) int32, 0.001 angstrom."""

    @cached_property
    def charge(self) -> int:
        """Net formal charge, e."""
        return int(formal_charges()[self.solute.residue_template].sum())

    @cached_property
    def reference_atom(self) -> np.ndarray:
        """(r,) int64 first heavy atom of every residue."""
        first_heavy = np.array([next((i for i, element in enumerate(t.elements) if element != "H"), 0)
                                for t in residue_library().values()])
        return self.solute.residue_first_atom[:-1] + first_heavy[self.solute.residue_template]


@dataclass(frozen=True)
class Plan:
    """What fills the box besides the solute."""

    tiling: Tiling
    water_bits: np.ndarray
    """(tiles, bytes) uint8: a bit for each slot of a tile, set where there is a water."""
    sodium: np.ndarray
    """(na,) int64 slots, ascending."""
    chloride: np.ndarray
    """(cl,) int64 slots, ascending."""

    @cached_property
    def waters_before(self) -> np.ndarray:
        """(tiles + 1,) int64 number of waters in earlier tiles."""
        return np.concatenate([[0], np.cumsum(np.bitwise_count(self.water_bits).sum(1, dtype=np.int64))])

    @property
    def n_waters(self) -> int:
        """Waters in the box."""
        return int(self.waters_before[-1])

    def has_water(self, tiles: np.ndarray) -> np.ndarray:
        """(t, m) bool: slots of tiles that hold a water."""
        return np.unpackbits(self.water_bits[tiles], axis=1, count=self.tiling.tile.n_molecules).astype(bool)


def place_solute(solute: Solute, section: SolvateSection) -> PlacedSolute:
    """Choose the box and move the solute's centre to the middle of it.

    Raises BadInputError when a given box is too small, or an edge is too short for the minimum image of a water tile.
    """
    if not np.isfinite(solute.position).all():
        atom = int(np.flatnonzero(~np.isfinite(solute.position).all(1))[0])
        raise BadInputError(f"atom {atom} of the solute has no finite position: run chromabuild build again")
    thousandths = np.rint(solute.position.astype(np.float64) * 1000).astype(np.int64)
    lower, upper = thousandths.min(0), thousandths.max(0)
    extent = upper - lower
    if section.box is None:
        box = extent + 2 * round(section.padding * 1000)
    else:
        box = np.rint(np.array(section.box) * 1000).astype(np.int64)
        if (extent >= box).any():
            axis = int(np.argmax(extent - box))
            raise BadInputError(f"solvate.box = {section.box[axis]:g} A along {'xyz'[axis]} is smaller than the solute "
                                f"({extent[axis] / 1000:.3f} A): give a larger box or leave it empty")
    if box.min() < 20_000:
        raise BadInputError(f"the box edge of {box.min() / 1000:.3f} A is below 20 A: use a larger padding or box")
    if box.max() > np.iinfo(np.int32).max:  # positions in bricks are 32-bit thousandths of an angstrom
        raise BadInputError(f"the box edge of {box.max() / 1000:g} A is beyond the 2,147,483 A that a brick's "
                            "coordinates reach: use a smaller padding or box")
    position = (thousandths - lower + (box - extent) // 2).astype(np.int32)
    return PlacedSolute(solute, box, position)


def make_plan(placed: PlacedSolute, salt: float, seed: int, threads: int) -> Plan:
    """Decide every water and ion of the box. The same for any number of threads."""
    tiling = Tiling(tuple(int(edge) for edge in placed.box), water_tile())
    n = tiling.tile.n_molecules
    dropped, added = seam_changes(tiling)
    neighbours = _SoluteNeighbours(placed)
    water_bits = np.empty((tiling.n_tiles, -(-n // 8)), dtype=np.uint8)
    far_bits = np.empty_like(water_bits)
    for first in range(0, tiling.n_tiles, _TILES_A_BATCH):
        tiles = np.arange(first, min(first + _TILES_A_BATCH, tiling.n_tiles))
        oxygen = tiling.unwrapped_oxygens(tiles)
        water = (oxygen < placed.box).all(2).ravel()
        start, end = tiles[0] * n, (tiles[-1] + 1) * n
        water[dropped[np.searchsorted(dropped, start):np.searchsorted(dropped, end)] - start] = False
        water[added[np.searchsorted(added, start):np.searchsorted(added, end)] - start] = True
        places = np.flatnonzero(water)
        status = neighbours.classify(tiling.molecules(start + places), threads)
        far = np.zeros_like(water)
        water[places], far[places] = status > 0, status > 1
        water_bits[tiles] = np.packbits(water.reshape(-1, n), axis=1)
        far_bits[tiles] = np.packbits(far.reshape(-1, n), axis=1)

    plan = Plan(tiling, water_bits, np.empty(0, np.int64), np.empty(0, np.int64))
    n_sodium, n_chloride = ion_counts(placed.charge, plan.n_waters, salt)
    ions = _choose_ions(Plan(tiling, far_bits, plan.sodium, plan.chloride), seed, n_sodium + n_chloride)
    tiles, members = np.divmod(ions, n)
    np.bitwise_and.at(water_bits, (tiles, members // 8), ~(128 >> members % 8).astype(np.uint8))
    return Plan(tiling, water_bits, np.sort(ions[:n_sodium]), np.sort(ions[n_sodium:]))


def _choose_ions(far: Plan, seed: int, wanted: int) -> np.ndarray:
    """(wanted,) int64 slots in order of priority, from the slots that are far from the solute.

    Only slots with a priority number below a limit are looked at; as choices are made in order of that number, the
    limit does not change them, it is raised when it leaves too few.
    """
    share = 4 * wanted / max(far.n_waters, 1)
    while wanted:
        limit = np.uint64(min(share, 1.0) * float(2**64 - 2048))
        slots, priorities = _slots_below(far, seed, limit)
        tiling = far.tiling
        chosen = choose_slots(priorities, tiling.molecules(slots)[:, 0], np.array(tiling.box), wanted)
        if len(chosen) == wanted:
            return slots[chosen]
        if share >= 1:
            raise BadInputError(f"there is room for {len(chosen)} ions {MINIMUM_DISTANCE / 1000:g} A from the solute "
                                f"and from each other, {wanted} are needed: use a larger padding or box, or less salt")
        share *= 2
    return np.empty(0, dtype=np.int64)


def _slots_below(far: Plan, seed: int, limit: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Slots of ``far`` whose priority is at most ``limit``, and their priorities."""
    n = far.tiling.tile.n_molecules
    slots, priorities = [], []
    for first in range(0, far.tiling.n_tiles, _TILES_A_BATCH):
        tiles = np.arange(first, min(first + _TILES_A_BATCH, far.tiling.n_tiles))
        priority = slot_priorities(seed, first * n, len(tiles) * n)
        chosen = np.flatnonzero(far.has_water(tiles).ravel() & (priority <= limit))
        slots.append(first * n + chosen)
        priorities.append(priority[chosen])
    return np.concatenate(slots), np.concatenate(priorities)


class _SoluteNeighbours:
    """Cell list of the solute, asked how close waters are."""

    def __init__(self, placed: PlacedSolute) -> None:
        edges = placed.box / 1000
        width = max(MINIMUM_DISTANCE / 1000, (edges.prod() / _LARGEST_CELL_COUNT) ** (1 / 3))
        self.box = placed.box.astype(np.int32)
        self.grid = np.maximum(1, (edges / width).astype(np.int32)).astype(np.int32)
        n_cells = int(self.grid.prod())
        order, self.first = solvent_overlap.sort_into_cells(placed.position.T, self.box, self.grid, n_cells)
        self.position = placed.position[order - 1]
        self.element = _atom_elements(placed.solute)[order - 1]
        self.closest = np.array(list(CLOSEST.values())).T

    def classify(self, waters: np.ndarray, threads: int) -> np.ndarray:
        """(w,) int8 of (w, 3, 3) waters: 0 touches the solute, 1 is within the ions' distance, 2 is farther."""
        if len(waters) == 0:
            return np.empty(0, dtype=np.int8)
        return solvent_overlap.classify_waters(
            np.ascontiguousarray(waters).T, self.position.T, self.element, self.first, self.box, self.grid,
            np.asfortranarray(self.closest * 1000), MINIMUM_DISTANCE, threads)


def _atom_elements(solute: Solute) -> np.ndarray:
    """(n,) int32 element of every atom, from 1, in the order of CLOSEST."""
    number = {element: i + 1 for i, element in enumerate(CLOSEST)}
    library = list(residue_library().values())
    unknown = [e for k in np.unique(solute.residue_template) for e in library[k].elements if e not in number]
    if unknown:
        raise BadInputError(f"the solute holds element {unknown[0]}, for which no distance to water is known: "
                            "only H, C, N, O, P and S can be solvated")
    of_library = np.array([number.get(e, 0) for t in library for e in t.elements], dtype=np.int32)
    first = np.cumsum([0] + [len(t.atoms) for t in library[:-1]])
    within = np.arange(solute.n_atoms) - solute.residue_first_atom[:-1][solute.atom_residue]
    return of_library[first[solute.residue_template][solute.atom_residue] + within]


def input_key(placed: PlacedSolute, salt: float, seed: int) -> dict[str, str]:
    """Hashes of everything that a plan depends on."""
    solute, tile = placed.solute, water_tile()
    hasher = blake3()
    for array in (placed.position, solute.residue_template, solute.residue_number, solute.residue_segment,
                  solute.molecule_first_residue):
        hasher.update(np.ascontiguousarray(array).tobytes())
    hasher.update(json.dumps([solute.segment_name, solute.segment_chain, list(residue_library())]).encode())
    settings = json.dumps([VERSION, placed.box.tolist(), salt, seed, CLOSEST], sort_keys=True).encode()
    return {"solute": hasher.hexdigest(), "water": blake3(tile.position.tobytes()).hexdigest(),
            "settings": blake3(settings).hexdigest()}


def write_plan(plan: Plan, folder: Path, inputs: dict[str, str]) -> None:
    """Write plan.h5, then its record; both by atomic rename."""
    image = io.BytesIO()  # a full disk then fails in one plain write, not inside HDF5
    with h5py.File(image, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["version"] = VERSION
        file.attrs["provenance"] = json.dumps(inputs, sort_keys=True)
        chunk = (min(len(plan.water_bits), 4096), plan.water_bits.shape[1])
        file.create_dataset("water_bits", data=plan.water_bits, chunks=chunk, compression="gzip", compression_opts=1)
        file["sodium"] = plan.sodium
        file["chloride"] = plan.chloride
    with atomic_path(folder / PLAN_NAME) as part:
        part.write_bytes(image.getbuffer())
    with atomic_path(folder / RECORD_FOLDER / PLAN_RECORD) as part:
        part.write_text(json.dumps({"inputs": inputs, "file": file_entry(image.getbuffer())}) + "\n")


def read_plan(folder: Path, placed: PlacedSolute, inputs: dict[str, str]) -> Plan | None:
    """The stored plan, or None when there is none for these inputs or it is damaged."""
    path = folder / PLAN_NAME
    try:
        record = json.loads((folder / RECORD_FOLDER / PLAN_RECORD).read_bytes())
        # A damaged HDF5 file can do anything to its reader, so its hash is checked before it is opened.
        if record["inputs"] != inputs or file_error(path, record["file"]):
            return None
        with h5py.File(path, "r") as file:
            tiling = Tiling(tuple(int(edge) for edge in placed.box), water_tile())
            return Plan(tiling, file["water_bits"][...], file["sodium"][...], file["chloride"][...])
    except (OSError, KeyError, ValueError, TypeError):
        return None
