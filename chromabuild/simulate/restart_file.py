"""Positions and velocities in the restart files of both engines (docs/reference/file-formats.md)."""

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from chromabuild.base.constants import ANGSTROM_PER_NM
from chromabuild.base.errors import IntegrityError
from chromabuild.simulate.integrity import engine_states
from chromabuild.simulate.restart_head import HEAD, LEANING, MAGIC, WORDS, box_in


@dataclass(frozen=True)
class Restart:
    """The end of a phase."""

    position: np.ndarray
    """(n, 3) angstrom."""
    velocity: np.ndarray
    """(n, 3) angstrom/ps."""
    box: np.ndarray
    """(3,) edges, or (3, 3) vectors where they lean, angstrom."""


def path_of_rank(pattern: str | Path, rank: int) -> Path:
    """The file of a rank: ``()`` in a pattern stands for it, and ``(by256)`` for the folder of 256 ranks."""
    folder = re.sub(r"\(by(\d+)\)", lambda found: str(rank // int(found[1])), str(pattern), count=1)
    return Path(folder.replace("()", str(rank), 1))


def read_restart(pattern: str | Path, n_atoms: int, ranks: int | None = None) -> Restart:
    """All atoms of the restart files of a phase; ``()`` in their name stands for the rank, without it the file is a
    State of OpenMM. ``ranks``: how many files there are; by default those that are found.

    One file at a time is in memory. Raises IntegrityError when files are missing, damaged, cut short or of another
    system.
    """
    if "()" not in str(pattern):
        return _state_of_openmm(Path(pattern), n_atoms)
    position, velocity, box = np.full((n_atoms, 3), np.nan), np.full((n_atoms, 3), np.nan), np.zeros(3)
    for rank in count():
        path = path_of_rank(pattern, rank)
        if rank == ranks or (ranks is None and rank > 0 and not path.exists()):
            break
        try:
            data = path.read_bytes()
        except OSError as error:
            raise IntegrityError(f"cannot read {path} ({error.strerror}): run the simulation again") from None
        words = np.frombuffer(data, "<i8", WORDS, len(MAGIC)) if len(data) > 8 * (WORDS + 1) else np.zeros(WORDS)
        n = int(words[6])
        start = HEAD + (24 if words[0] == LEANING else 0)
        if not data.startswith(MAGIC) or words[7] != n_atoms or len(data) != start + 56 * n + 8:
            raise IntegrityError(f"{path} is not a whole restart file of {n_atoms} atoms: run the simulation again")
        box = box_in(words, data[HEAD:start])
        atoms = np.frombuffer(data, "<i8", n, start)
        if n and not 0 <= atoms.min() <= atoms.max() < n_atoms:
            raise IntegrityError(f"{path} is damaged: run the simulation again")
        for found, first in ((position, start + 8 * n), (velocity, start + 32 * n)):
            found[atoms] = np.frombuffer(data, "<f8", 3 * n, first).reshape(n, 3)
    read = [path_of_rank(pattern, k) for k in range(rank)]
    damaged = next((path for path, state in engine_states(read) if state != "ok"), None)
    if damaged is not None:
        raise IntegrityError(f"{damaged} is damaged: run the simulation again")
    if np.isnan(position).any():
        raise IntegrityError(f"{pattern} does not hold all {n_atoms} atoms: run the simulation again")
    return Restart(position, velocity, box)


def _state_of_openmm(path: Path, n_atoms: int) -> Restart:
    import openmm
    from openmm import unit

    try:
        state = openmm.XmlSerializer.deserialize(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, openmm.OpenMMException) as error:
        raise IntegrityError(f"cannot read {path} ({error}): run the simulation again") from None
    position = np.array(state.getPositions(asNumpy=True).value_in_unit(unit.angstrom))
    if len(position) != n_atoms:
        raise IntegrityError(f"{path} holds {len(position)} atoms and not {n_atoms}: run the simulation again")
    velocity = np.array(state.getVelocities(asNumpy=True).value_in_unit(unit.angstrom / unit.picosecond))
    box = np.array(state.getPeriodicBoxVectors(asNumpy=True).value_in_unit(unit.nanometer)) * ANGSTROM_PER_NM
    return Restart(position, velocity, np.diag(box) if np.count_nonzero(box) == 3 else box)
