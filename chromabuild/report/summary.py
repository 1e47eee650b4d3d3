"""Numbers that describe a run."""

import numpy as np

BOLTZMANN = 0.0019872042586  # kcal/mol/K, CODATA 2018


def energy_drift(time: np.ndarray, energy: np.ndarray, n_atoms: int, temperature: float) -> float | None:
    """Slope of the conserved energy in kT/ns per atom, by least squares; None with fewer than three values.

    time (k,) ps, energy (k,) kcal/mol, temperature K.
    """
    if len(time) < 3 or np.ptp(time) == 0:
        return None
    slope = np.polyfit(time - time.mean(), energy - energy.mean(), 1)[0]
    return float(1000 * slope / (n_atoms * BOLTZMANN * temperature))
