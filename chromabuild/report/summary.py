"""Numbers that describe a run."""

import numpy as np

from chromabuild.analysis.equilibration import Equilibration, equilibration
from chromabuild.base.constants import BOLTZMANN
from chromabuild.simulate.energy_log import EnergyLog

AVERAGED = {"temperature, K": "TEMPERATURE", "temperature of the solute, K": "TEMP_SOLUTE",
            "temperature of the solvent, K": "TEMP_SOLVENT", "density, g/cm³": "DENSITY", "pressure, atm": "PRESSURE",
            "potential energy, kcal/mol": "POTENTIAL_ENE"}
"""What is averaged over a phase of dynamics, and the column that holds it."""


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


def equilibrated(log: EnergyLog) -> dict[str, Equilibration]:
    """The equilibrated part of every quantity of ``AVERAGED`` that a phase has and that changes in it."""
    found = {name: equilibration(log["TIME"], log[column]) for name, column in AVERAGED.items()
             if column in log.columns}
    return {name: one for name, one in found.items() if one is not None}
