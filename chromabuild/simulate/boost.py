"""Phases with a Gaussian boost (GaMD): what one has learnt goes into the control file of the next, and what is left
when the boost is taken out again."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.constants import BOLTZMANN
from chromabuild.base.errors import BadInputError
from chromabuild.base.phases import Boost
from chromabuild.simulate.energy_log import EnergyLog

_KINDS = {"both": "DUAL", "torsions": "DIHEDRAL", "potential": "POTENTIAL"}
_UNKNOWN = {f"{energy}_{key}": value for energy in ("POT", "DIH")
            for key, value in (("MAX", 1.0), ("MIN", -1.0), ("AVE", 0.0), ("DEV", 0.5))}
"""Stand in for what phases before are yet to learn, when a control file is checked."""
COLUMNS = {"both": ("POTENTIAL_GAMD", "DIHEDRAL_GAMD"), "torsions": ("DIHEDRAL_GAMD",),
           "potential": ("POTENTIAL_GAMD",)}
"""Of the log: what is added to the energies."""


def boost_section(boost: Boost, source: Path | None) -> dict[str, object]:
    """[GAMD] of a phase. ``source``: the file of what was learnt before, which may be missing before the run.

    Raises BadInputError when that file holds no values.
    """
    section: dict[str, object] = {
        "gamd": True, "boost": boost.mode != "watch", "boost_type": _KINDS[boost.energies],
        "thresh_type": boost.threshold.upper(), "sigma0_pot": boost.potential_deviation,
        "sigma0_dih": boost.torsion_deviation, "update_period": 0 if boost.mode == "hold" else boost.period}
    if source is None:
        return section
    known = last_values(source) if source.exists() else _UNKNOWN
    return section | {key.lower(): value for key, value in known.items() if key != "STEP"}


def last_values(path: Path) -> dict[str, float]:
    """The last row of a file of learnt energies: STEP, POT_MAX, ... DIH_DEV (kcal/mol).

    Raises BadInputError when there is none.
    """
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in lines[1:] if len(row) == len(lines[0])]
    try:
        return dict(zip(lines[0], map(float, rows[-1]), strict=True))
    except (IndexError, ValueError):
        raise BadInputError(f"{path} holds no energies that a boost can begin with: run that phase again") from None


@dataclass(frozen=True)
class BoostReport:
    """What a boost has done to an ensemble."""

    mean: float
    deviation: float
    """Kcal/mol."""
    effective_share: float
    """Of the rows of the log, what is left of them as independent samples once each has its weight (Kish)."""

    @classmethod
    def of(cls, log: EnergyLog, boost: Boost, temperature: float) -> "BoostReport":
        """From the energies of a phase, whose weights are exp(boost/kT) of ``temperature`` (K)."""
        added = sum((log[name] for name in COLUMNS[boost.energies]), np.zeros(len(log)))
        weight = np.exp((added - added.max()) / (BOLTZMANN * temperature))
        return cls(float(added.mean()), float(added.std()), float(weight.sum()**2 / (weight**2).sum() / len(added)))
