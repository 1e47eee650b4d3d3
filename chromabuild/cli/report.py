"""`chromabuild report`."""

from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SeedOption,
    SetOption,
    ThreadsOption,
    app,
    command,
)
from chromabuild.cli.stage_command import run_one


@app.command()
@command
def report(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
           threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Write report.html: pictures, tables, plots.

    One file of the whole build that needs no network. Reads what the other stages wrote and leaves out what is not
    there yet.

    \b
    Example:
      chromabuild report && xdg-open results/report.html
    """
    run_one("report", config, overrides, seed, threads, json)
