"""The energy table that chromamd prints while it runs: lines that begin with ``INFO:``, the first with the names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError

MARK = "INFO:"


@dataclass
class EnergyLog:
    """Columns by name (``STEP``, ``TIME``, ``TOTAL_ENE``, ``POTENTIAL_ENE``, ...), each (rows,) float64.

    Units: ps, kcal/mol, K, angstrom, g/cm3. Logs of OpenMM and of older engines lack some of the columns.
    """

    columns: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def conserved(self) -> np.ndarray | None:
        """The conserved quantity of the ensemble (kcal/mol): (rows,), or None when the engine does not report one."""
        return self.columns.get("CONSERVED_ENE")

    @classmethod
    def joined(cls, logs: Sequence["EnergyLog"]) -> "EnergyLog":
        """Logs of runs that follow each other as one, with the columns that all of them have.

        A first row that repeats the time at which the log before it ended is left out. Steps that begin anew are
        counted on, and the conserved quantity, which each ensemble counts from another zero, goes on from where it was.
        """
        names = [name for name in logs[0].columns if all(name in log.columns for log in logs)]
        columns = {name: logs[0][name] for name in names}
        for log in logs[1:]:
            repeats = int(log["TIME"][-1] > log["TIME"][0] and abs(log["TIME"][0] - columns["TIME"][-1]) < 1e-6)
            for name in names:
                behind = columns[name][-1] - log[name][0]
                shift = behind if name == "CONSERVED_ENE" or (name == "STEP" and behind > 0) else 0.0
                columns[name] = np.concatenate([columns[name], log[name][repeats:] + shift])
        return cls(columns)

    @classmethod
    def read(cls, path: str | Path) -> "EnergyLog":
        """Parse a log file, which may still grow: a last line that is not whole is left out.

        Raises BadInputError when it is missing or holds no table.
        """
        reader = TableReader()
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                rows = [row for line in file if line.endswith("\n") and (row := reader.row(line)) is not None]
        except OSError as error:
            raise BadInputError(f"cannot read {path} ({error.strerror}): run chromabuild run first") from error
        except ValueError as error:
            raise BadInputError(f"{path}: its energy table is damaged ({error}): run the phase again") from None
        if not rows:
            raise BadInputError(f"{path} holds no energy table: the run did not begin; see the end of that file")
        width = max(map(len, rows))
        short = next((k for k, row in enumerate(rows) if len(row) < width), None)
        if short is not None:
            raise BadInputError(f"{path}: row {short + 1} of its energy table is cut short: run the phase again")
        return cls({name: np.array([row[name] for row in rows]) for name in rows[0]})


def share_of(path: Path, part: str) -> float:
    """The share (0 to 1) of a part, such as ``reciprocal``, in the table of timings at the end of a log; 0 without."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    found = re.search(rf"^ *{re.escape(part)} +[0-9.]+ +([0-9.]+) %$", text, re.MULTILINE)
    return float(found[1]) / 100 if found else 0.0


class TableReader:
    """Turns lines into rows; remembers the names from the header line."""

    def __init__(self) -> None:
        self._names: list[str] | None = None

    def row(self, line: str) -> dict[str, float] | None:
        """The values of a table row by name; None for the header and for any other line.

        Columns that the header does not name are left out: a newer engine may go on with an older one's table.
        """
        if not line.startswith(MARK):
            return None
        words = line[len(MARK):].split() or [""]
        if self._names is None or not _is_number(words[0]):
            self._names = words
            return None
        return dict(zip(self._names, map(float, words), strict=False))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
