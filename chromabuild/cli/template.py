"""`chromabuild template`: nucleosome structures of your own."""

from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import JsonOption, app, command, show

template = typer.Typer(name="template", no_args_is_help=True,
                       help="Build with another nucleosome structure.\n\n\b\nExample:\n  "
                            "chromabuild template add my.cif -o my.nucleosome.h5")
app.add_typer(template)

ChainsOption = Annotated[str | None, typer.Option(
    "--chains", metavar="A,B,...", show_default="all",
    help="Chains of one nucleosome, eight of histones and two of DNA, where the file holds more.")]
OutputOption = Annotated[Path | None, typer.Option(
    "--output", "-o", metavar="FILE", show_default="NAME.nucleosome.h5 in this folder", help="Where to write.")]


@template.command()
@command
def add(file: Annotated[Path, typer.Argument(show_default=False, help="PDB or mmCIF file, plain or gz.")],
        output: OutputOption = None, chains: ChainsOption = None, json: JsonOption = False) -> None:
    """Turn a nucleosome structure into a template for `build.template`.

    Histones are found by alignment, the DNA path by analysis, the dyad by superposition on 1KX5. Missing atoms, loops
    and tails are completed, clashes corrected; the result says what was done to each chain.

    \b
    Example:
      chromabuild template add my.cif
    """
    from chromabuild.template_import.template import add_template, lines

    report = add_template(file, output, chains.split(",") if chains else None)
    show(report, json, lines(report))


@template.command()
@command
def fetch(entry: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="PDB entry, e.g. 1KX5.")],
          output: OutputOption = None, chains: ChainsOption = None, json: JsonOption = False) -> None:
    """Download a PDB entry and turn it into a template, as `template add` does.

    \b
    Example:
      chromabuild template fetch 1KX5
    """
    from chromabuild.template_import.template import fetch_template, lines

    report = fetch_template(entry, output, chains.split(",") if chains else None)
    show(report, json, lines(report))
