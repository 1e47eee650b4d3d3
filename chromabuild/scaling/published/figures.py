"""The compared figure of a paper: its points, ours, and the band of what it leaves open."""

from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.scaling.published.comparison import Entry, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#777777")
"""Told apart by all readers."""


def draw(entries: list[Entry], panel: Panel, path: Path) -> None:
    """Write two panels: the deviation of each entry with its band, and curves beside the paper's points. The same
    entries give the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
             "svg.fonttype": "path", "svg.hashsalt": "chromabuild"}
    with plt.rc_context(style):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, max(3.4, 0.24 * len(entries) + 1)),
                                             layout="constrained")
        _deviations(left, entries)
        _curves(right, panel)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def _deviations(axes: "Axes", entries: list[Entry]) -> None:
    for row, entry in enumerate(entries):
        colour = COLOURS[0] if entry.passes else COLOURS[1]
        if entry.low is not None:
            ends = [100 * (end / entry.paper - 1) for end in (entry.low, entry.high)]
            axes.plot(ends, [row, row], color=colour, alpha=0.35, lw=5, solid_capstyle="butt")
        axes.plot(100 * entry.deviation, row, "o", color=colour, ms=4, mfc="white" if entry.fitted else colour)
    bar = max((100 * entry.bar for entry in entries), default=0.0)
    axes.axvspan(-bar, bar, color="0.93", zorder=0)
    axes.axvline(0, color="0.6", lw=0.8)
    axes.set(yticks=range(len(entries)), yticklabels=[entry.name for entry in entries], ylim=(len(entries) - 0.5, -0.5),
             xlabel="deviation from the paper, %", title="filled: predicted, open: fitted, bar: band")
    axes.tick_params(axis="y", labelsize=7)


def _curves(axes: "Axes", panel: Panel) -> None:
    for curve, colour in zip(panel.curves, COLOURS, strict=False):
        axes.plot(curve.x, curve.ours, "x" if panel.ticks else "-", color=colour, lw=1.2, ms=6,
                  label=f"{curve.name}, ours")
        if curve.low is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, lw=0)
        if curve.paper:
            axes.plot(*zip(*curve.paper, strict=True), "s", color=colour, ms=5, mfc="white",
                      label=f"{curve.name}, paper")
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks, fontsize=8)
    else:
        axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    axes.legend(fontsize=7, ncols=2)
