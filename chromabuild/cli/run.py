"""`chromabuild run`."""

from enum import StrEnum
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
)
from chromabuild.cli.stage_command import run_one


class Engine(StrEnum):
    """Which program moves the atoms."""

    chromamd = "chromamd"
    openmm = "openmm"


@app.command()
@command
def run(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
        threads: ThreadsOption = None, json: JsonOption = False,
        engine: Annotated[Engine | None, typer.Option(
            help="Our own engine, or OpenMM as a second opinion; replaces `dynamics.engine`.",
            show_default="that of the settings file")] = None,
        phase: Annotated[str | None, typer.Option(
            metavar="NAME", help="Run this phase alone; those before it must be done.",
            show_default="all that are not done")] = None) -> None:
    """Minimise and run molecular dynamics: md/.

    Runs the phases of `simulate` in order and leaves out those that are done. One that was stopped goes on from its
    checkpoint. Writes a control file, a log, a trajectory and restarts for each to md/. Reads topology.h5 and the
    shards. Particle-mesh Ewald, rigid water, constrained X-H bonds, velocity Verlet, on `dynamics.ranks` MPI ranks
    times --threads threads.

    \b
    Examples:
      chromabuild run --set simulate.protocol=demo
      chromabuild run --phase heat
      chromabuild run --engine openmm
    """
    chosen = [f"dynamics.engine={engine.value}"] if engine else []
    run_one("run", config, [*overrides, *chosen], seed, threads, json, phase)
