"""Figures that a reader can take along: the drawing as an SVG file, the numbers as CSV, both inside the page."""

import base64
import html

from chromabuild.report.html import anchor, plot
from chromabuild.report.trace import Curves

# What page.css gives a drawing on white paper: a file of its own has no page around it.
_STYLE = ("svg{background:#fff;color:#1d2733;font:13px system-ui,sans-serif}.trace text{fill:#5b6876}"
          ".trace .title{fill:#1d2733;font-size:13.5px}.trace polyline{fill:none;stroke-width:1.5}"
          ".trace .grid{stroke:#d9dfe6}.trace .ground{fill:#f5f7fa}")


def figure(curves: Curves, caption: str, name: str) -> str:
    """Curves with a caption and links to their files; nothing where nothing can be drawn. ``name``: of the files."""
    svg = curves.svg()
    if not svg:
        return ""
    every = f", one point in {curves.step}" if curves.step > 1 else ""
    return plot(svg, caption, links(name, svg, curves.csv(), every))


def links(name: str, svg: str, csv: str, said_of_data: str = "") -> str:
    """Links to a drawing and its numbers; the names of the files are made of the words of ``name``."""
    stem = anchor(name)
    return (f'<span class="downloads">{_link(f"{stem}.svg", "image/svg+xml", standalone(svg), "SVG")}'
            f'{_link(f"{stem}.csv", "text/csv;charset=utf-8", csv, f"data (CSV{said_of_data})")}</span>')


def standalone(svg: str) -> str:
    """An inline SVG as a file: with its name space and the style that the page gives it."""
    opening, rest = svg.split(">", 1)
    return f'{opening} xmlns="http://www.w3.org/2000/svg"><style>{_STYLE}</style>{rest}\n'


def _link(file: str, kind: str, content: str, said: str) -> str:
    data = base64.b64encode(content.encode()).decode()
    return f'<a download="{html.escape(file, quote=True)}" href="data:{kind};base64,{data}">{html.escape(said)}</a>'
