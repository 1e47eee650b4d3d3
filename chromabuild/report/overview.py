"""What stands at the top of a report: what was built, whether it is sound and what to do next, and the table of all
checks."""

from collections.abc import Callable, Sequence

from chromabuild.base.summary import Summary
from chromabuild.report import html
from chromabuild.report.verdict import Check, Verdict

WORDS = {"good": "good", "bad": "bad", "look": "worth a look", "open": "not judged"}
_HEADS = {"good": "Sound", "look": "Sound, with something to look at", "bad": "Not sound", "open": "Not judged yet"}
_MISSING = {"scaffold": "the fold", "build": "the atoms", "clash": "clashes", "solvate": "water and ions",
            "topology": "the force field", "run": "dynamics"}
_GOOD_NEWS = {"pairs_below_threshold": "no clash", "ring_piercings": "no bond through a ring",
              "threaded_strands": "no threaded strand", "chirality_errors": "no wrong chirality",
              "bond_outliers": "no outlier in DNA geometry", "net_charge": "no net charge",
              "drift_kT_per_ns_per_atom": "energy conserved", "temperature_off": "temperature as set",
              "pressure_off": "pressure as set"}
_MOST_NAMED = 3


def overview(built: str, verdict: Verdict, then: str) -> str:
    """The three sentences. ``built``: the first; ``then``: what to do next where nothing is to be repaired, in lower
    case; both HTML without a full stop. Sections that are linked to must be in the page."""
    return (f'<div class="verdict {verdict.state}"><b class="{verdict.state}">{html.SIGNS[verdict.state]} '
            f"{_HEADS[verdict.state]}</b><p>{built}.</p><p>{_soundness(verdict)}.</p>"
            f"<p>{next_step(verdict, then)}.</p></div>")


def next_step(verdict: Verdict, then: str) -> str:
    """What to do about the first of what was found, with links to where it is told, or ``then``. HTML."""
    state = verdict.state
    if state not in ("bad", "look"):
        return then[0].upper() + then[1:]
    found = verdict.of(state)
    criterion = found[0].criterion
    others = [title for title in dict.fromkeys(c.criterion.section for c in found) if title != criterion.section]
    more = f"; see also {_joined([html.link(title) for title in others])}" if others else ""
    said = f"{html.link(criterion.section)}: {html.text(criterion.remedy)}{more}"
    return f"Repair first what stands in {said}" if state == "bad" else f"Look at {said}; {then}"


def _soundness(verdict: Verdict) -> str:
    judged = [check for check in verdict.checks if check.state != "open"]
    bad, look, unjudged = (verdict.of(state) for state in ("bad", "look", "open"))
    missing = [_MISSING[name] for name in verdict.missing]
    unsaid = [f"{html.text(check.subject)} ({html.text(check.reason)})" for check in unjudged]
    if missing:
        unsaid.append(f"{_joined(missing)} ({'its stage was' if len(missing) == 1 else 'their stages were'} not run)")
    tail = f"; not judged: {_joined(unsaid)}" if unsaid else ""
    if not judged:
        return "Whether it is sound cannot be said yet" + tail
    n = len(judged)
    if bad:
        return f"It is not sound: {len(bad)} of {n} checks {'fails' if len(bad) == 1 else 'fail'}, {_named(bad)}{tail}"
    if look:
        return (f"It is sound: {_news(judged)}; of {n} checks {len(look)} {'is' if len(look) == 1 else 'are'} worth a "
                f"look, {_named(look)}{tail}")
    return f"It is sound: {_news(judged)}; all {n} checks are met{tail}"


def _news(judged: Sequence[Check]) -> str:
    """What is good of that which matters most."""
    states = {check.key: check.state for check in judged}
    return _joined([words for key, words in _GOOD_NEWS.items() if states.get(key) == "good"] or ["nothing forbids it"])


def _named(checks: Sequence[Check]) -> str:
    """The first of them with what was found, and how many there are more."""
    named = [f"{html.text(check.subject)} ({_value(check)}, good is {html.text(check.bound)})"
             for check in checks[:_MOST_NAMED]]
    rest = len(checks) - len(named)
    return _joined([*named, *([f"{rest} more"] if rest else [])])


def _value(check: Check) -> str:
    return html.text(_plain(check.found)) + (f" {check.criterion.unit}" if check.criterion.unit else "")


def _plain(value: float | None) -> float | None:
    """A whole number as such: 0 instead of -0.0."""
    return int(value) if value is not None and value == int(value) else value


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def checks_table(verdict: Verdict) -> str:
    """Every check: what was found, when it is good, the verdict in words, and where the limit comes from or why it was
    not judged. Those that are met are folded."""
    if not verdict.checks:
        return ""

    def table(checks: Sequence[Check]) -> str:
        rows = [(html.Judged(WORDS[check.state], check.state), check.subject, _plain(check.found),
                 check.criterion.unit, check.bound, check.criterion.section, check.reason or check.criterion.source)
                for check in checks]
        return html.table(("verdict", "what", "found", "unit", "good", "section", "why this limit"), rows,
                          note="Bad: do not use the build as it is. Worth a look: usable, but know why. No unit: a "
                               "count or a ratio.") if rows else ""

    counts = _joined([f"{len(verdict.of(state))} {word}" for state, word in WORDS.items() if verdict.of(state)])
    rest = [check for state in ("bad", "look", "open") for check in verdict.of(state)]
    met = verdict.of("good")
    return (f"<p>Of {len(verdict.checks)} checks: {counts}.</p>{table(rest)}"
            + html.fold(f"Checks that are met ({len(met)}), their limits and where these come from", table(met)))


def compared(headers: Sequence[str], rows: Sequence[tuple[str, str, Sequence[object]]],
             judged: Callable[[str, object], Check | None], note: str = "") -> str:
    """A table of measures, each with its key, name and values; the last value is judged where there is a criterion.

    ``note`` stands above where any is judged.
    """
    checks = [judged(key, values[-1]) for key, _, values in rows]
    if not any(checks):
        return html.table(headers, [(name, *values) for _, name, values in rows],
                          note="For information: no value is good or bad by itself. No unit: a count, ratio or word.")
    shown = []
    for check, (_, name, values) in zip(checks, rows, strict=True):
        verdict = (check.bound, html.Judged(WORDS[check.state], check.state)) if check else ("", "")
        shown.append((name, *values, *verdict))
    return html.table((*headers, "good", "verdict"), shown,
                      note=note or "No verdict: for information, neither good nor bad by itself.")


def box_text(solvated: Summary) -> str:
    """The periodic box, in nm."""
    if "shape" in solvated:
        return f"a {solvated['shape']} box with images {solvated['image_distance'] / 10:.1f} nm apart"
    return f"a box of {' × '.join(f'{edge / 10:.1f}' for edge in solvated['box'])} nm"


def built_sentence(name: str, summaries: dict[str, Summary]) -> str:
    """The first sentence, HTML: what was built, as far as it was."""
    scaffold, build, box, run = (summaries.get(key, {}) for key in ("scaffold", "build", "solvate", "run"))
    place = (f" ({html.text(scaffold['chromosome'])}:{scaffold['start'] + 1:,}–{scaffold['end']:,})"
             if scaffold.get("chromosome") and "end" in scaffold else "")
    parts = []
    if scaffold:
        parts.append(f"a fibre of {html.text(scaffold['base_pairs'])} base pairs and "
                     f"{html.text(scaffold['nucleosomes'])} nucleosome{'s' if scaffold['nucleosomes'] != 1 else ''}")
    if build.get("atoms"):
        parts.append(f"{html.text(build['atoms'])} atoms of DNA and histones")
    if box:
        parts.append(f"with water and ions {html.text(box['atoms'])} atoms in {box_text(box)}")
    if run.get("simulated_ps") is not None:
        parts.append(f"minimised and simulated for {html.text(run['simulated_ps'])} ps")
    return f"<b>{html.text(name)}</b>{place} is {', '.join(parts) if parts else 'begun'}"


def then_sentence(verdict: Verdict, summaries: dict[str, Summary]) -> str:
    """What to do next where nothing is to be repaired: HTML in lower case."""
    if verdict.missing:
        return (f"next, <code>chromabuild {verdict.missing[0]}</code>, or <code>chromabuild all</code> for all that is "
                "left")
    if any(check.criterion.section == "Minimisation and dynamics" for check in verdict.of("open")):
        return ("next, simulate longer, e.g. <code>chromabuild run --extend \"10 ns\"</code>, so that "
                f"{html.link('Minimisation and dynamics')} can be judged")
    trajectory = summaries.get("run", {}).get("trajectory")
    shown = f" of <code>{html.text(trajectory)}</code>" if trajectory else ""
    return (f"next, look at {html.link('Minimisation and dynamics')} and at the frames{shown}, or simulate longer with "
            "<code>chromabuild run --extend</code>")
