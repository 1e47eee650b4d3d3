"""Replicas of a simulation: the same phases from the same start, each with a seed and a folder of its own."""

from pathlib import Path

from blake3 import blake3

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import SimulateSection
from chromabuild.simulate.protocol import PlannedPhase, phases_in


def replica_folder(folder: Path, replica: int) -> Path:
    """Where a replica lies: the first in the folder of the run itself, the others in ``replica-2`` and so on."""
    return folder if replica == 1 else folder / f"replica-{replica}"


def replica_seed(seed: int, replica: int) -> int:
    """Seed of a replica, below 2^31: that of the settings for the first; for the others the first four bytes of blake3
    of the text ``SEED REPLICA``, little-endian, without the highest bit.

    >>> [replica_seed(1, replica) for replica in (1, 2)]
    [1, 1525279821]
    """
    if replica == 1:
        return seed
    return int.from_bytes(blake3(f"{seed} {replica}".encode()).digest()[:4], "little") & 0x7FFFFFFF


def chosen_replicas(simulate: SimulateSection, replica: int | None) -> tuple[int, ...]:
    """One replica, or None for all. Raises BadInputError for a number that there is none of."""
    if replica is not None and not 1 <= replica <= simulate.replicas:
        raise BadInputError(f"replica {replica} is not one of simulate.replicas: {simulate.replicas}; count from 1")
    return tuple(range(1, simulate.replicas + 1)) if replica is None else (replica,)


def phases_of_replicas(folder: Path, simulate: SimulateSection) -> dict[int, tuple[PlannedPhase, ...]]:
    """Number to phases of all replicas of a run in a folder, as long as they are there."""
    return {replica: phases_in(replica_folder(folder, replica), simulate)
            for replica in chosen_replicas(simulate, None)}
