"""The report's section on DNA: geometry by stretch, steps along a nucleosome, linking number of the fibre."""

from pathlib import Path

import numpy as np

from chromabuild.analysis import fibre
from chromabuild.molecule.solute import Solute
from chromabuild.report import html
from chromabuild.report.downloads import figure
from chromabuild.report.trace import Curves
from chromabuild.report.verdict import judge
from mesoscale.scaffold import Scaffold


def dna_section(folder: Path, path: Path | None) -> str:
    """HTML on the DNA of the solute in the file ``path``; empty without it or the scaffold in ``folder``."""
    if path is None or not (folder / "scaffold.h5").is_file():
        return ""
    dna = fibre.dna_atoms(Solute.read(path))
    scaffold = Scaffold.read(folder / "scaffold.h5")
    first, last = scaffold.first_bp, scaffold.last_bp
    if dna is None or len(dna.bases) != 2 * len(scaffold.base):
        return ""
    origin, frame = fibre.base_pair_frames(dna)
    found = fibre.stretches(dna, scaffold.nucleosome, scaffold.circular)
    parts = [_lead(found)] if found else []
    if len(scaffold.dyad):
        parts.append(_nucleosome_plot(origin, frame, int(first[0]), int(last[0]), int(scaffold.dyad[0])))
    parts += [_topology_table(origin, frame, scaffold), _stretch_table(found)]
    return "".join(parts)


def _lead(found: list[fibre.Stretch]) -> str:
    outliers = sum(stretch.outliers for stretch in found)
    worst = max(found, key=lambda stretch: stretch.angle_rmsz)
    state, said = ("look", html.text(outliers)) if outliers else ("good", "None")
    return (f'<p><b class="{state}">{said}</b> of all bonds and angles of the backbone '
            f"{'are' if outliers > 1 else 'is'} beyond {fibre.OUTLIER:g} σ of the reference; the most strained "
            f"stretch, {html.text(worst.name)}, has an angle RMSZ of {worst.angle_rmsz:.2f}. Here the angles of the "
            f"sugar ring and of the glycosidic bond count too, which depend on pucker and base; {html.link('Checks')} "
            "and clash report leave them out.</p>")


def _nucleosome_plot(origin: np.ndarray, frame: np.ndarray, first: int, last: int, dyad: int) -> str:
    steps = fibre.step_parameters(origin[first : last + 1], frame[first : last + 1])
    place = np.arange(first, last) + 0.5 - dyad
    bend = Curves({"roll": (place, steps[:, 4]), "tilt": (place, steps[:, 3])}, "base pairs from the dyad",
                  "roll and tilt, degree")
    turn = Curves({"twist": (place, steps[:, 5])}, "base pairs from the dyad", "twist, degree")
    return ('<div class="pair">'
            + figure(bend, "Roll and tilt along the first nucleosome, from its atoms.", "nucleosome bend")
            + figure(turn, "Twist along the first nucleosome.", "nucleosome twist") + "</div>")


def _topology_table(origin: np.ndarray, frame: np.ndarray, scaffold: Scaffold) -> str:
    """Of the fibre, and the mean of its nucleosomes."""
    first, last = scaffold.first_bp, scaffold.last_bp
    whole = fibre.topology(origin, frame, closed=scaffold.circular)
    name = "circle" if scaffold.circular else "whole fibre"
    rows = [(name, len(origin), whole["linking_number"], whole["twist"], whole["writhe"])]
    if len(first):
        wrapped = [fibre.topology(origin[a : b + 1], frame[a : b + 1])
                   for a, b in zip(first[:20], last[:20], strict=True)]
        mean = {key: float(np.mean([entry[key] for entry in wrapped])) for key in wrapped[0]}
        name = "a nucleosome, mean" if len(first) > 1 else "the nucleosome"
        rows.append((name, round(float(np.mean(last - first + 1))), mean["linking_number"], mean["twist"],
                     mean["writhe"]))
    spacing = whole["axis_spacing"]
    axis = "every base pair" if spacing == 1 else f"one in {spacing} base pairs"
    return ("<h3>Twist and writhe</h3>" + html.table(
        ("stretch", "base pairs", "Lk = Tw + Wr, turns", "twist Tw, turns", "writhe Wr, turns"), rows,
        note=f"For information. The axis goes through the origin of {axis}" + (
            "; Lk of a circle is its linking number." if scaffold.circular else
            "; the ends are open, so that Lk need not be whole.")))


def _stretch_table(found: list[fibre.Stretch]) -> str:
    """Worst first: outliers, then the longest link."""
    found = sorted(found, key=lambda s: (-s.outliers, -s.angle_rmsz))
    return html.fold(f"Backbone by stretch ({len(found)}), the most strained first", html.table(
        ("stretch", "first bp", "last bp", "shortest O3'-P, Å", "longest O3'-P, Å", "bond RMSZ, σ", "angle RMSZ, σ",
         "beyond 4 σ"),
        [(s.name, s.first_bp, s.last_bp, round(s.o3_p_shortest, 3), round(s.o3_p_longest, 3),
          _limited("bond_rmsz", round(s.bond_rmsz, 2)), _limited("angle_rmsz", round(s.angle_rmsz, 2)),
          _limited("bond_outliers", s.outliers)) for s in found], limit=25,
        note="Ring and glycosidic angles included. Good: RMSZ up to 1, nothing beyond 4 σ, O3'-P within 4 σ of "
             "1.607 Å: 1.56 to 1.65 Å."))


def _limited(key: str, value: float) -> html.Judged:
    """A value held against the limit of its criterion; more than that counts here, so that it is no failure."""
    state = judge(key, value).state
    return html.Judged(value, "good" if state == "good" else "look")
