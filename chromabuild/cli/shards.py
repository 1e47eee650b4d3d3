"""`chromabuild shards`: make some shards alone, and look at, merge or export a shard set."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from chromabuild.cli.stage_command import run_one

if TYPE_CHECKING:
    from chromabuild.solvate import Part

shards_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.add_typer(shards_app, name="shards")
FolderArgument = Annotated[Path | None, typer.Argument(
    metavar="[FOLDER]", help="Folder with manifest.json.", show_default="shards in the output folder of the settings")]


def _folder(folder: Path | None, config: Path, overrides: list[str], seed: int | None) -> Path:
    return folder if folder is not None else Path(load(config, overrides, seed).output) / "shards"


@shards_app.callback()
@command
def shards(context: typer.Context, config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
           seed: SeedOption = None, threads: ThreadsOption = None, json: JsonOption = False,
           only: Annotated[str | None, typer.Option(
               metavar="K[-L][,..]", show_default=False,
               help="Make these shards, e.g. 3 or 0-127,400.")] = None,
           part: Annotated[str | None, typer.Option(
               metavar="I/N", show_default=False, help="Make share I (from 0) of N equal shares.")] = None,
           plan_only: Annotated[bool, typer.Option(
               "--plan", help="Decide waters and ions only: what jobs that work side by side need first.")] = False,
           mpi: Annotated[bool, typer.Option(
               "--mpi", help="Share them (or all) out among the processes that mpirun or srun starts.")] = False,
           ) -> None:
    """Make some shards alone, or look at, merge, export a shard set.

    Shards made alone, anywhere, have the same bytes as in a full run; the job that adds the last one writes
    shards/manifest.json. `chromabuild solvate` makes them all.

    \b
    Examples:
      chromabuild shards --only 3
      chromabuild shards --part 0/128
      mpirun -n 4 chromabuild shards --mpi --threads 1
      chromabuild shards verify results/shards
    """
    if context.invoked_subcommand is not None:
        return
    chosen = [value for value in (only, part, plan_only or None) if value is not None]
    if len(chosen) != 1 and not (mpi and not chosen):
        raise typer.BadParameter("give one of --only, --part, --plan and --mpi, or a command: verify, info, merge, bag")
    if plan_only:
        wanted = []
    else:
        wanted = _numbers(only) if only is not None else _share(part or "0/1")
    if mpi:
        wanted = _own(wanted)
    run_one("solvate", config, overrides, seed, threads, json, only=wanted)


def _numbers(text: str) -> list[int]:
    """``0-3,7`` as 0, 1, 2, 3, 7."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        raise typer.BadParameter(f"'{text}' is not a list of shards such as 3 or 0-127,400", param_hint="--only")
    ranges = [[int(number) for number in piece.split("-")] for piece in text.split(",")]
    return [k for piece in ranges for k in range(piece[0], piece[-1] + 1)]


def _own(wanted: "list[int] | Part") -> "list[int] | Part":
    """What this process of a parallel launcher makes of them."""
    from chromabuild.shards.ranks import rank_and_size
    from chromabuild.solvate import Part

    rank, size = rank_and_size()
    if isinstance(wanted, Part):
        return wanted.share(rank, size)
    own = Part(rank, size).bricks(len(wanted))
    return wanted[own.start:own.stop]


def _share(text: str) -> "Part":
    from chromabuild.solvate import Part

    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not int(match[1]) < int(match[2]):
        raise typer.BadParameter(f"'{text}' is not a share such as 0/128, which is the first of 128",
                                 param_hint="--part")
    return Part(int(match[1]), int(match[2]))


@shards_app.command()
@command
def merge(output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", show_default=False,
                                               help="What to write: .pdb or .cif, or these with .zst.")],
          folder: FolderArgument = None,
          select: Annotated[str, typer.Option(help="Which atoms.")] = "all",
          within: Annotated[str | None, typer.Option(
              metavar="'R of SELECTION'", show_default=False,
              help="Of these, residues within R angstrom of others.")] = None,
          after: Annotated[str | None, typer.Option(
              metavar="PHASE", show_default="as solvated",
              help="Where the atoms are at the end of a phase of simulate; last: of the last that is done.")] = None,
          config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
          threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Write selected atoms of all shards as one PDB or mmCIF file, in global order.

    A selection is made of all, solute, protein, dna, water, ions, name, resname, segid, resid, box
    x0 y0 z0 x1 y1 z1 (angstrom) and within R of another one, with and, or, not and parentheses.

    \b
    Examples:
      chromabuild shards merge -o dna.pdb --select dna
      chromabuild shards merge -o corner.pdb --select "not water and box 0 0 0 200 200 200"
      chromabuild shards merge -o shell.cif --within "10 of dna" --after last
    """
    from chromabuild.pipeline.results import end_of_phase
    from chromabuild.shards.merge import merge_shards

    source = _folder(folder, config, overrides, seed)
    wanted = select if within is None else f"({select}) and (within {within})"
    end = end_of_phase(source, after) if after is not None else None
    result = {"file": str(output), "atoms": merge_shards(source, wanted, output, end)}
    show(result, json, [f"{result['atoms']} atoms in {result['file']}"])


@shards_app.command()
@command
def bag(output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", show_default=False,
                                             help="The folder to make.")],
        folder: FolderArgument = None, config: ConfigOption = DEFAULT_CONFIG,
        overrides: SetOption = [], seed: SeedOption = None, threads: ThreadsOption = None,  # noqa: B006
        json: JsonOption = False) -> None:
    """Export a verified shard set as a BagIt bag (RFC 8493), as archives take it.

    Files are linked where the file system can, so that a bag beside its shards takes no space.

    \b
    Example:
      chromabuild shards bag -o deposit
    """
    from chromabuild.shards.bag import write_bag

    result = {"bag": str(output), "files": write_bag(_folder(folder, config, overrides, seed), output)}
    show(result, json, [f"{result['files']} files in the bag {result['bag']}"])


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
    from chromabuild.pipeline.inspect import verify_shard_set

    result = verify_shard_set(_folder(folder, config, overrides, seed), thread_count(threads))
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
    from chromabuild.cli.stage_command import summary_lines
    from chromabuild.shards.shard_set import ShardSet

    result = ShardSet.read(_folder(folder, config, overrides, seed)).summary()
    show(result, json, summary_lines(result))
