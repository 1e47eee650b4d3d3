"""What the records and files of an output folder have to say to the criteria of soundness."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from chromabuild.base.record import StageRecord
from chromabuild.base.summary import Summary
from chromabuild.report.summary import energy_drift, equilibrated
from chromabuild.report.verdict import (
    CRITERIA,
    LEAST_PS,
    Check,
    Verdict,
    judge,
    pressure_limit,
    temperature_limit,
)
from chromabuild.simulate.replicas import replica_folder
from chromabuild.simulate.result import PhaseFiles, Run

STAGES = ("scaffold", "build", "clash", "solvate", "topology", "run")
"""Those that a whole build has."""
_AT_REST = ("potential energy, kcal/mol", "density, g/cm³")


def verdict_of(folder: Path, stages: Mapping[str, StageRecord]) -> Verdict:
    """All checks of what was run. Raises BadInputError when a log of the dynamics is missing."""
    summaries = {name: stage["summary"] for name, stage in stages.items()}
    checks = [*_fibre(summaries.get("scaffold", {})), *_linkers(summaries.get("build", {}))]
    path = folder / "clash_report.json"
    if path.is_file():
        checks += clash_checks(json.loads(path.read_text(encoding="utf-8")))
    else:
        checks += measured(summaries.get("build", {}), ("bond_outliers", "angle_outliers", "bond_rmsz", "angle_rmsz"))
    checks += _charge(summaries)
    if "run" in summaries:
        checks += _dynamics(folder, summaries["run"])
    return Verdict(checks, [name for name in STAGES if name not in stages])


def clash_checks(data: Mapping) -> list[Check]:
    """Checks of a clash report (docs/reference/file-formats.md), of the state that it ends with."""
    last = data.get("after") or data["before"]
    broken = [name for name, item in data["invariants"].items() if not item["holds"]]
    subjects = ("Clashes",) if last.get("bond_rmsz", 0) is None else ("Clashes", "DNA")  # None: there is no DNA
    return (measured(last, [key for key, one in CRITERIA.items() if one.section in subjects],
                     f"{data['threshold']} Å")
            + ([judge("invariants", len(broken))] if data["invariants"] else []))


def measured(found: Mapping, keys: object, threshold: str = "") -> list[Check]:
    """Checks of those measures that are there: numbers, or lists with their count."""
    checks = []
    for key in keys:
        value = found.get(key)
        value = value.get("count") if isinstance(value, dict) else value
        if value is not None:
            checks.append(judge(key, value, whose=threshold if key == "pairs_below_threshold" else ""))
    return checks


def _fibre(summary: Summary) -> Iterator[Check]:
    if summary.get("energy_noise_kbt"):
        yield judge("energy_at_rest", abs(summary["energy_drift_kbt"]) / summary["energy_noise_kbt"])
    elif summary:
        yield judge("energy_at_rest", None, reason="its energy was not followed")
    if summary.get("restraints"):
        yield judge("restraints_lost", summary["restraints"] - summary.get("restraints_kept", 0))


def _linkers(summary: Summary) -> Iterator[Check]:
    if "linkers" in summary:
        yield judge("offered_shift", sum(bool(linker.get("offered_shift")) for linker in summary["linkers"]))


def _charge(summaries: Mapping[str, Summary]) -> Iterator[Check]:
    for name, whose in (("solvate", "by the ions that were added"), ("topology", "by the force field")):
        if "net_charge" in summaries.get(name, {}):
            yield judge("net_charge", summaries[name]["net_charge"], whose=whose)


def _dynamics(folder: Path, summary: Summary) -> Iterator[Check]:
    replicas = summary.get("replica_runs") or [{}]
    for one in replicas:
        where = replica_folder(folder / "md", one["replica"]) if one else folder / "md"
        run = Run.read(where)
        if run.dynamics:
            yield from phase_checks(run.dynamics[-1], summary, f"replica {one['replica']}" if one else "")


def phase_checks(phase: PhaseFiles, summary: Summary, whose: str = "") -> Iterator[Check]:
    """Checks of the last phase of dynamics; ``summary``: of the stage."""
    log, settings = phase.energies, _settings(phase, summary)
    length = float(log["TIME"][-1] - log["TIME"][0])
    if length < LEAST_PS:
        yield judge("drift_kT_per_ns_per_atom", None, whose=whose,
                    reason=f"{length:.3g} ps of dynamics are too short: at least {LEAST_PS:g} ps")
        return
    atoms, (start, end) = summary.get("atoms"), settings["temperature"]
    drift = (energy_drift(log["TIME"], log.conserved, atoms, max(start, end))
             if atoms and log.conserved is not None else None)
    yield judge("drift_kT_per_ns_per_atom", drift, whose=whose,
                reason="" if drift is not None else "the log has no conserved energy, or too few values")
    found = equilibrated(log)
    temperature, pressure = found.get("temperature, K"), found.get("pressure, atm")
    if settings["ensemble"] != "NVE" and start == end:
        if temperature is None or temperature.error is None:
            yield judge("temperature_off", None, whose=whose, reason="too few independent values")
        else:
            yield judge("temperature_off", temperature.mean - end, temperature_limit(end, temperature.error),
                        whose=whose)
    if settings["ensemble"] == "NPT" and settings["pressure"] is not None:
        if pressure is None or pressure.error is None:
            yield judge("pressure_off", None, whose=whose, reason="too few independent values")
        else:
            yield judge("pressure_off", pressure.mean - settings["pressure"], pressure_limit(pressure.error),
                        whose=whose)
    samples = [found[name].samples for name in _AT_REST if name in found]
    yield judge("samples", min(samples) if samples else None, whose=whose,
                reason="" if samples else "too few values")


def _settings(phase: PhaseFiles, summary: Summary) -> dict:
    """Ensemble, temperature (first, last; K) and pressure (atm) of a phase, from what the engine was told."""
    path = phase.log.with_suffix(".json")
    told = json.loads(path.read_text(encoding="utf-8"))["description"]["phase"] if path.is_file() else {}
    kelvin = summary.get("temperature", 300.0)
    return {"ensemble": told.get("ensemble", summary.get("ensemble", "NVE")),
            "temperature": tuple(told.get("temperature", (kelvin, kelvin))), "pressure": told.get("pressure")}
