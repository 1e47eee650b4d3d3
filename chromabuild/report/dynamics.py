"""The report's section on minimisation and dynamics: energies of all phases, averages of the last one, and RMSD."""

import re
from pathlib import Path

from chromabuild.analysis.equilibration import LEAST_SAMPLES
from chromabuild.base.summary import Summary
from chromabuild.report import html
from chromabuild.report.deviation import deviations
from chromabuild.report.downloads import figure
from chromabuild.report.run_plots import PhaseTable, run_plots, spans
from chromabuild.report.summary import equilibrated
from chromabuild.report.trace import Curves
from chromabuild.report.verdict import LEAST_PS, judge
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.result import Run


def dynamics_section(folder: Path, run: Run, summary: Summary, whose: str = "") -> str:
    """HTML on a run of an output folder, whose stage has left this summary. ``whose``: begins the names of files."""
    tables = [PhaseTable(phase.name, phase.kind, phase.energies.columns) for phase in run.phases]
    plots = run_plots(tables, summary.get("atoms"))
    captions = {"minimisation": "Minimisation.", "temperature": _temperature_caption(summary),
                "energies": "Energies of the system. At constant energy, potential and kinetic energy mirror each "
                            "other.",
                "density": "Density; that of water is about 1 g/cm³, with DNA and histones a little more.",
                "pressure": "Pressure. Single values swing by tens to hundreds of atm; their mean counts.",
                "force": "Largest force on an atom.",
                "conserved": "The conserved quantity: total energy less the heat that thermostat and barostat have "
                             "put in."}
    plots["deviation"] = Curves(deviations(folder, run), "time, ps", "RMSD from the built structure, Å", spans(tables))
    captions["deviation"] = ("Deviation after superposition: of the ordered cores of nucleosomes, each by itself (Cα), "
                             "and of all DNA (P).")
    shown = [figure(curves, captions.get(subject, f"{subject.capitalize()}."), whose + subject)
             for subject, curves in plots.items()]
    parts = [_drift_sentence(run, summary.get("drift_kT_per_ns_per_atom")),
             f'<div class="pair">{"".join(shown)}</div>' if any(shown) else ""]
    if run.dynamics:
        parts += [_averages(run.dynamics[-1].name, run.dynamics[-1].energies), _engine_timing(run.dynamics[-1].log)]
    return "".join(parts)


def _drift_sentence(run: Run, drift: float | None) -> str:
    """The drift, judged where the last phase is long enough."""
    if drift is None or not run.dynamics:
        return ""
    time = run.dynamics[-1].energies["TIME"]
    check = judge("drift_kT_per_ns_per_atom", drift)
    value = f"<b>{html.text(drift)}</b>"
    said = f"too short to be judged: the phase is shorter than {LEAST_PS:g} ps"
    if time[-1] - time[0] >= LEAST_PS:
        value = f"<b>{html.text(html.Judged(drift, check.state))}</b>"
        said = f"good: {check.bound}"
    return (f"<p>The conserved energy drifts by {value} {check.criterion.unit} ({said}), from a straight line through "
            "the second half of the last phase.</p>")


def _averages(name: str, log: EnergyLog) -> str:
    found = equilibrated(log)
    if not found:
        return ""
    rows = [(quantity, f"{one.mean:,.5g}" if abs(one.mean) < 1e5 else f"{one.mean:,.0f}",
             None if one.error is None else f"{one.error:.2g}", round(one.start, 3), round(one.samples, 1),
             html.Judged("yes", "good") if one.is_reached else html.Judged("not yet", "look"))
            for quantity, one in found.items()]
    return f"<h3>Averages of {html.text(name)}</h3>" + html.table(
        ("quantity", "mean", "block error", "from, ps", "independent samples", "equilibrated"), rows,
        note="Over the part of the phase that has most independent samples (Chodera 2016); the error is that of means "
             f"of blocks of at least two correlation times. Good: at least {LEAST_SAMPLES:g} independent samples.")


def _temperature_caption(summary: Summary) -> str:
    if summary.get("ensemble", "NVE") == "NVE":
        return "Temperature during constant-energy dynamics."
    return (f"Temperature; the thermostat is set to {summary['temperature']:g} K at the end. After minimisation it "
            "falls at first: half of the kinetic energy becomes potential energy.")


def _engine_timing(log: Path) -> str:
    """The table of times at the end of chromamd's log."""
    rows = re.findall(r"^ +([a-z][a-z ]*?) +([\d.]+) +([\d.]+) %$", log.read_text(encoding="utf-8"), re.MULTILINE)
    return html.fold("Where the time of the dynamics goes", html.table(
        ("part", "wall time, s", "share, %"), [(name, float(a), float(b)) for name, a, b in rows],
        note="For information. Good: most of it in real space; communication and pair list are the price of "
             "parallelism and of exactness.") if rows else "")
