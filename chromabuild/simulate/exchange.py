"""Phases in which replicas exchange temperatures: their files, and what is sorted by temperature when they are done.

Replica *k* writes ``04-remd_repK.log``, ``.rem`` (which parameter it had from which step on) and ``.dcd``. What is
left of a phase is by temperature: ``04-remd.log`` and ``04-remd.dcd`` of the lowest one, ``04-remd_par2.log`` and so on
of the others, so that each holds one canonical ensemble.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.errors import IntegrityError
from chromabuild.base.files import atomic_path

CONSERVED = "CONSERVED_ENE"
"""Column of a log that belongs to a replica and means nothing for a temperature."""
_PAIR = re.compile(r"exchange of parameters (\d+) and (\d+): (\d+) of (\d+) accepted")
_TRIPS = re.compile(r"replica (\d+): (\d+) round trips through dimension 1")


@dataclass(frozen=True)
class ExchangeReport:
    """How replicas walked through the temperatures."""

    pairs: dict[tuple[int, int], tuple[int, int]]
    """Pair of parameters, from 1, to attempts that were accepted, and all attempts."""
    round_trips: dict[int, int]
    """Replica, from 1, to how often it came back to the lowest temperature from the highest."""

    @classmethod
    def read(cls, log: Path) -> "ExchangeReport":
        """From the log of any of the replicas; a run that went on says it again, the last time for the whole."""
        text = log.read_text(encoding="utf-8", errors="replace")
        return cls({(int(a), int(b)): (int(accepted), int(tried)) for a, b, accepted, tried in _PAIR.findall(text)},
                   {int(replica): int(trips) for replica, trips in _TRIPS.findall(text)})


def replica_log(folder: Path, stem: str, replica: int) -> Path:
    """The log of a replica of a phase."""
    return folder / f"{stem}_rep{replica}.log"


def sorted_name(stem: str, parameter: int, suffix: str) -> str:
    """Name of what belongs to a temperature, from 1: that of the phase itself for the lowest.

    >>> [sorted_name("04-remd", k, ".dcd") for k in (1, 2)]
    ['04-remd.dcd', '04-remd_par2.dcd']
    """
    return f"{stem}{suffix}" if parameter == 1 else f"{stem}_par{parameter}{suffix}"


def sort_energies(folder: Path, stem: str, replicas: int) -> None:
    """The rows of the replicas' energy tables by temperature. Raises IntegrityError where a table or a record is cut
    short."""
    records, tables, header = [], [], ""
    for replica in range(1, replicas + 1):
        path = folder / f"{stem}_rep{replica}.rem"
        record = np.loadtxt(path, dtype=np.int64, ndmin=2)
        lines = [line for line in replica_log(folder, stem, replica).read_text(encoding="utf-8").splitlines()
                 if line.startswith("INFO:")]
        if record.shape[1:] != (2,) or len(lines) < 2:
            raise IntegrityError(f"{path} and the log beside it are not whole: run the phase again")
        records.append(record)
        header = lines[0]
        tables.append({int(line.split()[1]): line for line in lines[1:]})
    columns = header.split()
    left_out = columns.index(CONSERVED)
    steps = sorted(set.intersection(*(set(table) for table in tables)))
    rows: list[list[str]] = [[] for _ in range(replicas)]
    for step in steps:
        for record, table in zip(records, tables, strict=True):
            held = record[max(int(np.searchsorted(record[:, 0], step)) - 1, 0), 1]
            rows[held - 1].append(_without(table[step], left_out))
    for parameter in range(1, replicas + 1):
        with atomic_path(folder / sorted_name(stem, parameter, ".log")) as part:
            part.write_text("\n".join([_without(header, left_out), *rows[parameter - 1]]) + "\n", encoding="utf-8")


def _without(line: str, column: int) -> str:
    """A row of a log, whose columns have 16 letters behind the first word, without one of its columns."""
    start = 5 + 16 * (column - 1)
    return line[:start] + line[start + 16:]
