"""Phases of every kind that an export has to write: held, heated, released, at constant pressure."""

from chromabuild.base.settings import SimulateSection
from chromabuild.simulate.protocol import PlannedPhase, plan_phases


def every_kind(pressure_steps: int, output_period: int) -> list[dict]:
    """As `simulate.phases` has them; ``pressure_steps`` at constant pressure."""
    return [
        {"name": "minimise", "kind": "minimise", "steps": 20, "restraints": [{"group": "heavy", "constant": 5}]},
        {"name": "heat", "steps": 100, "temperature": [100, 300], "hydrogen_mass_factor": 3, "end_pairs": 2,
         "output_period": 5, "trajectory_period": 2,
         "restraints": [{"group": "heavy", "constant": [5, 1]}, {"group": "backbone", "constant": 20}]},
        {"name": "equilibrate", "steps": pressure_steps, "ensemble": "NPT", "pressure": 2,
         "output_period": output_period, "trajectory_period": 1000},
        {"name": "produce", "steps": 20, "output_period": 5, "trajectory_period": 10,
         "restraints": [{"group": "backbone", "constant": 3}]}]


def planned(phases: list[dict]) -> list[PlannedPhase]:
    """What the protocol makes of them."""
    return plan_phases(SimulateSection(protocol=None, phases=phases))
