"""Small pieces of HTML: tables, tiles, pictures. All text is escaped here."""

import base64
import html
import io
from collections.abc import Iterable, Sequence

import numpy as np


def text(value: object) -> str:
    """A value for people: thousands are separated, floats have four digits, the rest is escaped as it is."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (int, np.integer)):
        return f"{value:,}".replace(",", "\u202f")
    if isinstance(value, (float, np.floating)):
        if value != 0 and not 1e-3 <= abs(value) < 1e6:
            return f"{value:.2e}"
        return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 1e4 else f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(text(item) for item in value)
    return html.escape(str(value))


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], limit: int = 200) -> str:
    """A table; numbers stand to the right. Beyond ``limit`` rows only their number is told."""
    rows = list(rows)
    numeric = [bool(rows) and all(isinstance(row[k], (int, float, np.number)) or row[k] is None for row in rows)
               for k in range(len(headers))]

    def cell(tag: str, value: str, number: bool) -> str:
        return f'<{tag}{" class=number" if number else ""}>{value}</{tag}>'

    head = "".join(cell("th", html.escape(h), n) for h, n in zip(headers, numeric, strict=True))
    body = "".join("<tr>" + "".join(cell("td", text(v), n) for v, n in zip(row, numeric, strict=True)) + "</tr>"
                   for row in rows[:limit])
    more = f"<p class=lead>and {len(rows) - limit} more</p>" if len(rows) > limit else ""
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}'


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
    """An embedded PNG of (height, width, 3) uint8, with a colour key."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    dots = "".join(f'<i style="background: rgb({", ".join(str(round(255 * c)) for c in colour)})"></i>'
                   f"{html.escape(name)}" for name, colour in key)
    legend = f'<span class="key">{dots}</span>' if dots else ""
    return (f'<figure><img alt="{html.escape(caption, quote=True)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{html.escape(caption)}{legend}</figcaption></figure>")


def plot(svg: str, caption: str) -> str:
    """An inline SVG with a caption."""
    return f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>"


def section(title: str, *parts: str) -> str:
    """A heading with what belongs to it; nothing when all parts are empty."""
    inner = "".join(part for part in parts if part)
    return f"<section><h2>{html.escape(title)}</h2>{inner}</section>" if inner else ""


def page(title: str, body: str, style: str, script: str = "", refresh: float | None = None) -> str:
    """The whole document. Its policy forbids every request to a network; scripts run only where ``script`` is given.

    ``refresh``: seconds after which a browser shows it anew.
    """
    policy = "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'"
    policy += "; script-src 'unsafe-inline'" if script else ""
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
<body><main>
{body}
</main>{f"<script>{script}</script>" if script else ""}</body>
</html>
"""
