"""`chromabuild scaffold`."""

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
def scaffold(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
             threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Sample the coarse-grained fibre: scaffold.h5.

    Writes the frame of every base pair and nucleosome. Reads the FASTA, nucleosome and contact files named in the
    settings. Nucleosomes that overlap are moved apart or dropped as `locus.overlaps` says, and every shift is
    listed. Metropolis Monte Carlo of rigid nucleosome cores and worm-like-chain linkers with screened
    electrostatics.

    \b
    Examples:
      chromabuild scaffold
      chromabuild scaffold --set scaffold.sweeps=5000 --seed 7
    """
    run_one("scaffold", config, overrides, seed, threads, json)
