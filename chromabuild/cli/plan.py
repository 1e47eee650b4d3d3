"""`chromabuild plan`."""

from typing import TYPE_CHECKING, Annotated

import typer

from chromabuild.base.threads import thread_count
from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SeedOption,
    SetOption,
    app,
    command,
    load,
    show,
)

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings
    from mesoscale.scaffold import Scaffold

MachineOption = Annotated[str | None, typer.Option(
    "--machine", metavar="NAME|FILE|list", help="Predict the cost of the dynamics on this machine; `list` names them.")]
NodesOption = Annotated[int, typer.Option("--nodes", "-n", min=1, help="Nodes of the machine.")]
RanksOption = Annotated[int | None, typer.Option(
    "--ranks-per-node", min=1, show_default="its cores over --threads",
    help="MPI ranks on a node.")]
ThreadsOption = Annotated[int | None, typer.Option(
    "--threads", "-t", min=1, show_default="all cores allowed to this process; with --machine 1",
    help="Threads that build; with --machine threads of a rank.")]


@app.command()
@command
def plan(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
         threads: ThreadsOption = None, machine: MachineOption = None, nodes: NodesOption = 1,
         ranks_per_node: RanksOption = None, fold: Annotated[bool, typer.Option(
             "--fold", help="Fold the fibre first, in memory, as the build will: the box is then that of the build.")]
         = False, json: JsonOption = False) -> None:
    """Estimate atoms, box, memory, disk and time, and say what this machine cannot do.

    Writes nothing. The box is that of scaffold.h5 when it is there, otherwise that of the fibre before sampling, which
    is larger; --fold tells it before anything is built. Files that the present settings no longer make are named and
    not taken into account.
    Times are scaled from the demo on a two-core machine; with --machine those of the dynamics come from measured steps
    and a simulation of the network. The engine that is named is OpenMM where it finds a GPU.

    \b
    Examples:
      chromabuild plan --set solvate.padding=15
      chromabuild plan --fold
      chromabuild plan --machine list
      chromabuild plan --machine infiniband --nodes 16
    """
    if machine == "list":
        from chromabuild.scaling.machine import bundled, listing

        machines = bundled()
        show({"machines": [entry.model_dump() for entry in machines]}, json, listing(machines))
        return
    if machine is None:
        from chromabuild.pipeline.chain import stale_files
        from chromabuild.pipeline.engine_choice import sensible_engine
        from chromabuild.pipeline.limits import STAGES_WITH_LIMITS, obstacles
        from chromabuild.pipeline.parameters import check_before_work
        from chromabuild.pipeline.plan import estimate, size_is_known

        settings = load(config, overrides, seed)
        stale = stale_files(settings)
        result = estimate(settings, thread_count(threads), _folded(settings, threads) if fold else None, stale)
        found = obstacles(result, settings, STAGES_WITH_LIMITS)
        is_known = fold or size_is_known(settings, "scaffold.h5" in stale)
        certain = "not here" if is_known else "not here if the box is that large"
        choice = sensible_engine(result)
        old = [f"stale, to be made again: {', '.join(stale)}"] if stale else []
        note = check_before_work(settings)
        said = {"note": note} if note else {}
        show({**result.as_dict(), "engine": choice.as_dict(), "obstacles": found, "stale": list(stale), **said}, json,
             [*old, *result.lines(), choice.line(settings), *(f"{certain}: {sentence}" for sentence in found),
              *(f"{key}: {text}" for key, text in said.items())])
        return
    from chromabuild.pipeline.chain import stale_files
    from chromabuild.pipeline.plan import cost_on, estimate
    from chromabuild.scaling.machine import find_machine
    from chromabuild.scaling.prediction import Job

    found = find_machine(machine)
    job = Job(found, nodes, ranks_per_node or max(1, found.node.cores // (threads or 1)), threads or 1)
    settings = load(config, overrides, seed)
    stale = stale_files(settings)
    build = estimate(settings, thread_count(None), _folded(settings, None) if fold else None, stale)
    cost = cost_on(job, settings, build)
    show({**build.as_dict(), "machine": cost.as_dict(), "stale": list(stale)}, json,
         [*build.locus_lines(), "", *cost.lines()])


def _folded(settings: "Settings", threads: int | None) -> "Scaffold":
    """The fold that the stage `scaffold` will make."""
    from chromabuild.api import fold
    from chromabuild.cli.progress import make_reporter
    from chromabuild.genome.locus import load_locus

    with make_reporter().stage("fold") as progress:
        return fold(load_locus(settings.locus, settings.seed), settings, threads=threads, progress=progress)
