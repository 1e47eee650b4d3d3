"""docs/images/linker_arms.svg: linker arms on the path of PDB 4QLC and the linker histone between them, seen twice."""

import json

import numpy as np
from style import BLUE, GREEN, IMAGES, ORANGE, plt, save

from chromabuild.dna.arms import linker_arms
from chromabuild.dna.helix import crystal_path
from chromabuild.genome.wrapping import ARM
from chromabuild.nucleosome.recipe import linker_histone_table, stored_linker_histone

TEMPLATES = IMAGES.parent.parent / "templates"
NM = 10.0  # angstrom


def main() -> None:
    """Draw the figure."""
    core, arms = crystal_path()[0] / NM, linker_arms()[0] / NM
    data = json.loads((TEMPLATES / "chromatosome_arms_4qlc.json").read_text())
    first, last = linker_histone_table()["H5"]["domain"]
    domain = np.array([one.atoms["CA"] for one in stored_linker_histone("H5") if first <= one.number <= last]) / NM
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 4))
    for panel, b, name in zip(panels, (1, 2), ("y", "z (axis)"), strict=True):
        panel.plot(core[:, 0], core[:, b], color="0.75", lw=9, solid_capstyle="round", zorder=0,
                   label="147 base pairs, 1KX5")
        for rows, end, joint, colour, label in ((slice(0, ARM), "entry", core[:1], BLUE, "arm that enters"),
                                                (slice(ARM, None), "exit", core[-1:], ORANGE, "arm that leaves")):
            path = np.concatenate([arms[rows], joint] if end == "entry" else [joint, arms[rows]])
            panel.plot(path[:, 0], path[:, b], color=colour, lw=6, solid_capstyle="round", alpha=0.8, label=label)
            seen = np.array(data[end]["observed"]) / NM
            panel.plot(seen[:, 0], seen[:, b], "k.", ms=4, label="4QLC" if end == "exit" else None)
        panel.plot(domain[:, 0], domain[:, b], "-", color=GREEN, lw=1.2, label="globular domain of H5")
        panel.set(aspect="equal", xlabel="x (dyad), nm", ylabel=f"{name}, nm")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="upper center", ncols=5, fontsize=8)
    save(figure, "linker_arms.svg")


if __name__ == "__main__":
    main()
