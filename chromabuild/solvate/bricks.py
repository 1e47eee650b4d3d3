"""Bricks of the box: which atoms each holds, and its files. Any brick can be made alone."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import folded, nearest_to
from chromabuild.base.checked_json import checked_text
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.force_fields import WaterName
from chromabuild.molecule.solute import MAX_RESIDUES_PER_SEGMENT
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.shards.bcif import bcif_bytes
from chromabuild.shards.brick import Brick, template_index, template_sizes
from chromabuild.shards.brick_file import brick_bytes
from chromabuild.shards.manifest import RECORD_FOLDER, Shard, count_atoms, file_entry, file_error
from chromabuild.shards.pdb import pdb_bytes
from chromabuild.solvate.ions import SPECIES, formal_charges
from chromabuild.solvate.layout_file import StoredLayout
from chromabuild.solvate.placement import PlacedSolute, straight_in
from chromabuild.solvate.water import Tiling

FILES_VERSION = 3
"""Of what stands in a brick's files: those of an earlier program are made again, so that a set never mixes them."""

_DIGITS = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", dtype=np.uint8)


@dataclass(frozen=True)
class BrickGrid:
    """A regular grid of bricks; borders are whole numbers of 0.001 angstrom. In a box whose edges lean so do the edges
    of bricks: borders are straight."""

    box: np.ndarray
    """(3,) int64 diagonal of the vectors, 0.001 angstrom."""
    counts: tuple[int, int, int]

    @classmethod
    def of_edge(cls, box: np.ndarray, edge: float) -> "BrickGrid":
        """As many bricks along each axis as make their edge closest to ``edge`` angstrom."""
        return cls(box, tuple(max(1, round(length / (edge * 1000))) for length in box.tolist()))

    @property
    def n_bricks(self) -> int:
        """Number of bricks."""
        return int(np.prod(self.counts))

    @cached_property
    def borders(self) -> tuple[np.ndarray, ...]:
        """Per axis, (count + 1,) int64 borders, 0.001 angstrom."""
        return tuple(np.arange(n + 1) * length // n for n, length in zip(self.counts, self.box, strict=True))

    def bounds(self, brick: int) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of a brick, each (3,) int64, 0.001 angstrom."""
        nx, ny, _ = self.counts
        index = (brick % nx, brick // nx % ny, brick // (nx * ny))
        return (np.array([borders[i] for borders, i in zip(self.borders, index, strict=True)]),
                np.array([borders[i + 1] for borders, i in zip(self.borders, index, strict=True)]))

    def brick_of(self, position: np.ndarray) -> np.ndarray:
        """(n,) int64 brick of straight positions (n, 3), 0.001 angstrom, wrapped into the box."""
        wrapped = position % self.box
        index = [np.searchsorted(self.borders[k], wrapped[:, k], side="right") - 1 for k in range(3)]
        return index[0] + self.counts[0] * (index[1] + self.counts[1] * index[2])


def check_numbering(counts: Mapping[str, int]) -> None:
    """Raises BadInputError where residues of a solvent species are more than segment names can number."""
    largest = max(counts.values())
    if largest > 36**3 * MAX_RESIDUES_PER_SEGMENT:
        raise BadInputError(f"{largest} waters are more than segment names can number "
                            f"({36**3 * MAX_RESIDUES_PER_SEGMENT}): use a smaller box")


@dataclass(frozen=True)
class SolvatedSystem:
    """Everything that a brick is made from."""

    placed: PlacedSolute
    layout: StoredLayout
    grid: BrickGrid
    compress: bool
    inputs: dict[str, str]

    def __post_init__(self) -> None:
        """Refuse more residues of a species than segment names can number."""
        check_numbering(self.layout.counts)

    @property
    def counts(self) -> dict[str, int]:
        """Atoms of the solute and residues of the solvent species, in global order."""
        return {"solute": self.placed.n_atoms, **self.layout.counts}

    @property
    def n_atoms(self) -> int:
        """Atoms of the whole system."""
        return count_atoms(self.counts, self.water)

    @property
    def water(self) -> WaterName:
        """Model of the water."""
        return self.layout.tiling.tile.model


def make_brick(system: SolvatedSystem, k: int) -> Brick:
    """The residues of brick ``k`` in global order."""
    lower, upper = system.grid.bounds(k)
    parts = [_solute_part(system, lower, upper), *_solvent_parts(system, lower, upper)]
    merged = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    return Brick(system.grid.box, lower, upper, *merged, tilt=np.array(system.layout.tiling.tilt))


def _solute_part(system: SolvatedSystem, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, ...]:
    placed = system.placed
    region = placed.residues_in(lower, upper)
    return (region.position, region.template, region.first_atom, region.number,
            placed.segment_name[region.segment], placed.segment_chain[region.segment], region.in_entity)


def _solvent_parts(system: SolvatedSystem, lower: np.ndarray, upper: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Water, then the ions of each species, each in the image that is nearest to the middle of a leaning box."""
    tiling = system.layout.tiling
    part = system.layout.part(tiling.tiles_touching(lower, upper))
    oxygen = tiling.unwrapped_oxygens(part.tiles)
    place = straight_in(oxygen.reshape(-1, 3), tiling.vectors).reshape(oxygen.shape)
    inside = (place >= lower).all(2) & (place < upper).all(2)
    first_id, entity = system.counts["solute"], system.placed.entities
    for content, key in enumerate(system.layout.counts, start=1):
        if system.counts[key] == 0:
            continue
        entity += 1
        present = part.occupant == content
        tile, member = np.nonzero(present & inside)
        rank = part.before[tile, content - 1] + (np.cumsum(present, axis=1) - 1)[tile, member]
        if key == "water":
            slots = part.tiles[tile] * tiling.tile.n_molecules + member
            model = WATER_MODELS[system.water]
            molecule = tiling.unwrapped_molecules(slots)
            molecule += _to_the_middle(molecule[:, 0], tiling)[:, None]
            yield _solvent("W", model.residue, molecule.reshape(-1, 3), rank, first_id,
                           entity)
            first_id += model.n_atoms * system.counts[key]
        else:
            ion = SPECIES[key]
            position = oxygen[tile, member]
            position += _to_the_middle(position, tiling)
            yield _solvent(ion.segment_letter, ion.residue, position, rank, first_id, entity)
            first_id += system.counts[key]


def _to_the_middle(position: np.ndarray, tiling: Tiling) -> np.ndarray:
    """(n, 3) int32 translations of positions into a rectangular box, or to their images nearest to the middle of a
    leaning one, where the solute is."""
    if not any(tiling.tilt):
        return folded(position, tiling.vectors) - position
    return np.rint(nearest_to(tiling.vectors.sum(axis=0) // 2, position, tiling.vectors)).astype(np.int32)


def _solvent(letter: str, name: str, position: np.ndarray, rank: np.ndarray, offset: int, entity: int
             ) -> tuple[np.ndarray, ...]:
    """Residues of one species by their rank in the whole system; the species' first atom has the id ``offset``."""
    segment, number = np.divmod(rank, MAX_RESIDUES_PER_SEGMENT)
    letters = np.full(len(rank), ord(letter), dtype=np.uint8)
    digits = [_DIGITS[segment // 36**power % 36] for power in (2, 1, 0)]
    index = template_index(name)
    return (position, np.full(len(rank), index, dtype=np.uint16), offset + template_sizes()[index] * rank,
            (number + 1).astype(np.int32), np.stack([letters, *digits], axis=1), np.zeros(len(rank), dtype=np.uint8),
            np.tile(np.array([entity, 0], dtype=np.int32), (len(rank), 1)))


def shard_name(k: int) -> str:
    """File name of brick ``k`` without suffix."""
    return f"brick_{k:05d}"


def remove_leftovers(bricks: Iterable[int], folder: Path) -> None:
    """Remove what killed processes left of these bricks: one look into the folder, which may hold 100,000 files."""
    names = {shard_name(k) for k in bricks}
    for place in (folder, folder / RECORD_FOLDER):
        for path in (Path(entry) for entry in os.scandir(place) if entry.name.endswith(".part")):
            if path.name[1:].split(".")[0] in names:
                path.unlink(missing_ok=True)


def write_brick(system: SolvatedSystem, k: int, folder: Path) -> Shard:
    """Write the files of brick ``k``, then its record.

    The bytes depend on the inputs and ``k`` alone. Raises ResourceError when the folder cannot be written.
    """
    record = folder / RECORD_FOLDER / f"{shard_name(k)}.json"
    brick = make_brick(system, k)
    contents = {"pdb.zst" if system.compress else "pdb": pdb_bytes(brick, system.compress),
                "bcif": bcif_bytes(brick), "cbb": brick_bytes(brick)}
    for suffix, content in contents.items():
        with atomic_path(folder / f"{shard_name(k)}.{suffix}") as part:
            part.write_bytes(content)
    shard = Shard(
        name=shard_name(k), atoms=brick.n_atoms, charge=int(formal_charges()[brick.residue_template].sum()),
        lower=tuple((brick.lower / 1000).tolist()), upper=tuple((brick.upper / 1000).tolist()),
        files={suffix: file_entry(content) for suffix, content in contents.items()})
    with atomic_path(record) as part:
        part.write_text(checked_text({"inputs": system.inputs, "shard": asdict(shard)}))
    return shard


def finished_shard(inputs: dict[str, str], k: int, folder: Path, shallow: bool = False) -> Shard | None:
    """The shard of brick ``k`` if its record is of these inputs and all its files verify (``shallow``: in size)."""
    try:
        content = json.loads((folder / RECORD_FOLDER / f"{shard_name(k)}.json").read_bytes())
        shard = Shard.from_json(content["shard"])
        if content["inputs"] != inputs:
            return None
        wrong = any(file_error(folder / f"{shard.name}.{suffix}", entry, shallow)
                    for suffix, entry in shard.files.items())
        return None if wrong else shard
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
