"""Binary restart files of GENESIS.

Layout (GENESIS 2.1, module fileio_data): the word ``GD150608``, then blocks of their own size (int64), kind (1 byte:
``i`` int32, ``w`` or ``d`` float64), name (40 bytes, padded with blanks), values, and 8 bytes more. Positions are in
angstrom, velocities in angstrom over GENESIS' unit of time.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.constants import AKMA_VELOCITY
from chromabuild.base.errors import BadInputError

_MAGIC = b"GD150608"
_HEAD, _TAIL = 49, 8
_OF_DYNAMICS = 2
_NUMBERS = {b"i": "i4", b"w": "f8", b"d": "f8"}


@dataclass(frozen=True)
class GenesisRestart:
    """What a run goes on from."""

    position: np.ndarray
    """(n, 3) angstrom."""
    velocity: np.ndarray | None
    """(n, 3) angstrom/ps; None after a minimisation."""
    box: np.ndarray
    """(3,) edges, angstrom; 0 without a periodic box."""


def is_genesis_restart(path: str | Path) -> bool:
    """Whether a file begins as one."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_genesis_restart(path: str | Path) -> GenesisRestart:
    """Read one. Raises BadInputError when it is damaged or of another byte order."""
    try:
        content = _blocks(Path(path).read_bytes())
        kind = int(content["rstfile_type"][0])
        position = _vectors(content, "coord")
        moves = kind >= _OF_DYNAMICS and "velocity_x" in content
        velocity = _vectors(content, "velocity") * AKMA_VELOCITY if moves else None
        box = np.array([content[f"box_size_{axis}"][0] if f"box_size_{axis}" in content else 0.0 for axis in "xyz"])
        if len(position) != int(content["num_atoms"][0]) or not np.isfinite(position).all():
            raise ValueError("its positions are not whole")
    except (KeyError, ValueError, IndexError, OSError) as error:
        raise BadInputError(f"cannot read {path} as a restart file of GENESIS ({error}): make it again") from None
    return GenesisRestart(position, velocity, box)


def _blocks(data: bytes) -> dict[str, np.ndarray]:
    """Values by name, as long as they are numbers."""
    if not data.startswith(_MAGIC):
        raise ValueError("its first word is another")
    found, start = {}, len(_MAGIC)
    while start < len(data):
        size = int(np.frombuffer(data, "<i8", 1, start)[0])
        if not _HEAD + _TAIL <= size <= len(data) - start:
            raise ValueError(f"the block at byte {start} does not end in the file")
        name = data[start + 9:start + _HEAD].decode("ascii").strip()
        number = _NUMBERS.get(data[start + 8:start + 9])
        if number:
            found.setdefault(name, np.frombuffer(data[start + _HEAD:start + size - _TAIL], "<" + number))
        start += size
    return found


def _vectors(content: dict[str, np.ndarray], name: str) -> np.ndarray:
    return np.stack([content[f"{name}_{axis}"] for axis in "xyz"], axis=1).astype(float)
