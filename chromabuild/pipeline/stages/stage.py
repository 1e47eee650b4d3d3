"""What a stage of the chain is, and what it is given."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.settings import Config

if TYPE_CHECKING:
    from chromabuild.solvate import Part


@dataclass
class Job:
    """What a stage is given."""

    config: Config
    threads: int
    progress: Callable[[float | str], None]
    provenance: dict
    """Goes into every file that the stage writes."""
    only: "Iterable[int] | Part | None" = None
    """The shards to make, of the solvate stage; None: all."""

    @property
    def folder(self) -> Path:
        """The output folder."""
        return Path(self.config.output)

    def show(self, phase: str, share: float) -> None:
        """Tell the user what is being done and the fraction of it that is."""
        self.progress(phase)
        self.progress(share)


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


def files(**inputs: str) -> Callable[[Config], dict[str, str | Path]]:
    """Input files, by role, that do not depend on the settings."""
    return lambda config: dict(inputs)
