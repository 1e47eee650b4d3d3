"""Time series as small inline SVG, drawn by hand: milliseconds each, for pages that are written again and again.

Colours are those of the page, light or dark; letters are the page's own.
"""

import html
from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

import numpy as np

from chromabuild.report.plots import COLOURS

_WIDTH, _HEIGHT = 640, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 18, 42, 40
_MOST_POINTS = 600
_LETTER = 6.4
"""Width of a letter, roughly."""


def trace_plot(series: Mapping[str, tuple[np.ndarray, np.ndarray]], x_label: str, y_label: str,
               phases: Sequence[tuple[str, float, float]] = (), logarithmic: bool = False) -> str:
    """SVG text of name to (x, y); ``phases``: names of stretches of x, told apart by their ground.

    Points that are no numbers are left out, and on a logarithmic scale those that are not positive. Of many points the
    lowest and the highest of each stretch are drawn. Empty where nothing can be drawn.
    """
    drawn = {}
    for name, (x, y) in series.items():
        keep = np.isfinite(x) & np.isfinite(y) & ((y > 0) | (not logarithmic))
        if keep.any():
            drawn[name] = (x[keep], np.log10(y[keep]) if logarithmic else y[keep])
    if not drawn:
        return ""
    x_low, x_high = _range([x for x, _ in drawn.values()], 0.0)
    y_low, y_high = _range([y for _, y in drawn.values()], 0.06)

    def across(x: float) -> float:
        return _LEFT + (x - x_low) / (x_high - x_low) * (_WIDTH - _LEFT - _RIGHT)

    def down(y: float) -> float:
        return _HEIGHT - _BOTTOM - (y - y_low) / (y_high - y_low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<svg class="trace" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
             f'aria-label="{html.escape(y_label, quote=True)}">']
    bottom = _HEIGHT - _BOTTOM
    for k, (name, start, end) in enumerate(phases):
        left, right = across(max(start, x_low)), across(min(end, x_high))
        if right - left <= 0:
            continue
        if k % 2 == 0:
            parts.append(f'<rect class="ground" x="{left:.1f}" y="{_TOP}" width="{right - left:.1f}" '
                         f'height="{bottom - _TOP}"/>')
        if right - left > _LETTER * len(name):
            parts.append(f'<text x="{(left + right) / 2:.1f}" y="{_TOP - 5}" text-anchor="middle">'
                         f"{html.escape(name)}</text>")
    for value, text in _ticks(y_low, y_high, 5, logarithmic):
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{down(value):.1f}" '
                     f'y2="{down(value):.1f}"/><text x="{_LEFT - 6}" y="{down(value) + 4:.1f}" text-anchor="end">'
                     f"{text}</text>")
    for value, text in _ticks(x_low, x_high, 7):
        parts.append(f'<text x="{across(value):.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
    parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">{html.escape(x_label)}</text>'
                 f'<text class="title" x="0" y="14">{html.escape(y_label)}</text>')
    right = _WIDTH - _RIGHT
    for colour, (name, (x, y)) in reversed(list(zip(COLOURS, drawn.items(), strict=False))):
        points = " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in zip(*_thinned(x, y), strict=True))
        parts.append(f'<polyline points="{points}" stroke="{colour}"/>' if len(x) > 1 else
                     f'<circle cx="{across(x[0]):.1f}" cy="{down(y[0]):.1f}" r="2.5" fill="{colour}"/>')
        if len(drawn) > 1:
            parts.append(f'<text x="{right}" y="14" text-anchor="end">{html.escape(name)}</text>'
                         f'<circle cx="{right - _LETTER * len(name) - 8:.1f}" cy="10" r="4" fill="{colour}"/>')
            right -= _LETTER * len(name) + 26
    return "".join(parts) + "</svg>"


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
