"""Common look of the figures of the documentation, and where they are written."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).resolve().parent.parent / "images"
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#d55e00", "#009e73", "#cc3311", "#777777"  # told apart by all readers

plt.rcParams.update({
    "figure.dpi": 100, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "svg.fonttype": "path", "svg.hashsalt": "chromabuild",
})  # fmt: skip


def save(figure: plt.Figure, name: str) -> None:
    """Write a figure to docs/images; the same figure gives the same bytes."""
    metadata = {"Date": None} if name.endswith(".svg") else None
    figure.savefig(IMAGES / name, bbox_inches="tight", metadata=metadata)
    plt.close(figure)
