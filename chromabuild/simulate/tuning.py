"""``dynamics.tune``: ranks, threads and what else decides the speed of chromamd, tried out at the start of a run.

The model of ``scaling.layouts`` says which ways to share the cores are likely; the first of them are measured by a few
steps of minimisation from the very start of the run. Around the fastest, what the network and the FFT do is tried out
in turn and kept where it is clearly faster. The choice lies in ``md/tuning.json`` and holds until the run is made anew:
restart files and checkpoints are those of its domains, and the same choice gives the same bits.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from chromabuild.base.checked_json import agrees, checked_text
from chromabuild.base.duration import span
from chromabuild.base.errors import BadInputError, ChromabuildError, IntegrityError, InterruptedRunError
from chromabuild.base.files import atomic_path, file_hash
from chromabuild.base.machine import memory_here, nodes_here
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.base.smooth_numbers import is_smooth
from chromabuild.base.threads import thread_count
from chromabuild.scaling.layouts import layouts
from chromabuild.scaling.measured import StepSettings
from chromabuild.simulate.choice import Choice
from chromabuild.simulate.energy_log import share_of
from chromabuild.simulate.protocol import Row, Task, is_begun, plan_phases

FILE_NAME = "tuning.json"
FORMAT = "chromabuild-tuning"
TRIED_LAYOUTS = 4
LEAST_GAIN = 0.03
"""Share of a step by which a way must be faster than the best so far: less is noise."""
SHARE_OF_RUN = 0.01
"""Of the time that the run is likely to take: so long may the trials be together, or LEAST_SECONDS."""
LEAST_SECONDS = 30.0
LEAST_STEPS, MOST_STEPS = 4, 200
"""Of a trial that tells something; the first third of it warms up."""
FEW_RANKS = 4
"""Fewer need neither ranks for reciprocal space nor another scheme of the FFT."""
BEGUN_WITHOUT = "the run was begun without, and goes on with dynamics.ranks"
FFT_SCHEMES = ("SLAB", "PENCIL", "2D", "COLUMNS")


@dataclass(frozen=True)
class Trial:
    """What was tried out: seconds of a step, or why it did not run."""

    choice: Choice
    seconds: float | None
    reciprocal: float = 0.0
    """Share of reciprocal space in it."""
    problem: str = ""


@dataclass(frozen=True)
class Tuning:
    """A choice, and how it came about."""

    choice: Choice
    reason: str
    """A sentence without its end."""
    trials: tuple[Trial, ...] = ()
    of: str = ""
    """Checksum of what is simulated."""

    def __str__(self) -> str:
        return f"tune: {self.choice} ({self.reason})"


Measure = Callable[[Choice, int, float], Trial]
"""Tries a choice for so many steps, or fewer when they take longer than so many seconds."""


def candidates(dynamics: DynamicsSection, box: Sequence[float], atoms: int, cores: int, nodes: int = 1
               ) -> list[tuple[Choice, float]]:
    """Ways to share the cores, and the seconds that the model gives a step of each, fastest first. Several
    ranks that the settings give stay. Raises BadInputError for more nodes than cores."""
    edge = tuple(float(length) for length in box)
    found = layouts((edge[0], edge[1], edge[2]), atoms, step_settings(dynamics), cores, nodes, nodes * memory_here())
    if dynamics.ranks > 1:
        least = min(found, key=lambda one: abs(one.ranks - dynamics.ranks))
        return [(Choice(dynamics.ranks, max(1, cores // dynamics.ranks)), least.seconds)]
    return [(Choice(one.ranks, one.threads), one.seconds) for one in found]


def step_settings(dynamics: DynamicsSection) -> StepSettings:
    """What the cost of a step depends on."""
    cutoff = dynamics.cutoffs.cutoff
    return StepSettings(cutoff, cutoff + dynamics.pairlist_buffer, dynamics.pme_spline_order, dynamics.pme_spacing)


def cores_of_run(threads: int | None) -> int:
    """Cores that a run may use on all nodes of its job: ``threads`` (None: all) on each, or that many together where
    one node has fewer."""
    here = thread_count()
    each = threads or here
    return each if each > here else each * nodes_here()


def never_chosen(dynamics: DynamicsSection, simulate: SimulateSection) -> str | None:
    """Why ``tune`` has no effect on any machine, as the end of a sentence; None where it has."""
    if dynamics.engine != "chromamd":
        return f"dynamics.engine {dynamics.engine} chooses by itself"
    if any(phase.exchange for phase in simulate.chosen()):
        return "replicas that exchange temperatures share the ranks as dynamics.ranks says"
    return None


def nothing_to_choose(dynamics: DynamicsSection, simulate: SimulateSection, cores: int) -> str | None:
    """The same for a run that begins on so many cores."""
    never = never_chosen(dynamics, simulate)
    if never is not None:
        return never
    if cores == 1:
        return "on one core there is one way to run"
    return None


def told(folder: Path, settings: Settings, threads: int | None) -> str:
    """What was chosen for the run in a folder and why, or why nothing was."""
    dynamics, simulate = settings.dynamics, settings.simulate
    tuning = None if never_chosen(dynamics, simulate) else read_tuning(folder)
    if tuning is not None:
        return str(tuning)
    why = nothing_to_choose(dynamics, simulate, cores_of_run(threads))
    return f"tune: nothing to choose: {why or BEGUN_WITHOUT}"


def best_of(choices: Sequence[tuple[Choice, float]], steps: int, measure: Measure) -> Tuning:
    """The fastest of the first few choices, and of the ways around it, by measurement; or the first of the model where
    trials would take too large a share of a run of so many ``steps``."""
    first, seconds = choices[0]
    budget = max(LEAST_SECONDS, SHARE_OF_RUN * steps * seconds)
    wanted = min(len(choices), TRIED_LAYOUTS)
    if LEAST_STEPS * seconds * max(2, wanted) > budget:
        return Tuning(first, f"by the model of a step: trials would take more than {span(budget)}, which is "
                             f"{100 * SHARE_OF_RUN:g} % of the run or {LEAST_SECONDS:g} s")
    begin = time.monotonic()
    trials: list[Trial] = []
    for choice, expected in choices[:wanted]:
        trials.append(measure(choice, _steps(budget / wanted / 2, expected), budget / wanted))
    best = _fastest(trials)
    if best is None:
        raise BadInputError(f"tune: none of the trials ran: {trials[0].problem}")
    for change in _variations(best):
        best = _fastest(trials) or best
        if time.monotonic() - begin > budget:
            break
        trials.append(measure(change(best.choice), _steps(budget / 8, best.seconds or seconds), budget / 4))
        if not _is_faster(trials[-1], best):
            trials[-1] = replace(trials[-1], problem=trials[-1].problem or "not faster")
    best = _fastest([trial for trial in trials if not trial.problem]) or best
    told = [trial for trial in trials if trial.seconds]
    slowest = max(trial.seconds or 0.0 for trial in told)
    reason = f"the fastest of {len(told)} ways, {1e3 * (best.seconds or 0):.3g} ms a step, against " \
             f"{1e3 * slowest:.3g} of the slowest" if len(told) > 1 else "the only way that ran"
    return Tuning(best.choice, reason, tuple(trials))


def _is_faster(trial: Trial, best: Trial) -> bool:
    return trial.seconds is not None and best.seconds is not None and \
        trial.seconds < (1 - LEAST_GAIN) * best.seconds


def _fastest(trials: Sequence[Trial]) -> Trial | None:
    """None where none has run. Of two that are as fast the one that the model prefers."""
    best: Trial | None = None
    for trial in trials:
        if trial.seconds is not None and not trial.problem and (best is None or _is_faster(trial, best)):
            best = trial
    return best


def _variations(best: Trial) -> Iterator[Callable[[Choice], Choice]]:
    """What else to try with the ranks of the best way."""
    ranks = best.choice.ranks
    if ranks == 1:
        return
    yield lambda choice: replace(choice, load_balance=True)
    yield lambda choice: replace(choice, overlap=True)
    if ranks < FEW_RANKS:
        return
    for apart in sorted({_smooth_rest(ranks, share) for share in (best.reciprocal, 0.6 * best.reciprocal)} - {0}):
        yield lambda choice, apart=apart: replace(choice, pme_ranks=apart)
    for scheme in FFT_SCHEMES:
        yield lambda choice, scheme=scheme: replace(choice, fft=scheme)


def _smooth_rest(ranks: int, share: float) -> int:
    """About this share of the ranks, at most half, so that the number of those left has no factor above 5."""
    wanted = max(1, round(share * ranks))
    fitting = [n for n in range(1, ranks // 2 + 1) if is_smooth(ranks - n, 5)]
    return min(fitting, key=lambda n: abs(n - wanted), default=0)


def _steps(budget: float, seconds: float) -> int:
    return max(LEAST_STEPS, min(MOST_STEPS, round(budget / seconds)))


def read_tuning(folder: Path) -> Tuning | None:
    """The choice of the run in a folder, None without. Raises IntegrityError when the file is damaged."""
    path = folder / FILE_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT or not agrees(data):
            raise ValueError(FORMAT)
        trials = tuple(Trial(**{**one, "choice": Choice(**one["choice"])}) for one in data["trials"])
        return Tuning(Choice(**data["choice"]), data["reason"], trials, data["of"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise IntegrityError(f"{path} is damaged: delete it and run all anew with `chromabuild all --force`, or set "
                             "dynamics.tune to false and dynamics.ranks to the number of restart files") from None


def with_choice(task: Task, tuning: Tuning, cores: int) -> Task:
    """The task as the choice has it. Of fewer cores than it was made for each rank has fewer threads, which changes no
    bit."""
    choice = replace(tuning.choice, threads=max(1, min(tuning.choice.threads, cores // tuning.choice.ranks)))
    return replace(task, dynamics=task.dynamics.model_copy(update={"ranks": choice.ranks}), threads=choice.threads,
                   choice=choice)


def kept(task: Task) -> Task:
    """The task as it was chosen at the start of its run; as it is where nothing was."""
    is_tuned = task.dynamics.tune and task.dynamics.engine == "chromamd"
    tuning = read_tuning(task.folder) if is_tuned else None
    return task if tuning is None else with_choice(task, tuning, tuning.choice.ranks * tuning.choice.threads)


def tuned(task: Task, settings: Settings, box: Sequence[float], atoms: int, threads: int | None, again: bool,
          tell: Callable[[str], None]) -> Task:
    """The task with the choice of its run, which is made now where there is none of these files, or ``again``.

    ``tell`` takes what was chosen, or why there is nothing to choose. Raises what the engine raises when no way runs,
    IntegrityError for a damaged record.
    """
    cores = cores_of_run(threads)
    never = never_chosen(task.dynamics, settings.simulate)
    found = None if again or never else read_tuning(task.folder)
    if found is None or found.of != _input_of(task):
        why = never or nothing_to_choose(task.dynamics, settings.simulate, cores)
        if why is None and not again and found is None and is_begun(settings, task):
            why = BEGUN_WITHOUT
        if why is not None:
            tell(f"tune: nothing to choose: {why}")
            return task
        found = _chosen(task, settings, candidates(task.dynamics, box, atoms, cores, nodes_here()), tell)
        _write(task, found)
    tell(str(found))
    return with_choice(task, found, cores)


def _chosen(task: Task, settings: Settings, options: Sequence[tuple[Choice, float]], tell: Callable[[str], None]
            ) -> Tuning:
    """The best of the options, tried out in a folder that goes again."""
    trial_folder = task.folder / "tuning"

    def measure(choice: Choice, steps: int, seconds: float) -> Trial:
        tell(f"tune: trying {choice}")
        return _measured(replace(task, folder=trial_folder), choice, steps, seconds)

    try:
        found = best_of(options, sum(phase.steps for phase in plan_phases(settings.simulate)), measure)
    finally:
        shutil.rmtree(trial_folder, ignore_errors=True)
    return replace(found, of=_input_of(task))


def _input_of(task: Task) -> str:
    """Checksum of what is simulated."""
    return file_hash(task.topology) + file_hash(task.bricks)


def _write(task: Task, tuning: Tuning) -> None:
    """Note the choice."""
    task.folder.mkdir(parents=True, exist_ok=True)
    data = {"format": FORMAT, **asdict(tuning)}
    with atomic_path(task.folder / FILE_NAME) as part:
        part.write_text(checked_text(data, indent=1), encoding="utf-8")


class _EnoughError(Exception):
    """A trial has taken its time."""


def _measured(task: Task, choice: Choice, steps: int, seconds: float) -> Trial:
    """Minimise for some steps in a folder of its own. A choice that the engine refuses is one with a problem."""
    from chromabuild.simulate import chromamd

    tried = with_choice(task, Tuning(choice, ""), choice.ranks * choice.threads)
    shutil.rmtree(task.folder, ignore_errors=True)
    marks: list[tuple[float, float]] = []

    def note(row: Row) -> None:
        marks.append((time.monotonic(), row["STEP"]))
        if marks[-1][0] - marks[0][0] > seconds and row["STEP"] >= LEAST_STEPS:
            raise _EnoughError

    try:
        chromamd.try_out(tried, steps, note)
    except InterruptedRunError:
        raise
    except _EnoughError:
        pass
    except ChromabuildError as error:
        return Trial(choice, None, problem=str(error))
    if not marks or marks[-1][1] < LEAST_STEPS:
        return Trial(choice, None, problem="ended before its steps")
    # The first third warms up.
    begin, first = next(mark for mark in marks if mark[1] >= marks[-1][1] / 3)
    end, last = marks[-1]
    return Trial(choice, (end - begin) / (last - first), share_of(task.folder / chromamd.TRIAL_LOG, "reciprocal"))
