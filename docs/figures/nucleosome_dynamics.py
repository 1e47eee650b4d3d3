"""docs/images/nucleosome_dynamics.svg: a nucleosome by `standard`, from benchmarks/nucleosome_dynamics.py."""

import sys
from pathlib import Path

import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, plt, save

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from common.results import newest

LIMIT = 2.5
"""Angstrom that the folds shall stay below."""


def main() -> None:
    """Draw the figure."""
    tables = newest()["nucleosome_dynamics", "series"][0].tables
    time, rmsd, detached, opened, density = np.array(tables["series"].rows).T
    ends = [row[1] for row in tables["stability"].rows]
    figure, (folds, pairs, box) = plt.subplots(3, 1, figsize=(6, 5), sharex=True)
    folds.plot(time, rmsd, color=BLUE)
    folds.axhline(LIMIT, color=GREY, linestyle=":")
    folds.set(ylabel="RMSD of\nfolds, angstrom", ylim=(0, LIMIT + 0.3))
    pairs.plot(time, opened, color=ORANGE, label="open")
    pairs.plot(time, detached, color=GREEN, label="off the histones")
    pairs.set(ylabel="base pairs", ylim=(-0.2, max(opened.max(), detached.max()) + 0.5))
    pairs.yaxis.get_major_locator().set_params(integer=True)
    pairs.legend(loc="upper left")
    box.plot(time, density, color=BLUE)
    box.set(ylabel="density, g/cm³", xlabel="time, ps")
    for panel in (folds, pairs, box):
        for end in ends[:-1]:
            panel.axvline(end, color=GREY, linewidth=0.5)
    for row, start, end in zip(tables["stability"].rows, [0, *ends[:-1]], ends, strict=True):
        folds.text((start + end) / 2, LIMIT + 0.35, row[0], ha="center", fontsize=8, color=GREY)
    save(figure, "nucleosome_dynamics.svg")


if __name__ == "__main__":
    main()
