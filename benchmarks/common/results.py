"""Results of the benchmarks: tables, kept as one JSON file a benchmark, day and machine.

``results/NAME/YYYY-MM-DD-MACHINE.json`` has the keys

- ``schema`` (1), ``benchmark``, ``date``, ``source`` (``measured``, or where the figures were taken from),
- ``machine``: ``processor``, ``instruction_set``, ``cores``, ``memory_gib`` and what else is known of it,
- ``versions``: of chromabuild and of the peers by name; ``settings``: options of the run,
- ``tables``: by name ``title``, ``columns`` (``title`` and, for numbers, ``format``) and ``rows``.

A cell is a number, a text, null, ``{"median", "least", "most"}`` of repeated measurements (``most`` may be missing) or
``{"value", "error"}``.
"""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"
SCHEMA = 1

Cell = float | int | str | None | dict[str, float]


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median, least and most of repeated measurements."""
    values = list(values)
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def ratios(values: Sequence[float], reference: Sequence[float]) -> dict[str, float]:
    """Median, least and most of the ratios of measurements made in the same rounds."""
    return spread(one / other for one, other in zip(values, reference, strict=True))


@dataclass
class Table:
    """Rows under columns; ``format`` of a column is a format specification for its numbers."""

    title: str
    columns: list[dict[str, str]]
    rows: list[list[Cell]] = field(default_factory=list)

    @classmethod
    def of(cls, title: str, **columns: str) -> "Table":
        """``columns``: title (underscores stand for spaces) to format specification, empty for texts."""
        made = [{"title": name.replace("_", " "), **({"format": spec} if spec else {})}
                for name, spec in columns.items()]
        return cls(title, made)

    def row(self, *cells: Cell) -> None:
        """Append and print a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(list(cells))
        shown = zip(self.columns, self._texts(self.rows[-1]), strict=True)
        print("  " + "  ".join(f"{column['title']}: {text}".strip() for column, text in shown if text), flush=True)

    def _texts(self, row: Sequence[Cell]) -> list[str]:
        return [cell_text(cell, column.get("format", "")) for cell, column in zip(row, self.columns, strict=True)]

    def markdown(self) -> str:
        """As a table of Markdown."""
        lines = [[column["title"] for column in self.columns], ["---"] * len(self.columns)]
        return "\n".join("| " + " | ".join(words) + " |" for words in [*lines, *map(self._texts, self.rows)]) + "\n"


def cell_text(cell: Cell, spec: str = "") -> str:
    """A cell in words: ``median [least-most]``, ``median (least)``, ``value ± error``."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, dict):
        parts = {name: _number(value, spec) for name, value in cell.items()}
        if "error" in parts:
            return f"{parts['value']} ± {parts['error']}"
        if "most" in parts:
            return f"{parts['median']} [{parts['least']}-{parts['most']}]"
        return f"{parts['median']} ({parts['least']})"
    return _number(cell, spec)


def _number(value: float, spec: str) -> str:
    if spec and not (isinstance(value, int) and spec[-1] not in "ef"):
        return format(value, spec)
    return f"{value:,.0f}" if abs(value) >= 1000 and float(value).is_integer() else str(value)


@dataclass
class Result:
    """One file of results."""

    benchmark: str
    date: str
    machine: dict
    versions: dict[str, str]
    settings: dict
    tables: dict[str, Table]
    source: str = "measured"

    def write(self, machine_slug: str, folder: Path = RESULTS) -> Path:
        """Write the file; tables of a run of the same day on the same machine that this one does not have stay, with
        settings and versions of programs."""
        path = folder / self.benchmark / f"{self.date}-{machine_slug}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            before = Result.read(path)
            self.tables = before.tables | self.tables
            self.settings, self.versions = before.settings | self.settings, before.versions | self.versions
        path.write_text(json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False) + "\n")
        return path

    @classmethod
    def read(cls, path: Path) -> "Result":
        """Read a file. Raises ValueError when its schema is another."""
        content = json.loads(path.read_text())
        if content.pop("schema", None) != SCHEMA:
            raise ValueError(f"{path}: not results of schema {SCHEMA}")
        tables = {name: Table(**table) for name, table in content.pop("tables").items()}
        return cls(**content, tables=tables)


def newest(folder: Path = RESULTS) -> dict[tuple[str, str], list[Result]]:
    """By benchmark and table the newest result that has it of each processor and instruction set, newest first."""
    found: dict[tuple[str, str], dict[tuple, Result]] = {}
    for path in sorted(folder.glob("*/*.json"), key=lambda path: (path.parent.name, path.name)):
        result = Result.read(path)
        machine = (result.machine.get("processor"), result.machine.get("instruction_set"))
        for table in result.tables:
            of_table = found.setdefault((result.benchmark, table), {})
            of_table.pop(machine, None)
            of_table[machine] = result
    return {key: list(reversed(of_table.values())) for key, of_table in found.items()}
