"""Records of BED and BEDPE files: columns, 0-based and half open."""

import math
import re
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.text import read_lines


def bed_records(path: str | Path, columns: int, kind: str) -> list[tuple[int, list[str]]]:
    """Numbered records of a BED-like file, columns separated by tabs, or by blanks in a line without tabs.

    Raises BadInputError, with the line, for one of fewer than ``columns`` fields; ``kind`` names the format.
    """
    records = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.startswith(("#", "track", "browser")):
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) < columns:
            raise BadInputError(
                f"{path}, line {number}: {len(fields)} columns in {line[:40]!r}: {kind} needs {columns}"
            )
        records.append((number, fields))
    return records


def bed_interval(path: str | Path, line: int, start_text: str, end_text: str) -> tuple[int, int]:
    """Start and end of a record. Raises BadInputError, with the line, when they are not whole numbers in order."""
    start, end = _integer(start_text), _integer(end_text)
    for label, text, value in (("start", start_text, start), ("end", end_text, end)):
        if value is None:
            raise BadInputError(f"{path}, line {line}: {label} {text!r} is not a whole number >= 0: correct the line")
    if end <= start:
        raise BadInputError(f"{path}, line {line}: end {end} is not beyond start {start}: correct the line; an "
                            "interval across base pair 1 of a circle ends beyond its last base pair")
    return start, end


def finite_score(path: str | Path, line: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise BadInputError(f"{path}, line {line}: score {text!r} is not a finite number: correct it or write '.'")
    return score


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,15}", text) else None
