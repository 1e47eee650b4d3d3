"""Phases of the settings turned into runs of an engine: what each inherits, where it starts, what is already done.

A phase that is done has a record beside its files, ``md/02-heat.json``: what the phase depended on, and checksums of
what it wrote. The same phase of the same settings, input and predecessors is not run again. What a phase depends on is
also noted when it begins, ``md/restart/02-heat_begun.json``: asked for again, it goes on from its checkpoint.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from blake3 import blake3

from chromabuild.base.checked_json import KEY, checked_text
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path, file_hash, remove_leftovers
from chromabuild.base.in_use import in_use
from chromabuild.base.phases import DEFAULT_TIMESTEP, NO_LENGTH, Boost, Exchange, Restraint, picoseconds
from chromabuild.base.settings import HEALTH_KEYS, DynamicsSection, Settings, SimulateSection
from chromabuild.simulate.choice import Choice
from chromabuild.simulate.extension import Extension, forget_extension, read_extension
from chromabuild.simulate.result import FILE_NAME, FORMAT, PhaseFiles, Run

Row = dict[str, float]
RECORD_FORMAT = "chromabuild-phase"
FREE_SETTINGS = {"ranks", "tune", "checkpoint", "launcher", "platform", "platform_precision", "devices", *HEALTH_KEYS}
"""Keys of ``dynamics`` that change no more than the rounding of sums: a phase is done whatever they are."""
MINIMISE_OUTPUT_PERIOD = 10
"""Steps between rows of the minimiser's energy table, unless the settings say otherwise."""


@dataclass(frozen=True)
class PlannedPhase:
    """A phase with everything that it inherits, and its place among the others."""

    number: int
    """From 1."""
    name: str
    kind: Literal["minimise", "dynamics"]
    steps: int
    ensemble: Literal["NVE", "NVT", "NPT"]
    temperature: tuple[float, float]
    """At the start and at the end, K."""
    pressure: float
    """Atm."""
    timestep: float
    """Fs."""
    hydrogen_mass_factor: float
    restraints: tuple[Restraint, ...]
    end_pairs: float
    """Constant of the hydrogen bonds at the ends of DNA, kcal/mol/angstrom^2; 0: free."""
    output_period: int
    trajectory_period: int
    """0: no frames."""
    first_step: int
    """Steps of dynamics since velocities were drawn."""
    first_time: float
    """Simulated time before this phase, ps."""
    draws_velocities: bool
    exchange: Exchange | None = None
    """Temperatures of replicas, the first of which is ``temperature``."""
    boost: Boost | None = None
    boost_source: str | None = None
    """Name of the file with what the boost begins with; None where it is yet to be learnt."""

    @property
    def replicas(self) -> int:
        """Copies of the system that it moves at a time."""
        return len(self.exchange.temperatures) if self.exchange else 1

    @property
    def stem(self) -> str:
        """First part of the names of its files."""
        return f"{self.number:02d}-{self.name}"

    @property
    def simulated(self) -> float:
        """Simulated time of the phase, ps."""
        return self.steps * self.timestep / 1000 if self.kind == "dynamics" else 0.0

    @property
    def log(self) -> str:
        """Name of the log."""
        return f"{self.stem}.log"

    @property
    def frames(self) -> int:
        """Frames of its trajectory, at whole multiples of the period."""
        if not self.trajectory_period:
            return 0
        start = self.first_step if self.kind == "dynamics" else 0
        return (start + self.steps) // self.trajectory_period - start // self.trajectory_period

    @property
    def trajectory(self) -> str | None:
        """Name of the trajectory; None where there are no frames."""
        return f"{self.stem}.dcd" if self.frames else None

    @property
    def learnt(self) -> str | None:
        """Name of the file of what its boost learns; None where there is nothing to learn."""
        return f"{self.stem}.gamd" if self.boost and self.boost.mode != "hold" else None

    @property
    def companions(self) -> tuple[str, ...]:
        """Names of files that it may leave beside its results and that nothing else vouches for, and of those of the
        set-up before the first phase."""
        return (*(("setup.inp", "setup.out") if self.number == 1 else ()), f"{self.stem}.inp", f"{self.stem}.out",
                *((self.learnt,) if self.learnt else ()), self.checkpoint_mark, f"restart/{self.stem}.xml",
                f"restart/{self.stem}_checkpoint_state.npz", *self._companions_of_replicas())

    def _companions_of_replicas(self) -> tuple[str, ...]:
        """Names of what replicas write, and of what is sorted by temperature."""
        if self.exchange is None:
            return ()
        return tuple(f"{self.stem}_{name}" for k in range(1, self.replicas + 1)
                     for name in (f"rep{k}.log", f"rep{k}.rem", f"rep{k}.dcd", f"par{k}.log", f"par{k}.dcd"))

    @property
    def record(self) -> str:
        """Name of the record of a finished phase."""
        return f"{self.stem}.json"

    @property
    def begun(self) -> str:
        """Name of the note of what its checkpoint is of."""
        return f"restart/{self.stem}_begun.json"

    @property
    def checkpoint(self) -> str:
        """Name of its checkpoint files; ``()`` stands for the rank, ``{}`` for the replica where there are some."""
        return f"restart/{self.stem}_checkpoint_{'rep{}_' if self.exchange else ''}().rst"

    @property
    def checkpoint_mark(self) -> str:
        """Name of the file that says which checkpoint is whole, and of which step it is."""
        return f"restart/{self.stem}_checkpoint_{'rep1_' if self.exchange else ''}whole.txt"

    @property
    def changes(self) -> bool:
        """Whether temperature or restraints change over its length, which then decides its course."""
        start, end = self.temperature
        return start != end or any(first != last for first, last in (item.ends() for item in self.restraints))


def plan_phases(simulate: SimulateSection, extension: Extension | None = None) -> tuple[PlannedPhase, ...]:
    """The phases in order, with what they inherit from the section and from those before them.

    ``extension``: what has made one of them longer.
    """
    planned: list[PlannedPhase] = []
    step, elapsed, at_rest = 0, 0.0, True
    learnt: str | None = None
    for number, phase in enumerate(simulate.chosen(), 1):
        moves = phase.kind == "dynamics"
        temperature = phase.exchange.temperatures[0] if phase.exchange else phase.temperature or simulate.temperature
        if moves and at_rest:
            step = 0
        steps = phase.n_steps()
        if extension is not None and extension.phase == phase.name:
            steps = max(steps, extension.steps)
        one = PlannedPhase(
            number=number, name=phase.name, kind=phase.kind, steps=steps, ensemble=phase.ensemble or "NVT",
            temperature=temperature if isinstance(temperature, tuple) else (temperature, temperature),
            pressure=simulate.pressure if phase.pressure is None else phase.pressure,
            timestep=phase.timestep or DEFAULT_TIMESTEP, hydrogen_mass_factor=phase.hydrogen_mass_factor,
            restraints=phase.restraints, end_pairs=phase.end_pairs,
            output_period=phase.output_period or (simulate.output_period if moves else MINIMISE_OUTPUT_PERIOD),
            trajectory_period=phase.trajectory_period or (simulate.trajectory_period if moves else 0),
            first_step=step, first_time=elapsed, draws_velocities=moves and at_rest, exchange=phase.exchange,
            boost=phase.boost, boost_source=learnt if phase.boost and phase.boost.mode != "watch" else None)
        planned.append(one)
        learnt = one.learnt or learnt
        at_rest = not moves
        step += one.steps if moves else 0
        elapsed += one.simulated
    return tuple(planned)


def phases_in(folder: Path, simulate: SimulateSection) -> tuple[PlannedPhase, ...]:
    """The phases as they are in the folder of a run: one of them may be longer there than in the settings."""
    return plan_phases(simulate, read_extension(folder))


def last_dynamics(phases: tuple[PlannedPhase, ...]) -> PlannedPhase | None:
    """The last phase of dynamics, as a rule that of production."""
    return next((phase for phase in reversed(phases) if phase.kind == "dynamics"), None)


def phase_named(phases: tuple[PlannedPhase, ...], name: str) -> PlannedPhase:
    """The phase of that name. Raises BadInputError for another name."""
    for phase in phases:
        if phase.name == name:
            return phase
    raise BadInputError(f"{name} is not a phase: choose from {', '.join(phase.name for phase in phases)}")


@dataclass(frozen=True)
class Solvent:
    """Water and salt that are not there as atoms, around a solute without a periodic box."""

    dielectric: float
    """Relative permittivity, or its slope an angstrom."""
    form: Literal["distance", "constant"]
    debye_length: float
    """Angstrom."""
    of_beads: bool = False
    """What stands in it are beads, whose van der Waals energy is repulsion alone."""


@dataclass(frozen=True)
class Task:
    """What an engine is given beside a phase."""

    dynamics: DynamicsSection
    seed: int
    topology: Path
    """The Topology file."""
    bricks: Path
    """``shards/bricks.txt``."""
    folder: Path
    """Where everything lands."""
    threads: int | None = None
    """Of each rank; None: as the environment says."""
    solvent: Solvent | None = None
    """None: water and ions are among the atoms, in a periodic box."""
    choice: Choice | None = None
    """What ``dynamics.tune`` has chosen; ranks and threads are those of the task."""

    @property
    def domains(self) -> int:
        """Ranks that have atoms, and so restart files."""
        return self.choice.domains if self.choice else self.dynamics.ranks


class Engine(Protocol):
    """A program that runs phases."""

    def restart_name(self, phase: PlannedPhase, domains: int = 1) -> str:
        """Restart files that the phase leaves, relative to the folder; ``()`` stands for the rank, ``(by256)`` for a
        folder of 256 of them where there are many ``domains``."""

    def run_phase(self, task: Task, phase: PlannedPhase, previous: PlannedPhase | None,
                  progress: Callable[[Row], None], begun: bool) -> None:
        """Run one phase from the restart of the one before it (None: from the shards).

        ``begun``: it was begun before and may go on from its checkpoint.
        """


def run_phases(config: Settings, task: Task, engine: Engine, only: str | None = None, again: bool = False,
               progress: Callable[[PlannedPhase, Row | None], None] = lambda phase, row: None) -> Run:
    """Run the phases of the settings in order and leave out those that are done, unless ``again``.

    A phase that was stopped, or that is done and now longer, goes on from its checkpoint, if the engine writes any.
    ``only``: the name of the one phase to run; those before it must be done. ``progress`` receives every new row of a
    phase's energy table, or None for a phase that is left out. The list of phases is written when all are done.

    Raises BadInputError for an unknown name and for a phase before ``only`` that is not done, and what the engine
    raises.
    """
    phases = plan_phases(config.simulate)
    wanted = {phase.name for phase in (phases if only is None else (phase_named(phases, only),))}
    with in_use(task.folder):
        return _run_in(config, task, engine, phases, wanted, again, progress)


def _run_in(config: Settings, task: Task, engine: Engine, phases: tuple[PlannedPhase, ...], wanted: set[str],
            again: bool, progress: Callable[[PlannedPhase, Row | None], None]) -> Run:
    """The same in a folder that is this process's; ``wanted``: names of the phases to run."""
    for place in (task.folder, task.folder / "restart", *task.folder.glob("restart/[0-9]*/")):
        remove_leftovers(place)
    previous: PlannedPhase | None = None
    files: list[PhaseFiles] = []
    for phase, description, done in _states(config, task):
        record = task.folder / phase.record
        if phase.name in wanted and (done is None or again):
            begun = _begin(task, phases, phase, description, again)
            record.unlink(missing_ok=True)
            clock = _Clock()

            def advance(row: Row, phase: PlannedPhase = phase, clock: _Clock = clock) -> None:
                clock.note(row["STEP"])
                progress(phase, row)

            engine.run_phase(task, phase, previous, advance, begun)
            done = {"format": RECORD_FORMAT, "description": description, "seconds_per_step": clock.seconds_per_step,
                    "outputs": _hashes(task.folder, filter(None, (phase.log, phase.trajectory))),
                    "companions": _hashes(task.folder, phase.companions)}
            with atomic_path(record) as part:
                part.write_text(checked_text(done, indent=1), encoding="utf-8")
        elif done is None and wanted.isdisjoint(before.name for before in phases[:phase.number]):
            raise BadInputError(f"phase {phase.name} is not done: run `chromabuild run --phase {phase.name}` first")
        elif done is not None:
            progress(phase, None)
        if done is None:
            break
        files.append(PhaseFiles(phase.name, phase.kind, task.folder / phase.log,
                                task.folder / phase.trajectory if phase.trajectory else None,
                                str(task.folder / engine.restart_name(phase, task.domains)),
                                done["seconds_per_step"]))
        previous = phase
    run = Run(task.folder, tuple(files))
    if len(files) == len(phases):
        _write_list(run)
    return run


def extended(config: Settings, task: Task, length: str) -> tuple[Extension, bool]:
    """The last phase made longer by ``length`` (``10 ns``), to be written before ``run_phases`` goes on with it, and
    whether this finishes an extension that was stopped: of that, another length takes the place.

    Raises BadInputError with one sentence where the phase cannot go on.
    """
    try:
        wanted = picoseconds(length)
    except ValueError:
        raise BadInputError(f"--extend {length!r} {NO_LENGTH}") from None
    *_, (phase, description, record) = states = list(_states(config, task))
    if phase.kind == "minimise" or phase.changes:
        why = "is a minimisation" if phase.kind == "minimise" else "changes temperature or restraints over its length"
        raise BadInputError(f"--extend goes on with the last phase, and {phase.name} {why}: append a phase of dynamics "
                            "to simulate.phases")
    steps = round(1000 * wanted / phase.timestep)
    if steps == 0:
        raise BadInputError(f"--extend {length!r} is shorter than a step of {phase.name}, {phase.timestep:g} fs: "
                            "give more")
    before = _extension_of(task, phase, description) or Extension(phase.name, _identity(description), ())
    unfinished = record is None and before.lengthenings != () and before.steps == phase.steps
    undone = next((other.name for other, _, found in states if found is None), None)
    if undone is not None and not (unfinished and undone == phase.name):
        raise BadInputError(f"phase {undone} is not done with these settings: end it with `chromabuild run`, then "
                            "extend it")
    done = _steps_at_checkpoint(task, phase, description)
    start = before.lengthenings[-1].start if unfinished else phase.steps
    if start + steps < done:
        raise BadInputError(f"--extend {length!r} ends before what is done of the extension of {phase.name}, "
                            f"{(done - start) * phase.timestep / 1000:g} ps: give more")
    if replace(phase, steps=start + steps).frames and not phase.frames:
        raise BadInputError(f"phase {phase.name} has no trajectory to go on with, for it is shorter than its "
                            "trajectory_period: append a phase to simulate.phases")
    return before.longer(length, start, steps), unfinished


def _extension_of(task: Task, phase: PlannedPhase, description: dict) -> Extension | None:
    """The extension that holds for a phase."""
    found = read_extension(task.folder)
    return found if found is not None and (found.phase, found.of) == (phase.name, _identity(description)) else None


def _steps_at_checkpoint(task: Task, phase: PlannedPhase, description: dict) -> int:
    """Steps of a phase at its last checkpoint. Raises BadInputError where it cannot go on from there."""
    note, source = _json(task.folder / phase.begun), _source(task, phase, description)
    if note is not None and note != source and note | {"ranks": 0} == source | {"ranks": 0}:
        raise BadInputError(f"phase {phase.name} goes on with as many ranks as it was run on: set dynamics.ranks to "
                            f"{note['ranks']}")
    mark = task.folder / phase.checkpoint_mark
    try:
        numbers = dict(line.split() for line in mark.read_text(encoding="utf-8").splitlines() if len(line.split()) == 2)
        done = int(numbers["step"]) - int(numbers["first_step"])
    except (OSError, ValueError, KeyError):
        done = None
    if note != source or done is None:
        raise BadInputError(f"phase {phase.name} cannot go on, for its checkpoint {mark} is missing or of another run: "
                            "append a phase to simulate.phases, or run all anew with `chromabuild all --force`")
    return done


def is_begun(config: Settings, task: Task) -> bool:
    """Whether a phase of this run was begun, on any number of ranks."""
    return any(note is not None and note | {"ranks": 0} == _source(task, phase, description) | {"ranks": 0}
               for phase, description, _ in _states(config, task)
               for note in [_json(task.folder / phase.begun)])


def _states(config: Settings, task: Task) -> Iterator[tuple[PlannedPhase, dict, dict | None]]:
    """Phases in order, each with what its result depends on and, where it is done, its record."""
    before = blake3(file_hash(task.topology).encode() + file_hash(task.bricks).encode()).hexdigest()
    extension = read_extension(task.folder)
    phases = plan_phases(config.simulate, extension)
    for k in range(len(phases)):
        description = _description(phases[k], task, before)
        if extension is not None and extension.phase == phases[k].name and \
                extension.of != _identity(description):
            # It was of another run of that phase.
            phases = plan_phases(config.simulate)
            description = _description(phases[k], task, before)
        yield phases[k], description, _read_record(task.folder / phases[k].record, description)
        # What comes later depends on what this phase depended on, and not on the times in its log.
        before = blake3(json.dumps(description, sort_keys=True).encode()).hexdigest()


def _description(phase: PlannedPhase, task: Task, before: str) -> dict:
    """What the result of a phase depends on. Ranks and threads change no more than the rounding of sums."""
    told = asdict(replace(phase, restraints=(), exchange=None, boost=None)) | {
        "restraints": [item.model_dump(mode="json") for item in phase.restraints]}
    for key, value in (("exchange", phase.exchange), ("boost", phase.boost)):
        del told[key]
        if value:
            told[key] = value.model_dump(mode="json")
    if phase.boost is None:
        del told["boost_source"]
    return {"phase": told, "dynamics": task.dynamics.model_dump(mode="json", exclude=FREE_SETTINGS), "seed": task.seed,
            "before": before} | ({"solvent": asdict(task.solvent)} if task.solvent else {})


def _without_length(description: dict) -> dict:
    """What a phase depends on but for its length."""
    return description | {"phase": {key: value for key, value in description["phase"].items() if key != "steps"}}


def _identity(description: dict) -> str:
    """Checksum of all that a phase depends on but its length."""
    return blake3(json.dumps(_without_length(description), sort_keys=True).encode()).hexdigest()


def _source(task: Task, phase: PlannedPhase, description: dict) -> dict:
    """What the checkpoint of a phase is of, as it is noted; of a phase that does not change any length will do."""
    source = description if phase.changes else _without_length(description)
    return _as_json(source | {"ranks": task.dynamics.ranks, "has_frames": phase.frames > 0})


def _begin(task: Task, phases: tuple[PlannedPhase, ...], phase: PlannedPhase, description: dict, again: bool) -> bool:
    """Note that a phase runs; gives whether it was begun before and may go on.

    It may with another length, where that does not decide its course. Where it may not, its old checkpoint goes before
    the note is written. Phases behind it start anew: they would go on from another start.
    """
    source = _source(task, phase, description)
    forget_extension(task.folder, phase.name, _identity(description))
    note = task.folder / phase.begun
    begun = not again and _json(note) == source and _has_no_end(task.folder / phase.record, phase)
    if not again and _extension_of(task, phase, description) and _has_no_end(task.folder / phase.record, phase):
        _steps_at_checkpoint(task, phase, description)  # raises rather than run again what had been done
    note.parent.mkdir(parents=True, exist_ok=True)
    for later in phases[phase.number:]:
        (task.folder / later.begun).unlink(missing_ok=True)
    if not begun:
        note.unlink(missing_ok=True)
        for path in task.folder.glob(f"restart/**/{phase.stem}_checkpoint_*"):
            path.unlink()
        with atomic_path(note) as part:
            part.write_text(checked_text(source, indent=1), encoding="utf-8")
    return begun


def _has_no_end(record: Path, phase: PlannedPhase) -> bool:
    """Whether a phase that was begun has not ended, or ended earlier than it now shall, with files that are whole."""
    if not record.exists():
        return True
    found = _json(record)
    return found is not None and found["description"]["phase"]["steps"] < phase.steps and _is_whole(record, found)


def _read_record(path: Path, description: dict) -> dict | None:
    """The record of a phase that is done; None when there is none, or of another phase, or files were harmed since."""
    record = _json(path)
    if record is None or record.get("description") != _as_json(description):
        return None
    return record if _is_whole(path, record) else None


def _is_whole(path: Path, record: dict) -> bool:
    """Whether the files of a record at ``path`` are those that the phase wrote."""
    return all((path.parent / name).is_file() and file_hash(path.parent / name) == digest
               for name, digest in record["outputs"].items())


def _json(path: Path) -> dict | None:
    """The object in a JSON file, without its checksum; None when there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    found.pop(KEY, None)
    return found


def _hashes(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Checksums of the files of these names that are there."""
    return {name: file_hash(folder / name) for name in names if (folder / name).is_file()}


def _as_json(data: dict) -> dict:
    """The data as it would be read from a file: tuples are lists there."""
    return json.loads(json.dumps(data))


def _write_list(run: Run) -> None:
    """The list of phases, by which the folder is read."""
    phases = [{"name": phase.name, "kind": phase.kind, "log": phase.log.name,
               "trajectory": phase.trajectory.name if phase.trajectory else None,
               "restart": str(Path(phase.restart).relative_to(run.folder)),
               "seconds_per_step": phase.seconds_per_step} for phase in run.phases]
    with atomic_path(run.folder / FILE_NAME) as part:
        part.write_text(json.dumps({"format": FORMAT, "phases": phases}, indent=1) + "\n", encoding="utf-8")


class _Clock:
    """Wall-clock time of steps, from when rows of energies appear.

    The steps before the second row count only where there is no third: kernels of a GPU are compiled in them.
    """

    def __init__(self) -> None:
        self._marks: list[tuple[float, float]] = []

    def note(self, step: float) -> None:
        self._marks = [*self._marks[:2], (time.monotonic(), step)]

    @property
    def seconds_per_step(self) -> float | None:
        if len(self._marks) < 2 or self._marks[-1][1] <= self._marks[-2][1]:
            return None
        (start, first), (end, last) = self._marks[-2:]
        return (end - start) / (last - first)
