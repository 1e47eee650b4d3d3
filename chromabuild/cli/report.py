"""`chromabuild report`."""

import sys
from typing import Annotated

import typer

from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SeedOption,
    SetOption,
    ThreadsOption,
    app,
    command,
    load,
    show,
)
from chromabuild.cli.stage_command import run_one, summary_lines


@app.command()
@command
def report(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
           threads: ThreadsOption = None, json: JsonOption = False,
           watch: Annotated[bool, typer.Option(
               "--watch", help="Write watch.html again and again while a run goes on: phases, speed, health.")] = False,
           every: Annotated[float, typer.Option(
               min=1, metavar="SECONDS", help="With --watch: time between two pages.")] = 20.0) -> None:
    """Write report.html: pictures, tables, plots.

    One file of the whole build that needs no network. Reads what the other stages wrote and leaves out what is not
    there yet. With --watch it writes watch.html instead, which follows a run and reloads itself, until the last phase
    is done or Ctrl-C; the run is not disturbed.

    \b
    Examples:
      chromabuild report && xdg-open results/report.html
      chromabuild report --watch
    """
    if not watch:
        run_one("report", config, overrides, seed, threads, json)
        return
    from chromabuild.report.watch import FILE_NAME, watch_run

    settings = load(config, overrides, seed)
    print(f"open {settings.output}/{FILE_NAME} in a browser; Ctrl-C ends the watch, not the run", file=sys.stderr)
    summary = watch_run(settings, every, lambda line: print(line, file=sys.stderr, flush=True))
    show({"stage": "report", "outputs": [str(summary["page"])], "summary": summary}, json, summary_lines(summary))
