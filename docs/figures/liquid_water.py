"""docs/images/liquid_water.svg: radial distributions of Car-Parrinello water, from benchmarks/planewave_liquid.py."""

import sys
from pathlib import Path

import numpy as np
from style import BLUE, GREY, ORANGE, plt, save

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from common.results import newest


def main() -> None:
    """Draw the figure."""
    rows = np.array(newest()["planewave_liquid", "radial"][0].tables["radial"].rows)
    figure, panel = plt.subplots(figsize=(6, 3))
    for column, colour, name in ((3, GREY, "O-O at the start (TIP3P)"), (1, BLUE, "O-O"), (2, ORANGE, "O-H")):
        panel.plot(rows[:, 0], rows[:, column], color=colour, label=name)
    panel.set(xlabel="r, angstrom", ylabel="g(r)", ylim=(0, 5))
    panel.legend()
    save(figure, "liquid_water.svg")


if __name__ == "__main__":
    main()
