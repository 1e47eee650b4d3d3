"""How far the simulator is from the published tables: kept as dated data that
benchmarks/published_tables.py computes.

`chromabuild plan --machine` reads the record, since the packet simulations behind it take seconds.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path

from chromabuild.scaling.published import PAPERS
from chromabuild.scaling.published.comparison import Entry, mean_deviation

FILE = Path(__file__).parents[1] / "data" / "published_tables.json"
ALL = "all tables"
SOURCES = {paper.table: paper.source for paper in PAPERS.values()} | {ALL: "four papers"}


@dataclass(frozen=True)
class TableError:
    """Deviations (fractions) of the entries on which nothing was fitted."""

    table: str
    source: str
    entries: int
    mean: float
    """Of the absolute deviations."""
    worst: float
    worst_entry: str


def computed(papers: Iterable[str] = PAPERS) -> dict[str, list[Entry]]:
    """All entries of some papers by table, from the simulator as it is now."""
    return {PAPERS[name].table: PAPERS[name].load().entries() for name in papers}


def write(tables: dict[str, list[Entry]], version: str) -> None:
    """Keep the entries with today's date; tables that are not given stay."""
    record = {"computed": date.today().isoformat(), "chromabuild": version,
              "tables": {name: [asdict(entry) for entry in entries] for name, entries in (recorded() | tables).items()}}
    FILE.write_text(json.dumps(record, indent=1) + "\n")


@cache
def recorded() -> dict[str, list[Entry]]:
    """All entries by table, as last computed."""
    tables = json.loads(FILE.read_text())["tables"]
    return {name: [Entry(**entry) for entry in entries] for name, entries in tables.items()}


def all_entries(tables: dict[str, list[Entry]]) -> list[Entry]:
    """The entries of all tables, with the table in their names."""
    return [replace(entry, name=f"{name}, {entry.name}") for name, entries in tables.items() for entry in entries]


def table_error(name: str, entries: list[Entry]) -> TableError:
    """Summary of a table; `name` is one of SOURCES."""
    predicted = [entry for entry in entries if not entry.fitted]
    worst = max(predicted, key=lambda entry: abs(entry.deviation))
    return TableError(name, SOURCES[name], len(predicted), mean_deviation(predicted), worst.deviation, worst.name)
