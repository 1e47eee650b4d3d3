"""`chromabuild solvate`."""

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
def solvate(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
            threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Add water and ions: shards/.

    Writes shards/manifest.json and one set of files a brick of the box. Reads solute_clean.h5. The system is
    neutral with `solvate.salt` mol/L NaCl (and KCl, MgCl2) on top; the box is the solute's extent plus
    `solvate.padding` angstrom on every side, or `solvate.box`: edges, a dodecahedron or an octahedron.

    \b
    Example:
      chromabuild solvate --set solvate.padding=15
    """
    run_one("solvate", config, overrides, seed, threads, json)
