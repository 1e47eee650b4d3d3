"""`chromabuild ensemble`."""

from typing import Annotated

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
from chromabuild.cli.stage_command import summary_lines


@app.command()
@command
def ensemble(
    folds: Annotated[int | None, typer.Argument(
        metavar="[N]", min=2, help="Folds; replaces `ensemble.folds`.",
        show_default="that of the settings file")] = None,
    config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
    threads: ThreadsOption = None, json: JsonOption = False,
    jobs: Annotated[int, typer.Option(
        "--jobs", "-j", min=1, help="Folds made side by side; they share --threads.")] = 1,
    rounds: Annotated[int | None, typer.Option(
        min=1, metavar="R", help="Rounds in which energies of contacts are sought; replaces `ensemble.rounds`.",
        show_default="that of the settings file")] = None,
    until_converged: Annotated[bool, typer.Option(
        "--until-converged", help="Stop once the mean map is reliable; N is then the most.")] = False,
    hold_out: Annotated[float | None, typer.Option(
        metavar="SHARE", help="Share of pixels that restrain no fold; replaces `ensemble.hold_out`.",
        show_default="that of the settings file")] = None,
    fold: Annotated[int | None, typer.Option(
        metavar="K", min=1, help="Make this fold alone, e.g. as a job of an array.", show_default="all")] = None,
    of_round: Annotated[int | None, typer.Option(
        "--round", metavar="R", min=1, help="Make this round alone, and the energies of the next; with --fold a fold "
        "of it.", show_default="all; with --fold the last")] = None,
    choose: Annotated[str | None, typer.Option(
        metavar="LIST", help="Make folds ready to be built: numbers, typical, compact, representatives, "
        "representatives:K; commas between.", show_default=False)] = None,
) -> None:
    """Fold the locus many times; compare with a contact map.

    Mean contact map, agreement with Hi-C, sizes, groups of folds.

    Writes a folder a fold, maps (.cool), tables and a record to ensemble/, and ensemble.html. Every fold has a seed and
    a share of the contacts of its own; what is there already is kept, so the same command continues after an
    interruption. With --choose nothing is folded: the folds of an ensemble that is there get folders in builds/, from
    which `chromabuild all` goes on.

    \b
    Examples:
      chromabuild ensemble 32 --jobs 4
      chromabuild ensemble 64 --until-converged --hold-out 0.2
      chromabuild ensemble 32 --fold 7
      chromabuild ensemble --choose typical,compact
    """
    given = {"folds": folds, "rounds": rounds, "hold_out": hold_out, "until_converged": until_converged or None}
    chosen = [*overrides,
              *(f"ensemble.{key}={str(value).lower()}" for key, value in given.items() if value is not None)]
    settings = load(config, chosen, seed)
    if choose is not None:
        from chromabuild.pipeline.ensemble.choice import choose_folds

        result = choose_folds(settings, [word.strip() for word in choose.split(",") if word.strip()])
        lines = [f"fold {number}: chromabuild all --config {path}"
                 for number, path in zip(result["folds"], result["settings"], strict=True)]
        show(result, json, lines)
        return
    from chromabuild.pipeline.ensemble.run import Means, run_ensemble, run_fold, run_round

    with make_reporter().stage("ensemble" if fold is None else f"fold {fold}") as progress:
        means = Means(jobs, thread_count(threads), progress)
        if fold is not None:
            result = run_fold(settings, fold, of_round, means)
        elif of_round is not None:
            result = run_round(settings, of_round, means)
        else:
            result = run_ensemble(settings, means)
    page = [f"{settings.output}/ensemble.html"] if "reliability" in result else []
    show(result, json, [*summary_lines(result), *page])
