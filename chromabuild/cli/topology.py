"""`chromabuild topology`."""

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
def topology(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
             threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Assign the force field: topology.h5, topology.psf.

    The engine reads topology.h5, other programs topology.psf. Reads solute_clean.h5 and shards/manifest.json.
    Nothing in it grows with the number of waters.

    \b
    Example:
      chromabuild topology
    """
    run_one("topology", config, overrides, seed, threads, json)
