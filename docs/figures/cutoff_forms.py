"""docs/images/cutoff_forms.svg: the Lennard-Jones interaction of two TIP3P oxygens near the cutoff, in each form."""

import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, RED, plt, save

SIGMA, EPSILON, ON, OFF = 3.1507, 0.1521, 10.0, 12.0  # angstrom, kcal/mol


def power_force_switch(r: np.ndarray, n: int) -> np.ndarray:
    """r^-n under the force switch of Steinbach and Brooks (1994), n = 6 or 12."""
    half = n // 2
    factor = OFF**half / (OFF**half - ON**half)
    outer = factor * (r**-half - OFF**-half) ** 2
    return np.where(r < ON, r**-n - (ON * OFF) ** -half, np.where(r < OFF, outer, 0.0))


def power_force_shift(r: np.ndarray, n: int) -> np.ndarray:
    """r^-n under GROMACS' force shift, n = 6 or 12: the force gets a x^2 + b x^3, x being the way from the switch."""
    width, x = OFF - ON, np.clip(r - ON, 0, OFF - ON)
    a, b = np.linalg.solve([[width**2, width**3], [2 * width, 3 * width**2]],
                           [-n * OFF ** -(n + 1), n * (n + 1) * OFF ** -(n + 2)])
    energy = np.clip(r, None, OFF) ** -n - a / 3 * x**3 - b / 4 * x**4
    return energy - (OFF**-n - a / 3 * width**3 - b / 4 * width**4)


def main() -> None:
    """Draw the figure."""
    r = np.linspace(9, 12.6, 1200)
    c6, c12 = 4 * EPSILON * SIGMA**6, 4 * EPSILON * SIGMA**12
    plain = c12 / r**12 - c6 / r**6
    u = np.clip(r**2, ON**2, OFF**2)
    switch = (OFF**2 - u) ** 2 * (OFF**2 + 2 * u - 3 * ON**2) / (OFF**2 - ON**2) ** 3
    inside = r < OFF
    forms = {
        "cut (switchdist = cutoffdist)": (np.where(inside, plain, 0), GREY),
        "switched energy": (plain * switch * inside, BLUE),
        "vdw_shift": (c12 * power_force_shift(r, 12) - c6 * power_force_shift(r, 6), RED),
        "vdw_energy_shift": (np.where(inside, plain - (c12 / OFF**12 - c6 / OFF**6), 0), GREEN),
        "vdw_force_switch": (c12 * power_force_switch(r, 12) - c6 * power_force_switch(r, 6), ORANGE),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.1))
    for name, (energy, colour) in forms.items():
        left.plot(r, 1e3 * energy, color=colour, label=name)
        force = -np.gradient(energy, r)
        force[np.abs(force) > 0.01] = np.nan  # the step of the energy that is cut
        right.plot(r, 1e3 * force, color=colour)
    left.set(xlabel="distance, angstrom", ylabel="energy, cal/mol")
    right.set(xlabel="distance, angstrom", ylabel="force, cal/mol/angstrom")
    left.legend(fontsize=8)
    save(figure, "cutoff_forms.svg")


if __name__ == "__main__":
    main()
