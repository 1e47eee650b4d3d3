"""`chromabuild view`."""

from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SetOption,
    app,
    command,
    load,
    show,
)
from chromabuild.cli.stage_command import summary_lines


@app.command()
@command
def view(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
         output: Annotated[Path | None, typer.Option(
             "--output", "-o", metavar="FOLDER", help="Where to write.",
             show_default="view in the output folder")] = None,
         track: Annotated[list[Path], typer.Option(
             "--track", metavar="FILE", show_default=False,
             help="BED file of genes or other features to show along the sequence; may be repeated.")] = [],  # noqa: B006
         frames: Annotated[int, typer.Option(
             "--frames", min=0, metavar="N", help="Frames of the dynamics to keep at most, evenly chosen.")] = 20,
         force: Annotated[bool, typer.Option("--force", help="Replace a page that is there.")] = False,
         json: JsonOption = False) -> None:
    """Write a page that shows the locus in a browser.

    In three dimensions, along the sequence and as a map of contacts. It is a folder of static files: open its
    index.html from disk, without a server or a network. Needs `chromabuild scaffold`; shows atoms where `chromabuild
    build` is done, and frames where dynamics is.

    \b
    Examples:
      chromabuild view && xdg-open results/view/index.html
      chromabuild view --track genes.bed --output shown
    """
    from chromabuild.pipeline.view import view_results

    summary = view_results(load(config, overrides, None), output, track, frames, force)
    show(summary, json, summary_lines(summary))
