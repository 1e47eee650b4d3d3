"""Line plots as inline SVG: letters are drawn as paths, and axes take the page's text colour (light or dark)."""

import io
from collections.abc import Mapping

import numpy as np

INK = "#010203"  # stands for the page's text colour and is replaced by it
COLOURS = ("#3b7dd8", "#d9822b", "#2f9e6e", "#b4508f", "#8a6fd1", "#c2413b")


def line_plot(series: Mapping[str, tuple[np.ndarray, np.ndarray]], x_label: str, y_label: str, salt: str,
              size: tuple[float, float] = (6.4, 2.9)) -> str:
    """SVG text of one plot: name to (x, y). ``salt`` makes the ids of this plot unique and reproducible."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    style = {"svg.fonttype": "path", "svg.hashsalt": salt, "font.size": 9.5, "axes.edgecolor": INK, "text.color": INK,
             "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
             "axes.spines.right": False, "axes.linewidth": 0.8, "axes.formatter.useoffset": False}
    with matplotlib.rc_context(style):
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        for colour, (name, (x, y)) in zip(COLOURS * (len(series) // len(COLOURS) + 1), series.items(), strict=False):
            axes.plot(x, y, color=colour, linewidth=1.6, label=name, marker="o" if len(x) < 3 else None, markersize=3)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.grid(True, color=INK, alpha=0.12, linewidth=0.6)
        axes.margins(x=0.02)
        if len(series) > 1:
            axes.legend(frameon=False, fontsize=8.5, ncols=min(len(series), 4), loc="best")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    svg = buffer.getvalue()
    return svg[svg.index("<svg"):].replace(INK, "currentColor")
