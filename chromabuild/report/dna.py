"""The report's section on DNA: geometry by stretch, steps along a nucleosome, linking number of the fibre."""

from pathlib import Path

import h5py
import numpy as np

from chromabuild.analysis import fibre
from chromabuild.molecule.solute import Solute
from chromabuild.report import html
from chromabuild.report.plots import line_plot


def dna_section(folder: Path, path: Path | None) -> str:
    """HTML on the DNA of the solute in the file ``path``; empty without it or the scaffold in ``folder``."""
    if path is None or not (folder / "scaffold.h5").is_file():
        return ""
    dna = fibre.dna_atoms(Solute.read(path))
    with h5py.File(folder / "scaffold.h5", "r") as file:
        core, dyad = file["bp/nucleosome"][...], file["nucleosome/dyad_index"][...]
        first, last = file["nucleosome/first_bp"][...], file["nucleosome/last_bp"][...]
    if dna is None or len(dna.bases) != 2 * len(core):
        return ""
    origin, frame = fibre.base_pair_frames(dna)
    parts = []
    if len(dyad):
        parts.append(_nucleosome_plot(origin, frame, int(first[0]), int(last[0]), int(dyad[0])))
    parts += [_topology_table(origin, frame, first, last), _stretch_table(fibre.stretches(dna, core))]
    return "".join(parts)


def _nucleosome_plot(origin: np.ndarray, frame: np.ndarray, first: int, last: int, dyad: int) -> str:
    steps = fibre.step_parameters(origin[first : last + 1], frame[first : last + 1])
    place = np.arange(first, last) + 0.5 - dyad
    bend = line_plot({"roll": (place, steps[:, 4]), "tilt": (place, steps[:, 3])}, "base pairs from the dyad",
                     "degree", "nucleosome bend")
    turn = line_plot({"twist": (place, steps[:, 5])}, "base pairs from the dyad", "degree", "nucleosome twist")
    return (f'<div class="pair">{html.plot(bend, "Roll and tilt along the first nucleosome, from its atoms.")}'
            f'{html.plot(turn, "Twist along the first nucleosome.")}</div>')


def _topology_table(origin: np.ndarray, frame: np.ndarray, first: np.ndarray, last: np.ndarray) -> str:
    """Of the fibre, and the mean of its nucleosomes."""
    whole = fibre.topology(origin, frame)
    rows = [("whole fibre", len(origin), whole["linking_number"], whole["twist"], whole["writhe"])]
    if len(first):
        wrapped = [fibre.topology(origin[a : b + 1], frame[a : b + 1])
                   for a, b in zip(first[:20], last[:20], strict=True)]
        mean = {key: float(np.mean([entry[key] for entry in wrapped])) for key in wrapped[0]}
        name = "a nucleosome, mean" if len(first) > 1 else "the nucleosome"
        rows.append((name, round(float(np.mean(last - first + 1))), mean["linking_number"], mean["twist"],
                     mean["writhe"]))
    spacing = whole["axis_spacing"]
    axis = "every base pair" if spacing == 1 else f"one in {spacing} base pairs"
    return ("<h3>Twist and writhe, turns</h3>"
            + html.table(("stretch", "base pairs", "Lk = Tw + Wr", "twist Tw", "writhe Wr"), rows)
            + f"<p>The axis goes through the origin of {axis}; the ends are open, so that Lk need not be whole.</p>")


def _stretch_table(found: list[fibre.Stretch]) -> str:
    """Worst first: outliers, then the longest link."""
    found = sorted(found, key=lambda s: (-s.outliers, -s.angle_rmsz))
    return "<h3>Backbone by stretch, the most strained first</h3>" + html.table(
        ("stretch", "first bp", "last bp", "shortest O3'-P, Å", "longest O3'-P, Å", "bond RMSZ", "angle RMSZ",
         "beyond 4 σ"),
        [(s.name, s.first_bp, s.last_bp, round(s.o3_p_shortest, 3), round(s.o3_p_longest, 3), round(s.bond_rmsz, 2),
          round(s.angle_rmsz, 2), s.outliers) for s in found], limit=25)
