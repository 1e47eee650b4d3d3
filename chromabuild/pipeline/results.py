"""The whole chain in one call, and the results in an output folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError
from chromabuild.base.notebook import facts_html
from chromabuild.base.progress import Progress, silent
from chromabuild.base.record import Record
from chromabuild.base.settings import Settings, load_config
from chromabuild.base.threads import thread_count
from chromabuild.pipeline import chain, provenance

if TYPE_CHECKING:
    import MDAnalysis
    import numpy as np

    from chromabuild.clash import ClashReport
    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.molecule.solute import Solute
    from chromabuild.shards import StoredVectors
    from chromabuild.shards.shard_set import ShardSet
    from chromabuild.simulate.result import PhaseFiles, Run
    from mesoscale.scaffold import Scaffold


@dataclass(frozen=True)
class Results:
    """An output folder; every file is read when it is first asked for.

    Readers raise BadInputError, or IntegrityError for shards and ValueError for the scaffold, when a file is missing or
    damaged.
    """

    folder: Path

    @property
    def record(self) -> Record:
        """What was run: settings, seed, versions, checksums, times and the summary of each stage."""
        return provenance.read(self.folder)

    @cached_property
    def scaffold(self) -> "Scaffold":
        """The coarse-grained fibre."""
        from mesoscale.scaffold import Scaffold

        return Scaffold.read(self.folder / "scaffold.h5")

    @cached_property
    def solute(self) -> "Solute":
        """DNA and histones before the correction of clashes."""
        from chromabuild.molecule.solute import Solute

        return Solute.read(self.folder / "solute.h5")

    @cached_property
    def clean_solute(self) -> "Solute":
        """DNA and histones after the correction of clashes."""
        from chromabuild.molecule.solute import Solute

        return Solute.read(self.folder / "solute_clean.h5")

    @cached_property
    def solvated_solute(self) -> "Solute":
        """What was put into water: after the dry relaxation, where there was one, with the ions at its phosphates."""
        from chromabuild.molecule.solute import Solute

        inputs = self.record["stages"].get("solvate", {}).get("provenance", {}).get("inputs", {})
        file = inputs.get("solute", {}).get("file", "solute_clean.h5")
        return self.clean_solute if file == "solute_clean.h5" else Solute.read(self.folder / file)

    @cached_property
    def clash_report(self) -> "ClashReport":
        """What was found, moved and left."""
        from chromabuild.clash import ClashReport

        return ClashReport.read(self.folder / "clash_report.json")

    @cached_property
    def shards(self) -> "ShardSet":
        """The solvated box."""
        from chromabuild.shards.shard_set import ShardSet

        return ShardSet.read(self.folder / "shards")

    @cached_property
    def topology(self) -> "Topology":
        """The force field."""
        from chromabuild.forcefield.topology_file import Topology

        return Topology.read(self.folder / "topology.h5")

    @cached_property
    def run(self) -> "Run":
        """Minimisation and dynamics, all phases."""
        from chromabuild.simulate.result import Run

        return Run.read(self.folder / "md")

    @cached_property
    def universe(self) -> "MDAnalysis.Universe":
        """The atoms of the trajectory in MDAnalysis, with the frames of all phases that wrote any, as one series.

        Made from topology.h5, in some seconds for a million atoms; angles and dihedrals are left out.
        """
        from chromabuild.export.universe import make_universe
        from chromabuild.forcefield.molecule_runs import part_of

        selection = self.record["stages"]["topology"]["provenance"]["settings"]["dynamics"]["trajectory_selection"]
        return make_universe(part_of(self.topology, selection), self.solvated_solute, self.run.trajectories)

    @cached_property
    def replicas(self) -> "tuple[Run, ...]":
        """All replicas that are done: that of ``run``, then the others."""
        from chromabuild.simulate.replicas import replica_folder
        from chromabuild.simulate.result import FILE_NAME, Run

        folders = (replica_folder(self.folder / "md", replica) for replica in count(2))
        others = takewhile(lambda folder: (folder / FILE_NAME).is_file(), folders)
        return (self.run, *map(Run.read, others))

    @property
    def report(self) -> Path:
        """The page that shows it all."""
        return self.folder / "report.html"

    def _repr_html_(self) -> str:
        stages = self.record["stages"].values()
        return facts_html(f"Results in {self.folder}", {stage["title"]: f"{stage['seconds']} s, {stage['started']}"
                                                        for stage in stages})



def phase_done(results: Results, name: str) -> "PhaseFiles":
    """The phase of a name, ``last`` for the last, of those that are done. Raises BadInputError for another."""
    phases = {phase.name: phase for phase in results.run.phases}
    if name == "last" and phases:
        name = [*phases][-1]
    if name not in phases:
        raise BadInputError(f"{name} is not a phase that is done: choose from {', '.join(phases) or 'none'}")
    return phases[name]


def end_of_phase(shards: Path, name: str) -> tuple["StoredVectors", "np.ndarray"]:
    """Positions (n, 3), on disk, and box (3,), angstrom, at the end of a phase of the build that a folder of shards
    belongs to.

    Raises BadInputError when the phase is not done, IntegrityError for damaged files.
    """
    from chromabuild.shards.manifest import Manifest
    from chromabuild.simulate.restart_file import store_restart

    results = open_results(shards.parent)
    end = store_restart(phase_done(results, name).restart, Manifest.read(shards).atoms, results.folder)
    return end.position, end.box


def open_results(folder: str | Path) -> Results:
    """The results in an output folder. Raises BadInputError when nothing has been run there.

    >>> open_results("empty")
    Traceback (most recent call last):
    ...
    chromabuild.base.errors.BadInputError: empty holds no results: run `chromabuild all`
    """
    found = Results(Path(folder))
    if not found.record["stages"]:
        raise BadInputError(f"{folder} holds no results: run `chromabuild all`")
    return found


def run_chain(settings: Settings | str | os.PathLike[str], *, threads: int | None = None, until: str = chain.LAST,
              force: bool = False, progress: Progress = silent) -> Results:
    """Run the chain of stages of some settings (or of a locus.yaml), or continue it, as ``chromabuild all`` does.

    Stages that are up to date are left out unless ``force``; ``until`` names the last one to run. Raises BadInputError
    for an unknown stage, and what the stages raise.
    """
    if until not in chain.NAMES:
        raise BadInputError(f"{until} is not a stage: choose from {', '.join(chain.NAMES)}")
    config = settings if isinstance(settings, Settings) else load_config(Path(settings))
    for _ in chain.run_stages(config, thread_count(threads), _Calls(progress), force, until):
        pass
    return open_results(config.output)


class _Calls:
    """A ``Reporter`` that hands everything on to one function."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    @contextmanager
    def stage(self, title: str) -> Iterator[Progress]:
        self._progress(title, 0.0)
        yield lambda phase, share=None: self._progress(f"{title}: {phase}", share)
        self._progress(title, 1.0)

    def note(self, text: str) -> None:
        """Hand on what should be known before the work."""
        self._progress(f"note: {text}")

    def skipped(self, title: str) -> None:
        self._progress(f"{title}: up to date", 1.0)
