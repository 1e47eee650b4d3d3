"""Progress on standard error: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_BETWEEN_LINES = 10.0


class PlainReporter:
    """One line when a stage starts and ends, and every ten seconds in between."""

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    @contextmanager
    def stage(self, title: str) -> Iterator[Callable[[float | str], None]]:
        """Announce a stage; gives a function that takes the finished fraction (0..1) or what is being done."""
        started = last = time.monotonic()
        share = detail = ""

        def update(state: float | str) -> None:
            nonlocal last, share, detail
            if isinstance(state, str):
                detail = f", {state}"
            else:
                share = f" {100 * state:.0f} %"
            now = time.monotonic()
            if now - last >= SECONDS_BETWEEN_LINES:
                last = now
                self._say(f"  {title}:{share} after {now - started:.0f} s{detail}")

        self._say(f"{title} ...")
        yield update
        self._say(f"{title}: done in {time.monotonic() - started:.1f} s")

    def skipped(self, title: str) -> None:
        """Say that a stage is up to date."""
        self._say(f"{title}: up to date")


class TerminalReporter:
    """A rich progress bar a stage."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)

    @contextmanager
    def stage(self, title: str) -> Iterator[Callable[[float | str], None]]:
        """A bar while a stage runs; gives a function that takes the finished fraction (0..1) or what is being done."""
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        started = time.monotonic()
        columns = (SpinnerColumn(), TextColumn("{task.description:<28}"), BarColumn(), TimeElapsedColumn(),
                   TextColumn("[dim]{task.fields[detail]}"))
        with Progress(*columns, console=self._console, transient=True) as bars:
            task = bars.add_task(title, total=None, detail="")

            def update(state: float | str) -> None:
                if isinstance(state, str):
                    bars.update(task, detail=state)
                else:
                    bars.update(task, total=1.0, completed=min(max(state, 0.0), 1.0))

            yield update
        self._console.print(f"[green]✓[/green] {title:<28} {time.monotonic() - started:7.1f} s", highlight=False)

    def skipped(self, title: str) -> None:
        """Say that a stage is up to date."""
        self._console.print(f"[green]✓[/green] {title:<28} [dim]up to date[/dim]", highlight=False)


def make_reporter() -> PlainReporter | TerminalReporter:
    """Bars when standard error is a terminal, lines otherwise."""
    return TerminalReporter() if sys.stderr.isatty() else PlainReporter()
