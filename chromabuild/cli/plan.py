"""`chromabuild plan`."""

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


@app.command()
@command
def plan(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
         threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Estimate atoms, box, memory, disk and time.

    Writes nothing. The box is that of scaffold.h5 when it is there, otherwise that of the fibre before sampling.
    Times are scaled from the demo on a two-core machine.

    \b
    Example:
      chromabuild plan --set solvate.padding=15
    """
    from chromabuild.pipeline.plan import estimate

    result = estimate(load(config, overrides, seed), thread_count(threads))
    show(result.as_dict(), json, result.lines())
