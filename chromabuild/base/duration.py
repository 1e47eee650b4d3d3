"""Durations as people write them: ``15 min``, ``1 h``, ``90 s``."""

DURATION = r"^\s*\d+(\.\d+)?\s*(s|min|h)\s*$"
"""What a duration looks like."""
_MINUTES = {"min": 1.0, "s": 1 / 60, "h": 60.0}


def minutes_of(duration: str) -> float:
    """A duration that fits ``DURATION``, in minutes.

    >>> minutes_of("1.5 h")
    90.0
    """
    text = duration.strip()
    unit = next(unit for unit in _MINUTES if text.endswith(unit))
    return float(text.removesuffix(unit)) * _MINUTES[unit]
