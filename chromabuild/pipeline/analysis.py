"""`chromabuild analyse`: measures of a trajectory as tables, made once for each input."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.analysis.record import VERSION, is_whole, read_record, write_record
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path, file_hash
from chromabuild.base.forks import can_fork
from chromabuild.base.in_use import in_use
from chromabuild.base.progress import Progress, silent
from chromabuild.base.summary import Summary
from chromabuild.pipeline.ask import refuse_without_memory
from chromabuild.pipeline.needs import analysis_memory

if TYPE_CHECKING:
    import MDAnalysis

    from chromabuild.analysis.frame_analysis import FrameAnalysis
    from chromabuild.analysis.histones import Octamer
    from chromabuild.analysis.tables import Table
    from chromabuild.analysis.whole_nucleosomes import WholeNucleosomes

MEASURES = ("dna", "nucleosome", "fibre", "solvent", "structure", "map")
_FEW = 16
"""Frames a process that are worth its start."""


@dataclass(frozen=True)
class Source:
    """What is analysed."""

    universe: "MDAnalysis.Universe"
    name: str
    """For sentences and titles."""
    files: tuple[Path, ...]
    """All that the result depends on."""
    trajectory: Path
    """The file with the frames."""
    time: np.ndarray
    """(f,) of all frames, ps."""
    chromosome: str = ""
    start: int = 0
    """Where on the chromosome the first base pair lies."""
    turn: int = 0
    """Base pairs of a circle from there to the first of the duplex."""

    @cached_property
    def octamers(self) -> "list[Octamer]":
        """Those of the first frame, looked for once: it takes seconds in a locus of hundreds."""
        from chromabuild.analysis.histones import find_octamers

        self.universe.trajectory[0]
        return find_octamers(self.universe)

    @cached_property
    def whole(self) -> "WholeNucleosomes":
        """DNA and nucleosomes of the first frame, likewise. Raises BadInputError where there are none."""
        from chromabuild.analysis.whole_nucleosomes import WholeNucleosomes

        octamers = self.octamers
        self.universe.trajectory[0]
        return WholeNucleosomes(self.universe, self.name, octamers)


def phase_source(folder: Path, phase: str | None) -> Source:
    """Frames of a phase of an output folder; default the last phase of dynamics that wrote any.

    Raises BadInputError where there are none, or where the file is damaged.
    """
    from chromabuild.analysis.trajectory_file import load
    from chromabuild.export.universe import make_universe
    from chromabuild.forcefield.molecule_runs import part_of
    from chromabuild.pipeline.results import open_results

    results = open_results(folder)
    having = [one for one in results.run.phases if one.trajectory]
    if not having:
        raise BadInputError(f"{folder} holds no trajectory: give a phase of simulate a trajectory_period")
    names = [one.name for one in having]
    if phase is None:
        chosen = next((one for one in reversed(having) if one.kind == "dynamics"), having[-1])
    elif phase in names:
        chosen = having[names.index(phase)]
    else:
        raise BadInputError(f"{folder} has no trajectory of a phase {phase}: choose from {', '.join(names)}")
    selection = results.record["stages"]["topology"]["provenance"]["settings"]["dynamics"]["trajectory_selection"]
    written = part_of(results.topology, selection)
    _ask_for_memory(written.n_atoms, 0)
    universe = make_universe(written, results.solvated_solute)
    load(universe, chosen.trajectory, "topology.h5")
    fold = folder / "scaffold.h5"
    scaffold = results.scaffold if fold.is_file() else None
    files = (folder / "topology.h5", folder / "solute_clean.h5", chosen.trajectory, chosen.log)
    when = chosen.frame_times(len(universe.trajectory))
    source = Source(universe, f"phase {chosen.name}", files, chosen.trajectory, when)
    if not scaffold:
        return source
    start = int(scaffold.position.min())
    return replace(source, files=(*files, fold), chromosome=scaffold.chromosome, start=start,
                   turn=int(scaffold.position[0]) - start)


def file_source(topology: Path, trajectory: Path | None) -> Source:
    """Any topology and trajectory of MDAnalysis. Raises BadInputError for files that are damaged or do not match."""
    from chromabuild.analysis.trajectory_file import open_universe

    universe = open_universe(topology, trajectory)
    frames, step = len(universe.trajectory), float(universe.trajectory.dt)
    start = float(universe.trajectory[0].time)
    files = (topology, trajectory) if trajectory is not None else (topology,)
    return Source(universe, (trajectory or topology).name, files, trajectory or topology,
                  start + step * np.arange(frames))


def analyse(source: Source, folder: Path, measures: Sequence[str] | None = None, every: int = 1,
            threads: int = 1, nucleosome: int | None = None, progress: Progress = silent) -> Summary:
    """Write the tables of some measures into a folder, and sum them up; what is there already stays.

    ``measures`` None: dna, and nucleosome where there is one. ``nucleosome``, from 1, is what the measure map is made
    about: by default the first one, DNA where there is none.

    Raises BadInputError for an unknown measure, too few frames, DNA or nucleosomes that are missing, and files that
    end early, BusyError while another process writes there.
    """
    from chromabuild.analysis.tables import counted_from

    if measures is None:
        measures = ("dna", "nucleosome") if source.octamers else ("dna",)
    unknown = [measure for measure in measures if measure not in MEASURES]
    if unknown or not measures:
        raise BadInputError(f"{unknown[0] if unknown else 'nothing'} is no measure: choose from {', '.join(MEASURES)}")
    if every > len(source.time):
        raise BadInputError(f"every = {every} is more than the {len(source.time)} frames of {source.name}: choose less")
    _ask_for_memory(len(source.universe.atoms), _workers(len(source.time[::every]), threads))
    keys = dict.fromkeys(MEASURES, _key(source, every))
    keys["map"] += f" about {nucleosome}"
    with in_use(folder, is_lock_kept=False):
        done = {measure: entry for measure, entry in read_record(folder).items()
                if entry["key"] == keys.get(measure) and is_whole(folder, entry)}
        kept = [measure for measure in measures if measure in done]
        for number, measure in enumerate(one for one in MEASURES if one in measures and one not in done):
            progress(measure, number / len(measures))
            tables, first, extra = _measured(source, measure, every, threads, folder, nucleosome)
            time = source.time[::every]
            for name, table in counted_from(tables, float(time[first])).items():
                table.write(folder / f"{name}.csv")
            names = [f"{name}.csv" for name in tables] + extra
            entry = {"key": keys[measure], "source": source.name, "frames": len(time), "every": every,
                     "from_ps": float(time[first]), "to_ps": float(time[-1]),
                     "files": {name: file_hash(folder / name) for name in names}}
            write_record(folder, {one: old for one, old in read_record(folder).items() if one != measure}
                         | {measure: entry})
            done[measure] = entry
    entries = {measure: done[measure] for measure in MEASURES if measure in measures}
    one = next(iter(entries.values()))
    return {"source": source.name, "frames": one["frames"],
            "equilibrated_from_ps": max(entry["from_ps"] for entry in entries.values()),
            "up_to_date": ", ".join(kept) or "none",
            "files": [str(folder / name) for entry in entries.values() for name in entry["files"]]}


def _measured(source: Source, measure: str, every: int, threads: int, folder: Path,
              nucleosome: int | None) -> "tuple[dict[str, Table], int, list[str]]":
    """Tables of a measure, the frame from which they count, and further files that were written."""
    from chromabuild.analysis import tables

    source.universe.trajectory[0]
    time = source.time[::every]
    if measure == "dna":
        from chromabuild.analysis.dna_analysis import DnaAnalysis
        from chromabuild.analysis.nucleotides import find_nucleotides

        nucleotides = find_nucleotides(source.universe, source.name)
        found = _run(DnaAnalysis(source.universe, nucleotides), source, every, threads)
        return *tables.dna_tables(found, time), [_keep_frames(found, DnaAnalysis.MEASURES, time, folder, measure)]
    if measure == "solvent":
        from chromabuild.analysis.solvent_analysis import SolventAnalysis

        found = _run(SolventAnalysis(source.universe, whose=source.name), source, every, threads)
        kept = _keep_frames(found, SolventAnalysis.MEASURES, time, folder, measure)
        return *tables.solvent_tables(found, time), [kept]
    if measure == "structure":
        from chromabuild.analysis.structure_analysis import StructureAnalysis

        found = _run(StructureAnalysis(source.universe, source.name), source, every, threads)
        return *tables.structure_tables(found, time), []
    if measure == "map":
        from chromabuild.analysis.solvent_maps import SolventMaps

        about = nucleosome or (1 if source.octamers else None)
        maps = SolventMaps(source.universe, about, source.name)
        made, first = tables.settling_tables(_run(maps.settling(), source, every, threads), time)
        source.universe.trajectory[0]
        found = _run(maps, source, every, threads, first)
        return made | tables.map_tables(found), first, found.write(folder)
    whole = source.whole
    if measure == "nucleosome":
        from chromabuild.analysis.nucleosome_analysis import NucleosomeAnalysis

        found = _run(NucleosomeAnalysis(source.universe, whole), source, every, threads)
        kept = [name for name in NucleosomeAnalysis.MEASURES if name != "alpha"]
        return *tables.nucleosome_tables(found, time), [_keep_frames(found, kept, time, folder, measure)]
    from chromabuild.analysis.contact_maps import ContactMaps
    from chromabuild.analysis.fibre_analysis import FibreAnalysis, in_order, nucleosome_bins
    from chromabuild.genome.contact_map import write_nucleosome_map

    found = _run(FibreAnalysis(source.universe, whole), source, every, threads)
    made, first = tables.fibre_tables(found, time)
    files = [_keep_frames(found, FibreAnalysis.MEASURES, time, folder, measure)]
    maps = ContactMaps(source.universe, whole, 0, source.start, source.turn)
    files += _run(maps, source, every, threads, first).write(folder, source.chromosome)
    on_first = in_order(whole, 0, source.turn)
    if len(on_first) > 1:
        counts = found.contacts(first)[np.ix_(on_first, on_first)]
        write_nucleosome_map(counts, nucleosome_bins(whole, 0, source.start, source.turn), source.chromosome,
                             folder / "fibre_map.cool")
        files.append("fibre_map.cool")
    return made, first, files


def _keep_frames(analysis: "FrameAnalysis", names: Iterable[str], time: np.ndarray, folder: Path, measure: str) -> str:
    """Results of every frame as a NumPy archive; its name."""
    name = f"{measure}_frames.npz"
    with atomic_path(folder / name) as part, open(part, "wb") as file:
        np.savez_compressed(file, time_ps=time, **{name: analysis.results[name] for name in names})
    return name


def _run(analysis: "FrameAnalysis", source: Source, every: int, threads: int, first: int = 0) -> "FrameAnalysis":
    """All chosen frames from number ``first`` of them on, shared out to processes where there are enough."""
    from chromabuild.analysis.frame_analysis import ForkBackend

    frames = len(source.time[::every]) - first
    workers = _workers(frames, threads)
    shared = {"backend": ForkBackend(workers), "unsupported_backend": True} if workers else {}
    try:
        analysis.run(start=first * every, step=every, **shared)
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, ValueError) and "trajectory" not in str(error).lower():
            raise
        raise BadInputError(f"{source.trajectory} cannot be read to its end ({error}): it is cut short or damaged; "
                            "copy it again") from None
    if analysis.n_frames != frames:
        raise BadInputError(f"{source.trajectory} ends after {analysis.n_frames} of {frames} frames: it is cut short; "
                            "copy it again")
    return analysis


def _workers(frames: int, threads: int) -> int:
    """Processes beside this one that share so many frames; none where one is enough."""
    workers = min(threads, frames // _FEW)
    return workers if workers > 1 and can_fork() else 0


def _ask_for_memory(atoms: int, workers: int) -> None:
    """Raise ResourceError where there is less memory than an analysis needs of frames of so many atoms."""
    fewer = "use --threads 1, " if workers else ""
    refuse_without_memory(analysis_memory(atoms, workers), f"the analysis of frames of {atoms:.3g} atoms",
                          f"{fewer}write fewer atoms (dynamics.trajectory_selection), or analyse them where there is "
                          "more")


def _key(source: Source, every: int) -> str:
    """Of all that the tables follow from."""
    from hashlib import blake2b

    from chromabuild import __version__

    content = [__version__, VERSION, every, source.name, *(file_hash(path) for path in source.files)]
    return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
