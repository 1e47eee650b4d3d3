"""docs/images/measured_nucleosome.svg: PDB 1KX5 as `chromabuild analyse` measures it, and motions planted on it.

Roll and minor groove along the crystal's DNA beside a report of 3DNA; the phosphates that histones hold; and base pairs
that are lifted off two by two at the entry, and then gyres that part, as they are found.
"""

import gzip
import sys
import tempfile
from pathlib import Path

import MDAnalysis
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, plt, save

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from trajectory_analysis import write_nucleosome

from chromabuild.analysis.dna_analysis import DnaAnalysis
from chromabuild.analysis.nucleosome_analysis import NucleosomeAnalysis
from chromabuild.analysis.nucleotides import PLACE
from chromabuild.analysis.tables import TURN
from chromabuild.analysis.trajectory_file import quiet
from chromabuild.analysis.whole_nucleosomes import DYAD, SITES
from chromabuild.dna.steps import rotation_about_y

DATA = Path(__file__).resolve().parents[2] / "tests/analysis/data"
FRAMES, LIFTED, PARTED = 12, 2, 2.0
"""Frames of each motion; base pairs lifted and degrees by which gyres part from one frame to the next."""


def published(name: str) -> np.ndarray:
    """A table of 3DNA's report on 1KX5: number of the row, then values."""
    text = (DATA / "1kx5_3dna.txt").read_text()
    rows = text[text.index(f"[{name}]"):].splitlines()[1:]
    rows = rows[:next((k for k, row in enumerate(rows) if row.startswith("[")), None)]
    return np.array([row.split() for row in rows if row and not row.startswith("#")], dtype=float)


def crystal(folder: Path) -> DnaAnalysis:
    """DNA of 1KX5."""
    (folder / "1kx5.pdb").write_bytes(gzip.decompress((DATA / "1kx5_dna.pdb.gz").read_bytes()))
    return DnaAnalysis(MDAnalysis.Universe(str(folder / "1kx5.pdb"))).run()


def planted(folder: Path) -> tuple[NucleosomeAnalysis, np.ndarray, np.ndarray]:
    """A nucleosome with all hydrogens whose DNA is lifted and parts; base pairs and degrees of each frame."""
    write_nucleosome(folder, 1)
    universe = MDAnalysis.Universe(str(folder / "top.pdb"))
    whole = NucleosomeAnalysis(universe).whole
    (pairs,) = whole.nucleotides.duplexes
    owner, n1 = universe.atoms.resindices, whole.nucleotides.atoms[:, PLACE["N1"]]
    site = np.full(len(universe.residues), -1)  # of each nucleotide, none of histones
    for strand in (pairs.first, pairs.second):
        site[owner[n1[strand]]] = np.arange(SITES)
    site = site[owner]
    place = universe.atoms.positions.astype(float)
    pivot = whole.nucleotides.base_frames(whole.nucleotides.positions(place, None))[0][pairs.first[DYAD]]
    still = np.zeros(FRAMES, dtype=int)
    lifted = np.concatenate([LIFTED * np.arange(FRAMES), still])
    parted = np.concatenate([still, PARTED * np.arange(FRAMES)])
    frames = np.repeat(place[None], len(lifted), axis=0)
    for frame, off, angle in zip(frames, lifted, np.radians(parted), strict=True):
        frame[site > DYAD] = (place[site > DYAD] - pivot) @ rotation_about_y(angle).T + pivot
        frame[(site >= 0) & (site < off)] += [0.0, 0.0, -12.0]
    universe.load_new(frames.astype(np.float32))
    return NucleosomeAnalysis(universe).run(), lifted, parted


def main() -> None:
    """Draw the figure."""
    with tempfile.TemporaryDirectory() as folder, quiet():
        dna, (moved, lifted, parted) = crystal(Path(folder)), planted(Path(folder))
    steps, grooves = published("steps"), published("grooves")
    figure, ((roll, groove), (held, motion)) = plt.subplots(2, 2, figsize=(9, 5.4), layout="constrained")
    step = np.arange(1, SITES)
    roll.plot(step, dna.results.step[0, :, 4], color=BLUE, lw=1, label="chromabuild analyse")
    roll.plot(steps[:, 0], steps[:, 5], ".", color=ORANGE, ms=4, label="3DNA")
    roll.set(xlabel="step of 1KX5", ylabel="roll, degree")
    roll.legend(loc="upper right", fontsize=8)
    groove.plot(step, dna.results.groove[0, :, 1], color=BLUE, lw=1)
    groove.plot(grooves[:, 0], grooves[:, 2], ".", color=ORANGE, ms=4)
    groove.set(xlabel="step of 1KX5", ylabel="minor groove, refined, Å")
    location = (np.arange(SITES) - DYAD) / TURN
    for row, colour, name in ((0, BLUE, "strand I"), (1, GREEN, "strand J")):
        phosphate = np.flatnonzero(moved.results.phosphate[0, 0, row])
        held.vlines(location[phosphate], row, row + 0.8, color=colour, lw=1.2, label=name)
    held.set(xlabel="superhelix location", yticks=[0.4, 1.4], yticklabels=["strand I", "strand J"],
             title="phosphates within 4 Å of a nitrogen of histones")
    held.title.set_fontsize(9)
    frame = np.arange(len(lifted))
    motion.plot(frame, lifted, color=GREY, lw=3, alpha=0.5, label="planted")
    motion.plot(frame, parted, color=GREY, lw=3, alpha=0.5)
    motion.plot(frame, moved.results.unwrapped[:, 0, 0], ".-", color=BLUE, lw=0.8, label="detached at the entry, bp")
    motion.plot(frame, moved.results.hinge[:, 0, 1], ".-", color=ORANGE, lw=0.8, label="gaping, degree")
    motion.set(xlabel="frame", ylabel="base pairs; degree", ylim=(-5, 36))
    motion.legend(loc="upper left", fontsize=8)
    save(figure, "measured_nucleosome.svg")


if __name__ == "__main__":
    main()
