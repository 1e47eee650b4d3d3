"""Published figures beside ours."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A published figure and ours. `fitted`: constants were fitted on it, so it proves nothing. `bar`: the deviation
    allowed, as a fraction; 0: none was set."""

    name: str
    paper: float
    ours: float
    unit: str
    fitted: bool = False
    bar: float = 0.0

    @property
    def deviation(self) -> float:
        return self.ours / self.paper - 1.0

    @property
    def passes(self) -> bool:
        return self.bar == 0.0 or abs(self.deviation) <= self.bar


def mean_deviation(entries: Iterable[Entry]) -> float:
    """Mean of the absolute deviations, as a fraction."""
    values = [abs(entry.deviation) for entry in entries]
    return sum(values) / len(values)


def table(entries: Iterable[Entry]) -> str:
    """A Markdown table."""
    lines = ["| entry | paper | ours | deviation | |", "|---|---|---|---|---|"]
    for entry in entries:
        note = "fitted" if entry.fitted else "predicted"
        if not entry.passes:
            note += f", misses {100 * entry.bar:.0f} %"
        lines.append(f"| {entry.name} | {_number(entry.paper)} {entry.unit} | {_number(entry.ours)} {entry.unit} | "
                     f"{100 * entry.deviation:+.1f} % | {note} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


@dataclass(frozen=True)
class Claim:
    """A published statement without a number, and whether ours says the same."""

    text: str
    holds: bool
    detail: str

    def line(self) -> str:
        return f"- {'holds' if self.holds else 'MISSED'}: {self.text} ({self.detail})"
