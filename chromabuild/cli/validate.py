"""`chromabuild validate`."""

from typing import TYPE_CHECKING, Annotated

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
from chromabuild.cli.plan import NodesOption
from chromabuild.cli.stage_command import summary_lines

if TYPE_CHECKING:
    from chromabuild.base.summary import Summary

_SHOWN = 20
"""Lines of a kind on the terminal."""


@app.command()
@command
def validate(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
             threads: ThreadsOption = None, until: Annotated[str | None, typer.Option(
                 metavar="STAGE", help="Last stage that is run here.",
                 show_default="report, with --machine run")] = None,
             machine: Annotated[str | None, typer.Option(
                 "--machine", metavar="NAME|FILE", help="The dynamics will run on this machine; `chromabuild plan "
                 "--machine list` names them.")] = None,
             nodes: NodesOption = 1, json: JsonOption = False) -> None:
    """Check settings and input files; runs nothing.

    Reads settings, FASTA, nucleosomes, contacts and marks, builds the histones, prints what the locus is; one sentence
    at the first thing that is wrong (exit code 3) or that this machine cannot do (exit code 6), as `chromabuild all`
    would refuse it. Settings that are meant for a cluster are measured against it with --machine; what is built here
    and run elsewhere ends with --until topology. DNA whose box may be too small is folded in memory, in some seconds.

    \b
    Examples:
      chromabuild validate --config my_gene.yaml
      chromabuild validate --until topology
      chromabuild validate --machine infiniband --nodes 16
    """
    from chromabuild.pipeline.inspect import locus_summary
    from chromabuild.pipeline.limits import STAGES_WITH_LIMITS, Nodes
    from chromabuild.scaling.machine import find_machine

    until = until or ("run" if machine else STAGES_WITH_LIMITS[-1])
    if until not in STAGES_WITH_LIMITS:
        raise typer.BadParameter(f"{until} is not a stage: choose from {', '.join(STAGES_WITH_LIMITS)}",
                                 param_hint="--until")
    there = Nodes.of(find_machine(machine), nodes) if machine else None
    result = locus_summary(load(config, overrides, seed), threads, until, there)
    show(result, json, [*summary_lines(result), *_changes(result)])


def _changes(result: "Summary") -> list[str]:
    """What is left out and what is moved, a line each; of many the first."""
    gone = [shift for shift in result["shifts"] if shift["to"] is None]
    moved = [shift for shift in result["shifts"] if shift["to"] is not None]
    return [*_some([f"left out: {shift['nucleosome']} at {shift['from']:,}: {shift['reason']}" for shift in gone]),
            *_some([f"moved: {shift['nucleosome']} from {shift['from']:,} to {shift['to']:,}: {shift['reason']}"
                    for shift in moved]),
            *_some([f"not used: contact of {reason}" for reason in result["ignored_contacts"]])]


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return lines if more <= 0 else [*lines[:_SHOWN], f"... and {more} more of these: --json names all"]
