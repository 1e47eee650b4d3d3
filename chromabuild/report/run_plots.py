"""Plots of the phases of a run, finished or not, from their energy tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chromabuild.base.constants import BOLTZMANN
from chromabuild.report.summary import energy_drift
from chromabuild.report.trace import Curves


@dataclass(frozen=True)
class PhaseTable:
    """The energy table of one phase."""

    name: str
    kind: str
    """``minimise`` or ``dynamics``."""
    columns: Mapping[str, np.ndarray]
    """Name to (rows,), in the units of the log; at least one row."""
    kelvin: float | None = None
    """Of the thermostat: the drift is then told in its kT, in the title of the conserved energy."""


def run_plots(phases: Sequence[PhaseTable], atoms: int | None) -> dict[str, Curves]:
    """Curves by subject: ``minimisation``, ``temperature``, ``density``, ``pressure``, ``energies``, ``conserved``,
    ``force``; what the tables do not hold, or what does not change, is left out. ``atoms``: of the system, if known.
    """
    rested = [phase for phase in phases if phase.kind == "minimise"]
    moved = [phase for phase in phases if phase.kind == "dynamics"]
    plots = {
        "minimisation": Curves({phase.name: (phase.columns["STEP"], phase.columns["POTENTIAL_ENE"] / 1000)
                                for phase in rested}, "step of minimisation", "potential energy, Mcal/mol"),
        "temperature": _plot(moved, {"solute": "TEMP_SOLUTE", "solvent": "TEMP_SOLVENT"}, "temperature, K")
        or _plot(moved, {"temperature": "TEMPERATURE"}, "temperature, K"),
        "density": _plot(moved, {"density": "DENSITY"}, "density, g/cm³"),
        "pressure": _plot(moved, {"pressure": "PRESSURE"}, "pressure, atm"),
        "energies": _plot(moved, {"potential": "POTENTIAL_ENE", "kinetic": "KINETIC_ENE", "total": "TOTAL_ENE"},
                          "change of energy, Mcal/mol", 1e-3, from_start=True),
        "conserved": _conserved(moved, atoms),
        "force": _plot(moved, {"largest": "MAX_FORCE"}, "largest force on an atom, kcal/mol/Å", logarithmic=True),
    }
    return {subject: plot for subject, plot in plots.items() if plot and plot.series}


def spans(phases: Sequence[PhaseTable]) -> list[tuple[str, float, float]]:
    """Names of the phases of dynamics, and when each began and ended, ps."""
    return [(phase.name, float(phase.columns["TIME"][0]), float(phase.columns["TIME"][-1]))
            for phase in phases if phase.kind == "dynamics"]


def _plot(phases: Sequence[PhaseTable], columns: Mapping[str, str], title: str, unit: float = 1.0,
          from_start: bool = False, logarithmic: bool = False) -> str:
    """One plot of columns that all phases have; those that are zero throughout are left out."""
    series = {}
    for name, column in columns.items():
        if phases and all(column in phase.columns for phase in phases):
            time, values = (np.concatenate([phase.columns[key] for phase in phases]) for key in ("TIME", column))
            if values.any():
                series[name] = (time, unit * (values - values[0] if from_start else values))
    if all(np.ptp(values) == 0 for _, values in series.values()):  # e.g. the density at constant volume
        return None
    return Curves(series, "time, ps", title, spans(phases), logarithmic)


def _conserved(phases: Sequence[PhaseTable], atoms: int | None) -> Curves | None:
    """The change of the conserved energy, joined from phase to phase, with its drift in the last one.

    Energies are shown in kT of the mean temperature of their phase.
    """
    if not phases or not atoms or not all("CONSERVED_ENE" in phase.columns for phase in phases):
        return None
    parts, level = [], 0.0
    for phase in phases:
        energy, kelvin = phase.columns["CONSERVED_ENE"], float(phase.columns["TEMPERATURE"].mean())
        if not kelvin > 0:
            return None
        scaled = (energy - energy[0]) / (atoms * BOLTZMANN * kelvin)
        parts.append(level + scaled)
        level += float(scaled[-1])
    last, kelvin = phases[-1].columns, phases[-1].kelvin
    drift = None if kelvin is None else energy_drift(last["TIME"], last["CONSERVED_ENE"], atoms, kelvin)
    said = "" if drift is None else f" ({drift:+.3g} kT/ns/atom in {phases[-1].name})".replace("-", "\u2212")
    time = np.concatenate([phase.columns["TIME"] for phase in phases])
    return Curves({"conserved": (time, np.concatenate(parts))}, "time, ps",
                  "change of the conserved energy, kT/atom" + said, spans(phases))
