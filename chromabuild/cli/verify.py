"""`chromabuild verify`."""

from pathlib import Path

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
def verify(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
           threads: ThreadsOption = None, json: JsonOption = False) -> None:
    """Check every output against its checksum.

    Every shard is checked against the manifest too. Exit code 5, with one line a damaged or missing file, when
    something differs.

    \b
    Example:
      chromabuild verify --json
    """
    from chromabuild.base.errors import IntegrityError
    from chromabuild.pipeline.verify import verify_outputs

    result = verify_outputs(load(config, overrides, seed))
    show(result, json, [f"{check['what']}: {check['result']}" for check in result["checks"]])
    faults = [check for check in result["checks"] if check["result"] != "ok"]
    if faults:
        maker = {"ensemble": "ensemble", "analysis": "analyse"}.get(Path(faults[0]["what"]).parts[0], "all")
        raise IntegrityError(f"{len(faults)} of {len(result['checks'])} checks failed, first {faults[0]['what']} "
                             f"({faults[0]['result']}): run `chromabuild {maker}` again")
