"""The command line. One module a command; none has logic of its own, and heavy imports wait until a command runs."""

from chromabuild.base.stop_signals import stops_go_to
from chromabuild.cli import (  # noqa: F401  (each module puts its command on the app)
    all_stages,
    analyse,
    build,
    clash,
    contact_energies,
    ensemble,
    export,
    import_files,
    init,
    plan,
    quantum,
    refine,
    relax,
    report,
    run,
    scaffold,
    shards,
    solvate,
    template,
    topology,
    validate,
    verify,
    view,
    workflow,
)
from chromabuild.cli.frame import app, leave

__all__ = ["app", "main"]


def main() -> None:
    """Entry point of the console script ``chromabuild``."""
    with stops_go_to(leave):
        app(prog_name="chromabuild")
