"""Phases for programs whose restraints cannot change in the course of a run, and the texts that describe them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.groups import held_atoms
from chromabuild.simulate.protocol import PlannedPhase

PARTS = 10
"""Runs that a phase with changing restraints becomes."""


def with_constant_restraints(phases: Sequence[PlannedPhase]) -> list[PlannedPhase]:
    """The phases, those with changing restraints as ``PARTS`` shorter ones, named ``heat-1`` to ``heat-10``.

    Each part has the constants of its middle; temperature goes on changing within it.
    """
    return [part for phase in phases for part in _parts(phase)]


def _parts(phase: PlannedPhase) -> Iterator[PlannedPhase]:
    if all(first == last for first, last in (one.ends() for one in phase.restraints)):
        yield phase
        return
    n = min(PARTS, phase.steps)
    cuts = [phase.steps * k // n for k in range(n + 1)]
    start, end = phase.temperature
    for k in range(n):
        shares = cuts[k] / phase.steps, cuts[k + 1] / phase.steps
        middle = sum(shares) / 2
        yield replace(
            phase, name=f"{phase.name}-{k + 1}", steps=cuts[k + 1] - cuts[k],
            temperature=tuple(start + share * (end - start) for share in shares),
            restraints=tuple(one.model_copy(update={"constant": first + middle * (last - first)})
                             for one, (first, last) in ((one, one.ends()) for one in phase.restraints)),
            first_step=phase.first_step + cuts[k],
            first_time=phase.first_time + shares[0] * phase.simulated,
            draws_velocities=phase.draws_velocities and k == 0)


def held_groups(phases: Sequence[PlannedPhase], topology: Topology) -> dict[str, np.ndarray]:
    """Atoms, from 0, of every group that a phase restrains. Raises BadInputError for a group that has none."""
    return {one.group: held_atoms(phase.name, one.group, topology) for phase in phases for one in phase.restraints}


def heavy_hydrogens(phases: Sequence[PlannedPhase], program: str) -> float:
    """The one factor by which hydrogens are heavier in some of the phases; 1 where they never are.

    Raises BadInputError where there are several: an exported topology has one.
    """
    factors = {phase.hydrogen_mass_factor for phase in phases} - {1.0}
    if len(factors) > 1:
        raise BadInputError("simulate.phases have several values of hydrogen_mass_factor beside 1, and the export to "
                            f"{program} holds one: choose one of them")
    return max(factors, default=1.0)


def phase_script(program: str, variable: str, lines: Sequence[str], done: str = "one that is done is left out") -> str:
    """A shell script that runs the phases by ``lines``, and can be called again.

    ``program``: the sentence on what the ``variable`` of the environment names; ``done``: what becomes of phases that
    have begun.
    """
    return f"""\
#!/usr/bin/env bash
# The phases in turn; {done}. {program}
set -euo pipefail
cd "$(dirname "$0")"
{variable}

""" + "".join(lines)


def stretches_of(numbers: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive numbers among (n,) ascending ones."""
    new = np.flatnonzero(np.append(True, np.diff(numbers) > 1))
    last = numbers[np.append(new[1:] - 1, len(numbers) - 1)]
    return zip(numbers[new].tolist(), last.tolist(), strict=True)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files by name, scripts as executables; gives their paths."""
    for name, text in texts.items():
        with atomic_path(folder / name) as part:
            part.write_text(text, encoding="ascii")
        if name.endswith((".sh", ".py")):
            (folder / name).chmod(0o755)
    return [folder / name for name in texts]
