"""Body shared by the commands that run one stage of the chain."""

from pathlib import Path

from chromabuild.cli.frame import load, show, thread_count
from chromabuild.cli.progress import make_reporter


def run_one(name: str, config: Path, overrides: list[str], seed: int | None, threads: int | None, as_json: bool,
            only: int | None = None) -> None:
    """Run a stage, or one shard of it, with the effective settings and print its summary."""
    from chromabuild import pipeline

    settings = load(config, overrides, seed)
    stage = pipeline.stage_named(name)
    summary = pipeline.run_stage(stage, settings, thread_count(threads), make_reporter(), only)
    files = [str(path) for path in stage.output_paths(settings) if only is None]
    show({"stage": name, "outputs": files, "summary": summary}, as_json, [*summary_lines(summary), *files])


def summary_lines(summary: dict) -> list[str]:
    """The plain values of a stage's summary, one line each; tables and lists are left to --json and the report."""
    return [f"{key.replace('_', ' ')}: {value:g}" if isinstance(value, float) else f"{key.replace('_', ' ')}: {value}"
            for key, value in summary.items() if isinstance(value, (str, int, float))]
