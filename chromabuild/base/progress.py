"""How long work tells how far it is."""

from typing import Protocol


class Progress(Protocol):
    """Called now and then while something long runs."""

    def __call__(self, phase: str, share: float | None = None) -> None:
        """``phase``: what is being done; ``share``: the fraction of the whole that is done (0..1), None: unknown."""


def silent(phase: str, share: float | None = None) -> None:
    """A ``Progress`` that shows nothing."""
