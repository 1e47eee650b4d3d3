"""docs/images/core.svg: the nucleosome core of the mesoscale model, seen along the superhelix axis and across."""

import json

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from style import IMAGES, ORANGE, plt, save

TEMPLATES = IMAGES.parent.parent / "templates"
SALT = 0.15  # mol/L


def main() -> None:
    """Draw the figure."""
    path = np.array(json.loads((TEMPLATES / "nucleosome_path_1kx5.json").read_text())["origin"]) / 10
    data = json.loads((TEMPLATES / "core_charges.json").read_text())
    sites, core = np.array(data["sites"]), data["cores"]["xenopus"]
    charge = core["charge"][core["salt"].index(SALT)]
    tails = json.loads((TEMPLATES / "tail_beads_1kx5.json").read_text())["tails"]
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 4))
    for panel, b, name in zip(panels, (1, 2), ("y", "z (axis)"), strict=True):
        a = 0
        panel.plot(path[:, a], path[:, b], color="0.75", lw=9, solid_capstyle="round", zorder=0)
        shown = panel.scatter(*(sites[:, (a, b)] / 10).T, c=charge, cmap="coolwarm_r", s=16, zorder=2,
                              norm=TwoSlopeNorm(0, -2, 2), edgecolors="0.4", linewidths=0.2)  # fmt: skip
        for tail in tails:
            beads = np.array(tail["rest"]) / 10
            panel.plot(beads[:, a], beads[:, b], "-o", color=ORANGE, ms=4.5, lw=1, mec="black", mew=0.4, zorder=3)
        panel.set(aspect="equal", xlabel="x (dyad), nm", ylabel=f"{name}, nm")
    figure.colorbar(shown, ax=panels, label="charge of a site, e", shrink=0.7)
    save(figure, "core.svg")


if __name__ == "__main__":
    main()
