"""`chromabuild qm`: electronic structure."""

from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import JsonOption, app, command, show

quantum = typer.Typer(name="qm", no_args_is_help=True,
                      help="Compute electrons of small pieces with plane waves.\n\n\b\nExample:\n  "
                           "chromabuild qm run water.inp")
app.add_typer(quantum)


@quantum.command()
@command
def run(file: Annotated[Path, typer.Argument(show_default=False,
                                             help="Control file of chromaqm; `chromaqm help` prints one.")],
        ranks: Annotated[int, typer.Option("--ranks", "-n", min=1, help="MPI ranks; energies are the same.")] = 1,
        threads: Annotated[int, typer.Option("--threads", "-t", min=1, help="Threads of each rank.")] = 1,
        launcher: Annotated[str, typer.Option(
            help="What starts the ranks: mpirun, srun, flux or a command of your own.")] = "auto",
        json: JsonOption = False) -> None:
    """Minimise electronic states, and run Car-Parrinello dynamics where the file asks for it.

    Prints energies by term at every step. Exit code 10 where the minimum is not reached.

    \b
    Examples:
      chromabuild qm run water.inp
      chromabuild qm run water.inp --ranks 2
    """
    import sys

    from chromabuild.quantum import chromaqm

    result = chromaqm.run(file, ranks, threads, launcher, sys.stderr if json else None)
    if json:
        show(result, True, [])
