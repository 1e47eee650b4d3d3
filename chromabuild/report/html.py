"""Small pieces of HTML: tables, tiles, figures, folds, contents. All text is escaped here."""

import base64
import html
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SIGNS = {"good": "✓", "bad": "✗", "look": "!", "open": "–"}
"""The sign that stands before a judged value, so that colour is not needed to tell."""
PICTURE_QUALITY = 86
"""Of WebP; fine grain of the atoms stays, a picture of 1600 x 1200 takes some 200 kB."""


@dataclass(frozen=True)
class Judged:
    """A value of a table that was held against a limit."""

    value: object
    state: str
    """A key of ``SIGNS``."""


def text(value: object) -> str:
    """A value for people: thousands are separated, floats have four digits, the rest is escaped as it is."""
    if isinstance(value, Judged):
        return f'<span class="{value.state}">{SIGNS[value.state]} {text(value.value)}</span>'
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (int, np.integer)):
        return f"{value:,}".replace(",", "\u202f")
    if isinstance(value, (float, np.floating)):
        value = value + 0.0  # zero has no sign
        if value != 0 and not 1e-3 <= abs(value) < 1e6:
            return f"{value:.2e}"
        return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 1e4 else f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(text(item) for item in value)
    return html.escape(str(value))


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], limit: int = 200, note: str = "") -> str:
    """A table; numbers stand to the right. Beyond ``limit`` rows only their number is told.

    ``note``: what is good or bad in it, for instance, shown above.
    """
    rows = list(rows)

    def is_number(value: object) -> bool:
        value = value.value if isinstance(value, Judged) else value
        return value is None or isinstance(value, (int, float, np.number)) and not isinstance(value, bool)

    numeric = [bool(rows) and all(is_number(row[k]) for row in rows) for k in range(len(headers))]

    def cell(tag: str, value: str, number: bool) -> str:
        return f'<{tag}{" class=number" if number else ""}>{value}</{tag}>'

    head = "".join(cell("th", html.escape(h), n) for h, n in zip(headers, numeric, strict=True))
    body = "".join("<tr>" + "".join(cell("td", text(v), n) for v, n in zip(row, numeric, strict=True)) + "</tr>"
                   for row in rows[:limit])
    more = f"<p class=lead>and {len(rows) - limit} more</p>" if len(rows) > limit else ""
    caption = f"<caption>{html.escape(note)}</caption>" if note else ""
    return (f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
            f"{more}")


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{text(value)}</td></tr>" for name, value in pairs)
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'


def tiles(pairs: Iterable[tuple[str, object]]) -> str:
    """The numbers that matter most, large."""
    inner = "".join(f'<div class="tile"><b>{text(value)}</b><span>{html.escape(name)}</span></div>'
                    for name, value in pairs)
    return f'<div class="tiles">{inner}</div>'


def picture(image: np.ndarray, caption: str, key: Sequence[tuple[str, tuple[float, float, float]]] = ()) -> str:
    """An embedded WebP of (height, width, 3) uint8, with a colour key."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="WEBP", quality=PICTURE_QUALITY, method=6)
    data = base64.b64encode(buffer.getvalue()).decode()
    height, width = image.shape[:2]
    dots = "".join(f'<span><i style="background: rgb({", ".join(str(round(255 * c)) for c in colour)})"></i>'
                   f"{html.escape(name)}</span> " for name, colour in key)
    legend = f'<span class="key">{dots}</span>' if dots else ""
    return (f'<figure><img alt="{html.escape(caption, quote=True)}" width="{width}" height="{height}" '
            f'src="data:image/webp;base64,{data}"><figcaption>{html.escape(caption)}{legend}</figcaption></figure>')


def plot(svg: str, caption: str, downloads: str = "") -> str:
    """An inline SVG with a caption and the links to its files."""
    return f"<figure>{svg}<figcaption>{html.escape(caption)}{downloads}</figcaption></figure>"


def fold(title: str, content: str, is_open: bool = False) -> str:
    """Content that is shown when its title is clicked; nothing where there is no content."""
    return (f"<details{' open' if is_open else ''}><summary>{html.escape(title)}</summary>{content}</details>"
            if content else "")


def anchor(title: str) -> str:
    """The id of a section: the words of its title before any bracket, in lower case, joined by hyphens."""
    return "-".join(re.findall(r"[a-z0-9]+", title.partition("(")[0].lower()))


def link(title: str) -> str:
    """A link to a section of the page."""
    return f'<a href="#{anchor(title)}">{html.escape(title)}</a>'


def section(title: str, *parts: str) -> str:
    """A heading with what belongs to it; nothing when all parts are empty."""
    inner = "".join(part for part in parts if part)
    return f'<section id="{anchor(title)}"><h2>{html.escape(title)}</h2>{inner}</section>' if inner else ""


def contents(titles: Iterable[str], states: dict[str, str] | None = None) -> str:
    """A table of contents; ``states``: by title, the sign of a section in which something is to be looked at."""
    states = states or {}
    marks = {title: f' <span class="{state}">{SIGNS[state]}</span>' for title, state in states.items()}
    entries = "".join(f"<li>{link(title)}{marks.get(title, '')}</li>" for title in titles)
    return f'<nav class="contents" aria-label="Contents"><b>Contents</b><ol>{entries}</ol></nav>'


def page_style() -> str:
    """The look that all pages share."""
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def page(title: str, body: str, style: str, script: str = "", refresh: float | None = None, aside: str = "",
         framed: bool = False) -> str:
    """The whole document. Its policy forbids every request to a network; scripts run only where ``script`` is given,
    and pages beside it show in frames only where it is ``framed``.

    ``refresh``: seconds after which a browser shows it anew. ``aside``: stands beside the body, or above it on narrow
    screens.
    """
    policy = "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'"
    policy += "; script-src 'unsafe-inline'" if script else ""
    policy += "; frame-src 'self' file:" if framed else ""
    again = f'<meta http-equiv="refresh" content="{refresh:g}">\n' if refresh else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
{again}<title>{html.escape(title)}</title>
<style>
{style}</style>
</head>
<body{' class="with-aside"' if aside else ""}>{aside}<main>
{body}
</main>{f"<script>{script}</script>" if script else ""}</body>
</html>
"""
