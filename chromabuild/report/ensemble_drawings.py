"""Drawings of an ensemble as inline SVG: two contact maps in one square, and the tree of the folds."""

import html
from collections.abc import Sequence

import numpy as np

_WIDTH, _MARGIN = 640, 46
_SHADES = 10
_LOW, _HIGH = np.array([253, 231, 216]), np.array([120, 17, 45])
_TREE_HEIGHT = 220
_MOST_NAMES = 64


def map_pair(above: np.ndarray, below: np.ndarray | None, edges: np.ndarray, title: str,
             circles: Sequence[tuple[float, float, bool]] = ()) -> str:
    """Two symmetric maps (b, b), the first above the diagonal, the second (None: the first) below it, in logarithmic
    shades of their own; empty where one has no contact.

    ``edges`` (b + 1,) are bp on the chromosome; ``circles`` are pairs of places (bp), and whether they are filled.
    """
    below = above if below is None else below
    shades = [_shades(values, half) for values, half in ((above, np.triu_indices(len(above), 1)),
                                                         (below, np.tril_indices(len(below), -1)))]
    if any(one is None for one in shades):
        return ""
    bins, room = len(above), _WIDTH - 2 * _MARGIN
    size = room / bins
    parts = [_opening(title, _WIDTH),
             f'<g transform="translate({_MARGIN} {_MARGIN}) scale({size:.6g})">']
    whole = shades[0] + shades[1]
    for k in range(_SHADES):
        rows, columns = np.nonzero(whole == k + 1)
        if len(rows):
            red, green, blue = (_LOW + (_HIGH - _LOW) * k / (_SHADES - 1)).round().astype(int)
            squares = "".join(f"M{column} {row}h1v1h-1z" for row, column in zip(rows, columns, strict=True))
            parts.append(f'<path fill="rgb({red},{green},{blue})" d="{squares}"/>')
    parts.append("</g>")

    def across(place: float) -> float:
        return _MARGIN + room * (place - edges[0]) / (edges[-1] - edges[0])

    parts.append(f'<rect x="{_MARGIN}" y="{_MARGIN}" width="{room}" height="{room}" fill="none" stroke="currentColor" '
                 'stroke-opacity="0.4"/>')
    for x, y, is_filled in circles:
        one, other = across(max(x, y)), across(min(x, y))
        parts.append(f'<circle cx="{one:.1f}" cy="{other:.1f}" r="6" stroke="#0f7fd1" stroke-width="1.6" '
                     f'fill="{"#0f7fd1" if is_filled else "none"}" fill-opacity="0.35"/>')
    for place in np.linspace(edges[0], edges[-1], 5):
        at = across(place)
        parts.append(f'<text x="{at:.1f}" y="{_WIDTH - _MARGIN + 16}" text-anchor="middle">{place / 1000:.1f}</text>')
        parts.append(f'<text x="{_MARGIN - 6}" y="{at + 4:.1f}" text-anchor="end">{place / 1000:.1f}</text>')
    parts.append(f'<text x="{_WIDTH - _MARGIN}" y="{_WIDTH - 8}" text-anchor="end">kb</text>')
    return "".join(parts) + "</svg>"


def tree(links: np.ndarray, names: Sequence[str], colours: Sequence[str], title: str) -> str:
    """The tree of folds, (f - 1, 4) as SciPy's ``linkage`` gives it, with a name and a colour for every fold; empty for
    one fold."""
    from scipy.cluster.hierarchy import leaves_list

    if len(links) == 0:
        return ""
    order = leaves_list(links)
    room, top, bottom = _WIDTH - 2 * _MARGIN, 30, _TREE_HEIGHT - 34
    place = {int(leaf): (_MARGIN + room * (k + 0.5) / len(order), 0.0) for k, leaf in enumerate(order)}
    highest = float(links[-1, 2]) or 1.0

    def down(height: float) -> float:
        return bottom - (bottom - top) * height / highest

    parts = [_opening(title, _TREE_HEIGHT)]
    for k, (one, other, height, _) in enumerate(links):
        (x1, h1), (x2, h2) = place[int(one)], place[int(other)]
        corners = ((x1, h1), (x1, height), (x2, height), (x2, h2))
        points = " ".join(f"{x:.1f},{down(h):.1f}" for x, h in corners)
        parts.append(f'<polyline points="{points}" stroke="currentColor" stroke-opacity="0.7"/>')
        place[len(names) + k] = ((x1 + x2) / 2, float(height))
    for leaf in order:
        x, _ = place[int(leaf)]
        parts.append(f'<circle cx="{x:.1f}" cy="{bottom + 5}" r="3.5" fill="{colours[leaf]}"/>')
        if len(names) <= _MOST_NAMES:
            parts.append(f'<text x="{x:.1f}" y="{bottom + 22}" text-anchor="middle" font-size="10">'
                         f"{html.escape(names[leaf])}</text>")
    for height in (0.0, highest):
        parts.append(f'<text x="{_MARGIN - 6}" y="{down(height) + 4:.1f}" text-anchor="end">{height:.3g}</text>')
    return "".join(parts) + "</svg>"


def _opening(title: str, height: int) -> str:
    return (f'<svg class="trace" viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{html.escape(title, quote=True)}">'
            f'<text class="title" x="0" y="14">{html.escape(title)}</text>')


def _shades(values: np.ndarray, half: tuple[np.ndarray, np.ndarray]) -> np.ndarray | None:
    """Shade of every pixel of one half, from 1 to _SHADES; 0 elsewhere and where there is no contact."""
    found = np.asarray(values, float)[half]
    filled = np.isfinite(found) & (found > 0)
    if not filled.any():
        return None
    logs = np.log(found[filled])
    low, high = np.quantile(logs, [0.02, 0.98])
    scaled = np.clip((logs - low) / max(high - low, 1e-12), 0, 1 - 1e-9)
    shade = np.zeros(np.asarray(values).shape, int)
    shade[half[0][filled], half[1][filled]] = 1 + (scaled * _SHADES).astype(int)
    return shade
