"""What a stage of the chain is, and what it is given."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.progress import Progress
from chromabuild.base.record import Provenance
from chromabuild.base.summary import Summary

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings
    from chromabuild.solvate import Part


@dataclass(frozen=True)
class RunPart:
    """A part of the dynamics."""

    phase: str | None = None
    """The one phase to run, by its name; None: all that are not done."""
    replica: int | None = None
    """The one replica to run, from 1; None: all in order."""


@dataclass(frozen=True)
class Job:
    """What a stage is given."""

    config: "Settings"
    threads: int
    progress: Progress
    provenance: Provenance
    """Goes into every file that the stage writes."""
    only: "Iterable[int] | Part | RunPart | None" = None
    """The shards to make, of the solvate stage, or what to run, of the run stage; None: all."""
    again: bool = False
    """Whether what a stage finds done is done again."""

    @property
    def folder(self) -> Path:
        """The output folder."""
        return Path(self.config.output)


@dataclass(frozen=True)
class Stage:
    """One link of the chain: what it reads, what decides its result, what it writes, and the work itself.

    Order, staleness, resuming and the rules of the Snakemake workflow follow from these objects.
    """

    name: str
    title: str
    settings: tuple[str, ...]
    """Sections (``clash``) or keys (``dynamics.force_field``) of the settings that decide the result."""
    outputs: tuple[str, ...]
    """Files that the stage always writes, relative to the output folder."""
    run: Callable[[Job], Summary]
    """Does the work and sums up."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """Outputs of earlier stages, by role."""
    reads_of: "Callable[[Settings], Mapping[str, str]] | None" = None
    """What is read in place of files of ``reads``, where the settings leave out the stage that makes them."""
    applies: "Callable[[Settings], bool] | None" = None
    """Whether the chain of these settings has this stage; None: always."""
    files: tuple[str, ...] = ()
    """Keys of the settings that name files of the user's (``build.marks``); the last part is the role."""
    outputs_of: "Callable[[Settings], tuple[str, ...]] | None" = None
    """Further outputs, whose names follow from the settings."""
    optional_outputs: tuple[str, ...] = ()
    """Files that it may write, or patterns of them (``*``), relative to the output folder."""
    companions: tuple[str, ...] = ()
    """Files that it may write and nothing else reads, or patterns of them: the record vouches for them, but the stage
    is not run again because one is gone."""
    needs_all_inputs: bool = True
    """Whether a missing input file is an error; otherwise the stage goes without it."""

    def input_paths(self, config: "Settings") -> dict[str, Path]:
        """Role to path of every input file; settings that name none are left out."""
        reads = {**self.reads, **(self.reads_of(config) if self.reads_of else {})}
        paths = {role: Path(config.output) / file for role, file in reads.items()}
        for key in self.files:
            section, role = key.split(".")
            value = getattr(getattr(config, section), role)
            if isinstance(value, tuple):
                paths |= {f"{role}-{k}": Path(one) for k, one in enumerate(value, 1)}
            elif value:
                paths[role] = Path(value)
        return paths

    def output_files(self, config: "Settings") -> tuple[str, ...]:
        """Every output that is always there, relative to the output folder."""
        return self.outputs + (self.outputs_of(config) if self.outputs_of else ())

    def output_paths(self, config: "Settings") -> list[Path]:
        """The output files that are always there."""
        return [Path(config.output) / file for file in self.output_files(config)]

    def written(self, config: "Settings") -> dict[str, Path]:
        """The output files after a run, by their names in the output folder: what the record vouches for."""
        folder = Path(config.output)
        return {file: folder / file for file in (*self.output_files(config), *_found(folder, self.optional_outputs))}

    def beside(self, config: "Settings") -> dict[str, Path]:
        """Companions after a run, by their names in the output folder."""
        folder = Path(config.output)
        return {file: folder / file for file in _found(folder, self.companions)}


def _found(folder: Path, patterns: Iterable[str]) -> list[str]:
    return sorted(str(path.relative_to(folder)) for pattern in patterns for path in folder.glob(pattern))


def in_order(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """The stages, each after those whose outputs it reads.

    Raises ValueError when no stage writes a file that another reads, CycleError (a ValueError) for a circle.
    """
    named = {stage.name: stage for stage in stages}
    maker = {file: stage.name for stage in named.values() for file in stage.outputs}
    graph = {}
    for stage in named.values():
        unmade = [file for file in stage.reads.values() if file not in maker]
        if unmade:
            raise ValueError(f"stage {stage.name} reads {unmade[0]}, which no stage writes")
        graph[stage.name] = {maker[file] for file in stage.reads.values()}
    return tuple(named[name] for name in TopologicalSorter(graph).static_order())
