"""Durations as people write them: ``15 min``, ``1 h``, ``90 s``."""

DURATION = r"^\s*\d+(\.\d+)?\s*(s|min|h)\s*$"
"""What a duration looks like."""
_MINUTES = {"min": 1.0, "s": 1 / 60, "h": 60.0}
_LONG = (("years", 365.25 * 86400.0), ("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
"""Units of a span and their seconds; one serves from two of it upwards."""


def minutes_of(duration: str) -> float:
    """A duration that fits ``DURATION``, in minutes.

    >>> minutes_of("1.5 h")
    90.0
    """
    text = duration.strip()
    unit = next(unit for unit in _MINUTES if text.endswith(unit))
    return float(text.removesuffix(unit)) * _MINUTES[unit]


def span(seconds: float) -> str:
    """Seconds in the unit that suits them, with two figures or all of those before the point.

    >>> span(150), span(4000), span(40 * 86400), span(0.5)
    ('2.5 min', '67 min', '40 days', '0.5 s')
    """
    unit, size = next((unit, size) for unit, size in _LONG if seconds >= 2 * size or size == 1.0)
    value = seconds / size
    return f"{value:,.0f} {unit}" if value >= 9.95 else f"{value:.2g} {unit}"
