"""The chain of stages: what each reads, writes and depends on; running one, or all with resuming.

What a stage does is in ``chromabuild.stages``; here is the order, the record of what was run, and the decision whether
a stage has to be run again.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chromabuild import provenance, stages
from chromabuild.config import Config
from chromabuild.errors import BadInputError
from chromabuild.stages import Job

if TYPE_CHECKING:
    from chromabuild.solvate import Part


class Reporter(Protocol):
    """Shows the user how far the chain is."""

    def stage(self, title: str) -> AbstractContextManager[Callable[[float | str], None]]:
        """Context of one running stage; gives the function that takes the finished fraction or what is being done."""

    def skipped(self, title: str) -> None:
        """A stage whose results are up to date."""


@dataclass(frozen=True)
class Stage:
    """One link of the chain. Paths are relative to the output folder unless absolute."""

    name: str
    title: str
    sections: tuple[str, ...]
    """Sections or keys of locus.yaml that decide the result."""
    inputs: Callable[[Config], dict[str, str | Path]]
    """Role to file."""
    outputs: tuple[str, ...]
    run: Callable[[Job], dict]
    """Does the work and gives a summary (JSON) for the user and the report."""
    needs_all_inputs: bool = True
    """Whether a missing input file is an error; otherwise the stage goes without it."""

    def input_paths(self, config: Config) -> dict[str, Path]:
        """Role to path of every input file."""
        return {role: Path(config.output) / file for role, file in self.inputs(config).items()}

    def output_paths(self, config: Config) -> list[Path]:
        """Every output file that the record vouches for."""
        return [Path(config.output) / file for file in self.outputs]


def _locus_files(config: Config) -> dict[str, str | Path]:
    files = {"fasta": config.locus.fasta, "nucleosomes": config.locus.nucleosomes, "contacts": config.locus.contacts,
             "acetylated": config.scaffold.acetylated, "marks": config.build.marks}
    return {role: Path(file) for role, file in files.items() if file}


def _build_files(config: Config) -> dict[str, str | Path]:
    files = {"marks": config.build.marks, "template": config.build.template}
    return {"scaffold": "scaffold.h5"} | {role: Path(file) for role, file in files.items() if file}


def _files(**inputs: str) -> Callable[[Config], dict[str, str | Path]]:
    return lambda config: dict(inputs)


STAGES: tuple[Stage, ...] = (
    Stage("scaffold", "mesoscale scaffold", ("locus", "scaffold", "build.linker_histone",
                                                 "build.linker_histone_share", "build.marks"), _locus_files,
          ("scaffold.h5", "contact_map.npz", "contact_map.cool"), stages.scaffold),
    Stage("build", "all-atom solute", ("build",), _build_files, ("solute.h5",), stages.build),
    Stage("clash", "clash correction", ("clash",), _files(solute="solute.h5"),
          ("solute_clean.h5", "clash_report.json", "clash_report.tsv", "clash_report.txt"), stages.clash),
    Stage("solvate", "water, ions and shards", ("solvate",), _files(solute="solute_clean.h5"),
          ("shards/manifest.json", "shards/bricks.txt"), stages.solvate),
    Stage("topology", "force field", ("dynamics.force_field",),
          _files(solute="solute_clean.h5", manifest="shards/manifest.json"),
          ("topology.h5", "topology.psf"), stages.topology),
    Stage("run", "minimisation and dynamics", ("dynamics",),
          _files(manifest="shards/manifest.json", topology="topology.h5"),
          ("md/dynamics.log", "md/trajectory.dcd"), stages.run),
    Stage("report", "report", (),
          _files(scaffold="scaffold.h5", solute="solute_clean.h5", clashes="clash_report.json",
                 manifest="shards/manifest.json", topology="topology.h5", dynamics="md/dynamics.log"),
          ("report.html",), stages.report, needs_all_inputs=False),
)
NAMES = tuple(stage.name for stage in STAGES)


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
