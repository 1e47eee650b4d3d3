"""Progress on standard error: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from chromabuild.base.progress import Progress

SECONDS_BETWEEN_LINES = 10.0


class PlainReporter:
    """One line when a stage starts and ends, and every ten seconds in between."""

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    @contextmanager
    def stage(self, title: str) -> Iterator[Progress]:
        """Announce a stage; gives the function that takes what is being done and the finished fraction."""
        started = last = time.monotonic()
        done = ""

        def update(phase: str, share: float | None = None) -> None:
            nonlocal last, done
            if share is not None:
                done = f" {100 * share:.0f} %"
            now = time.monotonic()
            if now - last >= SECONDS_BETWEEN_LINES:
                last = now
                self._say(f"  {title}:{done} after {now - started:.0f} s, {phase}")

        self._say(f"{title} ...")
        yield update
        self._say(f"{title}: done in {time.monotonic() - started:.1f} s")

    def skipped(self, title: str) -> None:
        """Say that a stage is up to date."""
        self._say(f"{title}: up to date")

    def note(self, text: str) -> None:
        """Say what should be known before the work."""
        self._say(f"note: {text}")


class TerminalReporter:
    """A rich progress bar a stage."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)

    @contextmanager
    def stage(self, title: str) -> Iterator[Progress]:
        """A bar while a stage runs; gives the function that takes what is being done and the finished fraction."""
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        started = time.monotonic()
        columns = (SpinnerColumn(), TextColumn("{task.description:<28}"), BarColumn(), TimeElapsedColumn(),
                   TextColumn("[dim]{task.fields[detail]}"))
        with Progress(*columns, console=self._console, transient=True) as bars:
            task = bars.add_task(title, total=None, detail="")

            def update(phase: str, share: float | None = None) -> None:
                bars.update(task, detail=phase)
                if share is not None:
                    bars.update(task, total=1.0, completed=min(max(share, 0.0), 1.0))

            yield update
        self._console.print(f"[green]✓[/green] {title:<28} {time.monotonic() - started:7.1f} s", highlight=False)

    def skipped(self, title: str) -> None:
        """Say that a stage is up to date."""
        self._console.print(f"[green]✓[/green] {title:<28} [dim]up to date[/dim]", highlight=False)

    def note(self, text: str) -> None:
        """Say what should be known before the work."""
        self._console.print(f"[yellow]note:[/yellow] {text}", highlight=False)


def make_reporter() -> PlainReporter | TerminalReporter:
    """Bars when standard error is a terminal, lines otherwise."""
    return TerminalReporter() if sys.stderr.isatty() else PlainReporter()
