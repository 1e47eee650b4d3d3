"""What was built as tracks of genome browsers: nucleosomes as BED, wrapping and crowding of the DNA as bigWig."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.files import atomic_path
from chromabuild.genome.bigwig_writer import write_signal
from chromabuild.genome.circle import PART

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold

CROWDING_RADIUS = 150.0
"""Angstrom around a base pair."""
CROWDING_DISTANCE = 1000
"""Base pairs along the locus from which on others count."""
_COLOURS = {"in place": "60,90,160", "moved": "200,120,40"}


def write_tracks(scaffold: "Scaffold", folder: Path) -> list[Path]:
    """Write ``nucleosomes.bed``, ``wrapped.bw`` and ``crowding.bw`` into ``folder``, which is made; gives their paths.

    Base pairs that nucleosomes hold are 1 in ``wrapped.bw``; ``crowding.bw`` counts base pairs within 15 nm that lie
    1,000 base pairs and more away along the locus.
    """
    folder.mkdir(parents=True, exist_ok=True)
    order = np.argsort(scaffold.position)  # a circle may begin anywhere
    start = int(scaffold.position[order[0]])
    with atomic_path(folder / "nucleosomes.bed") as part:
        part.write_text(nucleosome_lines(scaffold), encoding="ascii")
    crowded = crowding(scaffold.origin, scaffold.circular)
    for name, values in (("wrapped", scaffold.nucleosome >= 0), ("crowding", crowded)):
        write_signal(folder / f"{name}.bw", scaffold.chromosome, start, values[order])
    return [folder / name for name in ("nucleosomes.bed", "wrapped.bw", "crowding.bw")]


def nucleosome_lines(scaffold: "Scaffold") -> str:
    """BED lines of the DNA on each nucleosome, named by their numbers from 1, the dyad thick; dyads that were moved
    have another colour. One across base pair 1 of a circle has two lines, for browsers end at the last base pair:
    ``7.part1`` ends there, ``7.part2`` begins at base pair 1, and the dyad is thick in one of them."""
    moved = {int(one["to"]) for one in scaffold.shifts if one["to"] is not None}
    lines = ['track name="nucleosomes" description="nucleosomes as built; orange: dyad moved" itemRgb="On"\n']
    rows = []
    for k, (first, last, dyad) in enumerate(zip(scaffold.first_bp, scaffold.last_bp, scaffold.dyad, strict=True)):
        place, held = int(scaffold.position[dyad]), scaffold.position[first:last + 1]
        parts = np.split(held, np.flatnonzero(np.diff(held) != 1) + 1)
        for number, part in enumerate(parts, start=1):
            name = f"{k + 1}{PART}{number}" if len(parts) > 1 else k + 1
            thick = (place, place + 1) if place in part else (part[0], part[0])
            rows.append((scaffold.chromosome, part[0], part[-1] + 1, name, 1000, ".", *thick,
                         _COLOURS["moved" if place in moved else "in place"]))
    rows.sort(key=lambda row: row[1])
    return "".join(lines + ["\t".join(map(str, row)) + "\n" for row in rows])


def crowding(origin: np.ndarray, circular: bool = False) -> np.ndarray:
    """(n,) base pairs within ``CROWDING_RADIUS`` of each of (n, 3) that are ``CROWDING_DISTANCE`` and more away along
    the DNA, of a circle the shorter way round."""
    count = cKDTree(origin).query_ball_point(origin, CROWDING_RADIUS, return_length=True).astype(int) - 1
    if circular and len(origin) < 2 * CROWDING_DISTANCE:
        return np.zeros_like(count)
    if circular:
        for apart in range(1, CROWDING_DISTANCE):
            near = np.sum(np.square(np.roll(origin, -apart, axis=0) - origin), axis=1) <= CROWDING_RADIUS**2
            count -= near.astype(int) + np.roll(near, apart)
        return count
    for apart in range(1, min(CROWDING_DISTANCE, len(origin))):
        near = np.sum(np.square(origin[apart:] - origin[:-apart]), axis=1) <= CROWDING_RADIUS**2
        count[apart:] -= near
        count[:-apart] -= near
    return count
