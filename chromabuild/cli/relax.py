"""`chromabuild relax`."""

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
def relax(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
          threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Relax a large solute without water: solute_relaxed.h5.

    Reads solute_clean.h5. Minimisation and `relax.length` of dynamics with the charges in implicit solvent; clashes are
    sought again afterwards. The chain has this stage with relax.enabled.

    \b
    Example:
      chromabuild relax --set relax.enabled=true
    """
    run_one("relax", config, overrides, seed, threads, json)
