"""Whether a build is sound: every criterion with its limit and the source of the limit. Nothing is read here."""

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_PS = 10.0
"""Shorter dynamics say nothing of drift, temperature and pressure: 100 relaxation times of the default thermostat."""
TEMPERATURE_SHARE, PRESSURE_BAND, ERRORS = 0.01, 10.0, 4.0
"""A mean may depart from what is set by a share of the temperature, by a pressure in atm (which changes the density of
water by 0.05 %), or by so many block errors, whichever is more."""


@dataclass(frozen=True)
class Criterion:
    """What is asked of a build. A finding is good up to the limit, by amount; or from it on, where ``is_least``."""

    subject: str
    limit: float
    section: str
    """Title of the section of the report that tells more."""
    source: str
    """Where the limit comes from."""
    remedy: str
    """What to do where it is not met: the imperative, without a full stop."""
    unit: str = ""
    is_must: bool = True
    """A build that does not meet it is not sound; else it is worth a look."""
    is_least: bool = False


@dataclass(frozen=True)
class Check:
    """A criterion and what was found."""

    key: str
    criterion: Criterion
    found: float | None
    """None where it cannot be judged."""
    limit: float
    reason: str = ""
    """Why it cannot be judged."""
    whose: str = ""
    """Of which part, where there are several."""

    @property
    def state(self) -> str:
        """``good``, ``bad``, ``look`` (not met, yet no reason to discard the build) or ``open`` (not judged)."""
        if self.found is None:
            return "open"
        met = self.found >= self.limit if self.criterion.is_least else abs(self.found) <= self.limit
        return "good" if met else "bad" if self.criterion.is_must else "look"

    @property
    def subject(self) -> str:
        """What is judged, in words."""
        return self.criterion.subject + (f", {self.whose}" if self.whose else "")

    @property
    def bound(self) -> str:
        """When it is good."""
        if self.criterion.is_least:
            return f"≥ {self.limit:g}"
        return f"≤ {self.limit:.4g}" if self.limit else "0"


_MINIMISER = "a minimiser cannot undo it"
_MOLPROBITY = "MolProbity (Williams et al. 2018): none expected"
_REFERENCE = "values of Gelbin et al. and Parkinson et al. 1996; 4 σ as MolProbity counts"
_OTHER_FOLD = "fold with another seed or give more room (scaffold.confinement_radius), then build again"
_BACKBONE = "see which stretch of DNA is strained; give longer linkers (locus.minimum_linker) or another seed"

CRITERIA = {
    "energy_at_rest": Criterion(
        "drift of the fibre's energy while it was sampled, in units of its noise", 1.0, "Scaffold",
        "the fibre is at rest where its energy drifts less than it fluctuates",
        "fold longer (scaffold.sweeps)", is_must=False),
    "restraints_lost": Criterion(
        "contacts of the Hi-C map that the fold has not kept", 0, "Scaffold", "each restraint was asked for",
        "fold longer (scaffold.sweeps) or look at which contacts contradict each other", is_must=False),
    "offered_shift": Criterion(
        "linkers whose twist does not fit and that were offered a shift", 0, "Solute",
        "the setting build.linker_phase_limit", "move the dyads as the table of linkers offers", is_must=False),
    "pairs_below_threshold": Criterion(
        "pairs of atoms closer than the threshold", 0, "Clashes", "Jung et al. 2019, doi:10.1002/jcc.25840",
        _OTHER_FOLD),
    "severe_pairs": Criterion(
        "pairs closer than 2.2 Å, or 1.3 Å with hydrogen", 0, "Clashes",
        "no pair of heavy atoms of the crystal 1KX5 is nearer than 2.205 Å",
        "watch the largest force of the minimisation: it removes shallow overlaps", is_must=False),
    "ring_piercings": Criterion("bonds through rings", 0, "Clashes", _MINIMISER, _OTHER_FOLD),
    "threaded_strands": Criterion("backbones between the strands of a duplex", 0, "Clashes", _MINIMISER, _OTHER_FOLD),
    "merged_molecules": Criterion("molecules within each other", 0, "Clashes", _MINIMISER, _OTHER_FOLD),
    "chirality_errors": Criterion(
        "atoms of wrong chirality", 0, "Clashes", "L amino acids and D-deoxyribose; " + _MINIMISER,
        "report it with the settings file: the builder must not do this"),
    "cis_peptides": Criterion(
        "cis peptides before other residues than proline", 0, "Clashes", _MOLPROBITY,
        "compare these residues, listed in clash_report.html, with the template", is_must=False),
    "twisted_peptides": Criterion(
        "peptides twisted by more than 30 degrees", 0, "Clashes", _MOLPROBITY,
        "compare these residues, listed in clash_report.html, with the template", is_must=False),
    "bond_outliers": Criterion("bonds of the DNA backbone beyond 4 σ", 0, "DNA", _REFERENCE, _BACKBONE),
    "angle_outliers": Criterion("angles of the DNA backbone beyond 4 σ", 0, "DNA", _REFERENCE, _BACKBONE),
    "bond_rmsz": Criterion("RMS z-score of the bonds of the DNA backbone", 1.0, "DNA",
                           "wwPDB validation: between 0 and 1", _BACKBONE, "σ"),
    "angle_rmsz": Criterion("RMS z-score of the angles of the DNA backbone", 1.0, "DNA",
                            "wwPDB validation: between 0 and 1", _BACKBONE, "σ"),
    "invariants": Criterion(
        "promises of the clash correction that were broken", 0, "Clashes",
        "each has its own limit in clash_report.html",
        "report it with the settings file: the correction must not do this"),
    "net_charge": Criterion("net charge of the box", 1e-3, "Box and ions", "Ewald sums need a neutral box",
                            "run `chromabuild solvate` again: it adds the counterions", "e"),
    "drift_kT_per_ns_per_atom": Criterion(
        "drift of the conserved energy", 2.0, "Minimisation and dynamics",
        "default tolerance of GROMACS, 0.005 kJ/mol/ps per atom, at 300 K",
        "take a shorter time step or a larger dynamics.pairlist_buffer", "kT/ns per atom"),
    "temperature_off": Criterion(
        "mean temperature less that of the thermostat", 0, "Minimisation and dynamics",
        f"{100 * TEMPERATURE_SHARE:g} % or {ERRORS:g} block errors", "equilibrate longer or shorten the time step",
        "K"),
    "pressure_off": Criterion(
        "mean pressure less that of the barostat", 0, "Minimisation and dynamics",
        f"{PRESSURE_BAND:g} atm (0.05 % of the density of water) or {ERRORS:g} block errors",
        "equilibrate longer at constant pressure", "atm"),
    "samples": Criterion(
        "independent samples of energy and density at rest", 10, "Minimisation and dynamics",
        "Chodera 2016, doi:10.1021/acs.jctc.5b00784; fewer do not show that it is at rest",
        "simulate longer (`chromabuild run --extend`)", is_must=False, is_least=True),
}
"""By the name of the measure in the records, where it has one."""


def judge(key: str, found: float | None, limit: float | None = None, reason: str = "", whose: str = "") -> Check:
    """The check of one finding. ``limit``: of this build, where it is not that of the criterion; ``reason``: why there
    is nothing to judge."""
    criterion = CRITERIA[key]
    return Check(key, criterion, found, criterion.limit if limit is None else limit, reason, whose)


def temperature_limit(target: float, error: float) -> float:
    """How far (K) a mean temperature with this block error may be from its target."""
    return max(TEMPERATURE_SHARE * target, ERRORS * error)


def pressure_limit(error: float) -> float:
    """How far (atm) a mean pressure with this block error may be from what is set."""
    return max(PRESSURE_BAND, ERRORS * error)


@dataclass(frozen=True)
class Verdict:
    """All checks of a build."""

    checks: Sequence[Check]
    missing: Sequence[str] = ()
    """Names of stages that were not run, in order."""

    def of(self, state: str) -> list[Check]:
        """The checks in a state."""
        return [check for check in self.checks if check.state == state]

    @property
    def state(self) -> str:
        """The worst of what was judged; ``open`` where nothing was."""
        return next((state for state in ("bad", "look", "good") if self.of(state)), "open")

    def sections(self) -> dict[str, str]:
        """Title of a section to the worst state there, where that is ``bad`` or ``look``."""
        return {check.criterion.section: check.state for state in ("look", "bad") for check in self.of(state)}
