"""The first pass: which slots hold water, which ions. With it every brick knows the global ids of its atoms.

The layout is independent of bricks. It takes one bit a slot (45 MB at 1e9 atoms) and the slots of the ions while it is
made; layout_file.py stores it beside the shards, so that a brick can be made alone.
"""

import json
from dataclasses import dataclass

import numpy as np
from blake3 import blake3

from chromabuild._kernels import solvent_overlap
from chromabuild.base.box_vectors import folded, with_images
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.residues import SITE, library_needed, residue_library
from chromabuild.solvate.ions import (
    LARGEST_WEIGHT,
    MINIMUM_DISTANCE,
    POTENTIAL_REACH,
    SPECIES,
    charge_sites,
    choose_slots,
    debye_length,
    ion_counts,
    no_room,
    potential,
    slot_priorities,
)
from chromabuild.solvate.placement import PlacedSolute, Region
from chromabuild.solvate.water import Tiling, seam_changes, tiling_of, water_tile

VERSION = 3
"""Of the rules below: a layout made by others is made again."""

CLOSEST = {"H": (1.4, 1.3), "C": (1.9, 1.3), "N": (1.9, 1.3), "O": (1.9, 1.3), "P": (2.1, 1.4), "S": (2.1, 1.4)}
"""Angstrom: closest that a water's oxygen, and a water's hydrogen, may be to a solute atom of an element.

Shorter than contact distances on purpose: what matters is how many waters are left out. On a nucleosome of 177 base
pairs (26,975 atoms) these leave out 8,366, where its volume, 0.73 mL/g of protein and 183 mL/mol of nucleotide,
displaces 7,820 of our water (+7 %). Minimisation resolves the close contacts.
"""

METALS = {"Mg": (3.0, 2.0), "Zn": (3.0, 2.0)}
"""The same of ions that are bound by all their ligands already."""

_TILES_A_BATCH = 512
_CELL_EDGE = 5500
"""Of the cells in which the solute near a layer of tiles is searched: at least MINIMUM_DISTANCE (0.001 angstrom)."""


@dataclass(frozen=True)
class SolventLayout:
    """What fills the box besides the solute."""

    tiling: Tiling
    water_bits: np.ndarray
    """(tiles, bytes) uint8: a bit for each slot of a tile, set where there is a water."""
    ions: dict[str, np.ndarray]
    """Species to (n,) int64 slots, ascending."""

    @property
    def counts(self) -> dict[str, int]:
        """Residues of water and of each ion, in global order."""
        n_waters = int(np.bitwise_count(self.water_bits).sum(dtype=np.int64))
        return {"water": n_waters, **{key: len(slots) for key, slots in self.ions.items()}}

    def has_water(self, tiles: np.ndarray) -> np.ndarray:
        """(t, m) bool: slots of tiles that hold a water."""
        return unpacked(self.water_bits[tiles], self.tiling)


def make_layout(placed: PlacedSolute, section: SolvateSection, seed: int, threads: int) -> SolventLayout:
    """Decide every water and ion of the box. The same for any number of threads.

    The solute is read one layer of tiles at a time; tiles that it does not come near are not looked into.
    """
    tiling = tiling_of(placed.vectors, section.water)
    water_bits = without_solute(tiling)
    far_bits = water_bits.copy()
    n = tiling.tile.n_molecules
    for z in range(tiling.counts[2]):
        layer = SoluteLayer(placed, tiling, z)
        tiles = layer.tiles()
        for first in range(0, len(tiles), _TILES_A_BATCH):
            batch = tiles[first:first + _TILES_A_BATCH]
            water = unpacked(water_bits[batch], tiling)
            far = np.zeros_like(water)
            tile, member = np.nonzero(water)
            status = layer.classify(batch[tile] * n + member, threads)
            water[tile, member], far[tile, member] = status > 0, status > 1
            water_bits[batch], far_bits[batch] = np.packbits(water, axis=1), np.packbits(far, axis=1)
    n_waters = int(np.bitwise_count(water_bits).sum(dtype=np.int64))
    wanted = ion_counts(placed.charge, n_waters, section)
    if section.ion_placement == "uniform":
        ions = _uniform_ions(tiling, far_bits, seed, wanted)
    else:
        ions = _attracted_ions(placed, tiling, far_bits, seed, wanted, debye_length(section))
    for slots in ions.values():
        _clear(water_bits, tiling, slots)
    return SolventLayout(tiling, water_bits, {key: np.sort(slots) for key, slots in ions.items()})


def unpacked(bits: np.ndarray, tiling: Tiling) -> np.ndarray:
    """(t, m) bool of the bits (t, bytes) of some tiles."""
    return np.unpackbits(bits, axis=1, count=tiling.tile.n_molecules).view(bool)


def _clear(bits: np.ndarray, tiling: Tiling, slots: np.ndarray) -> None:
    tiles, members = np.divmod(slots, tiling.tile.n_molecules)
    np.bitwise_and.at(bits, (tiles, members // 8), ~(128 >> members % 8).astype(np.uint8))


def without_solute(tiling: Tiling, among: np.ndarray | None = None) -> np.ndarray:
    """(tiles, bytes) uint8 bits of the waters of the box alone; ``among`` as in ``seam_changes``."""
    n, box = tiling.tile.n_molecules, np.array(tiling.box)
    bits = np.empty((tiling.n_tiles, -(-n // 8)), dtype=np.uint8)
    bits[:] = np.packbits(np.ones(n, dtype=bool))
    dropped, added = seam_changes(tiling, among)
    cut = np.flatnonzero(~tiling.is_whole(np.arange(tiling.n_tiles)))
    for first in range(0, len(cut), _TILES_A_BATCH):
        tiles = cut[first:first + _TILES_A_BATCH]
        bits[tiles] = np.packbits((tiling.unwrapped_oxygens(tiles) < box).all(2), axis=1)
    _clear(bits, tiling, dropped)
    tiles, members = np.divmod(added, n)
    np.bitwise_or.at(bits, (tiles, members // 8), (128 >> members % 8).astype(np.uint8))
    return bits


def _candidates(tiling: Tiling, far_bits: np.ndarray, seed: int, stream: int,
                limit: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Slots of ``far_bits`` whose random number is at most ``limit``, and these numbers."""
    n = tiling.tile.n_molecules
    slots, priorities = [], []
    for first in range(0, tiling.n_tiles, _TILES_A_BATCH):
        tiles = np.arange(first, min(first + _TILES_A_BATCH, tiling.n_tiles))
        priority = slot_priorities(seed, first * n, len(tiles) * n, stream)
        chosen = np.flatnonzero(priority <= limit)
        chosen = chosen[unpacked(far_bits[tiles], tiling).ravel()[chosen]]
        slots.append(first * n + chosen)
        priorities.append(priority[chosen])
    return np.concatenate(slots), np.concatenate(priorities)


def _limit(share: float) -> np.uint64:
    return np.uint64(min(share, 1.0) * float(2**64 - 2048))


def _uniform_ions(tiling: Tiling, far_bits: np.ndarray, seed: int, wanted: dict[str, int]) -> dict[str, np.ndarray]:
    """Slots of the ions, in order of priority, from the slots that are far from the solute.

    Only slots with a priority number below a limit are looked at; as choices are made in order of that number, the
    limit does not change them, it is raised when it leaves too few.
    """
    total = sum(wanted.values())
    n_far = int(np.bitwise_count(far_bits).sum(dtype=np.int64))
    share = 1.5 * total / max(n_far, 1)
    chosen = np.empty(0, dtype=np.int64)
    while len(chosen) < total:
        slots, priority = _candidates(tiling, far_bits, seed, 0, _limit(share))
        chosen = slots[choose_slots(priority, tiling.oxygens(slots), tiling.vectors, total)]
        if len(chosen) < total and share >= 1:
            raise no_room(len(chosen), total)
        share *= 2
    ends = np.cumsum(list(wanted.values()))
    return dict(zip(wanted, np.split(chosen, ends[:-1]), strict=True))


def _attracted_ions(placed: PlacedSolute, tiling: Tiling, far_bits: np.ndarray, seed: int, wanted: dict[str, int],
                    screening: float) -> dict[str, np.ndarray]:
    """Slots of the ions, each species drawn without replacement with weights exp(-z phi), phi of Debye and Hueckel.

    The slots with the smallest -ln(u) / weight are such a draw (Efraimidis and Spirakis 2006). Highest charges first.
    """
    n_far = int(np.bitwise_count(far_bits).sum(dtype=np.int64))
    result = {key: np.empty(0, dtype=np.int64) for key in wanted}
    occupied = np.empty((0, 3), dtype=np.int32)
    for stream, key in enumerate(sorted(wanted, key=lambda key: -abs(SPECIES[key].charge)), start=1):
        share = 2 * wanted[key] / max(n_far, 1)
        while len(result[key]) < wanted[key]:
            # Without a weight above LARGEST_WEIGHT no other slot can come before these.
            slots, random = _candidates(tiling, far_bits, seed, stream, _limit(-np.expm1(-share * LARGEST_WEIGHT)))
            uniform = (random.astype(np.float64) + 0.5) / 2.0**64
            phi = _potential_at(placed, tiling, slots, screening)
            weight = np.exp(np.clip(-SPECIES[key].charge * phi, -np.log(LARGEST_WEIGHT), np.log(LARGEST_WEIGHT)))
            rank = -np.log1p(-uniform) / weight
            near = np.flatnonzero(rank <= share)
            position = tiling.oxygens(slots[near])
            chosen = choose_slots(rank[near], position, tiling.vectors, wanted[key], occupied)
            if len(chosen) < wanted[key] and share >= 40 * LARGEST_WEIGHT:
                raise no_room(sum(map(len, result.values())) + len(chosen), sum(wanted.values()))
            if len(chosen) == wanted[key]:
                result[key] = slots[near[chosen]]
                occupied = np.concatenate([occupied, position[chosen]])
                break
            share *= 2
    return result


def _potential_at(placed: PlacedSolute, tiling: Tiling, slots: np.ndarray, screening: float) -> np.ndarray:
    """(s,) potential of the solute at slots, kT/e, by layers of tiles."""
    position = tiling.oxygens(slots)
    residue, atom, charge = charge_sites()
    thickness = tiling.tile.edge
    order = np.argsort(position[:, 2], kind="stable")
    height = position[order, 2]
    result = np.zeros(len(slots))
    for lower in range(0, tiling.box[2], thickness):
        part = order[np.searchsorted(height, lower):np.searchsorted(height, lower + thickness)]
        region = placed.layer(lower - POTENTIAL_REACH, lower + thickness + POTENTIAL_REACH)
        by_template = np.argsort(region.template, kind="stable")
        begin = np.searchsorted(region.template[by_template], residue)
        end = np.searchsorted(region.template[by_template], residue, side="right")
        rows = [by_template[a:b] for a, b in zip(begin, end, strict=True)]
        site = np.concatenate([region.start[row] + k for row, k in zip(rows, atom, strict=True)])
        charges = np.repeat(charge, [len(row) for row in rows])
        result[part] = potential(position[part], region.position[site], charges, tiling.vectors, screening)
    return result


class SoluteLayer:
    """The solute around one layer of tiles, asked how close waters are.

    Slots lie in the upright block of the box, and up to FILL_DEPTH beyond its upper faces; images of the solute as far
    as MINIMUM_DISTANCE from there stand beside it.
    """

    def __init__(self, placed: PlacedSolute, tiling: Tiling, z: int) -> None:
        self.tiling, self.z = tiling, z
        edge = tiling.tile.edge
        margin = 2 * MINIMUM_DISTANCE
        bottom, height = z * edge - margin, edge + 2 * margin
        region = placed.layer(bottom, bottom + height)
        element = _atom_elements(region)
        inside = (region.position[:, 2] >= bottom) & (region.position[:, 2] < bottom + height)
        position, source = with_images(folded(region.position[inside], tiling.vectors, (1, 0)), tiling.vectors, margin,
                                       (1, 0))
        element = element[inside][source]
        self.corner = np.array([-margin, -margin, bottom], dtype=np.int32)
        self.box = np.array([tiling.box[0] + 2 * margin, tiling.box[1] + 2 * margin, height], dtype=np.int32)
        position = position - self.corner
        self.grid = np.maximum(1, self.box // _CELL_EDGE).astype(np.int32)
        order, self.first = solvent_overlap.sort_into_cells(position.T, self.box, self.grid, int(self.grid.prod()))
        self.position = position[order - 1]
        self.element = element[order - 1]
        self.closest = np.array([*CLOSEST.values(), *METALS.values(), (0.0, 0.0)]).T

    def tiles(self) -> np.ndarray:
        """Numbers of the tiles of the layer that have slots within reach of the solute."""
        nx, ny, _ = self.tiling.counts
        near = np.zeros((ny, nx), dtype=bool)
        x, y = (self.position[:, :2] + self.corner[:2]).T
        for dx in (-MINIMUM_DISTANCE, MINIMUM_DISTANCE):
            for dy in (-MINIMUM_DISTANCE, MINIMUM_DISTANCE):
                i, j = (x + dx) // self.tiling.tile.edge, (y + dy) // self.tiling.tile.edge
                inside = (i >= 0) & (i < nx) & (j >= 0) & (j < ny)
                near[j[inside], i[inside]] = True
        return np.flatnonzero(near.ravel()) + nx * ny * self.z

    def classify(self, slots: np.ndarray, threads: int) -> np.ndarray:
        """(w,) int8 of waters: 0 touches the solute, 1 is within the ions' distance, 2 is farther."""
        if len(slots) == 0 or len(self.position) == 0:
            return np.full(len(slots), 2, dtype=np.int8)
        waters = self.tiling.unwrapped_molecules(slots)[:, :3] - self.corner
        return solvent_overlap.classify_waters(
            waters.T, self.position.T, self.element, self.first, self.box, self.grid,
            np.asfortranarray(self.closest * 1000), MINIMUM_DISTANCE, threads)


def _atom_elements(region: Region) -> np.ndarray:
    """(n,) int32 element of every atom, from 1, in the order of CLOSEST."""
    number = {element: i + 1 for i, element in enumerate((*CLOSEST, *METALS, SITE))}
    library = list(residue_library().values())
    unknown = [e for k in np.unique(region.template) for e in library[k].elements if e not in number]
    if unknown:
        raise BadInputError(f"the solute holds element {unknown[0]}, for which no distance to water is known: "
                            "only H, C, N, O, P, S, Mg and Zn can be solvated")
    of_library = np.array([number.get(e, 0) for t in library for e in t.elements], dtype=np.int32)
    first = np.cumsum([0] + [len(t.atoms) for t in library[:-1]])
    return of_library[np.repeat(first[region.template] - region.start, region.size) + np.arange(len(region.position))]


def input_key(solute_hash: str, box: np.ndarray, section: SolvateSection, seed: int) -> dict[str, str]:
    """Hashes of everything that a layout depends on; ``box``: (3,) edges or (3, 3) vectors."""
    chosen = [section.salt, section.potassium_chloride, section.magnesium_chloride, section.counterion,
              section.ion_placement]
    if section.calcium_chloride:  # what files record without it stays
        chosen.append(section.calcium_chloride)
    # The tile tells which water it is; residues of the solute are in its hash.
    names = [entry.name for entry in library_needed(np.zeros(0, dtype=int))]
    settings = json.dumps([VERSION, box.tolist(), chosen, seed, CLOSEST, names], sort_keys=True)
    return {"solute": solute_hash, "water": blake3(water_tile(section.water).position.tobytes()).hexdigest(),
            "settings": blake3(settings.encode()).hexdigest()}
