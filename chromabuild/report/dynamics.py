"""The report's section on minimisation and dynamics: energies of all phases, averages of the last one, and RMSD."""

import re
from pathlib import Path

from chromabuild.analysis.equilibration import LEAST_SAMPLES
from chromabuild.base.summary import Summary
from chromabuild.report import html
from chromabuild.report.deviation import deviations
from chromabuild.report.run_plots import PhaseTable, run_plots, spans
from chromabuild.report.summary import equilibrated
from chromabuild.report.trace import trace_plot
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.result import Run


def dynamics_section(folder: Path, summary: Summary) -> str:
    """HTML on the run in an output folder, whose stage has left this summary."""
    run = Run.read(folder / "md")
    tables = [PhaseTable(phase.name, phase.kind, phase.energies.columns) for phase in run.phases]
    plots = run_plots(tables, summary.get("atoms"))
    captions = {"minimisation": "Minimisation.", "temperature": _temperature_caption(summary),
                "energies": "Energies of the system. At constant energy, potential and kinetic energy mirror each "
                            "other.",
                "conserved": "The conserved quantity: total energy less the heat that thermostat and barostat have "
                             "put in."}
    shown = [html.plot(plot, captions.get(subject, "")) for subject, plot in plots.items()]
    shown += [html.plot(plot, caption) for plot, caption in _deviation(folder, run, tables)]
    parts = [f'<div class="pair">{"".join(shown)}</div>']
    drift = summary.get("drift_kT_per_ns_per_atom")
    if drift is not None:
        parts.append(f"<p>Drift of the conserved quantity: <b>{html.text(drift)}</b> kT/ns per atom, from a straight "
                     "line through the second half of the last phase.</p>")
    if run.dynamics:
        parts += [_averages(run.dynamics[-1].name, run.dynamics[-1].energies), _engine_timing(run.dynamics[-1].log)]
    return "".join(parts)


def _averages(name: str, log: EnergyLog) -> str:
    found = equilibrated(log)
    if not found:
        return ""
    rows = [(quantity, f"{one.mean:,.5g}" if abs(one.mean) < 1e5 else f"{one.mean:,.0f}",
             None if one.error is None else f"{one.error:.2g}", round(one.start, 3), round(one.samples, 1),
             "yes" if one.is_reached else f"fewer than {LEAST_SAMPLES:g} samples") for quantity, one in found.items()]
    return (f"<h3>Averages of {html.text(name)}</h3><p>Over the part of the phase that has most independent samples "
            "(Chodera 2016); the error is that of means of blocks of at least two correlation times.</p>"
            + html.table(("quantity", "mean", "block error", "from, ps", "independent samples", "equilibrated"), rows))


def _deviation(folder: Path, run: Run, tables: list[PhaseTable]) -> list[tuple[str, str]]:
    series = deviations(folder, run)
    plot = trace_plot(series, "time, ps", "RMSD from the built structure, Å", spans(tables))
    return [(plot, "Deviation after superposition: of the ordered cores of nucleosomes, each by itself (Cα), and of "
             "all DNA (P).")] if plot else []


def _temperature_caption(summary: Summary) -> str:
    if summary.get("ensemble", "NVE") == "NVE":
        return "Temperature during constant-energy dynamics."
    return (f"Temperature; the thermostat is set to {summary['temperature']:g} K at the end. After minimisation it "
            "falls at first: half of the kinetic energy becomes potential energy.")


def _engine_timing(log: Path) -> str:
    """The table of times at the end of chromamd's log."""
    rows = re.findall(r"^ +([a-z][a-z ]*?) +([\d.]+) +([\d.]+) %$", log.read_text(encoding="utf-8"), re.MULTILINE)
    return "<h3>Where the time of the dynamics goes</h3>" + html.table(
        ("part", "seconds", "%"), [(name, float(a), float(b)) for name, a, b in rows]) if rows else ""
