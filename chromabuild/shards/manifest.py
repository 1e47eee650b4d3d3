"""manifest.json and bricks.txt: what a ShardSet consists of (docs/reference/file-formats.md)."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from blake3 import blake3

from chromabuild.base.box_vectors import box_of
from chromabuild.base.errors import IntegrityError
from chromabuild.base.files import atomic_path, file_hash
from chromabuild.base.force_fields import WaterName
from chromabuild.molecule.water_models import WATER_MODELS

FORMAT = "chromabuild-shards"
VERSION = 1
MANIFEST_NAME = "manifest.json"
BRICKS_NAME = "bricks.txt"
RECORD_FOLDER = "records"
"""Beside each finished file of a run, what it was made from and its hash, so that a rerun can keep it."""
LOCK_NAME = ".lock"
"""In the records: held by the one process that makes what all others wait for."""


@dataclass
class Shard:
    """One brick's files."""

    name: str
    atoms: int
    charge: int
    """Sum of formal charges, elementary charges."""
    lower: tuple[float, float, float]
    """Lower corner of the brick, angstrom."""
    upper: tuple[float, float, float]
    """Upper corner, angstrom."""
    files: dict[str, dict]
    """Suffix (``pdb.zst``, ``bcif``, ``cbb``) to ``{"bytes": .., "blake3": ..}``."""

    @classmethod
    def from_json(cls, content: dict) -> "Shard":
        """The inverse of ``dataclasses.asdict`` after a detour through JSON."""
        return cls(**content | {"lower": tuple(content["lower"]), "upper": tuple(content["upper"])})


@dataclass
class Manifest:
    """A ShardSet. Lengths in angstrom."""

    box: tuple[float, float, float]
    grid: tuple[int, int, int]
    """Bricks along x, y and z."""
    atoms: int
    counts: dict[str, int]
    """``solute`` counts atoms; ``water`` and the ions (``sodium``, ``potassium``, ..) count residues."""
    net_charge: int
    inputs: dict[str, str]
    modifications: dict[str, int] = field(default_factory=dict)
    """Modified residues of the solute by their PDB name (``ALY``); empty, and not in the file, where there are none."""
    shards: list[Shard] = field(default_factory=list)
    water: WaterName = "tip3p"
    """The model of the water; files of TIP3P do not name it."""
    tilt: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """b_x, c_x and c_y of a box whose edges lean (``base.box_vectors``): ``box`` is the diagonal, and corners of bricks
    are straight. Files of rectangular boxes do not name it."""

    def write(self, folder: Path) -> None:
        """Write bricks.txt, then manifest.json, whose presence says that the set is complete."""
        with atomic_path(folder / BRICKS_NAME) as part:
            part.write_text(self.bricks_text())
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        if not self.modifications:
            del content["modifications"]
        if self.water == "tip3p":
            del content["water"]
        if not any(self.tilt):
            del content["tilt"]
        content["blake3"] = _content_hash(content)
        with atomic_path(folder / MANIFEST_NAME) as part:
            part.write_text(json.dumps(content, indent=1) + "\n")

    @classmethod
    def read(cls, folder: str | Path) -> "Manifest":
        """Read manifest.json of a folder. Raises IntegrityError when it is missing, damaged or of another format."""
        path = Path(folder) / MANIFEST_NAME
        try:
            content = json.loads(path.read_bytes())
            stored = content.pop("blake3")
            if content.pop("format") != FORMAT or content.pop("version") != VERSION:
                raise IntegrityError(f"{path} is not a shard manifest of version {VERSION}: run chromabuild solvate")
            if stored != _content_hash({"format": FORMAT, "version": VERSION, **content}):
                raise IntegrityError(f"{path} was changed after it was written: run chromabuild solvate again")
            return cls(**content | {"box": tuple(content["box"]), "grid": tuple(content["grid"]),
                                    "tilt": tuple(content.get("tilt", (0.0, 0.0, 0.0))),
                                    "shards": [Shard.from_json(shard) for shard in content["shards"]]})
        except FileNotFoundError:
            raise IntegrityError(f"{path} does not exist: the shards are not complete, "
                                 "run chromabuild solvate") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IntegrityError(f"cannot read {path} ({error}): run chromabuild solvate again") from None

    @property
    def vectors(self) -> np.ndarray:
        """(3,) edges of the box, or (3, 3) vectors where they lean, angstrom."""
        return box_of(np.array(self.box), np.array(self.tilt))

    def bricks_text(self) -> str:
        """Contents of bricks.txt."""
        tilt = " ".join(map(repr, self.tilt)) if any(self.tilt) else ""
        lines = [f"chromabuild-bricks {2 if tilt else 1}", f"box {_numbers(self.box)} {tilt}".rstrip(),
                 "grid " + " ".join(map(str, self.grid)), f"atoms {self.atoms}"]
        lines += [f"{shard.name}.cbb {shard.atoms} {_numbers(shard.lower)} {_numbers(shard.upper)}"
                  for shard in self.shards]
        return "\n".join(lines) + "\n"


def count_atoms(counts: dict[str, int], water: WaterName) -> int:
    """Atoms of what a manifest counts."""
    return sum((WATER_MODELS[water].n_atoms if key == "water" else 1) * count for key, count in counts.items())


def file_entry(content: bytes) -> dict:
    """Size and hash of a file's content."""
    return {"bytes": len(content), "blake3": blake3(content).hexdigest()}


def file_digest(path: Path) -> dict:
    """Size and hash of a file, read in pieces."""
    return {"bytes": path.stat().st_size, "blake3": file_hash(path)}


def file_error(path: Path, entry: dict, shallow: bool = False) -> str | None:
    """What is wrong with a file, or None; ``shallow`` compares the size only."""
    try:
        size = path.stat().st_size
    except OSError:
        return "is missing"
    if size != entry["bytes"]:
        return f"has {size} bytes instead of {entry['bytes']}"
    if shallow:
        return None
    return None if file_digest(path) == entry else "has another content than was written (its hash differs)"


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def _content_hash(content: dict) -> str:
    return blake3(json.dumps(content, sort_keys=True).encode()).hexdigest()
