"""Body shared by the commands that run one stage of the chain."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.labels import label
from chromabuild.base.summary import Summary
from chromabuild.base.threads import thread_count
from chromabuild.cli.frame import load, show
from chromabuild.cli.progress import make_reporter

if TYPE_CHECKING:
    from chromabuild.pipeline.stages import RunPart
    from chromabuild.solvate import Part


def run_one(name: str, config: Path, overrides: list[str], seed: int | None, threads: int | None, as_json: bool,
            only: "Iterable[int] | Part | RunPart | None" = None) -> None:
    """Run a stage, or some shards or a part of the dynamics, with the effective settings and print its summary."""
    from chromabuild.pipeline import chain

    settings = load(config, overrides, seed)
    stage = chain.stage_named(name)
    summary = chain.run_stage(stage, settings, thread_count(threads), make_reporter(), only)
    files = [path for path in stage.written(settings).values() if only is None]
    show({"stage": name, "outputs": list(map(str, files)), "summary": summary}, as_json,
         [*summary_lines(summary), *file_lines(files)])


def file_lines(paths: Iterable[Path]) -> list[str]:
    """Files that were written, one a line with its size."""
    return [f"{path}  {_size(path.stat().st_size)}" for path in paths]


def _size(n_bytes: int) -> str:
    """
    >>> _size(999), _size(1500), _size(23_400_000)
    ('999 bytes', '1.5 kB', '23.4 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    unit, size = next((unit, size) for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if n_bytes >= size)
    return f"{n_bytes / size:.1f} {unit}"


def summary_lines(summary: Summary) -> list[str]:
    """A stage's summary, one line a value; tables and long lists are left to --json and the report."""
    lines = []
    for key, value in summary.items():
        if isinstance(value, dict) and all(isinstance(item, (str, int, float)) for item in value.values()):
            text = ", ".join(f"{name} {item}" for name, item in value.items())
        elif isinstance(value, list) and len(value) == 3 and all(isinstance(item, (int, float)) for item in value):
            text = " x ".join(f"{item:g}" for item in value)
        elif isinstance(value, float):
            text = f"{value:g}"
        elif isinstance(value, (str, int)):
            text = str(value)
        else:
            continue
        lines.append(f"{label(key)}: {text}")
    return lines
