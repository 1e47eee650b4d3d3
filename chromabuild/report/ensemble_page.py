"""ensemble.html: the mean map of an ensemble beside the data, agreement, distributions, and representative folds."""

import csv
import io
from pathlib import Path

import numpy as np

from chromabuild import __version__
from chromabuild.analysis.ensemble_result import EnsembleResult
from chromabuild.base.files import atomic_path
from chromabuild.base.labels import label
from chromabuild.report import html
from chromabuild.report.downloads import figure, links
from chromabuild.report.ensemble_drawings import map_pair, tree
from chromabuild.report.trace import COLOURS, Curves

_STATES = {True: "good", False: "bad", None: "open"}
_LEAST_BELOW = 0.05
_DISTRIBUTIONS = ("radius_of_gyration_nm", "sedimentation_coefficient_svedberg", "territory_nm3")


def write_ensemble_page(result: EnsembleResult, name: str, path: Path) -> None:
    """Write the page on an ensemble of the locus ``name``; the same result gives the same bytes."""
    parts = {"Agreement": _agreement(result), "Contact map": _maps(result),
             "Contacts against distance": _probability(result), "Contacts given": _contacts(result),
             "Shape": _shape(result), "Groups of folds": _groups(result), "Folds": _folds(result)}
    found = {title: html.section(title, content) for title, content in parts.items() if content}
    body = (f"<h1>{html.text(name)}</h1><p class=lead>{len(result.ensemble)} folds, maps in bins of "
            f'{html.text(result.binned.size)} bp.</p><section id="summary">{_verdict(result)}{_tiles(result)}</section>'
            f"{''.join(found.values())}<footer>Written by chromabuild {html.text(__version__)}. This page is one file "
            "and loads nothing.</footer>")
    text = html.page(f"{name}: ensemble", body, html.page_style(), aside=html.contents(["Summary", *found]))
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")


def _verdict(result: EnsembleResult) -> str:
    rows = [is_good for *_, is_good in result.judged()]
    bad = sum(one is False for one in rows)
    state = "bad" if bad else "good" if result.comparison else "open"
    head = ("It disagrees with its map" if bad and result.comparison else "The map is not certain yet" if bad
            else "It agrees with its map" if result.comparison else "No map to compare with")
    reliable = result.convergence.reliability
    said = (f"The mean map of as many other folds would correlate with this one by {html.text(reliable)}; "
            f"{'that is enough' if result.is_reliable else 'make more folds'} ({result.reliability:g} is asked for)."
            if reliable is not None else "Too few folds to say how certain the mean map is.")
    left = (f" {len(result.left_out)} folds were left out, for their parts overlap." if result.left_out else "")
    return (f'<div class="verdict {state}"><b class="{state}">{html.SIGNS[state]} {head}</b><p>{said}{left}</p>'
            f"<p>{'None' if not bad else bad} of {len(rows)} measure{'s' if len(rows) > 1 else ''} "
            f"{'is' if bad < 2 else 'are'} bad.</p></div>")


def _tiles(result: EnsembleResult) -> str:
    measures = result.measures()
    clusters = result.ensemble.clusters
    pairs: list[tuple[str, object]] = [("folds", len(result.ensemble)), ("groups", len(clusters.medoids)),
                                       ("typical fold", result.numbers[clusters.typical])]
    if "radius_of_gyration_nm" in measures:
        one = measures["radius_of_gyration_nm"]
        pairs.append(("radius of gyration, nm", f"{one['mean']:.1f} ± {one['error']:.1g}"))
    found = result.comparison
    if found is not None and found.slope is not None and found.measured_slope is not None:
        pairs.append(("slope, data in brackets", f"{found.slope:.2f} ({found.measured_slope:.2f})"))
    return html.tiles(pairs)


def _agreement(result: EnsembleResult) -> str:
    rows = [(what, value, good, html.Judged({True: "good", False: "bad", None: "not judged"}[ok], _STATES[ok]))
            for what, value, good, ok in result.judged()]
    half = result.convergence
    said = (f"<p>Maps are divided by their mean at each distance; the diagonal and its neighbours are left out. "
            f"Correlation of two halves of the folds: {html.text(half.split_half)}; error of the mean over the spread "
            f"of its pixels: {html.text(half.relative_error)}.</p>")
    return said + html.table(("measure", "found", "good", "verdict"), rows,
                             note="Stratum-adjusted: HiCRep (Yang et al. 2017), without smoothing unless said. "
                                  "Held-out pixels restrained no fold: agreement there is a prediction.")


def _maps(result: EnsembleResult) -> str:
    data, binned = result.measured, result.binned
    below = "measured" if data is not None else "the same"
    title = f"contacts of {len(result.ensemble)} folds (above the diagonal), {below} (below)"
    circles = [(*(sum(result.ensemble.given(stretch)) / 2 for stretch in (one.contact.first, one.contact.second)),
                one.frequency >= 0.5) for one in result.contacts[:100]]
    svg = map_pair(binned.mean, data, binned.edges, title, circles)
    if not svg:
        return "<p>No two places of the locus come together.</p>"
    rings = " Rings: contacts of the settings, filled where more than half of the folds close them." if circles else ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("start", "other_start", "simulated", "measured"))
    rows, columns = np.triu_indices(len(binned.mean), 1)
    for i, j in zip(rows, columns, strict=True):
        writer.writerow((int(binned.edges[i]), int(binned.edges[j]), f"{binned.mean[i, j]:.6g}",
                         "" if data is None else f"{data[i, j]:.6g}"))
    return html.plot(svg, "Logarithmic shades, for each half by itself." + rings,
                     links("ensemble contact map", svg, text.getvalue()))


def _probability(result: EnsembleResult) -> str:
    mean, error, data = result.curves()
    distance = result.binned.size / 1000 * np.arange(len(mean))
    far = slice(1, None)
    logs = np.log10(distance[far])
    # What is nothing but its error would stretch a logarithmic scale to where nothing is told.
    below = np.where(mean - error > _LEAST_BELOW * mean, mean - error, np.nan)
    series = {"folds": (logs, mean[far]), "plus an error": (logs, (mean + error)[far]),
              "minus an error": (logs, below[far])}
    if data is not None:
        series["measured"] = (logs, data[far])
    caption = "Share of contacts at each distance, with the standard error over folds."
    found = result.comparison
    if found is not None and found.slope is not None and found.measured_slope is not None:
        low, high = (value / 1000 for value in result.slope_range)
        caption += (f" From {low:g} to {high:g} kb they fall off as distance to the power {found.slope:.2f}, those "
                    f"measured as {found.measured_slope:.2f}.")
    return figure(Curves(series, "log10 of the distance, kb", "share of contacts", logarithmic=True), caption,
                  "ensemble contact probability")


def _contacts(result: EnsembleResult) -> str:
    if not result.contacts:
        return ""
    rows = []
    for one, target in zip(result.contacts, result.targets, strict=True):
        places = [f"{a:,}–{b:,}" for a, b in map(result.ensemble.given, (one.contact.first, one.contact.second))]
        near = abs(one.frequency - target) <= max(2 * one.error, 1 / len(result.ensemble))
        rows.append((*places, one.contact.weight, one.given, float(target), one.frequency, one.error,
                     html.Judged("as asked" if near else "off", "good" if near else "look")))
    return html.fold(f"Contacts ({len(rows)}) and how often they are closed", html.table(
        ("first", "second", "weight", "share of folds given it", "target", "closed in", "error", "verdict"), rows,
        note="As asked: within two standard errors, or one fold. Closed: middles within 18 nm."),
        is_open=len(rows) <= 20)


def _shape(result: EnsembleResult) -> str:
    rows = [(label(name), one["mean"], one["error"], one["deviation"], one["least"], one["most"])
            for name, one in result.measures().items()]
    plots = []
    for name in _DISTRIBUTIONS:
        values = np.sort([fold.measures[name] for fold in result.ensemble.folds if name in fold.measures])
        if len(values) > 1 and np.ptp(values) > 0:
            share = (np.arange(len(values)) + 0.5) / len(values)
            plots.append(figure(Curves({"folds": (values, share)}, label(name), "share of folds below"),
                                f"Distribution of {label(name).partition(',')[0]}.", f"ensemble {label(name)}"))
    return (html.table(("of a fold", "mean", "standard error", "deviation", "least", "most"), rows,
                       note="For information: of the conformation that would be built.")
            + (f'<div class="pair">{"".join(plots)}</div>' if plots else ""))


def _groups(result: EnsembleResult) -> str:
    clusters = result.ensemble.clusters
    names = [str(number) for number in result.numbers]
    colours = [COLOURS[k % len(COLOURS)] for k in clusters.cluster]
    svg = tree(clusters.tree, names, colours, "root mean square difference of distances, nm")
    rows = [(k + 1, int((clusters.cluster == k).sum()), result.numbers[medoid],
             " ".join(names[i] for i in np.flatnonzero(clusters.cluster == k)))
            for k, medoid in enumerate(clusters.medoids)]
    said = (f"<p>Groups by average linkage, as many as have the largest mean silhouette "
            f"({html.text(clusters.silhouette)}; above 0.5: distinct groups).</p>"
            if clusters.silhouette is not None else "<p>The folds are not grouped.</p>")
    chosen = ("<p>Build some of them: <code>chromabuild ensemble --choose typical</code>, <code>compact</code>, "
              "<code>representatives</code> or numbers.</p>")
    drawn = html.plot(svg, "Folds by their number; colours are groups.") if svg else ""
    return said + drawn + html.table(("group", "folds", "representative", "members"), rows,
                                     note="For information.") + chosen


def _folds(result: EnsembleResult) -> str:
    table = result.tables()["folds"]
    rows = html.fold(f"Every fold ({len(table.rows)})", html.table([label(key) for key in table.header], table.rows,
                                                                  note="For information."))
    if not result.left_out:
        return rows
    return rows + html.table(("left out", "why"), list(result.left_out.items()),
                             note="Bad: they cannot be built, and count nowhere.")
