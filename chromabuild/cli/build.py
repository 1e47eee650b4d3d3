"""`chromabuild build`."""

from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SeedOption,
    SetOption,
    ThreadsOption,
    app,
    command,
)
from chromabuild.cli.stage_command import run_one


@app.command()
@command
def build(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
          threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Build every atom of DNA and histones: solute.h5.

    Continuous double-stranded DNA from end to end with the locus' sequence, histone octamers with full tails, all
    hydrogens. Reads scaffold.h5.

    \b
    Example:
      chromabuild build --set build.nucleosome_path=superhelix
    """
    run_one("build", config, overrides, seed, threads, json)
