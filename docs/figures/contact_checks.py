"""docs/images/contact_checks.svg: scans of the worked contacts, from benchmarks/contact_checks.py."""

import sys
from pathlib import Path

from style import BLUE, GREY, ORANGE, plt, save

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from common.results import newest

PANELS = {"magnesium": ("Mg–O distance, Å", "Mg²⁺ with five waters at a phosphate"),
          "methylcytosine": ("C4–C5–C5A–H torsion, °", "5-methylcytosine, methyl group")}
THIRD = 120.0
"""Degree after which a methyl group looks the same: angles are drawn within one third of a turn."""


def main() -> None:
    """Draw the figure."""
    plt.rcParams["font.size"] = 12
    tables = newest()["contact_checks", "scans"][0].tables
    minima = {row[0]: row for row in tables["minima"].rows}
    figure, panels = plt.subplots(1, len(PANELS), figsize=(10, 4.2), layout="constrained")
    for panel, (case, (label, title)) in zip(panels, PANELS.items(), strict=True):
        is_distance = case == "magnesium"
        rows = sorted((row[1] if is_distance else row[1] % THIRD, *row[2:]) for row in tables["scans"].rows
                      if row[0] == case)
        field, lowest = minima[case][1], minima[case][4:6]
        for column, colour, name, at in ((1, BLUE, "plane waves", lowest[0]), (2, ORANGE, field, lowest[1])):
            panel.plot([row[0] for row in rows], [row[column] for row in rows], "o-", ms=6, lw=2, color=colour,
                       label=f"{name}, lowest at {at:.2f} Å" if is_distance else name)
        panel.axhline(0, color=GREY, lw=0.8, zorder=0)
        panel.set(xlabel=label, ylabel="energy, kcal/mol")
        panel.set_title(title, fontsize=12, fontweight="bold", loc="left")
        panel.legend(loc="upper left" if is_distance else "best", bbox_to_anchor=(0, 0.9) if is_distance else None)
    save(figure, "contact_checks.svg")


if __name__ == "__main__":
    main()
