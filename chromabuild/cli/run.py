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
    load,
)
from chromabuild.cli.stage_command import run_one
from chromabuild.pipeline.stages import RunPart


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
            show_default="all that are not done")] = None,
        replica: Annotated[int | None, typer.Option(
            metavar="K", min=1, help="Run this one of `simulate.replicas` alone.",
            show_default="all in order")] = None,
        extend: Annotated[str | None, typer.Option(
            metavar="LENGTH", help="Go on with the last phase, which is done, by so much, e.g. '10 ns'.",
            show_default=False)] = None) -> None:
    """Minimise and run molecular dynamics: md/.

    Runs the phases of `simulate` in order and leaves out those that are done. One that was stopped goes on from its
    checkpoint; repeat the same command, with --extend too. Writes a control file, a log, a trajectory and restarts for
    each to md/. Reads topology.h5 and the shards. Particle-mesh Ewald, rigid water, constrained X-H bonds, velocity
    Verlet, on `dynamics.ranks` MPI ranks times --threads threads.

    \b
    Examples:
      chromabuild run --set simulate.protocol=demo
      chromabuild run --phase heat
      chromabuild run --replica 2
      chromabuild run --extend "10 ns"
      chromabuild run --engine openmm
    """
    chosen = [*overrides, *([f"dynamics.engine={engine.value}"] if engine else [])]
    if extend is not None:
        from chromabuild.pipeline.extension import extend_run

        if phase is not None:
            raise typer.BadParameter("--extend goes on with the last phase: leave --phase out", param_hint="--extend")
        extend_run(load(config, chosen, seed), extend, replica)
    part = RunPart(phase, replica) if phase is not None or replica is not None else None
    run_one("run", config, chosen, seed, threads, json, part)
