"""Numbers that describe a run."""

import numpy as np

BOLTZMANN = 0.0019872042586  # kcal/mol/K, CODATA 2018


def energy_drift(time: np.ndarray, energy: np.ndarray, n_atoms: int, temperature: float) -> float | None:
    """Slope of the conserved energy in kT/ns per atom over the second half of a run; None with too few values.

    The first half is left out: while energy passes from the drawn velocities into a minimised structure, the energy
    that velocity Verlet conserves departs from the true one by a changing term of order dt^2, which is no drift.
    time (k,) ps, energy (k,) kcal/mol, temperature K.
    """
    late = time >= 0.5 * (time[0] + time[-1])
    time, energy = time[late], energy[late]
    if len(time) < 3 or np.ptp(time) == 0:
        return None
    slope = np.polyfit(time - time.mean(), energy - energy.mean(), 1)[0]
    return float(1000 * slope / (n_atoms * BOLTZMANN * temperature))
