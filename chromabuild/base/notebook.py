"""How results look in a notebook."""

from collections.abc import Mapping
from html import escape


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A heading and a table of two columns; numbers are grouped by thousands.

    >>> "<td style='text-align:left'>12,000</td>" in facts_html("Solute", {"atoms": 12000})
    True
    """
    rows = "".join(f"<tr><th style='text-align:left'>{escape(name)}</th>"
                   f"<td style='text-align:left'>{escape(_text(value))}</td></tr>" for name, value in facts.items())
    return f"<b>{escape(title)}</b><table>{rows}</table>"


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_text(item)} {name}" for name, item in value.items() if item)
    if isinstance(value, (tuple, list)):
        return " x ".join(map(_text, value))
    return str(value)
