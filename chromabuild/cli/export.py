"""`chromabuild export gromacs`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SeedOption,
    SetOption,
    app,
    command,
    load,
    show,
)
from chromabuild.cli.stage_command import summary_lines

export = typer.Typer(name="export", no_args_is_help=True,
                     help="Write results for other programs.\n\n\b\nExample:\n  chromabuild export gromacs")
app.add_typer(export)


class Part(StrEnum):
    """What is exported."""

    system = "system"
    solute = "solute"


@export.command()
@command
def gromacs(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
            part: Annotated[Part, typer.Option(
                help="The whole system with its protocol, or the solute alone without one.")] = Part.system,
            after: Annotated[str | None, typer.Option(
                metavar="PHASE", help="Coordinates at the end of this phase of the dynamics.",
                show_default="as built")] = None,
            output: Annotated[Path | None, typer.Option(
                "--output", "-o", metavar="FOLDER", help="Where to write.",
                show_default="export/gromacs in the output folder")] = None,
            force: Annotated[bool, typer.Option("--force", help="Replace an export that is there.")] = False,
            json: JsonOption = False) -> None:
    """GROMACS input: system.top with an itp file for each kind of molecule, system.gro, index.ndx, and an mdp file for
    each phase of the protocol.

    run.sh runs the phases in turn. energy.mdp gives the energies of the coordinates, to compare. Reads topology.h5 and
    the shards; needs `chromabuild topology`.

    \b
    Examples:
      chromabuild export gromacs
      chromabuild export gromacs --after equilibrate --output from-equilibrated
      chromabuild export gromacs --part solute
    """
    from chromabuild.pipeline.export import export_for_gromacs

    summary = export_for_gromacs(load(config, overrides, seed), output, part.value, after, force)
    show(summary, json, [*summary_lines({key: value for key, value in summary.items() if key != "files"}),
                         f"files: {', '.join(summary['files'])}", f"next: {summary['folder']}/run.sh"])
