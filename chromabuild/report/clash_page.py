"""clash_report.html: one file for people, with the worst clashes in three dimensions before and after correction."""

import json
from dataclasses import replace
from pathlib import Path

from chromabuild.base.files import atomic_path
from chromabuild.base.versions import versions
from chromabuild.clash.report import ClashReport, risen_line, solved_line
from chromabuild.report import html
from chromabuild.report.checks import clash_checks, measured
from chromabuild.report.downloads import links
from chromabuild.report.overview import checks_table, compared, overview
from chromabuild.report.verdict import CRITERIA, Check, Verdict

HERE = Path(__file__).parent
MOVES_SHOWN = 500

# Name of the measure in the report, and how it is written.
ROWS = (
    ("pairs_below_threshold", "pairs below {threshold} Å"),
    ("heavy_pairs_below_2", "heavy-atom pairs below 2.0 Å"),
    ("severe_pairs", "severe pairs (2.2 Å, 1.3 Å with hydrogen)"),
    ("overlaps", "overlaps of 0.4 Å and more"),
    ("bad_overlaps", "overlaps above 0.9 Å"),
    ("clashscore", "clashscore, per 1,000 atoms"),
)
AUDIT_ROWS = (
    ("ring_piercings", "bonds through rings"),
    ("merged_molecules", "molecules within each other"),
    ("threaded_strands", "backbones between the strands of a duplex"),
    ("chirality_errors", "wrong chirality"),
    ("cis_peptides", "cis peptides (not proline)"),
    ("twisted_peptides", "twisted peptides"),
    ("bond_outliers", "DNA backbone bonds beyond 4 σ"),
    ("angle_outliers", "DNA backbone angles beyond 4 σ"),
)
LISTED = ("chirality_errors", "cis_peptides", "twisted_peptides")
"""Measures whose items are names of atoms."""


def write_clash_page(report: ClashReport, path: str | Path, title: str) -> None:
    """Write the page by atomic rename; ``title`` heads it."""
    with atomic_path(path) as part:
        part.write_text(clash_page(report, title), encoding="utf-8")


def clash_page(report: ClashReport, title: str) -> str:
    """The whole document; it loads nothing."""
    data = report.data
    states = [data["before"], data["after"]] if data.get("after") is not None else [data["before"]]
    corrected = len(states) == 2
    names = ("before", "after") if corrected else ("found",)
    unsolved, moves, cores = data["unresolved"], data["moves"], data.get("overlapping_cores", {"count": 0})
    verdict = _verdict(data)
    found = {
        "The worst contacts": viewer(report, corrected),
        "Checks": checks_table(verdict),
        "Distances": f"<p>{solved_sentence(data, corrected)} {_risen(data)}</p>"
        + _measures(ROWS, names, states, data["threshold"]) + histogram(states[0], states[1] if corrected else None),
        "By class": _by_class(names, states, data["threshold"]),
        "Audit": "<p>What a minimiser cannot repair, and the geometry of DNA and peptides.</p>"
        + _audit(names, states),
        "What must not change": _invariants(data["invariants"]) if data["invariants"] else "",
        f"Overlapping cores ({cores['count']})": _cores(data) if cores["count"] else "",
        f"Not solved ({len(unsolved)})": _unsolved(unsolved) if unsolved else "",
        f"Moves ({len(moves)})": _moves(moves, data["threshold"]) if moves else "",
        "Made with": html.fold("Versions", html.facts(versions().items())),
    }
    parts = {heading: html.section(heading, content) for heading, content in found.items() if content}
    first = overview(_built(title, data, corrected), verdict, _then(corrected))
    body = (f"<h1>{html.text(title)}</h1><p class=lead>"
            + (f"Clashes found and corrected, mode {html.text(data['mode'])}, seed {data['seed']}."
               if corrected else "Clashes found; nothing was changed.")
            + (f" Left out of the file: {html.text(data['left_out'])}." if data.get("left_out") else "")
            + f'</p><section id="summary">{first}{_tiles(report, states)}</section>' + "".join(parts.values())
            + "<footer>This page is one file and loads nothing. Molecules are drawn by 3Dmol.js (Rego and Koes 2015, "
              "BSD-3-Clause).</footer>")
    style = html.page_style() + (HERE / "viewer" / "viewer.css").read_text("utf-8")
    scripts = ((HERE / "viewer" / name).read_text(encoding="utf-8") for name in ("3Dmol-min.js", "viewer.js"))
    return html.page(f"{title}: clash report", body, style, "\n".join(scripts) if report.neighbourhoods else "",
                     aside=html.contents(["Summary", *parts], verdict.sections()))


def _verdict(data: dict) -> Verdict:
    """All checks; they point to sections of this page, not of the report."""
    place = {"pairs_below_threshold": "Distances", "severe_pairs": "Distances", "invariants": "What must not change"}
    return Verdict([replace(check, criterion=replace(check.criterion, section=place.get(check.key, "Audit")))
                    for check in clash_checks(data)])


def _built(title: str, data: dict, corrected: bool) -> str:
    moves = len(data["moves"])
    said = f"were searched for clashes and corrected by {moves} move{'s' if moves != 1 else ''}"
    return (f"{html.text(data['before']['atoms'])} atoms of <b>{html.text(title)}</b> "
            + (said if corrected else "were searched for clashes, and nothing was changed"))


def _then(corrected: bool) -> str:
    return ("next, <code>chromabuild solvate</code> adds water and ions" if corrected
            else "next, the structure can be used as it is")


def solved_sentence(data: dict, corrected: bool) -> str:
    """How many pairs below the threshold there were, and are: HTML."""
    found = data["before"]["pairs_below_threshold"]["count"]
    left = data["after"]["pairs_below_threshold"]["count"] if corrected else found
    state = "bad" if left else "good"
    return (f'<b class="{state}">{html.text(left)} pair{"s" if left != 1 else ""} closer than '
            f"{html.text(data['threshold'])} Å {'is' if left == 1 else 'are'} "
            + (f"left</b> of {html.text(found)}." if corrected else "there</b>."))


def _risen(data: dict) -> str:
    """What is worse than before, as a sentence."""
    line = risen_line(data)
    return f"{html.text(line)}." if line else ""


def _tiles(report: ClashReport, states: list[dict]) -> str:
    data, last = report.data, states[-1]
    near = f"pairs < {data['threshold']} Å"
    tiles = [("atoms", states[0]["atoms"]), (near, states[0]["pairs_below_threshold"]["count"])]
    if len(states) == 2:
        tiles += [(f"{near} left", last["pairs_below_threshold"]["count"]),
                  ("heavy pairs < 2 Å left", last["heavy_pairs_below_2"]), ("moves", len(data["moves"])),
                  ("not solved", len(data["unresolved"]))]
    return html.tiles(tiles)


def _number(value: object) -> object:
    return value["count"] if isinstance(value, dict) else value


def _judged(key: str, value: object) -> Check | None:
    return next(iter(measured({key: value}, (key,))), None) if key in CRITERIA else None


def _measures(table: tuple, names: tuple, states: list[dict], threshold: float = 0.0) -> str:
    """Measures, the last state of each judged where there is a limit."""
    return compared(("count", *names), [(key, name.format(threshold=threshold), [_number(s[key]) for s in states])
                                        for key, name in table], _judged)


def _audit(names: tuple, states: list[dict]) -> str:
    spans = [(f"O3'–P, {word}, Å", *(s["o3_p"][key] for s in states)) for word, key in
             (("shortest", "min"), ("longest", "max"))]
    turns = ("turns of the strands about each other", *(round(sum(d["turns"] for d in s["duplexes"]), 1)
                                                        for s in states))
    where = [html.fold(f"Where: {name} ({states[-1][key]['count']})", "<p class=mono>"
                       + html.text(states[-1][key]["items"]) + "</p>")
             for key, name in AUDIT_ROWS if key in LISTED and states[-1][key]["count"]]
    return _measures(AUDIT_ROWS, names, states) + "".join(where) + html.table(
        ("measure", *names), [*spans, turns],
        note="Good: O3'–P within 4 σ of 1.607 Å, which is 1.56 to 1.65 Å, and as many turns as before.")


def _by_class(names: tuple, states: list[dict], threshold: float) -> str:
    classes = sorted({name for state in states for name in state["severe_pairs"]["by_class"]})
    rows = [(name, *(count for state in states for count in (
        state["counts_by_class"].get(name, 0), state["severe_pairs"]["by_class"].get(name, 0)))) for name in classes]
    headers = [f"{what}, {name}" for name in names for what in (f"pairs < {threshold} Å", "severe pairs")]
    return ("<p>Which parts of the molecules are too near to each other.</p>" + html.table(
        ("class", *headers), rows, note="Counts. Good: 0 at the end.")
        if rows else "<p>No pair is severe, of no class.</p>")


def _invariants(invariants: dict) -> str:
    broken = [name.replace("_", " ") for name, item in invariants.items() if not item["holds"]]
    said = (f'<b class="bad">Broken: {html.text(broken)}</b>' if broken
            else f'<b class="good">All {len(invariants)} promises of the correction hold</b>')
    return f"<p>{said}.</p>" + html.fold("Every promise, what was found and its limit", html.table(
        ("promise", "found", "good", "verdict"),
        [(name.replace("_", " "), item["value"], f"≤ {item['limit']:.3g}" if item["limit"] else "0",
          html.Judged("good", "good") if item["holds"] else html.Judged("bad", "bad"))
         for name, item in invariants.items()],
        note="Changes of bonds are in Å, of angles in degrees, z in σ; all else are counts."), bool(broken))


def _cores(data: dict) -> str:
    items = data["overlapping_cores"]["items"]
    return (f"<p>{html.text(solved_line(data))}. Torsions cannot part these; {html.text(items[0]['remedy'])}.</p>"
            + html.table(("distance, Å", "atom", "atom", "pairs left", f"pairs < {data['threshold']} Å"),
                         [(c["distance"], c["atom_a"], c["atom_b"], c["pairs"], c["fatal"]) for c in items],
                         note="Bad: all of these."))


def _unsolved(unsolved: list[dict]) -> str:
    return "<p>What the correction could not part, and why.</p>" + html.table(
        ("distance, Å", "atom", "atom", "class", "reason"),
        [(u["distance"], u["atom_a"], u["atom_b"], u["class"], u["reason"]) for u in unsolved],
        note="Bad: all of these.")


def _moves(moves: list[dict], threshold: float) -> str:
    kinds = [move["kind"] for move in moves]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    rows = [(m["sweep"], m["kind"], m["first_residue"],
             ", ".join(f"{name} {angle:+.0f}°" for name, angle in m.get("torsions", {}).items())
             or (f"phosphate from {m['phi_start']:+.0f}°" if "phi_start" in m else ""),
             f"{m['fatal'][0]} → {m['fatal'][1]}", f"{m['severe'][0]} → {m['severe'][1]}") for m in moves]
    return f"<p>By kind: {html.text(counts)}.</p>" + html.fold("Every move", html.table(
        ("round", "kind", "first residue", "turned, degree", f"pairs < {threshold} Å", "severe pairs"), rows,
        MOVES_SHOWN, note="Good: fewer pairs after the arrow; a move that brings none is not made."))


def viewer(report: ClashReport, corrected: bool) -> str:
    """The list of the worst contacts, a canvas, and the atoms around each of them as data."""
    if not report.neighbourhoods:
        return "<p>No contact is near enough to be shown.</p>"
    entries = "".join(
        f'<li data-index="{k}" tabindex="0"><b>{n["distance"]:.2f}'
        + (f" → {n['after']:.2f}" if corrected else "")
        + f" Å</b> {html.text(n['atom_a'])} – {html.text(n['atom_b'])}</li>"
        for k, n in enumerate(report.neighbourhoods))
    switch = ('<div class="switch"><button data-state="0" class="on">before</button>'
              '<button data-state="1">after</button></div>') if corrected else ""
    data = json.dumps(report.neighbourhoods, separators=(",", ":")).replace("</", "<\\/")
    return (f'<div class="viewer"><ol>{entries}</ol><div class="stage">{switch}<div id="canvas"></div>'
            '<p class="key"><i style="background:#2f9e6e"></i>protein<i style="background:#d9822b"></i>DNA'
            '<i style="background:#c2413b"></i>the contact; drag to turn, scroll to zoom</p></div></div>'
            f'<script type="application/json" id="neighbourhoods">{data}</script>')


def histogram(before: dict, after: dict | None) -> str:
    """Non-bonded distances up to 2.5 angstrom as bars, on a logarithmic scale."""
    import math

    edges = before["short_distances"]["edges"]
    states = [("before", before, "#c2413b"), ("after", after, "#3b7dd8")] if after else [("found", before, "#c2413b")]
    highest = max(max(s["short_distances"]["counts"]) for _, s, _ in states)
    top = max(1, math.ceil(math.log10(highest + 1)))
    width, height, left, bottom = 720, 240, 64, 34
    step = (width - left - 8) / (len(edges) - 1)
    scale = (height - bottom - 22) / top

    def y(count: float) -> float:
        return height - bottom - scale * (math.log10(count) if count > 0.3 else math.log10(0.3)) - 0.3 * scale

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="histogram of short distances" '
             'font-size="11" fill="currentColor">']
    for power in range(top + 1):
        level = y(10 ** power)
        parts.append(f'<line x1="{left}" x2="{width}" y1="{level:.1f}" y2="{level:.1f}" stroke="currentColor" '
                     f'stroke-opacity=".12"/><text x="{left - 6}" y="{level + 4:.1f}" text-anchor="end">'
                     f"{10 ** power:,}</text>")
    bar = step / len(states) - 1
    for which, (_, state, colour) in enumerate(states):
        for k, count in enumerate(state["short_distances"]["counts"]):
            if count:
                level = y(count)
                parts.append(f'<rect x="{left + k * step + which * (bar + 1):.1f}" y="{level:.1f}" width="{bar:.1f}" '
                             f'height="{height - bottom - level:.1f}" fill="{colour}"><title>'
                             f"{edges[k]:.1f}–{edges[k + 1]:.1f} Å: {count:,}</title></rect>")
    for k in range(0, len(edges), 5):
        parts.append(f'<text x="{left + k * step:.1f}" y="{height - bottom + 15}" text-anchor="middle">'
                     f"{edges[k]:.1f}</text>")
    parts.append(f'<text x="{(left + width) / 2}" y="{height - 4}" text-anchor="middle">distance, Å</text>')
    for which, (name, _, colour) in enumerate(states):
        parts.append(f'<rect x="{left + 10 + 80 * which}" y="2" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{left + 25 + 80 * which}" y="11">{name}</text>')
    parts.append("</svg>")
    svg = "".join(parts)
    rows = zip(edges[:-1], edges[1:], *(state["short_distances"]["counts"] for _, state, _ in states), strict=True)
    csv = "\n".join([",".join(["from (angstrom)", "to (angstrom)", *(f"pairs {name}" for name, _, _ in states)]),
                     *(",".join(map(str, row)) for row in rows)]) + "\n"
    return html.plot(svg, "Non-bonded pairs (more than three bonds apart) by distance. Good: none left of 1.3 Å, and "
                     "without hydrogen of 2.2 Å.", links("short distances", svg, csv))
