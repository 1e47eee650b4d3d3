"""A set of shards: the solvated box as a folder of bricks."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import RECTANGULAR, shape_of, shortest_translation
from chromabuild.base.notebook import facts_html
from chromabuild.base.summary import Summary
from chromabuild.shards.integrity import read_shards, verify_shards
from chromabuild.shards.manifest import BRICKS_NAME, Manifest


@dataclass(frozen=True)
class ShardSet:
    """A folder of bricks and the manifest that says what is in them."""

    folder: Path
    manifest: Manifest

    @classmethod
    def read(cls, folder: str | Path) -> "ShardSet":
        """Read the manifest of a folder. Raises IntegrityError when it is damaged or missing."""
        return cls(Path(folder), Manifest.read(folder))

    @property
    def atoms(self) -> int:
        """Number of atoms of the whole system."""
        return self.manifest.atoms

    @property
    def box(self) -> tuple[float, float, float]:
        """Edges of the periodic box, or the diagonal of its vectors, angstrom."""
        return self.manifest.box

    @property
    def bricks(self) -> Path:
        """The list of bricks that the engine reads."""
        return self.folder / BRICKS_NAME

    def positions(self) -> np.ndarray:
        """(n, 3) float64 positions of all atoms in global order, angstrom. Raises IntegrityError for damaged bricks."""
        return read_shards(self.bricks)[1]

    def verify(self, threads: int = 1) -> None:
        """Read every shard again. Raises IntegrityError naming the first that differs from the manifest."""
        verify_shards(self.folder, threads=threads)

    def write_pdb(self, path: str | Path, select: str = "all") -> int:
        """Write the selected atoms (docs/reference/file-formats.md) as one PDB file; gives their number."""
        from chromabuild.shards.merge import merge_shards

        return merge_shards(self.folder, select, Path(path))

    def summary(self) -> Summary:
        """Box, grid, counts and size on disk."""
        manifest = self.manifest
        size = sum(entry["bytes"] for shard in manifest.shards for entry in shard.files.values())
        shape = shape_of(manifest.vectors)
        return {"atoms": manifest.atoms, "box": [round(float(edge), 3) for edge in manifest.box],
                **({} if shape == RECTANGULAR else {
                    "tilt": [round(float(lean), 3) for lean in manifest.tilt], "shape": shape,
                    "image_distance": round(shortest_translation(manifest.vectors), 3)}),
                "grid": [int(n) for n in manifest.grid], "counts": manifest.counts, "net_charge": manifest.net_charge,
                "shards": len(manifest.shards), "megabytes": round(size / 1e6, 1),
                **({"modifications": [{"residue": name, "residues": count} for name, count
                                      in manifest.modifications.items()]} if manifest.modifications else {})}

    def _repr_html_(self) -> str:
        facts = self.summary() | {"folder": str(self.folder)}
        return facts_html("Shards", {name.replace("_", " "): value for name, value in facts.items()})
