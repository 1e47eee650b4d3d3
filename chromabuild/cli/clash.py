"""`chromabuild clash`: the stage, and a check of any solute file."""

from pathlib import Path
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
    thread_count,
)
from chromabuild.cli.stage_command import run_one

clash_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.add_typer(clash_app, name="clash")


@clash_app.callback()
@command
def clash(context: typer.Context, config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
          seed: SeedOption = None, threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Find and remove steric clashes: solute_clean.h5.

    `chromabuild clash` alone is `clash fix`. Reads solute.h5, writes clash_report.json, .tsv and .txt too.
    Non-bonded pairs closer than `clash.threshold` angstrom (0.9) are found and removed by rotating backbone and
    side-chain torsions. Exit code 4 when some remain.

    \b
    Examples:
      chromabuild clash
      chromabuild clash check results/solute.h5
    """
    if context.invoked_subcommand is None:
        run_one("clash", config, overrides, seed, threads, json)


@clash_app.command()
@command
def fix(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
        threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Find and remove the clashes of solute.h5.

    Writes solute_clean.h5 and the clash report.

    \b
    Example:
      chromabuild clash fix --set clash.mode=paper
    """
    run_one("clash", config, overrides, seed, threads, json)


@clash_app.command()
@command
def check(file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False,
                                               help="A solute (.h5), PDB or mmCIF file.")],
          config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
          threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """List the clashes of a structure.

    Changes nothing; exit code 4 when there are any.

    `clash.threshold` (angstrom) is taken from the settings when that file exists.

    \b
    Example:
      chromabuild clash check results/solute_clean.h5
    """
    from chromabuild import stages
    from chromabuild.config import Config
    from chromabuild.errors import ClashesRemainError

    settings = load(config, overrides, seed) if config != DEFAULT_CONFIG or config.exists() else Config()
    result = stages.check_clashes(file, settings.clash.threshold, thread_count(threads))
    text = result.pop("text")
    show(result, json, [text.rstrip()])
    if result["fatal"]:
        raise ClashesRemainError(f"{file} has {result['fatal']} clashes (pairs closer than {settings.clash.threshold} "
                                 "angstrom, pierced rings): remove them with `chromabuild clash`")
