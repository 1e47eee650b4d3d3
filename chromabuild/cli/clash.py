"""`chromabuild clash`: the stage, and checks of any structure."""

from enum import StrEnum
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
from chromabuild.cli.progress import make_reporter
from chromabuild.cli.stage_command import run_one

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings

clash_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.add_typer(clash_app, name="clash")


@clash_app.callback()
@command
def clash(context: typer.Context, config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
          seed: SeedOption = None, threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Find and remove steric clashes: solute_clean.h5.

    `chromabuild clash` alone is `clash fix`. Reads solute.h5, writes clash_report.json, .tsv, .txt and .html too.
    Non-bonded pairs closer than `clash.threshold` angstrom are found and removed by rotating backbone and side-chain
    torsions. Exit code 4 when some remain.

    \b
    Examples:
      chromabuild clash
      chromabuild clash check results/solute.h5
    """
    if context.invoked_subcommand is None:
        run_one("clash", config, overrides, seed, threads, json)


@clash_app.command()
@command
def fix(file: Annotated[Path | None, typer.Argument(
            metavar="[FILE]", show_default="solute.h5 of the locus",
            help="A PDB or mmCIF file of protein and DNA, of any origin.")] = None,
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", metavar="FILE", show_default="FILE's name with _fixed.cif in this folder",
            help="Where to write a FILE without clashes: .cif, .bcif, .pdb or .h5.")] = None,
        config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
        threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Find and remove clashes.

    Without FILE those of the locus: solute.h5 becomes solute_clean.h5. The clash report is written beside the result.
    Solvent and ions of a FILE are left out; its heavy atoms must all be there. Exit code 4 when clashes remain.

    \b
    Examples:
      chromabuild clash fix --set clash.mode=paper
      chromabuild clash fix model.pdb -o model_fixed.cif
    """
    if file is None and output is None:
        run_one("clash", config, overrides, seed, threads, json)
        return
    from chromabuild.base.errors import BadInputError, ClashesRemainError
    from chromabuild.pipeline.fix_structure import fix_structure

    if file is None:
        raise BadInputError(f"--output {output} is for a FILE of your own, and none is named: name it, or leave the "
                            "option out")
    settings = settings_of(config, overrides, seed)
    written = output or Path(f"{file.name.split('.')[0]}_fixed.cif")
    with make_reporter().stage("clash correction") as progress:
        result = fix_structure(file, written, settings.clash.mode, settings.clash.threshold, settings.seed,
                               thread_count(threads), progress)
    text = result.pop("text")
    show(result, json, [text.rstrip(), "", str(written), result["report"]])
    if result["fatal"]:
        raise ClashesRemainError(f"{result['fatal']} clashes remain in {written}: {result['report']} says where and "
                                 "why; try another --seed")


def settings_of(config: Path, overrides: list[str], seed: int | None) -> "Settings":
    """The settings file when it exists or was named, else the defaults."""
    from chromabuild.base.settings import Settings

    return load(config, overrides, seed) if config != DEFAULT_CONFIG or config.exists() else Settings()


FileArgument = Annotated[Path, typer.Argument(
    metavar="FILE", show_default=False,
    help="A solute (.h5), PDB, mmCIF or BinaryCIF file, a shard or a folder of shards.")]


@clash_app.command()
@command
def check(file: FileArgument,
          page: Annotated[Path | None, typer.Option("--html", metavar="PATH", show_default=False,
                                                    help="Write a page with pictures of the worst.")] = None,
          config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
          threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """List the clashes of a structure.

    Changes nothing; exit code 4 when there are any.

    `clash.threshold` (angstrom) is taken from the settings when that file exists.

    \b
    Examples:
      chromabuild clash check results/solute_clean.h5
      chromabuild clash check model.cif --html clashes.html
    """
    from chromabuild.base.errors import ClashesRemainError
    from chromabuild.pipeline.inspect import check_clashes

    settings = settings_of(config, overrides, seed)
    result = check_clashes(file, settings.clash.threshold, thread_count(threads), page)
    text = result.pop("text")
    show(result, json, [text.rstrip()])
    if result["fatal"]:
        raise ClashesRemainError(f"{file} has {result['fatal']} clashes (pairs closer than {settings.clash.threshold} "
                                 "angstrom, pierced rings, threaded strands): remove them with `chromabuild clash fix`")


class Subject(StrEnum):
    """What an audit looks at."""

    rings = "rings"
    chirality = "chirality"
    peptides = "peptides"
    geometry = "geometry"
    molecules = "molecules"
    strands = "strands"


SubjectOption = Annotated[list[Subject], typer.Option("--of", show_default="all", help="Only this; may be repeated.")]


@clash_app.command()
@command
def audit(file: FileArgument, of: SubjectOption = [], config: ConfigOption = DEFAULT_CONFIG,  # noqa: B006
          overrides: SetOption = [], seed: SeedOption = None, threads: ThreadsOption = None,  # noqa: B006
          json: JsonOption = False) -> None:
    """Look for what no minimiser mends.

    Bonds through rings, wrong chirality, cis peptides, DNA backbone beyond 4 sigma, molecules within each other,
    backbones between the strands of a duplex. Changes nothing; exit code 4 when something is found.

    \b
    Examples:
      chromabuild clash audit model.pdb
      chromabuild clash audit results/solute.h5 --of rings --of strands
    """
    from chromabuild.base.errors import ClashesRemainError
    from chromabuild.pipeline.inspect import audit_structure

    settings_of(config, overrides, seed)  # settings that are wrong are told, though no audit depends on any
    result = audit_structure(file, [subject.value for subject in of], thread_count(threads))
    lines, total = [], 0
    if result["left_out"]:
        lines.append(f"left out of it: {result['left_out']}")
    for findings in list(result.values())[2:]:
        for name, found in findings.items():
            title = name.replace("_", " ")
            if name == "duplexes":
                lines += [f"{title:24s}{d['first']} to {d['last']}: {d['base_pairs']} base pairs, {d['turns']} turns"
                          for d in found]
                continue
            total += found["count"]
            lines.append(f"{title:24s}{found['count']:8d}")
            for item in found["items"][:10]:
                lines.append("    " + (item if isinstance(item, str) else
                                       "  ".join(f"{key} {value}" for key, value in item.items())))
    show(result, json, lines)
    if total:
        raise ClashesRemainError(f"{file} has {total} faults that a minimiser cannot mend: see the list, or --json")
