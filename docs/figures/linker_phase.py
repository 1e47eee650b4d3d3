"""docs/images/linker_phase.svg: what it costs to turn a linker by half a turn and less, by its length.

The harmonic energy of the base-pair steps of Olson et al. (1998) with the mean over all dinucleotides of the
deviations of twist; n base pairs between cores are n + 1 steps, which share the misfit evenly.
"""

import json

import numpy as np
from style import BLUE, GREEN, IMAGES, ORANGE, plt, save


def main() -> None:
    """Draw the figure."""
    table = json.loads((IMAGES.parent.parent / "templates/dna_parameters.json").read_text())["base_pair_step"]
    deviation = np.mean([deviations[5] for _, deviations in table["steps"].values()])
    length = np.arange(10, 81)
    figure, panel = plt.subplots(figsize=(6.2, 3))
    for misfit, colour in ((60, GREEN), (120, BLUE), (180, ORANGE)):
        cost = 0.5 * (misfit / deviation) ** 2 / (length + 1)
        panel.plot(length, cost, color=colour, label=f"{misfit} degrees")
    panel.axhline(5, color="black", lw=0.7, ls=":")
    panel.text(80, 5.4, "build.linker_phase_limit", ha="right", fontsize=8)
    panel.set(xlabel="linker, base pairs", ylabel="elastic energy of twist, kT", ylim=(0, 45))
    panel.legend(title=f"misfit of the phase (spread of a step {deviation:.1f} degrees)", title_fontsize=8)
    save(figure, "linker_phase.svg")


if __name__ == "__main__":
    main()
