"""docs/images/pair_list.svg: clusters of atoms, the cutoff and the buffers of the inner and the outer list."""

import numpy as np
from matplotlib.patches import Circle
from scipy.spatial import ConvexHull
from style import BLUE, GREY, ORANGE, plt, save

CUTOFF, INNER, OUTER = 12.0, 12.7, 14.5
SIZE, BOX = 8, 36.0


def main() -> None:
    """Draw the figure."""
    rng = np.random.default_rng(5)
    points = rng.random((560, 2)) * BOX
    column = np.floor(points[:, 0] / (BOX / 9)).astype(int)
    clusters = []
    for k in range(9):
        row = points[column == k]
        row = row[np.argsort(row[:, 1])]
        clusters += [row[i : i + SIZE] for i in range(0, len(row), SIZE) if len(row[i : i + SIZE]) > 2]
    centre = np.array([BOX / 2, BOX / 2])
    nearest = min(range(len(clusters)), key=lambda k: np.linalg.norm(clusters[k].mean(axis=0) - centre))
    middle = clusters[nearest][:4]
    figure, panel = plt.subplots(figsize=(5.4, 5.4))
    for cluster in clusters:
        apart = np.linalg.norm(cluster[:, None] - middle[None], axis=2).min()
        colour = BLUE if apart < INNER else "#a6cee3" if apart < OUTER else "0.88"
        panel.fill(*cluster[ConvexHull(cluster).vertices].T, color=colour, alpha=0.75, lw=0)
        panel.plot(*cluster.T, ".", color="0.3", ms=2)
    panel.plot(*middle.T, "o", color=ORANGE, ms=5, label="four atoms of an i cluster")
    for radius, style, name in ((CUTOFF, "-", "cutoff"), (INNER, "--", "inner list"), (OUTER, ":", "outer list")):
        panel.add_patch(Circle(middle.mean(axis=0), radius, fill=False, ls=style, lw=1.3, label=name))
    panel.fill([], [], color=BLUE, alpha=0.75, label="j clusters the kernel visits")
    panel.fill([], [], color="#a6cee3", alpha=0.75, label="j clusters kept for pruning")
    panel.set(xlim=(0, BOX), ylim=(0, BOX), aspect="equal", xlabel="angstrom", ylabel="angstrom")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncol=2, fontsize=8)
    panel.tick_params(colors=GREY)
    save(figure, "pair_list.svg")


if __name__ == "__main__":
    main()
