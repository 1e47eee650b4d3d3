"""report.html: what was built, how well, how long it took, and where the files are; whatever stages have been run."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chromabuild import __version__
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.report import html
from chromabuild.report.checks import verdict_of
from chromabuild.report.figures import Stages, box_figure, scaffold_figure, solute_figure
from chromabuild.report.overview import built_sentence, checks_table, overview, then_sentence
from chromabuild.report.sections import clock, duration, sections

VIEWER = "report_viewer"
"""The folder beside report.html with the viewer that the page shows."""


def write_report(config: Settings, stages: Stages, threads: int = 1, progress: Progress = silent,
                 no_viewer: str = "") -> Summary:
    """Write ``report.html`` into the output folder and give the names of its sections.

    The viewer in ``report_viewer`` is shown in it, where it is there; ``no_viewer``: why it is not, as a sentence.

    ``stages`` is the record of what was run, by stage; others are left out. The page is the same for any number of
    ``threads``. Raises BadInputError when nothing has been run.
    """
    folder = Path(config.output)
    # The page before this one is no result: what is told must not depend on it.
    stages = {name: stage for name, stage in stages.items() if name != "report"}
    if not stages:
        raise BadInputError(f"{folder} holds no results to report: run `chromabuild all`")
    with ThreadPoolExecutor(threads) as pool:
        drawings = [pool.submit(draw, folder, stages) for draw in (solute_figure, box_figure, scaffold_figure)]
        text = pool.submit(sections, folder, stages, progress)
        try:
            verdict = verdict_of(folder, stages)
            whole, *rest = (drawing.result() for drawing in drawings)
            beside = f'<div class="pair">{"".join(rest)}</div>' if any(rest) else ""
            turn = (viewer_part(folder, no_viewer) if whole or any(rest) else "") + _ensemble(folder)
            found = {"Result": whole + beside + turn, "Checks": checks_table(verdict), **text.result()}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    parts = {title: html.section(title, content) for title, content in found.items() if content}
    name, summaries = config.locus.name, {key: stage["summary"] for key, stage in stages.items()}
    first = overview(built_sentence(name, summaries), verdict, then_sentence(verdict, summaries))
    body = (f'<h1>{html.text(name)}</h1><p class=lead>{_lead(stages)}</p><section id="summary">{first}'
            f"{_tiles(summaries)}</section>{''.join(parts.values())}"
            f"<footer>Written by chromabuild {html.text(__version__)}. "
            f"{_loads(turn)}</footer>")
    contents = html.contents(["Summary", *parts], verdict.sections())
    with atomic_path(folder / "report.html") as part:
        part.write_text(html.page(f"{name}: chromabuild report", body, html.page_style(), aside=contents,
                                  framed="<iframe" in turn), encoding="utf-8")
    return {"sections": list(parts)}


def _lead(stages: Stages) -> str:
    seconds = sum(stage["seconds"] for stage in stages.values())
    last = max(stage["started"] for stage in stages.values())
    return f"Built in {duration(seconds)}, {html.text(clock(last))}."


def viewer_part(folder: Path, no_viewer: str) -> str:
    """Where the locus can be turned: the report's own viewer, folded until it is asked for, and the page of
    ``chromabuild view``."""
    also = ('<p>With tracks of your own: <a href="view/index.html">view/index.html</a>.</p>'
            if (folder / "view" / "index.html").is_file() else "")
    page = f"{VIEWER}/index.html"
    if not no_viewer and (folder / page).is_file():
        return ("<details class=turn><summary>Turn it in three dimensions, with its sequence and its contacts</summary>"
                f'<iframe src="{page}" loading="lazy" title="The locus in three dimensions"></iframe>'
                f'<p>In a window of its own: <a href="{page}">{page}</a>, which lies beside this file.</p></details>'
                f"{also}")
    why = f"{html.text(no_viewer)} " if no_viewer else ""
    return (f"<p>{why}<code>chromabuild view</code> shows it in three dimensions, with its sequence and its contacts."
            f"</p>{also}")


def _loads(turn: str) -> str:
    """What the page needs beside itself."""
    if "<iframe" in turn:
        return f"This page is one file; its viewer is the folder {VIEWER} beside it. It needs no network."
    return "This page is one file and loads nothing."


def _ensemble(folder: Path) -> str:
    """Where the page on many folds is, where there is one."""
    if not (folder / "ensemble.html").is_file():
        return ""
    return '<p>Other folds of the locus, and the contact map of all: <a href="ensemble.html">the ensemble</a>.</p>'


def _size(solvated: Summary) -> str:
    """Edges of the box, or the distance of images where these lean, nm."""
    lengths = [solvated["image_distance"]] if "shape" in solvated else solvated["box"]
    return "×".join(f"{length / 10:.0f}" for length in lengths)


def _tiles(summaries: dict[str, Summary]) -> str:
    box, run, clash, build = (summaries.get(name, {}) for name in ("solvate", "run", "clash", "build"))
    values = [("atoms in all", box.get("atoms")), ("solute atoms", build.get("atoms")),
              (f"{box.get('shape', 'box')}, nm", _size(box) if "box" in box else None),
              (f"pairs < {clash.get('threshold')} Å left", clash.get("pairs_after")),
              ("simulated, ps", run.get("simulated_ps")), ("engine, ns/day", run.get("ns_per_day"))]
    return html.tiles((name, value) for name, value in values if value is not None)
