"""`chromabuild analyse duplex`."""

from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import JsonOption, app, command, show

analyse = typer.Typer(name="analyse", no_args_is_help=True,
                      help="Measure structures.\n\n\b\nExample:\n  chromabuild analyse duplex 1kx5.cif --json")
app.add_typer(analyse)


@analyse.command()
@command
def duplex(file: Annotated[Path, typer.Argument(show_default=False, help="PDB or mmCIF file, plain or gz.")],
           json: JsonOption = False) -> None:
    """Base-pair and step parameters of every DNA duplex.

    Six parameters a base pair (shear, stretch, stagger, buckle, propeller, opening) and six a step (shift, slide, rise,
    tilt, roll, twist) after Olson et al. 2001, angstrom and degree.

    \b
    Example:
      chromabuild analyse duplex 1kx5.pdb
    """
    from chromabuild.analysis.duplex import read_duplexes, summary, table

    duplexes = read_duplexes(file)
    show({"file": str(file)} | summary(duplexes) if json else {}, json, [] if json else table(duplexes))
