"""Running one stage of the chain, or all with resuming: the record of what was run, and what has to be run again."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Config
from chromabuild.pipeline import provenance
from chromabuild.pipeline.stages import STAGES, Job, Stage

if TYPE_CHECKING:
    from chromabuild.solvate import Part

NAMES = tuple(stage.name for stage in STAGES)


class Reporter(Protocol):
    """Shows the user how far the chain is."""

    def stage(self, title: str) -> AbstractContextManager[Callable[[float | str], None]]:
        """Context of one running stage; gives the function that takes the finished fraction or what is being done."""

    def skipped(self, title: str) -> None:
        """A stage whose results are up to date."""


def stage_named(name: str) -> Stage:
    """The stage of that name. Raises KeyError for another name."""
    return {stage.name: stage for stage in STAGES}[name]


def _describe(stage: Stage, config: Config) -> dict:
    inputs = stage.input_paths(config)
    if not stage.needs_all_inputs:
        inputs = {role: path for role, path in inputs.items() if path.is_file()}
    for role, path in inputs.items():
        if not path.is_file():
            maker = next((s.name for s in STAGES if path in s.output_paths(config)), None)
            section = {"marks": "build", "template": "build", "acetylated": "scaffold"}.get(role, "locus")
            remedy = f"run `chromabuild {maker}` first" if maker else f"correct `{section}.{role}` in the settings"
            raise BadInputError(f"{path} does not exist: {remedy}")
    return provenance.describe(stage.name, config, stage.sections, inputs)


def is_current(stage: Stage, config: Config, description: dict | None = None) -> bool:
    """Whether the stage's outputs are there, unharmed, and made from the present inputs, settings and seed."""
    entry = provenance.read(config.output)["stages"].get(stage.name)
    if entry is None:
        return False
    description = description or _describe(stage, config)
    if any(entry["provenance"][key] != description[key] for key in ("seed", "settings", "inputs")):
        return False
    folder = Path(config.output)
    return all((folder / file).is_file() and provenance.file_hash(folder / file) == digest
               for file, digest in entry["outputs"].items())


def run_stage(stage: Stage, config: Config, threads: int, reporter: Reporter,
              only: "Iterable[int] | Part | None" = None) -> dict:
    """Run one stage and record it; gives its summary. With ``only`` some shards are made and nothing is recorded.

    The stage's old record is taken out first, so that an interrupted stage is never taken for finished.
    Raises what the stage raises, and BadInputError when an input file is missing.
    """
    description = _describe(stage, config)
    if only is not None:
        with reporter.stage(f"{stage.title}, in part") as progress:
            return stage.run(Job(config, threads, progress, description, only))
    provenance.record(config.output, stage.name, None)
    started = time.time()
    with reporter.stage(stage.title) as progress:
        summary = stage.run(Job(config, threads, progress, description))
    provenance.record(config.output, stage.name, {
        "title": stage.title,
        "provenance": description,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 2),
        "threads": threads,
        "outputs": {file: provenance.file_hash(path)
                    for file, path in zip(stage.outputs, stage.output_paths(config), strict=True)},
        "summary": summary,
    })
    return summary


def run_chain(config: Config, threads: int, reporter: Reporter, force: bool = False,
              last: str = "report") -> Iterator[tuple[Stage, dict, bool]]:
    """Run the chain up to stage ``last``, leaving out what is current unless ``force``.

    Yields (stage, summary, whether it was run) after each stage. The report is remade whenever any stage was.
    """
    any_run = force
    for stage in STAGES[: NAMES.index(last) + 1]:
        if any_run and (force or stage.name == "report") or not is_current(stage, config):
            yield stage, run_stage(stage, config, threads, reporter), True
            any_run = True
        else:
            reporter.skipped(stage.title)
            yield stage, provenance.read(config.output)["stages"][stage.name]["summary"], False
