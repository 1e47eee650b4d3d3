"""The whole ensemble: its rounds, its folds until there are enough of them, and what is found of them."""

from dataclasses import dataclass

import numpy as np

from chromabuild.analysis.contact_statistics import rebinned
from chromabuild.analysis.convergence import checks, convergence, is_enough
from chromabuild.analysis.ensemble import (
    closed_contacts,
    contact_sites,
    read_scaffold,
    sampled_conformations,
)
from chromabuild.base.errors import BadInputError
from chromabuild.base.in_use import in_use
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.pipeline.ensemble.design import Design, make_design
from chromabuild.pipeline.ensemble.fold import DONE, make_fold, state_of
from chromabuild.pipeline.ensemble.results import sum_up
from chromabuild.pipeline.ensemble.workers import make_folds
from mesoscale.contact_energies import update


@dataclass(frozen=True)
class Means:
    """How work is done, and shown; the result does not depend on it."""

    jobs: int = 1
    """Folds that are made side by side."""
    threads: int = 1
    """Of all together."""
    progress: Progress = silent


def run_ensemble(config: Settings, means: Means) -> Summary:
    """Make what is not there yet of all folds, and sum up; what is there already stays.

    Raises BadInputError for settings that cannot be used, and where fewer than two folds came out, BusyError while
    another process is at work there.
    """
    design = make_design(config)
    measured = design.measured_map()
    with in_use(design.folder):
        for this in range(1, design.rounds + 1):
            prepare_round(design, this)
            states = _made(design, this, means)
            if this == design.rounds:
                break
            _write_next_energies(design, this, states)
        taken = _taken(design, states) or design.folds
        states = {number: state for number, state in states.items() if number <= taken}
        return sum_up(design, states, measured, means.progress)


def run_fold(config: Settings, number: int, of_round: int | None, means: Means) -> Summary:
    """Make one fold alone, as a job of its own; its folder and its state.

    Raises BadInputError for a number that there is none of, and while the energies of its round are not there.
    """
    design = make_design(config)
    if not 1 <= number <= design.folds:
        raise BadInputError(f"fold {number} is not one of the {design.folds} of the ensemble: count from 1")
    this = _checked_round(design, of_round)
    prepare_round(design, this)
    settings = design.fold_settings(number, this)
    state = make_fold(settings, means.threads, means.progress)
    return {"fold": number, "seed": settings.seed, "folder": settings.output, "state": state}


def run_round(config: Settings, of_round: int, means: Means) -> Summary:
    """Make what is not there yet of one round, and the energies of the next one."""
    design = make_design(config)
    this = _checked_round(design, of_round)
    if this == design.rounds:
        return run_ensemble(config, means)
    with in_use(design.round_folder(this)):
        prepare_round(design, this)
        states = _made(design, this, means)
        _write_next_energies(design, this, states)
    return {"round": this, "folds": sum(state == DONE for state in states.values()),
            "energies": str(design.energies_file(this + 1))}


def prepare_round(design: Design, this: int) -> None:
    """The files that all folds of a round read."""
    design.write_contacts()
    if design.rounds > 1 and this == 1:
        design.write_energies(1, np.zeros(len(design.contacts)))
    elif this > 1 and not design.energies_file(this).is_file():
        raise BadInputError(f"{design.energies_file(this)} is not there: run round {this - 1} first, with `chromabuild "
                            f"ensemble --round {this - 1}`")


def _checked_round(design: Design, of_round: int | None) -> int:
    this = of_round or design.rounds
    if this > design.rounds:
        raise BadInputError(f"round {this} is not one of the {design.rounds} of the ensemble: give --rounds {this}")
    return this


def _made(design: Design, this: int, means: Means) -> dict[int, str]:
    """State of every fold of a round after making those that are missing, in order, until there are enough."""
    _adopt(design, this)
    states: dict[int, str] = {}
    tasks = []
    for number in range(1, design.folds + 1):
        settings = design.fold_settings(number, this)
        state = state_of(settings)
        if state is None:
            tasks.append((number, settings))
        else:
            states[number] = state
    is_last, maps = this == design.rounds, {}
    name = f"round {this} of {design.rounds}: " if design.rounds > 1 else ""

    def finished(number: int, state: str) -> bool:
        states[number] = state
        return not (is_last and _taken(design, states, maps))

    if tasks and not (is_last and _taken(design, states, maps)):
        make_folds(tasks, means.jobs, means.threads, _named(means.progress, name), finished)
    return states


def _adopt(design: Design, this: int) -> None:
    """Folds of what was the last round, until there were to be more, take their place among those of this one."""
    if this == design.rounds:
        return
    for number in range(1, design.folds + 1):
        old, new = design.fold_folder(number), design.fold_folder(number, this)
        if old.is_dir() and not new.exists():
            there = design.fold_settings(number, this).model_copy(update={"output": str(old)})
            if state_of(there) is not None:
                old.rename(new)


def _named(progress: Progress, name: str) -> Progress:
    return lambda phase, share=None: progress(name + phase, share)


def _taken(design: Design, states: dict[int, str], maps: dict[int, np.ndarray] | None = None) -> int | None:
    """With how many folds the map is reliable: the first of the agreed numbers. None: more folds are to be made.

    Whatever is made already of folds beyond does not count: the result is the same for any number of jobs. ``maps``
    keeps what was read of folds for the next call.
    """
    maps = {} if maps is None else maps
    if not design.config.ensemble.until_converged:
        return None
    for count in checks(design.folds)[:-1]:
        if any(number not in states for number in range(1, count + 1)):
            return None
        done = [number for number in range(1, count + 1) if states[number] == DONE]
        maps.update({number: _binned(design, number) for number in done if number not in maps})
        if done and is_enough(convergence(np.array([maps[number] for number in done]), design.around),
                              design.config.ensemble.reliability):
            return count
    return None


def _binned(design: Design, number: int) -> np.ndarray:
    """The contact map of a fold, in the bins of the comparison."""
    scaffold = read_scaffold(design.fold_folder(number) / "scaffold.h5")
    size = scaffold.contact_resolution
    place = design.locus.start // size * size + size * (np.arange(len(scaffold.contact_map)) + 0.5)
    return rebinned(scaffold.contact_map, place, design.edges) / sampled_conformations(scaffold)


def _write_next_energies(design: Design, this: int, states: dict[int, str]) -> None:
    """The energies of the round after one whose folds are all made."""
    circle = len(design.locus.sequence) if design.locus.circular else None
    closed = [closed_contacts(contact_sites(read_scaffold(design.fold_folder(number, this) / "scaffold.h5")),
                              design.contacts, circle) for number, state in sorted(states.items()) if state == DONE]
    if not closed:
        raise BadInputError(f"none of the {design.folds} folds of round {this} can be built: give them more room "
                            "(scaffold.confinement_radius, container)")
    before = design.read_energies(this)
    design.write_energies(this + 1, update(before, np.mean(closed, axis=0), design.targets(design.contacts)))
