"""`chromabuild refine`."""

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
def refine(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
           threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Refine the built solute by dynamics of its beads: solute_refined.h5.

    Reads solute.h5. Three beads a nucleotide and one an amino acid move for `refine.length`, then the atoms are laid
    back on them. `chromabuild clash` comes next. The chain has this stage with refine.enabled.

    \b
    Example:
      chromabuild refine --set refine.enabled=true
    """
    run_one("refine", config, overrides, seed, threads, json)
