"""`chromabuild plan`."""

from pathlib import Path
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
    from chromabuild.base.summary import Summary
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
GpuMemoryOption = Annotated[float | None, typer.Option(
    "--gpu-memory", min=0, metavar="GB", show_default="that of the GPUs here",
    help="Memory of a GPU that the dynamics will run on: is OpenMM there the engine?")]


@app.command()
@command
def plan(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
         threads: ThreadsOption = None, machine: MachineOption = None, nodes: NodesOption = 1,
         ranks_per_node: RanksOption = None, fold: Annotated[bool | None, typer.Option(
             "--fold/--no-fold", show_default="where it is a matter of seconds and tells more",
             help="Fold the fibre first, in memory, as the build will: the box is then that of the build.")] = None,
         gpu_memory: GpuMemoryOption = None,
         json: JsonOption = False) -> None:
    """Estimate atoms, box, memory, disk and time.

    Says what this machine cannot do, and what a change would save.

    Writes nothing, and refuses what any later stage would. The box is that of scaffold.h5 when it is there, otherwise
    that of the walls in which the fibre folds; a small locus without walls is folded in memory, and any with --fold.
    Files that the present settings no longer make are named and not taken into account. Changes that would save atoms
    are named with what they save.
    Times are for this machine, whose speed is measured in a second; with --machine those of the dynamics come from
    measured steps and a simulation of the network. The engine that is named is OpenMM where there is a GPU whose
    memory holds the system; --gpu-memory plans for one that is not here.

    \b
    Examples:
      chromabuild plan --set solvate.padding=15
      chromabuild plan --fold
      chromabuild plan --gpu-memory 80
      chromabuild plan --machine list
      chromabuild plan --machine infiniband --nodes 16
    """
    if machine == "list":
        from chromabuild.scaling.machine import bundled, listing

        machines = bundled()
        show({"machines": [entry.model_dump() for entry in machines]}, json, listing(machines))
        return
    if machine is None:
        show(*_plan_here(load(config, overrides, seed), thread_count(threads), fold, gpu_memory, json))
        return
    from chromabuild.pipeline.chain import stale_files
    from chromabuild.pipeline.limits import STAGES_WITH_LIMITS, Nodes, obstacles
    from chromabuild.pipeline.plan import cost_on, estimate, likely_job
    from chromabuild.pipeline.validation import check_all
    from chromabuild.scaling.machine import find_machine
    from chromabuild.scaling.prediction import Job

    found = find_machine(machine)
    job = Job(found, nodes, ranks_per_node or max(1, found.node.cores // (threads or 1)), threads or 1)
    settings = load(config, overrides, seed)
    _, parts = check_all(settings, elsewhere=True)
    stale = stale_files(settings)
    build = estimate(settings, thread_count(None), _folded(settings, None) if fold else None, stale, parts=parts)
    if settings.dynamics.tune and ranks_per_node is None and threads is None:
        job = likely_job(found, nodes, settings, build)
    cost = cost_on(job, settings, build)
    told = [str(error) for error in obstacles(build, settings, STAGES_WITH_LIMITS, thread_count(None), parts,
                                              Nodes.of(found, nodes))]
    show({**build.as_dict(), "machine": cost.as_dict(), "obstacles": told, "stale": list(stale)}, json,
         [*build.locus_lines(), "", *cost.lines(), *(f"not there: {sentence}" for sentence in told)])


def _plan_here(settings: "Settings", threads: int, fold: bool | None, gpu_memory: float | None, json: bool
               ) -> "tuple[Summary, bool, list[str]]":
    """What ``show`` takes of a plan for this machine."""
    from chromabuild.base.duration import span
    from chromabuild.base.errors import BadInputError
    from chromabuild.base.machine import summary_of_machine
    from chromabuild.pipeline.chain import stale_files
    from chromabuild.pipeline.engine_choice import sensible_engine
    from chromabuild.pipeline.extent import fold_in_doubt, size_is_known
    from chromabuild.pipeline.limits import FIRST_LOOK, STAGES_WITH_LIMITS, first_look, obstacles
    from chromabuild.pipeline.plan import estimate
    from chromabuild.pipeline.savings import savings
    from chromabuild.pipeline.speeds import is_quick, speed_here
    from chromabuild.pipeline.validation import check_all

    _, parts = check_all(settings)
    stale, speed = stale_files(settings), speed_here()
    is_known = size_is_known(settings, "scaffold.h5" in stale, len(parts.fibre.dyads))
    folded = None
    if fold is None:
        fold = not is_known and is_quick(settings, len(parts.fibre.dyads), len(parts.fibre.sequence), speed)
        is_there = (Path(settings.output) / "scaffold.h5").is_file() and "scaffold.h5" not in stale
        folded = None if fold or is_there else fold_in_doubt(settings, parts.fibre, threads)
    folded = _folded(settings, threads) if fold else folded
    result = estimate(settings, threads, folded, stale, speed, parts)
    errors = obstacles(result, settings, STAGES_WITH_LIMITS, threads, parts)
    if (fold or is_known) and errors and isinstance(errors[0], BadInputError):
        raise errors[0]
    found = [str(error) for error in errors]
    certain = "not here" if fold or is_known else "not here if the box is that large"
    choice, here = sensible_engine(result, settings, gpu_memory), summary_of_machine(settings.output)
    saved = savings(settings, threads, result, speed, parts)
    look = first_look(result.atoms, settings, threads, speed)
    old = [f"stale, to be made again: {', '.join(stale)}"] if stale else []
    summary = {**result.as_dict(), "engine": choice.as_dict(), "obstacles": found, "stale": list(stale),
               "machine_here": here, "savings": [one.as_dict() for one in saved], "first_look_seconds": look,
               **({"note": parts.note} if parts.note else {})}
    return summary, json, [
        *old, *result.lines(), f"this machine: {here['cores']} cores, {here['memory_gb']:.3g} GB of memory "
        f"({here['memory_free_gb']:.3g} GB free now), {here['disk_free_gb']:.3g} GB of disk free",
        choice.line(settings),
        *(f"to save: {one.line(result)}" for one in saved),
        *([f"to see first that it runs: simulate.protocol: {FIRST_LOOK} takes about {span(look)}"] if look else []),
        *(f"{certain}: {sentence}" for sentence in found),
        *([f"note: {parts.note}"] if parts.note else [])]


def _folded(settings: "Settings", threads: int | None) -> "Scaffold":
    """The fold that the stage `scaffold` will make."""
    from chromabuild.cli.progress import make_reporter
    from chromabuild.pipeline.extent import folded

    with make_reporter().stage("fold") as progress:
        return folded(settings, threads, progress)
