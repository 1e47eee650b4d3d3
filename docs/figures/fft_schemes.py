"""docs/images/fft_schemes.svg: layouts of the grid through a forward transform on 4 x 2 x 2 ranks."""

import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from style import plt, save

RANKS = (4, 2, 2)


def box(panel: plt.Axes, low: np.ndarray, high: np.ndarray, colour: tuple) -> None:
    """Draw a box by its three visible faces."""
    corners = [[(low, high)[i >> k & 1][k] for k in range(3)] for i in range(8)]
    c = np.array(corners)
    for face in ((0, 1, 5, 4), (4, 5, 7, 6), (1, 3, 7, 5)):
        panel.add_collection3d(Poly3DCollection([c[list(face)]], facecolor=colour, edgecolor="0.3", linewidth=0.5))


def main() -> None:
    """Draw the figure."""
    layouts = {
        "bricks": (4, 2, 2), "lines along x": (1, 4, 4), "lines along y": (4, 1, 4), "lines along z": (4, 4, 1),
    }  # fmt: skip
    colours = plt.get_cmap("tab20")
    figure = plt.figure(figsize=(9, 2.6))
    for k, (name, cut) in enumerate(layouts.items()):
        panel = figure.add_subplot(1, 4, k + 1, projection="3d", computed_zorder=False)
        rank = 0
        for z in range(cut[2]):
            for y in reversed(range(cut[1])):
                for x in range(cut[0]):
                    low = np.array([x, y, z]) / cut
                    box(panel, low, low + 1 / np.array(cut), colours(rank % 20))
                    rank += 1
        panel.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1))
        panel.set_box_aspect((1, 1, 1))
        panel.view_init(22, -60)
        panel.set_axis_off()
        panel.set_title(name, fontsize=9, y=0.95)
    save(figure, "fft_schemes.svg")


if __name__ == "__main__":
    main()
