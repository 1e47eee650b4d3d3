"""docs/images/tails.png: histone tails as in the crystal 1KX5 and lying on their own particle, seen along the axis."""

import json

import h5py
import numpy as np
from style import GREY, IMAGES, ORANGE, plt, save

TEMPLATES = IMAGES.parent.parent / "templates"


def main() -> None:
    """Draw the figure."""
    path = np.array(json.loads((TEMPLATES / "nucleosome_path_1kx5.json").read_text())["origin"])
    with h5py.File(TEMPLATES / "nucleosome_1kx5.h5") as file:
        crystal = 0.001 * file["heavy_atom_position"][...]
    with h5py.File(TEMPLATES / "histone_tails_compact.h5") as file:
        moved, compact = file["heavy_atom"][...], crystal.copy()
        compact[moved] = 0.001 * file["position"][...]
    tail = np.zeros(len(crystal), bool)
    tail[moved] = True
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 4.4), sharex=True, sharey=True, dpi=110)
    titles = ("tails: crystal", "tails: compact")
    for panel, position, title in zip(panels, (crystal, compact), titles, strict=True):
        panel.plot(path[:, 0], path[:, 1], color="0.8", lw=10, solid_capstyle="round", zorder=0)
        panel.plot(*position[~tail, :2].T, ".", color=GREY, ms=1.2, alpha=0.5)
        panel.plot(*position[tail, :2].T, ".", color=ORANGE, ms=2)
        panel.set(aspect="equal", xlabel="x (dyad), angstrom", title=title)
    panels[0].set_ylabel("y, angstrom")
    save(figure, "tails.png")


if __name__ == "__main__":
    main()
