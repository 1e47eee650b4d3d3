"""docs/images/thermostats.svg: kinetic energies under stochastic velocity rescaling and under weak coupling.

96 harmonic degrees of freedom of many frequencies, velocity Verlet, tau = 10 steps; the curve is the canonical one.
"""

import numpy as np
from scipy.stats import gamma
from style import BLUE, GREY, ORANGE, plt, save

FREEDOM, STEPS, STEP, TAU = 96, 60_000, 0.02, 0.2


def kinetic_energies(stochastic: bool) -> np.ndarray:
    """Kinetic energies (kT) of a run."""
    rng = np.random.default_rng(7)
    k = rng.uniform(0.2, 9.0, FREEDOM)
    x, v = rng.normal(size=FREEDOM) / np.sqrt(k), rng.normal(size=FREEDOM)
    found, wanted, kept = [], 0.5 * FREEDOM, np.exp(-STEP / TAU)
    for step in range(STEPS):
        v -= 0.5 * STEP * k * x
        x += STEP * v
        v -= 0.5 * STEP * k * x
        now = 0.5 * float(v @ v)
        if stochastic:  # Bussi, Donadio and Parrinello (2007), eq. A7
            first, others = rng.normal(), rng.chisquare(FREEDOM - 1)
            new = (kept * now + (1 - kept) * wanted / FREEDOM * (first**2 + others)
                   + 2 * first * np.sqrt(kept * (1 - kept) * wanted / FREEDOM * now))  # fmt: skip
        else:
            new = now * (1 + (1 - kept) * (wanted / now - 1))
        v *= np.sqrt(new / now)
        if step > STEPS // 10:
            found.append(new)
    return np.array(found)


def main() -> None:
    """Draw the figure."""
    figure, panel = plt.subplots(figsize=(6, 3))
    edges = np.linspace(25, 75, 80)
    for stochastic, colour, name in ((True, BLUE, "BUSSI"), (False, ORANGE, "BERENDSEN")):
        panel.hist(kinetic_energies(stochastic), edges, density=True, color=colour, alpha=0.5, label=name)
    energy = np.linspace(25, 75, 300)
    panel.plot(energy, gamma.pdf(energy, FREEDOM / 2), color=GREY, label="canonical")
    panel.set(xlabel="kinetic energy of 96 degrees of freedom, kT", ylabel="density")
    panel.legend()
    save(figure, "thermostats.svg")


if __name__ == "__main__":
    main()
