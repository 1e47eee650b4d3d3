"""Bricks of the box: which atoms each holds, and its files. Any brick can be made alone."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from chromabuild.errors import BadInputError
from chromabuild.files import atomic_path
from chromabuild.shards.bcif import bcif_bytes
from chromabuild.shards.brick import Brick, template_index
from chromabuild.shards.brick_file import brick_bytes
from chromabuild.shards.manifest import RECORD_FOLDER, Shard, file_entry, file_error
from chromabuild.shards.pdb import pdb_bytes
from chromabuild.solute import MAX_RESIDUES_PER_SEGMENT
from chromabuild.solvate.ions import formal_charges
from chromabuild.solvate.plan import PlacedSolute, Plan

SEGMENT_LETTER = {"water": "W", "sodium": "N", "chloride": "C"}
"""Solvent segments: this letter and three base-36 digits, a new one every 9,999 residues (4.6e8 residues a species)."""

_DIGITS = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", dtype=np.uint8)


@dataclass(frozen=True)
class BrickGrid:
    """A regular grid of bricks; borders are whole numbers of 0.001 angstrom."""

    box: np.ndarray
    """(3,) int64, 0.001 angstrom."""
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
        """Per axis, (count + 1,) int64 borders."""
        return tuple(np.arange(n + 1) * length // n for n, length in zip(self.counts, self.box, strict=True))

    def bounds(self, brick: int) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of a brick."""
        nx, ny, _ = self.counts
        index = (brick % nx, brick // nx % ny, brick // (nx * ny))
        return (np.array([borders[i] for borders, i in zip(self.borders, index, strict=True)]),
                np.array([borders[i + 1] for borders, i in zip(self.borders, index, strict=True)]))

    def brick_of(self, position: np.ndarray) -> np.ndarray:
        """(n,) int64 brick of positions (n, 3), wrapped into the box."""
        wrapped = position % self.box
        index = [np.searchsorted(self.borders[k], wrapped[:, k], side="right") - 1 for k in range(3)]
        return index[0] + self.counts[0] * (index[1] + self.counts[1] * index[2])


@dataclass(frozen=True)
class SolvatedSystem:
    """Everything that a brick is made from."""

    placed: PlacedSolute
    plan: Plan
    grid: BrickGrid
    compress: bool
    inputs: dict[str, str]

    def __post_init__(self) -> None:
        """Refuse names and numbers of the solute that cannot stand beside the solvent's."""
        numbers = self.placed.solute.residue_number
        if not ((numbers >= 1) & (numbers <= MAX_RESIDUES_PER_SEGMENT)).all():
            wrong = numbers[(numbers < 1) | (numbers > MAX_RESIDUES_PER_SEGMENT)][0]
            raise BadInputError(f"the solute has residue number {wrong}, shards hold 1 to {MAX_RESIDUES_PER_SEGMENT}: "
                                "number the residues anew in each segment")
        segment = self.placed.solute.residue_segment.astype(np.int64)
        keys, times = np.unique(segment * (MAX_RESIDUES_PER_SEGMENT + 1) + numbers, return_counts=True)
        if (times > 1).any():
            twice, number = divmod(int(keys[times > 1][0]), MAX_RESIDUES_PER_SEGMENT + 1)
            raise BadInputError(f"the solute's segment {self.placed.solute.segment_name[twice]} has residue number "
                                f"{number} twice: number its residues anew")
        for name in self.placed.solute.segment_name:
            like_solvent = len(name) == 4 and set(name[1:].encode()) <= set(_DIGITS.tolist())
            if like_solvent and name[0] in SEGMENT_LETTER.values():
                raise BadInputError(f"the solute's segment {name} is named like a segment of water or ions "
                                    "(W, N or C and three digits or capitals): give it another name")
        largest = max(self.plan.n_waters, len(self.plan.sodium), len(self.plan.chloride))
        if largest > 36**3 * MAX_RESIDUES_PER_SEGMENT:
            raise BadInputError(f"{largest} waters are more than segment names can number "
                                f"({36**3 * MAX_RESIDUES_PER_SEGMENT}): use a smaller box")

    @property
    def counts(self) -> dict[str, int]:
        """Atoms of the solute and residues of the solvent species, in global order."""
        return {"solute": self.placed.solute.n_atoms, "water": self.plan.n_waters,
                "sodium": len(self.plan.sodium), "chloride": len(self.plan.chloride)}

    @property
    def n_atoms(self) -> int:
        """Atoms of the whole system."""
        counts = self.counts
        return counts["solute"] + 3 * counts["water"] + counts["sodium"] + counts["chloride"]

    @cached_property
    def residues_by_brick(self) -> tuple[np.ndarray, np.ndarray]:
        """Solute residues sorted by brick (global order within one), and (bricks + 1,) where each brick's begin."""
        return self._sorted_by_brick(self.placed.position[self.placed.reference_atom])

    @cached_property
    def ions_by_brick(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The same for the ions of each species, by their rank in it."""
        return {key: self._sorted_by_brick(self.plan.tiling.molecules(slots)[:, 0])
                for key, slots in (("sodium", self.plan.sodium), ("chloride", self.plan.chloride))}

    def _sorted_by_brick(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        brick = self.grid.brick_of(position)
        order = np.argsort(brick, kind="stable")
        return order, np.searchsorted(brick[order], np.arange(self.grid.n_bricks + 1))


def make_brick(system: SolvatedSystem, k: int) -> Brick:
    """The residues of brick ``k`` in global order."""
    lower, upper = system.grid.bounds(k)
    parts = [_solute_part(system, k), _water_part(system, lower, upper), *_ion_parts(system, k)]
    merged = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    return Brick(system.grid.box, lower, upper, *merged)


def _solute_part(system: SolvatedSystem, k: int) -> tuple[np.ndarray, ...]:
    solute = system.placed.solute
    order, first = system.residues_by_brick
    residues = order[first[k]:first[k + 1]]
    start = solute.residue_first_atom[residues]
    size = solute.residue_first_atom[residues + 1] - start
    begin = np.cumsum(size) - size
    atoms = np.repeat(start - begin, size) + np.arange(size.sum())
    names = np.array([list(name.ljust(4).encode("ascii")) for name in solute.segment_name], dtype=np.uint8)
    chains = np.array([ord(chain) for chain in solute.segment_chain], dtype=np.uint8)
    segment = solute.residue_segment[residues]
    return (system.placed.position[atoms], solute.residue_template[residues].astype(np.uint16), start,
            solute.residue_number[residues].astype(np.int32), names.reshape(-1, 4)[segment], chains[segment])


def _water_part(system: SolvatedSystem, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, ...]:
    plan = system.plan
    tiling = plan.tiling
    tiles = tiling.tiles_touching(lower, upper)
    water = plan.has_water(tiles)
    rank = plan.waters_before[tiles][:, None] + np.cumsum(water, axis=1) - 1
    oxygen = tiling.unwrapped_oxygens(tiles)
    oxygen -= np.where(oxygen >= system.grid.box, system.grid.box, 0).astype(np.int32)
    tile, member = np.nonzero(water & (oxygen >= lower).all(2) & (oxygen < upper).all(2))
    molecules = tiling.molecules(tiles[tile] * tiling.tile.n_molecules + member)
    return _solvent("water", "HOH", molecules.reshape(-1, 3), rank[tile, member], system.counts["solute"])


def _ion_parts(system: SolvatedSystem, k: int) -> list[tuple[np.ndarray, ...]]:
    counts, parts = system.counts, []
    offset = counts["solute"] + 3 * counts["water"]
    for key, name, slots in (("sodium", "NA", system.plan.sodium), ("chloride", "CL", system.plan.chloride)):
        order, first = system.ions_by_brick[key]
        rank = order[first[k]:first[k + 1]]
        position = system.plan.tiling.molecules(slots[rank])[:, 0]
        parts.append(_solvent(key, name, position, rank, offset))
        offset += counts[key]
    return parts


def _solvent(species: str, name: str, position: np.ndarray, rank: np.ndarray, offset: int) -> tuple[np.ndarray, ...]:
    """Residues of one species by their rank in the whole system; the species' first atom has the id ``offset``."""
    segment, number = np.divmod(rank, MAX_RESIDUES_PER_SEGMENT)
    letter = np.full(len(rank), ord(SEGMENT_LETTER[species]), dtype=np.uint8)
    digits = [_DIGITS[segment // 36**power % 36] for power in (2, 1, 0)]
    size = 3 if species == "water" else 1
    return (position, np.full(len(rank), template_index(name), dtype=np.uint16), offset + size * rank,
            (number + 1).astype(np.int32), np.stack([letter, *digits], axis=1), np.zeros(len(rank), dtype=np.uint8))


def shard_name(k: int) -> str:
    """File name of brick ``k`` without suffix."""
    return f"brick_{k:05d}"


def write_brick(system: SolvatedSystem, k: int, folder: Path) -> Shard:
    """Write the files of brick ``k``, then its record.

    The bytes depend on the inputs and ``k`` alone. Raises ResourceError when the folder cannot be written.
    """
    record = folder / RECORD_FOLDER / f"{shard_name(k)}.json"
    for leftover in (*folder.glob(f".{shard_name(k)}.*.part"), *record.parent.glob(f".{shard_name(k)}.*.part")):
        leftover.unlink(missing_ok=True)
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
        part.write_text(json.dumps({"inputs": system.inputs, "shard": asdict(shard)}) + "\n")
    return shard


def finished_shard(system: SolvatedSystem, k: int, folder: Path) -> Shard | None:
    """The shard of brick ``k`` if its record is of these inputs and all its files verify."""
    try:
        content = json.loads((folder / RECORD_FOLDER / f"{shard_name(k)}.json").read_bytes())
        shard = Shard.from_json(content["shard"])
        if content["inputs"] != system.inputs:
            return None
        wrong = any(file_error(folder / f"{shard.name}.{suffix}", entry) for suffix, entry in shard.files.items())
        return None if wrong else shard
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
