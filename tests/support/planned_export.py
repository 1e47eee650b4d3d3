"""A protocol with all that a phase can have, for the tests of exports to programs that no registry carries."""

from chromabuild.base.settings import DynamicsSection, SimulateSection
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.protocol import plan_phases

PHASES = [{"name": "minimise", "kind": "minimise", "steps": 50, "restraints": [{"group": "heavy", "constant": 5}]},
          {"name": "heat", "steps": 1000, "temperature": [100, 300], "hydrogen_mass_factor": 3, "end_pairs": 2,
           "output_period": 10, "trajectory_period": 20,
           "restraints": [{"group": "heavy", "constant": [5, 1]}, {"group": "backbone", "constant": 20}]},
          {"name": "produce", "steps": 2000, "ensemble": "NPT", "pressure": 2, "output_period": 50,
           "trajectory_period": 100, "timestep": 4, "hydrogen_mass_factor": 3}]
DYNAMICS = DynamicsSection(cutoff=8.0, trajectory_selection="solute")
BONDS = [EndBond((3, 70), 2.95)]


def planned(phases=PHASES):
    """As the exports take them."""
    return plan_phases(SimulateSection(protocol=None, phases=phases))
