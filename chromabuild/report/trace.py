"""Curves as small inline SVG, drawn by hand: milliseconds each, for pages that are written again and again.

Colours are those of the page, light or dark; letters are the page's own. The numbers behind a drawing come as CSV.
"""

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

COLOURS = ("#3b7dd8", "#d9822b", "#2f9e6e", "#b4508f", "#8a6fd1", "#c2413b", "#6b7785", "#0f9fb5")
MOST_ROWS = 2000
"""Rows of a series in the CSV; of longer ones every second, third, ... is kept."""
_WIDTH, _HEIGHT = 640, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 22, 42, 40
_MOST_POINTS = 600
_LETTER = 7.2
"""Width of a letter, roughly."""
_ROW = 18
"""Height of a row of the key."""


@dataclass(frozen=True)
class Curves:
    """Curves in one plot."""

    series: Mapping[str, tuple[np.ndarray, np.ndarray]]
    """Name to (x, y)."""
    x_label: str
    y_label: str
    phases: Sequence[tuple[str, float, float]] = ()
    """Names of stretches of x, told apart by their ground."""
    logarithmic: bool = False

    def svg(self) -> str:
        """SVG text; empty where nothing can be drawn.

        Points that are no numbers are left out, and on a logarithmic scale those that are not positive. Of many points
        the lowest and the highest of each stretch are drawn.
        """
        drawn = self._drawn()
        if not drawn:
            return ""
        log = self.logarithmic
        ends = [np.array([start, end]) for _, start, end in self.phases]
        x_low, x_high = _range([*(x for x, _ in drawn.values()), *ends], 0.0)
        y_low, y_high = _range([y for _, y in drawn.values()], 0.06)
        colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(drawn)}
        key, rows = _key(colours, self.y_label)
        top = _TOP + _ROW * rows
        height = _HEIGHT + _ROW * rows
        bottom, right = height - _BOTTOM, _WIDTH - _RIGHT

        def across(x: float) -> float:
            return _LEFT + (x - x_low) / (x_high - x_low) * (right - _LEFT)

        def down(y: float) -> float:
            return bottom - (y - y_low) / (y_high - y_low) * (bottom - top)

        parts = [f'<svg class="trace" viewBox="0 0 {_WIDTH} {height}" role="img" '
                 f'aria-label="{html.escape(self.y_label, quote=True)}">']
        for k, (name, start, end) in enumerate(self.phases):
            left, last = across(max(start, x_low)), across(min(end, x_high))
            if last - left <= 0:
                continue
            if k % 2 == 0:
                parts.append(f'<rect class="ground" x="{left:.1f}" y="{top}" width="{last - left:.1f}" '
                             f'height="{bottom - top}"/>')
            if last - left > _LETTER * len(name):
                parts.append(f'<text x="{(left + last) / 2:.1f}" y="{top - 5}" text-anchor="middle">'
                             f"{html.escape(name)}</text>")
        for value, text in _ticks(y_low, y_high, 5, log):
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{down(value):.1f}" '
                         f'y2="{down(value):.1f}"/><text x="{_LEFT - 6}" y="{down(value) + 4:.1f}" text-anchor="end">'
                         f"{text}</text>")
        for value, text in _ticks(x_low, x_high, 7):
            parts.append(f'<text x="{across(value):.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
        parts.append(f'<text x="{right}" y="{height - 6}" text-anchor="end">{html.escape(self.x_label)}</text>'
                     f'<text class="title" x="0" y="14">{html.escape(self.y_label)}</text>{key}')
        for name, (x, y) in reversed(drawn.items()):
            points = " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in zip(*_thinned(x, y), strict=True))
            parts.append(f'<polyline points="{points}" stroke="{colours[name]}"/>' if len(x) > 1 else
                         f'<circle cx="{across(x[0]):.1f}" cy="{down(y[0]):.1f}" r="2.5" fill="{colours[name]}"/>')
        return "".join(parts) + "</svg>"

    @property
    def step(self) -> int:
        """The CSV has every so many points."""
        return max([1, *(-(-len(x) // MOST_ROWS) for x, _ in self.series.values())])

    def csv(self) -> str:
        """The numbers as CSV, first a row of names with units: one column a series where all share their x, else the
        columns series, x and y."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows(self._rows())
        return text.getvalue()

    def _rows(self) -> Iterator[list[str]]:
        shared, *others = (x for x, _ in self.series.values())
        if all(np.array_equal(shared, x) for x in others):
            names = [self.y_label] if len(self.series) == 1 else [f"{name}: {self.y_label}" for name in self.series]
            yield [self.x_label, *names]
            columns = [values[::self.step] for values in (shared, *(y for _, y in self.series.values()))]
            yield from ([f"{value:.8g}" for value in row] for row in zip(*columns, strict=True))
            return
        yield ["series", self.x_label, self.y_label]
        for name, (x, y) in self.series.items():
            for a, b in zip(x[::self.step], y[::self.step], strict=True):
                yield [name, f"{a:.8g}", f"{b:.8g}"]

    def _drawn(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        found = {}
        for name, (x, y) in self.series.items():
            keep = np.isfinite(x) & np.isfinite(y) & ((y > 0) | (not self.logarithmic))
            if keep.any():
                found[name] = (x[keep], np.log10(y[keep]) if self.logarithmic else y[keep])
        return found


def _key(colours: Mapping[str, str], title: str) -> tuple[str, int]:
    """Dots and names of the series, and how many rows they take below the title: none where they fit beside it."""
    if len(colours) < 2:
        return "", 0
    widths = {name: _LETTER * len(name) + 26 for name in colours}
    room = _WIDTH - _RIGHT
    rows: list[list[str]] = [[]]
    beside = sum(widths.values()) + _LETTER * len(title) < room
    for name in colours:
        if rows[-1] and sum(widths[k] for k in rows[-1]) + widths[name] > room:
            rows.append([])
        rows[-1].append(name)
    parts = []
    for k, row in enumerate(rows):
        x, y = (room - sum(widths[name] for name in row), 14) if beside else (0.0, 14 + _ROW * (k + 1))
        for name in row:
            parts.append(f'<circle cx="{x + 6:.1f}" cy="{y - 4}" r="4" fill="{colours[name]}"/>'
                         f'<text x="{x + 14:.1f}" y="{y}">{html.escape(name)}</text>')
            x += widths[name]
    return "".join(parts), 0 if beside else len(rows)


def _range(values: list[np.ndarray], margin: float) -> tuple[float, float]:
    low, high = (float(f([f(v) for v in values])) for f in (np.min, np.max))
    room = margin * (high - low) or 0.0
    if high == low:
        room = max(abs(high) * 1e-3, 1e-6)
    return low - room, high + room


def _ticks(low: float, high: float, most: int, logarithmic: bool = False) -> list[tuple[float, str]]:
    """Round values between two ends, and how they are written."""
    rough = (high - low) / most
    step = 10 ** floor(log10(rough))
    step = next(step * factor for factor in (1, 2, 5, 10) if step * factor >= rough * 0.999)
    if logarithmic and high - low < 1.2:  # about a decade: round numbers, not powers
        return [(log10(float(value)), text) for value, text in _ticks(10**low, 10**high, most)]
    if logarithmic:
        step = max(1.0, ceil(step))
    values = [k * step for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]
    if logarithmic:
        return [(value, f"1e{value:.0f}") for value in values]
    return [(value, _number(value, max(0, -floor(log10(step) + 1e-9)))) for value in values]


def _number(value: float, decimals: int) -> str:
    """With narrow blanks between thousands and a true minus sign; zero has no sign."""
    return f"{value + 0.0:,.{decimals}f}".replace(",", "\u202f").replace("-", "\u2212")


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest point of each of many stretches, and the last one."""
    if len(x) <= _MOST_POINTS:
        return x, y
    bounds = np.linspace(0, len(x), _MOST_POINTS // 2 + 1).astype(int)
    kept = sorted({k + int(f(y[k:m])) for k, m in zip(bounds, bounds[1:], strict=False) for f in (np.argmin, np.argmax)}
                  | {len(x) - 1})
    return x[kept], y[kept]
