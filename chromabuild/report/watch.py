"""watch.html: how far a simulation is and how it fares, while it runs. Only the run's own small files are read."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from chromabuild import __version__
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.report import html
from chromabuild.report.run_plots import PhaseTable, run_plots
from chromabuild.simulate.live import LiveRun
from chromabuild.simulate.protocol import phases_in

FILE_NAME = "watch.html"
_NICENESS = 10
"""What the pages are drawn with: the run has the cores."""


def watch_run(config: Settings, seconds: float, tell: Callable[[str], None]) -> Summary:
    """Write ``watch.html`` every so many seconds until the last phase is done or Ctrl-C. Gives the last state.

    ``tell`` receives one line whenever the page is written. Raises BadInputError when there are no phases.
    """
    page = Path(config.output) / FILE_NAME
    folder = Path(config.output) / "md"
    run = LiveRun(folder, phases_in(folder, config.simulate))
    if not run.phases:
        raise BadInputError("simulate has no phases to watch: choose a simulate.protocol")
    with suppress(OSError):
        os.nice(_NICENESS)
    with suppress(KeyboardInterrupt):
        while True:
            run.look()
            write_page(config, run, page, None if run.is_done else seconds)
            tell(_line(run))
            if run.is_done:
                break
            time.sleep(seconds)
    return {"page": str(page), "phase": run.current.plan.name, "state": run.current.state,
            "steps_done": run.current.steps_done, "steps": run.current.plan.steps}


def write_page(config: Settings, run: LiveRun, page: Path, refresh: float | None) -> None:
    """Write the page of what was seen at the last look. ``refresh``: it reloads itself after so many s; None: never."""
    name = config.locus.name
    clock = time.strftime("%Y-%m-%d %H:%M:%S")
    ends = "The last phase is done." if refresh is None else f"Written again every {refresh:g} s."
    body = (f"<h1>{html.text(name)}</h1><p class=lead>{_lead(run)}</p>{_alert(run)}{_bar(_share(run))}"
            f"{html.tiles(_tiles(run))}{html.section('Phases', _phase_table(run))}"
            f"{html.section('Health', _plots(run))}"
            f"<footer>{html.text(clock)}, chromabuild {html.text(__version__)}. {ends}</footer>")
    with atomic_path(page) as part:
        part.write_text(html.page(f"{name}: the run", body, html.page_style(), refresh=refresh), encoding="utf-8")


def _line(run: LiveRun) -> str:
    phase = run.current
    left = f", {_time(run.seconds_left)} left" if run.seconds_left else ""
    return f"{phase.plan.name}: {phase.state}, step {phase.steps_done} of {phase.plan.steps}{left}"


def _share(run: LiveRun) -> float:
    """Finished share of the whole, by the time of the phases where it is known, else by their steps."""
    cost = [phase.plan.steps * (phase.seconds_per_step or 0.0) for phase in run.phases]
    if not all(cost):
        cost = [float(phase.plan.steps) for phase in run.phases]
    return sum(c * phase.share for c, phase in zip(cost, run.phases, strict=True)) / sum(cost)


def _lead(run: LiveRun) -> str:
    phase, n = run.current, len(run.phases)
    atoms = f"{html.text(run.atoms)} atoms. " if run.atoms else ""
    if run.is_done:
        return f"{atoms}All {n} phases are done."
    where = f"Phase {phase.plan.number} of {n}, <b>{html.text(phase.plan.name)}</b>"
    said = {"waiting": "has not begun", "running": "is running", "stopped": "has stopped",
            "quiet": f"has written nothing for {_time(phase.silence or 0.0)}"}
    return f"{atoms}{where}, {said[phase.state]}."


def _alert(run: LiveRun) -> str:
    message = run.current.message
    return f'<p class="alert"><b>{html.text(run.current.plan.name)}</b>: {html.text(message)}</p>' if message else ""


def _bar(share: float) -> str:
    return f'<div class="bar"><i style="width: {100 * share:.1f}%"></i></div>'


def _tiles(run: LiveRun) -> list[tuple[str, object]]:
    phase = run.current
    last = phase.tail.last or next((p.tail.last for p in reversed(run.phases) if p.tail.last), None) or {}
    left = None if phase.state in ("done", "stopped") else run.seconds_left
    values: list[tuple[str, object]] = [
        ("of all phases done", f"{100 * _share(run):.0f} %"),
        ("left", _time(left) if left is not None else None),
        ("ends about", time.strftime("%a %H:%M", time.localtime(time.time() + left)) if left is not None else None),
        ("ns/day", phase.ns_per_day),
        ("since the last checkpoint", None if phase.checkpoint_age is None else _time(phase.checkpoint_age)),
        ("solute, K", _shown(last.get("TEMP_SOLUTE"), 1)), ("solvent, K", _shown(last.get("TEMP_SOLVENT"), 1)),
        ("density, g/cm³", _shown(last.get("DENSITY"), 4)), ("pressure, atm", _shown(last.get("PRESSURE"), 0)),
        ("largest force, kcal/mol/Å", _shown(last.get("MAX_FORCE"), 0))]
    moves = phase.plan.kind == "dynamics"
    return [(name, value) for name, value in values
            if value is not None and (moves or name not in ("solute, K", "solvent, K", "pressure, atm"))]


def _shown(value: float | None, decimals: int) -> str | None:
    """A value that is there and not zero, which the engine writes where there is none."""
    return f"{value:,.{decimals}f}".replace(",", "\u202f") if value else None


def _phase_table(run: LiveRun) -> str:
    names = {"done": "✓ done", "running": "● running", "quiet": "○ quiet", "stopped": "✗ stopped", "waiting": "waiting"}
    head = "".join(f"<th{' class=number' if name in ('step', 'left') else ''}>{name}</th>"
                   for name in ("phase", "", "state", "step", "", "speed", "left", "checkpoint"))
    rows = []
    for phase in run.phases:
        plan = phase.plan
        kind = (f"{plan.ensemble}, {_kelvin(plan.temperature)}, {_picoseconds(plan.simulated)}"
                if plan.kind == "dynamics" else "minimisation") + (", held" if plan.restraints else "")
        speed = (f"{phase.ns_per_day:.3g} ns/day" if phase.ns_per_day else
                 f"{1000 * phase.seconds_per_step:.3g} ms/step" if phase.seconds_per_step else "")
        left = _time(phase.seconds_left) if phase.seconds_left else ""
        mark = "" if phase.checkpoint_step is None else f"step {html.text(phase.checkpoint_step)}"
        rows.append(f'<tr class="{phase.state}"><td><b>{html.text(plan.name)}</b></td><td>{html.text(kind)}</td>'
                    f"<td class=state>{names[phase.state]}</td>"
                    f"<td class=number>{html.text(phase.steps_done)} / {html.text(plan.steps)}</td>"
                    f"<td class=small>{_bar(phase.share)}</td><td>{speed}</td><td class=number>{left}</td>"
                    f"<td>{mark}</td></tr>")
    return (f'<div class="scroll"><table class="phases"><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>")


def _kelvin(temperature: tuple[float, float]) -> str:
    start, end = temperature
    return f"{start:g} K" if start == end else f"{start:g} to {end:g} K"


def _picoseconds(length: float) -> str:
    return f"{length / 1000:g} ns" if length >= 1000 else f"{length:g} ps"


def _time(seconds: float) -> str:
    """A duration for people, with two units at most."""
    for size, unit, smaller, per in ((86400, "d", "h", 24), (3600, "h", "min", 60), (60, "min", "s", 60)):
        if seconds >= size:
            whole, rest = divmod(round(seconds * per / size), per)
            return f"{whole} {unit} {rest} {smaller}" if rest and whole < 10 else f"{whole} {unit}"
    return f"{seconds:.0f} s"


def _plots(run: LiveRun) -> str:
    tables = [PhaseTable(phase.plan.name, phase.plan.kind, phase.tail.columns,
                         max(phase.plan.temperature))
              for phase in run.phases if phase.tail.last]
    plots = run_plots(tables, run.atoms)
    drawn = (curves.svg() for curves in plots.values())
    shown = "".join(f"<figure>{svg}</figure>" for svg in drawn if svg)
    return f'<div class="pair">{shown}</div>' if shown else "<p>No energies have been written yet.</p>"
