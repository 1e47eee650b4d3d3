"""`chromabuild shards`: look at a shard set."""

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
)

shards_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None,
                         help="Check a shard set, or say what is in it.")
app.add_typer(shards_app, name="shards")
FolderArgument = Annotated[Path | None, typer.Argument(
    metavar="[FOLDER]", help="Folder with manifest.json.", show_default="shards in the output folder of the settings")]


def _folder(folder: Path | None, config: Path, overrides: list[str], seed: int | None) -> Path:
    return folder if folder is not None else Path(load(config, overrides, seed).output) / "shards"


@shards_app.command()
@command
def verify(folder: FolderArgument = None, config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
           seed: SeedOption = None, threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Read every shard again and compare checksums, atom counts, charges and bounds with the manifest.

    Exit code 5 when something differs.

    \b
    Example:
      chromabuild shards verify results/shards
    """
    from chromabuild import stages

    result = stages.verify_shard_set(_folder(folder, config, overrides, seed))
    show(result, json, [f"{result['shards']} shards with {result['atoms']} atoms are as the manifest says"])


@shards_app.command()
@command
def info(folder: FolderArgument = None, config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
         seed: SeedOption = None, threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Box, grid, counts of atoms, waters and ions, and size of a shard set, from its manifest.

    \b
    Example:
      chromabuild shards info --json
    """
    from chromabuild import stages
    from chromabuild.cli.stage_command import summary_lines

    result = stages.shard_set_summary(_folder(folder, config, overrides, seed))
    show(result, json, summary_lines(result))
