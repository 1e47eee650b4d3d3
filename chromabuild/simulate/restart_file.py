"""Positions and velocities in the restart files of both engines (docs/reference/file-formats.md)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

import numpy as np

from chromabuild.base.constants import ANGSTROM_PER_NM
from chromabuild.base.errors import IntegrityError
from chromabuild.shards import StoredVectors
from chromabuild.simulate.integrity import engine_states
from chromabuild.simulate.restart_head import HEAD, LEANING, MAGIC, WORDS, box_in

_AT_ONCE = 1 << 18
"""Atoms."""
_Keep = Callable[[str, np.ndarray, np.ndarray], None]
"""Takes ``position`` or ``velocity``, atoms (k,) and their values (k, 3)."""


@dataclass(frozen=True)
class Restart:
    """The end of a phase."""

    position: np.ndarray | StoredVectors
    """(n, 3) angstrom."""
    velocity: np.ndarray | StoredVectors
    """(n, 3) angstrom/ps."""
    box: np.ndarray
    """(3,) edges, or (3, 3) vectors where they lean, angstrom."""


def path_of_rank(pattern: str | Path, rank: int) -> Path:
    """The file of a rank: ``()`` in a pattern stands for it, and ``(by256)`` for the folder of 256 ranks."""
    folder = re.sub(r"\(by(\d+)\)", lambda found: str(rank // int(found[1])), str(pattern), count=1)
    return Path(folder.replace("()", str(rank), 1))


def read_restart(pattern: str | Path, n_atoms: int, ranks: int | None = None) -> Restart:
    """All atoms of the restart files of a phase, in memory; ``()`` in their name stands for the rank, without it the
    file is a State of OpenMM. ``ranks``: how many files there are; by default those that are found.

    Raises IntegrityError when files are missing, damaged, cut short or of another system.
    """
    found = {"position": np.full((n_atoms, 3), np.nan), "velocity": np.full((n_atoms, 3), np.nan)}

    def keep(name: str, atoms: np.ndarray, values: np.ndarray) -> None:
        found[name][atoms] = values

    box = _read(pattern, n_atoms, ranks, keep)
    return Restart(found["position"], found["velocity"], box)


def store_restart(pattern: str | Path, n_atoms: int, folder: Path) -> Restart:
    """What ``read_restart`` gives, on disk: 48 bytes an atom in files without names, in ``folder`` where it can be
    written."""
    found = {"position": StoredVectors(n_atoms, folder), "velocity": StoredVectors(n_atoms, folder)}
    box = _read(pattern, n_atoms, None, lambda name, atoms, values: found[name].scatter(atoms, values))
    return Restart(found["position"], found["velocity"], box)


def _read(pattern: str | Path, n_atoms: int, ranks: int | None, keep: _Keep) -> np.ndarray:
    """Hand all atoms, their positions and velocities on, some at a time; gives the box, (3,) or (3, 3)."""
    if "()" not in str(pattern):
        return _state_of_openmm(Path(pattern), n_atoms, keep)
    read, box, seen = [], np.zeros(3), np.zeros(3, dtype=np.uint64)
    for rank in count():
        path = path_of_rank(pattern, rank)
        if rank == ranks or (ranks is None and rank > 0 and not path.exists()):
            break
        try:
            with open(path, "rb") as file:
                box = _read_rank(path, file, n_atoms, keep, seen)
        except OSError as error:
            raise IntegrityError(f"cannot read {path} ({error.strerror}): run the simulation again") from None
        read.append(path)
    damaged = next((path for path, state in engine_states(read) if state != "ok"), None)
    if damaged is not None:
        raise IntegrityError(f"{damaged} is damaged: run the simulation again")
    # Each atom once: how many there are, and the sums of their numbers and of the squares of these, are those of all.
    all_of_them = (n_atoms, n_atoms * (n_atoms - 1) // 2, (n_atoms - 1) * n_atoms * (2 * n_atoms - 1) // 6)
    if seen.tolist() != [value % 2**64 for value in all_of_them]:
        raise IntegrityError(f"{pattern} does not hold all {n_atoms} atoms: run the simulation again")
    return box


def _read_rank(path: Path, file: BinaryIO, n_atoms: int, keep: _Keep, seen: np.ndarray) -> np.ndarray:
    """The atoms of one rank; adds to the sums ``seen``; gives the box, (3,) or (3, 3)."""
    head = file.read(HEAD)
    words = np.frombuffer(head, "<i8", WORDS, len(MAGIC)) if len(head) == HEAD else np.zeros(WORDS)
    n = int(words[6])
    lean = file.read(24) if words[0] == LEANING else b""
    start = HEAD + len(lean)
    if not head.startswith(MAGIC) or words[7] != n_atoms or path.stat().st_size != start + 56 * n + 8:
        raise IntegrityError(f"{path} is not a whole restart file of {n_atoms} atoms: run the simulation again")
    for first in range(0, n, _AT_ONCE):
        size = min(_AT_ONCE, n - first)

        def part(kind: str, width: int, begin: int, first: int = first, size: int = size) -> np.ndarray:
            file.seek(begin + width * first)
            return np.frombuffer(file.read(width * size), kind)

        atoms = part("<i8", 8, start)
        if not 0 <= atoms.min() <= atoms.max() < n_atoms:
            raise IntegrityError(f"{path} is damaged: run the simulation again")
        keep("position", atoms, part("<f8", 24, start + 8 * n).reshape(-1, 3))
        keep("velocity", atoms, part("<f8", 24, start + 32 * n).reshape(-1, 3))
        number = atoms.astype(np.uint64)
        seen += np.array([len(atoms), number.sum(), (number * number).sum()], dtype=np.uint64)
    return box_in(words, lean)


def _state_of_openmm(path: Path, n_atoms: int, keep: _Keep) -> np.ndarray:
    """A serialised State, element by element: OpenMM would hold its text and its tree."""
    rows: dict[str, list[tuple[float, ...]]] = {"Position": [], "Velocity": [], "A": [], "B": [], "C": []}
    kept = {"Position": 0, "Velocity": 0}

    def hand_on(name: str) -> None:
        first, values = kept[name], np.array(rows[name]).reshape(-1, 3) * ANGSTROM_PER_NM
        kept[name] += len(values)
        if kept[name] <= n_atoms:
            keep(name.lower(), np.arange(first, kept[name]), values)
        rows[name].clear()

    def element(name: str, attributes: dict[str, str]) -> None:
        if name in rows:
            rows[name].append(tuple(float(attributes[axis]) for axis in "xyz"))
            if name in kept and len(rows[name]) == _AT_ONCE:
                hand_on(name)

    parser = expat.ParserCreate()
    parser.StartElementHandler = element
    try:
        with open(path, "rb") as file:
            parser.ParseFile(file)
        edges = np.array([rows[axis][0] for axis in "ABC"]) * ANGSTROM_PER_NM
    except (OSError, expat.ExpatError, ValueError, KeyError, IndexError) as error:
        raise IntegrityError(f"cannot read {path} as a State of OpenMM ({error}): run the simulation again") from None
    for name in kept:
        hand_on(name)
        if kept[name] != n_atoms:
            raise IntegrityError(f"{path} holds {kept[name]} atoms and not {n_atoms}: run the simulation again")
    return np.diag(edges) if np.count_nonzero(edges) == 3 else edges
