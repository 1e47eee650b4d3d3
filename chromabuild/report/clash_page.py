"""clash_report.html: one file for people, with the worst clashes in three dimensions before and after correction."""

import json
from pathlib import Path

from chromabuild.base.files import atomic_path
from chromabuild.base.versions import versions
from chromabuild.clash.report import ClashReport, solved_line
from chromabuild.report import html

HERE = Path(__file__).parent
MOVES_SHOWN = 500

ROWS = (
    ("pairs below {threshold} Å", lambda s: s["pairs_below_threshold"]["count"]),
    ("heavy-atom pairs below 2.0 Å", lambda s: s["heavy_pairs_below_2"]),
    ("severe pairs (2.2 Å, 1.3 Å with hydrogen)", lambda s: s["severe_pairs"]["count"]),
    ("overlaps of 0.4 Å and more", lambda s: s["overlaps"]),
    ("overlaps above 0.9 Å", lambda s: s["bad_overlaps"]),
    ("clashscore, per 1,000 atoms", lambda s: s["clashscore"]),
)
AUDIT_ROWS = (
    ("bonds through rings", lambda s: s["ring_piercings"]["count"]),
    ("molecules within each other", lambda s: s["merged_molecules"]["count"]),
    ("backbones between the strands of a duplex", lambda s: s["threaded_strands"]["count"]),
    ("wrong chirality", lambda s: s["chirality_errors"]["count"]),
    ("cis peptides (not proline)", lambda s: s["cis_peptides"]["count"]),
    ("twisted peptides", lambda s: s["twisted_peptides"]["count"]),
    ("DNA backbone bonds beyond 4 σ", lambda s: s["bond_outliers"]["count"]),
    ("DNA backbone angles beyond 4 σ", lambda s: s["angle_outliers"]["count"]),
    ("O3'–P, shortest, Å", lambda s: s["o3_p"]["min"]),
    ("O3'–P, longest, Å", lambda s: s["o3_p"]["max"]),
    ("turns of the strands about each other", lambda s: round(sum(d["turns"] for d in s["duplexes"]), 1)),
)


def write_clash_page(report: ClashReport, path: str | Path, title: str) -> None:
    """Write the page by atomic rename; ``title`` heads it."""
    with atomic_path(path) as part:
        part.write_text(clash_page(report, title), encoding="utf-8")


def clash_page(report: ClashReport, title: str) -> str:
    """The whole document; it loads nothing."""
    data, before = report.data, report.data["before"]
    corrected = data.get("after") is not None
    after = data["after"] if corrected else before
    threshold = data["threshold"]
    header = ("", "before", "after") if corrected else ("", "found")

    def rows(table: tuple) -> list[tuple]:
        return [(name.format(threshold=threshold), value(before), *((value(after),) if corrected else ()))
                for name, value in table]

    classes = sorted(set(before["severe_pairs"]["by_class"]) | set(after["severe_pairs"]["by_class"]))
    by_class = [(name, *(count for state in ((before, after) if corrected else (before,))
                         for count in (state["counts_by_class"].get(name, 0),
                                       state["severe_pairs"]["by_class"].get(name, 0)))) for name in classes]
    class_header = ("class", f"< {threshold} Å", "severe", f"< {threshold} Å, after", "severe, after")
    broken = [name for name, item in data["invariants"].items() if not item["holds"]]
    tiles = [("atoms", before["atoms"]), (f"pairs < {threshold} Å", before["pairs_below_threshold"]["count"])]
    if corrected:
        tiles += [(f"pairs < {threshold} Å left", after["pairs_below_threshold"]["count"]),
                  ("heavy pairs < 2 Å left", after["heavy_pairs_below_2"]), ("moves", len(data["moves"])),
                  ("not solved", len(data["unresolved"]))]
    if "seconds" in report.notes:
        tiles.append(("seconds", round(report.notes["seconds"], 1)))
    moves = [(m["sweep"], m["kind"], m["first_residue"],
              ", ".join(f"{name} {angle:+.0f}°" for name, angle in m.get("torsions", {}).items())
              or (f"phosphate from {m['phi_start']:+.0f}°" if "phi_start" in m else ""),
              f"{m['fatal'][0]} → {m['fatal'][1]}", f"{m['severe'][0]} → {m['severe'][1]}") for m in data["moves"]]
    unresolved = [(u["distance"], u["atom_a"], u["atom_b"], u["class"], u["reason"]) for u in data["unresolved"]]
    cores = data.get("overlapping_cores", {"count": 0})
    body = "".join([
        f"<h1>{html.text(title)}</h1><p class=lead>"
        + (f"Clashes found and corrected, mode {html.text(data['mode'])}, seed {data['seed']}."
           if corrected else "Clashes found; nothing was changed.") + "</p>", html.tiles(tiles),
        html.section("The worst contacts", viewer(report, corrected)),
        html.section("Distances", html.table(header, rows(ROWS)), histogram(before, after if corrected else None)),
        html.section("By class", html.table(class_header[:5 if corrected else 3], by_class)),
        html.section("Audit", html.table(header, rows(AUDIT_ROWS))),
        html.section("What must not change", html.table(
            ("invariant", "holds", "value", "limit"),
            [(name.replace("_", " "), item["holds"], item["value"], item["limit"])
             for name, item in data["invariants"].items()]),
            f'<p class="bad">Broken: {html.text(broken)}</p>' if broken else "") if data["invariants"] else "",
        html.section(f"Overlapping cores ({cores['count']})", f"<p>{html.text(solved_line(data))}. Torsions cannot "
                     f"part these; {html.text(cores['items'][0]['remedy'])}.</p>", html.table(
            ("Å", "atom", "atom", "pairs left", f"below {threshold} Å"),
            [(c["distance"], c["atom_a"], c["atom_b"], c["pairs"], c["fatal"]) for c in cores["items"]]))
        if cores["count"] else "",
        html.section(f"Not solved ({len(unresolved)})", html.table(
            ("Å", "atom", "atom", "class", "reason"), unresolved)) if unresolved else "",
        html.section(f"Moves ({len(moves)})", "<details><summary>every torsion that was turned</summary>" + html.table(
            ("round", "kind", "first residue", "turned", f"pairs < {threshold} Å", "severe"), moves, MOVES_SHOWN)
            + "</details>") if moves else "",
        html.section("Made with", html.facts(versions().items())),
        "<footer>This page is one file and loads nothing. Molecules are drawn by 3Dmol.js (Rego and Koes 2015, "
        "BSD-3-Clause).</footer>"])
    style = (HERE / "page.css").read_text(encoding="utf-8") + (HERE / "viewer" / "viewer.css").read_text("utf-8")
    scripts = ((HERE / "viewer" / name).read_text(encoding="utf-8") for name in ("3Dmol-min.js", "viewer.js"))
    return html.page(f"{title}: clash report", body, style, "\n".join(scripts) if report.neighbourhoods else "")


def viewer(report: ClashReport, corrected: bool) -> str:
    """The list of the worst contacts, a canvas, and the atoms around each of them as data."""
    if not report.neighbourhoods:
        return "<p>There is nothing to show.</p>"
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
    return html.plot("".join(parts), "Non-bonded pairs (more than three bonds apart) by distance.")
