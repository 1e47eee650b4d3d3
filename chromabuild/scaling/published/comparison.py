"""Published figures beside ours, with the constants behind them."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """A number of a machine or program. `kind`: published, counted (in a run of the same program), fitted
    or assumed. `source`: where it stands, or on which
    figure it is fitted."""

    name: str
    value: float
    unit: str
    kind: str
    source: str

    def line(self) -> str:
        return f"- {self.kind}: {self.name} = {self.value:.4g} {self.unit} ({self.source})"


@dataclass(frozen=True)
class Entry:
    """A published figure and ours. `fitted`: constants were fitted on it, so it proves nothing. `bar`: the deviation
    allowed, as a fraction; 0: none was set. `reason`: why a deviation is larger than that. `low`, `high`: ours at the
    ends of what the paper leaves open; None: nothing is open."""

    name: str
    paper: float
    ours: float
    unit: str
    fitted: bool = False
    bar: float = 0.0
    reason: str = ""
    low: float | None = None
    high: float | None = None

    @property
    def deviation(self) -> float:
        return self.ours / self.paper - 1.0

    @property
    def passes(self) -> bool:
        return self.bar == 0.0 or abs(self.deviation) <= self.bar

    @property
    def kind(self) -> str:
        return "fitted" if self.fitted else "predicted"

    @property
    def band(self) -> str:
        """Ends of the band; empty without one."""
        return "" if self.low is None or self.high is None else f"{number(self.low)} to {number(self.high)}"


@dataclass(frozen=True)
class Curve:
    """A line of the compared figure: ours at `x`, the ends of a band, and the paper's points as (x, y)."""

    name: str
    x: tuple[float, ...]
    ours: tuple[float, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    paper: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Panel:
    """The compared figure of a paper. `ticks`: names of x = 0, 1, ... in place of a logarithmic axis."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A published statement without a number, and whether ours says the same."""

    text: str
    holds: bool
    detail: str

    def line(self) -> str:
        return f"- {'holds' if self.holds else 'MISSED'}: {self.text} ({self.detail})"


def mean_deviation(entries: Iterable[Entry]) -> float:
    """Mean of the absolute deviations, as a fraction."""
    values = [abs(entry.deviation) for entry in entries]
    return sum(values) / len(values)


def report(constants: Iterable[Constant], entries: Iterable[Entry], claims: Iterable[Claim]) -> list[str]:
    """For people: constants, figures with deviations, statements, and why figures are missed."""
    entries = list(entries)
    width = max(len(entry.name) for entry in entries)
    lines = [constant.line() for constant in constants]
    lines += ["", f"{'figure':<{width}}     paper      ours  deviation             band"]
    for entry in entries:
        lines.append(f"{entry.name:<{width}}{number(entry.paper):>10}{number(entry.ours):>10}"
                     f"{100 * entry.deviation:+10.1f} %{entry.band:>17}  {entry.unit:<4} {entry.kind}")
    predicted = [entry for entry in entries if not entry.fitted]
    lines += ["", f"mean deviation of {len(predicted)} predicted figures: {100 * mean_deviation(predicted):.1f} %"]
    lines += [f"- above {100 * entry.bar:.0f} %: {entry.name}: {entry.reason}" for entry in entries if not entry.passes]
    return lines + [claim.line() for claim in claims]


def number(value: float) -> str:
    """Four figures, and all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
