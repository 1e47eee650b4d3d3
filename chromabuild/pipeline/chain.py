"""Running one stage of the chain, or all with resuming: the record of what was run, and what has to be run again.

Order and staleness follow from the stage objects alone: what they read, the settings they depend on, what they write.
"""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import check_folder, file_hash, remove_leftovers
from chromabuild.base.in_use import in_use
from chromabuild.base.progress import Progress
from chromabuild.base.record import Provenance
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.pipeline import provenance
from chromabuild.pipeline.stages import STAGES, Job, RunPart, Stage

if TYPE_CHECKING:
    from chromabuild.solvate import Part

NAMES = tuple(stage.name for stage in STAGES)
LAST = NAMES[-1]


class Reporter(Protocol):
    """Shows the user how far the chain is."""

    def stage(self, title: str) -> AbstractContextManager[Progress]:
        """Context of one running stage; gives the function that takes what is being done and the finished fraction."""

    def skipped(self, title: str) -> None:
        """A stage whose results are up to date."""

    def note(self, text: str) -> None:
        """What should be known before the work."""


def stage_named(name: str) -> Stage:
    """The stage of that name. Raises KeyError for another name."""
    return {stage.name: stage for stage in STAGES}[name]


def describe(stage: Stage, config: Settings) -> Provenance:
    """What the stage's result depends on. Raises BadInputError when an input that it needs is missing."""
    inputs = stage.input_paths(config)
    if not stage.needs_all_inputs:
        inputs = {role: path for role, path in inputs.items() if path.is_file()}
    for role, path in inputs.items():
        if not path.is_file():
            maker = next((s.name for s in STAGES if path in s.output_paths(config)), None)
            key = next((key for key in stage.files if key.endswith(f".{re.sub('-[0-9]+$', '', role)}")), role)
            remedy = f"run `chromabuild {maker}` first" if maker else f"correct `{key}` in the settings"
            raise BadInputError(f"{path} does not exist: {remedy}")
    return provenance.describe(stage.name, config, stage.decided_by(config), inputs)


def is_current(stage: Stage, config: Settings, description: Provenance | None = None) -> bool:
    """Whether the stage's outputs are there, unharmed, and made from the present inputs, settings and seed."""
    entry = provenance.read(config.output)["stages"].get(stage.name)
    if entry is None:
        return False
    description = description or describe(stage, config)
    if any(entry["provenance"][key] != description[key] for key in ("seed", "settings", "inputs")):
        return False
    folder = Path(config.output)
    return all((folder / file).is_file() and file_hash(folder / file) == digest
               for file, digest in entry["outputs"].items())


def stale_files(config: Settings) -> tuple[str, ...]:
    """Files in the output folder that the present inputs and settings no longer make, relative to it, in the order of
    the chain: of stages that would run again, and of those that read what these write."""
    recorded = provenance.read(config.output)["stages"]
    stale: list[str] = []
    for stage in STAGES:
        if stage.name not in recorded or not (stage.applies is None or stage.applies(config)):
            continue
        reads = {**stage.reads, **(stage.reads_of(config) if stage.reads_of else {})}.values()
        try:
            is_stale = any(file in stale for file in reads) or not is_current(stage, config)
        except BadInputError:  # an input is missing
            is_stale = True
        if is_stale:
            stale += [file for file in stage.output_files(config) if (Path(config.output) / file).is_file()]
    return tuple(stale)


def run_stage(stage: Stage, config: Settings, threads: int, reporter: Reporter,
              only: "Iterable[int] | Part | RunPart | None" = None, again: bool = False) -> Summary:
    """Run one stage and record it; gives its summary.

    With ``only`` some shards are made, or a part of the dynamics is run, and nothing is recorded. ``again``: what
    the stage finds done in part is done again.

    The stage's old record is taken out first, so that an interrupted stage is never taken for finished.
    Raises what the stage raises, BadInputError when an input file is missing, and BusyError while another process
    runs the chain, the dynamics or another stage in the same output folder.
    """
    from chromabuild.pipeline.ask import refuse_alone

    description = describe(stage, config)
    refuse_alone(config, stage.name, threads)
    if only is not None:
        _remove_leftovers(stage, config)
        with reporter.stage(f"{stage.title}, in part") as progress:
            return stage.run(Job(config, threads, progress, description, only, again))
    with ExitStack() as stack:
        # A report reads what there is, of a run that is at work too; others would pull files from under it.
        for folder in run_folders(config) if stage.needs_all_inputs else ():
            stack.enter_context(in_use(folder))
        return _run_whole(stage, config, threads, reporter, description, again)


def _run_whole(stage: Stage, config: Settings, threads: int, reporter: Reporter, description: Provenance,
               again: bool) -> Summary:
    """Run a stage in a folder that is held, and record it."""
    _remove_leftovers(stage, config)
    provenance.record(config.output, stage.name, None)
    started = time.time()
    with reporter.stage(stage.title) as progress:
        summary = stage.run(Job(config, threads, progress, description, again=again))
    provenance.record(config.output, stage.name, {
        "title": stage.title,
        "provenance": description,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 2),
        "threads": threads,
        "outputs": {file: file_hash(path) for file, path in stage.written(config).items()},
        "companions": {file: file_hash(path) for file, path in stage.beside(config).items()},
        "summary": summary,
    })
    return summary


def _remove_leftovers(stage: Stage, config: Settings) -> None:
    """Remove what earlier processes that were killed left of the stage's files."""
    names: dict[Path, list[str]] = {Path(config.output): [provenance.FILE_NAME]}
    for file in (*stage.output_files(config), *stage.optional_outputs, *stage.companions):
        path = Path(config.output) / file
        names.setdefault(path.parent, []).append(path.name)
    for folder, patterns in names.items():
        remove_leftovers(folder, patterns)


def run_stages(config: Settings, threads: int, reporter: Reporter, force: bool = False,
               last: str = LAST) -> Iterator[tuple[Stage, Summary, bool]]:
    """Run the chain up to stage ``last``, leaving out what is current unless ``force``.

    Yields (stage, summary, whether it was run) after each stage. A stage that goes without missing
    inputs (the report) is remade whenever any other was run: it shows times too. Raises ResourceError, as soon as the
    size of the build is known, when the stages that are left cannot be done on this machine, BusyError while another
    process runs the chain or the dynamics in the same output folder.
    """
    check_folder(config.output)
    with ExitStack() as stack:
        for folder in run_folders(config):
            stack.enter_context(in_use(folder))
        yield from _run_stages(config, threads, reporter, force, last)


def run_folders(config: Settings, replica: int | None = None) -> list[Path]:
    """Folders of the dynamics, one a replica; or that of one replica."""
    from chromabuild.simulate.replicas import chosen_replicas, replica_folder

    return [replica_folder(Path(config.output) / "md", one) for one in chosen_replicas(config.simulate, replica)]


def _run_stages(config: Settings, threads: int, reporter: Reporter, force: bool,
                last: str) -> Iterator[tuple[Stage, Summary, bool]]:
    from chromabuild.pipeline import limits
    from chromabuild.pipeline.validation import check_all

    any_run, weighed, parts = force, False, None
    stages = [stage for stage in STAGES[:NAMES.index(last) + 1] if stage.applies is None or stage.applies(config)]
    for k, stage in enumerate(stages):
        if any_run and (force or not stage.needs_all_inputs) or not is_current(stage, config):
            left = [one.name for one in stages[k:]]
            if parts is None and set(left) & set(limits.STAGES_WITH_LIMITS):
                _, parts = check_all(config, left)
                if parts.note and "build" in left:
                    reporter.note(parts.note)
            weighed = weighed or limits.refuse(config, left, threads, parts)
            yield stage, run_stage(stage, config, threads, reporter, again=force), True
            any_run = True
        else:
            reporter.skipped(stage.title)
            yield stage, provenance.read(config.output)["stages"][stage.name]["summary"], False
