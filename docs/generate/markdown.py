"""Tables and cells of generated Markdown pages."""

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """Text that cannot break out of a table cell."""
    return " ".join(str(text).replace("|", "\\|").split())


def code(text: object) -> str:
    """Text as code, or nothing when it is empty."""
    return f"`{cell(text)}`" if str(text) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"
