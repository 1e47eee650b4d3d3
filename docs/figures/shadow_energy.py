"""docs/images/shadow_energy.svg: the total energy of velocity Verlet, and what it conserves to fourth order.

Eight anharmonic oscillators with the frequencies of soft and stiff modes, a tenth of their periods a step.
"""

import numpy as np
from style import BLUE, ORANGE, plt, save

STEP, STEPS = 0.05, 1600


def main() -> None:
    """Draw the figure."""
    rng = np.random.default_rng(2)
    k = np.linspace(0.5, 8.0, 8)
    x, v = rng.normal(size=8) / np.sqrt(k), rng.normal(size=8)
    potential, kinetic, kick = [], [], []

    def energy(x: np.ndarray) -> float:
        return float((0.5 * k * x**2 + 0.05 * k * x**4).sum())

    def force(x: np.ndarray) -> np.ndarray:
        return -k * x - 0.2 * k * x**3

    half = np.zeros(8)
    for _ in range(STEPS):
        potential.append(energy(x))
        kinetic.append(0.5 * float((v**2).sum()))
        kick.append(0.5 * float(half @ half))
        middle = v + 0.5 * STEP * force(x)
        x = x + STEP * middle
        half = 0.5 * STEP * force(x)
        v = middle + half
    potential, kinetic, kick = (np.array(values) for values in (potential, kinetic, kick))
    total = potential + kinetic
    second = potential[2:] - 2 * potential[1:-1] + potential[:-2]
    kept = (total + kick / 3)[1:-1] + second / 12
    time = STEP * np.arange(STEPS)
    figure, panel = plt.subplots(figsize=(7, 2.8))
    panel.plot(time[2:-1], 1e3 * (total[2:-1] / total.mean() - 1), color=BLUE, lw=0.9, label="total energy")
    panel.plot(time[2:-1], 1e3 * (kept[1:] / kept[1:].mean() - 1), color=ORANGE, lw=1.2,
               label="total energy, with the terms of second order in the step")  # fmt: skip
    panel.set(xlabel="time (reduced units)", ylabel="relative deviation, 1e-3")
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, fontsize=8)
    print(f"standard deviation: {total[2:-1].std():.2e}, {kept[1:].std():.2e}")
    save(figure, "shadow_energy.svg")


if __name__ == "__main__":
    main()
