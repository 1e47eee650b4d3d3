"""`chromabuild workflow`."""

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


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@command
def workflow(context: typer.Context, config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
             seed: SeedOption = None, threads: ThreadsOption = None, json: JsonOption = False,
             dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Show the jobs only.")] = False) -> None:
    """Run the chain as a Snakemake workflow.

    What follows `--` is given to snakemake. Needs the extra `pip install chromabuild[workflow]`.

    \b
    Examples:
      chromabuild workflow --dry-run
      chromabuild workflow -- --executor slurm --jobs 10
    """
    from chromabuild.pipeline.workflow import run_snakemake

    load(config, overrides, seed)  # refuses bad settings before Snakemake starts
    code = run_snakemake(config, overrides, seed, thread_count(threads), dry_run, context.args)
    show({"exit_code": code}, json, [])
    raise typer.Exit(code)
