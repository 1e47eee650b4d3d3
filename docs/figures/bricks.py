"""docs/images/bricks.svg: tiles of water, slots and bricks of a box, in two dimensions."""

import numpy as np
from matplotlib.patches import Circle, Rectangle
from style import BLUE, GREEN, GREY, ORANGE, RED, plt, save

TILE, BOX, BRICKS = 2.48, (9.0, 6.0), (3, 2)


def main() -> None:
    """Draw the figure."""
    rng = np.random.default_rng(3)
    molecule = rng.random((26, 2)) * TILE
    figure, panel = plt.subplots(figsize=(7.2, 4.6))
    solute, radius = np.array([4.3, 3.0]), 1.35
    for i in range(4):
        for j in range(3):
            corner = np.array([i, j]) * TILE
            panel.add_patch(Rectangle(corner, TILE, TILE, fill=False, ec="0.75", lw=0.8, ls="--"))
            for place in corner + molecule:
                if (place >= BOX).any():
                    panel.plot(*place, ".", color="0.85", ms=3)
                    continue
                apart = np.linalg.norm(place - solute) - radius
                if apart < 0.15:
                    panel.plot(*place, "x", color=GREY, ms=3, mew=0.7)
                elif rng.random() < 0.035 and apart > 0.4:
                    panel.plot(*place, "o", color=rng.choice([ORANGE, GREEN]), ms=6)
                else:
                    panel.plot(*place, ".", color=BLUE, ms=4)
    panel.add_patch(Circle(solute, radius, color="0.85", zorder=0))
    panel.text(*solute, "solute", ha="center", va="center")
    for k in range(1, BRICKS[0]):
        panel.axvline(k * BOX[0] / BRICKS[0], ymax=BOX[1] / (3 * TILE), color=RED, lw=1.2)
    panel.plot([0, BOX[0]], [BOX[1] / BRICKS[1]] * 2, color=RED, lw=1.2)
    panel.add_patch(Rectangle((0, 0), *BOX, fill=False, ec="black", lw=1.8))
    for ix in range(BRICKS[0]):
        for iy in range(BRICKS[1]):
            panel.text((ix + 0.03) * BOX[0] / BRICKS[0], (iy + 0.9) * BOX[1] / BRICKS[1],
                       f"brick {ix + BRICKS[0] * iy}", color=RED, fontsize=8)  # fmt: skip
    handles = [panel.plot([], [], *style[:1], color=style[1], label=style[2])[0] for style in (
        (".", BLUE, "water"), ("o", ORANGE, "cation"), ("o", GREEN, "anion"), ("x", GREY, "left out for the solute"),
        (".", "0.85", "beyond the box"))]  # fmt: skip
    panel.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncol=5, fontsize=8)
    panel.set(xlim=(-0.1, 4 * TILE + 0.1), ylim=(-0.1, 3 * TILE + 0.1), aspect="equal")
    panel.set_axis_off()
    save(figure, "bricks.svg")


if __name__ == "__main__":
    main()
