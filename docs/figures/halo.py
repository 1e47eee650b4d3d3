"""docs/images/halo.svg: what a domain imports by half shells and by midpoints, in two dimensions."""

import numpy as np
from matplotlib.patches import Rectangle
from style import BLUE, GREEN, GREY, ORANGE, plt, save

EDGE, REACH = 2.0, 1.1  # of a domain; of the halo


def rim(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Distance of points from the middle domain, which lies at 0 to EDGE."""
    return np.hypot(np.maximum(np.maximum(-x, x - EDGE), 0), np.maximum(np.maximum(-y, y - EDGE), 0))


def main() -> None:
    """Draw the figure."""
    figure, panels = plt.subplots(1, 2, figsize=(8.2, 4.2))
    x, y = np.meshgrid(np.linspace(-EDGE, 2 * EDGE, 1201), np.linspace(-EDGE, 2 * EDGE, 1201))
    outside = rim(x, y) > 0
    upper = (y > EDGE) | ((y >= 0) & (y <= EDGE) & (x > EDGE))  # neighbours at positive offsets
    imports = (outside & upper & (rim(x, y) < REACH), outside & (rim(x, y) < REACH / 2))
    pairs = (((1.6, 0.7), (2.5, 1.1)), ((2.4, 1.45), (1.3, 2.35)))
    titles = ("half shell: the lower owner computes", "midpoint: the domain of the middle computes")
    for panel, inside, pair, title, colour in zip(panels, imports, pairs, titles, (BLUE, GREEN), strict=True):
        for k in range(4):
            panel.axhline((k - 1) * EDGE, color=GREY, lw=0.6)
            panel.axvline((k - 1) * EDGE, color=GREY, lw=0.6)
        panel.contourf(x, y, inside.astype(float), levels=[0.5, 1.5], colors=[colour], alpha=0.35)
        panel.add_patch(Rectangle((0, 0), EDGE, EDGE, fc="0.85", ec="black", lw=1.5, zorder=0))
        a, b = np.array(pair)
        panel.plot(*np.array([a, b]).T, "-o", color=ORANGE, ms=6, lw=1.2)
        if title.startswith("mid"):
            panel.plot(*((a + b) / 2), "x", color="black", ms=7)
        panel.text(EDGE / 2, EDGE / 2 - 0.55, "this\ndomain", ha="center", va="center")
        panel.set_title(title, fontsize=9)
        panel.set(xlim=(-EDGE, 2 * EDGE), ylim=(-EDGE, 2 * EDGE), aspect="equal")
        panel.set_axis_off()
    panels[0].annotate("", (EDGE, EDGE + 0.25), (EDGE + REACH, EDGE + 0.25), arrowprops={"arrowstyle": "<->"})
    panels[0].text(EDGE + REACH / 2, EDGE + 0.33, "r", ha="center")
    panels[1].annotate("", (EDGE, 0.5), (EDGE + REACH / 2, 0.5), arrowprops={"arrowstyle": "<->"})
    panels[1].text(EDGE + REACH / 4, 0.58, "r/2", ha="center")
    save(figure, "halo.svg")


if __name__ == "__main__":
    main()
