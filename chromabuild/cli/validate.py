"""`chromabuild validate`."""

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
from chromabuild.cli.stage_command import summary_lines


@app.command()
@command
def validate(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
             threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Check settings and input files; runs nothing.

    Reads settings, FASTA, nucleosomes, contacts and marks, builds the histones, prints what the locus is; one sentence
    at the first thing that is wrong (exit code 3) or that this machine cannot do (exit code 6).

    \b
    Example:
      chromabuild validate --config my_gene.yaml
    """
    from chromabuild.pipeline.inspect import locus_summary

    result = locus_summary(load(config, overrides, seed), threads)
    show(result, json, summary_lines(result))
