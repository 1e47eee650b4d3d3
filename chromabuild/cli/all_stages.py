"""`chromabuild all`."""

from typing import Annotated

import typer

from chromabuild.base.threads import thread_count
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
from chromabuild.cli.progress import make_reporter
from chromabuild.pipeline.stages import STAGES

NAMES = [stage.name for stage in STAGES]


@app.command("all")
@command
def all_stages(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
               threads: ThreadsOption = None, json: JsonOption = False,
               force: Annotated[bool, typer.Option("--force", help="Run every stage, up to date or not.")] = False,
               until: Annotated[str, typer.Option(metavar="STAGE", help="Last stage to run.")] = NAMES[-1]) -> None:
    """Run the whole chain, or continue it.

    Stages: {stages}. A stage is left out when its outputs are there and unharmed and its inputs, settings and seed
    have not changed, so the same command continues after an interruption.

    \b
    Examples:
      chromabuild all
      chromabuild all --until clash --threads 2
      chromabuild all --set simulate.protocol=demo
    """
    from pathlib import Path

    from chromabuild.pipeline import chain

    settings = load(config, overrides, seed)
    if until not in chain.NAMES:
        raise typer.BadParameter(f"{until} is not a stage: choose from {', '.join(chain.NAMES)}",
                                 param_hint="--until")
    stages = {stage.name: {"run": was_run, "summary": summary} for stage, summary, was_run
              in chain.run_stages(settings, thread_count(threads), make_reporter(), force, until)}
    folder = Path(settings.output)
    result = {"output": str(folder), "stages": stages}
    lines = [f"output: {folder}"]
    trajectory = stages["run"]["summary"].get("trajectory") if "run" in stages else None
    if trajectory is not None:
        result["trajectory"] = str(folder / trajectory)
    if trajectory is not None and (folder / "topology.psf").is_file():  # a PSF does not hold every system
        result["topology"] = str(folder / "topology.psf")
        lines += ["", "Watch the simulation in VMD, or load it in Python:",
                  f"  vmd {result['topology']} {result['trajectory']}",
                  f"  MDAnalysis.Universe({result['topology']!r}, {result['trajectory']!r})"]
    if "report" in stages:
        result["report"] = str(folder / "report.html")
        lines += ["", "Open the report, which shows every stage, in a browser:", f"  {result['report']}"]
    show(result, json, lines)


all_stages.__doc__ = all_stages.__doc__.format(stages=", ".join(NAMES))
