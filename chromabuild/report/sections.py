"""The sections of the report below its pictures: each begins with the sentence that matters; long tables are folded."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from chromabuild.base.labels import label
from chromabuild.base.progress import Progress
from chromabuild.base.summary import Summary
from chromabuild.report import html
from chromabuild.report.analysis import analysis_section
from chromabuild.report.checks import measured
from chromabuild.report.dna import dna_section
from chromabuild.report.downloads import figure
from chromabuild.report.dynamics import dynamics_section
from chromabuild.report.figures import Stages, solute_file
from chromabuild.report.overview import compared
from chromabuild.report.trace import Curves
from chromabuild.report.verdict import CRITERIA, Check
from mesoscale.scaffold import Scaffold

_UNITS = {"kT", "nm", "nm3", "ps", "fs", "K", "degree", "angstrom", "bp", "MB", "svedberg", "kT/e", "kT/ns per atom",
          "g/cm3", "1/1000 atoms", "s", "ns/day"}
_B_DNA = "Relaxed B-DNA rises by 3.3 to 3.4 Å and turns by 34 to 36° a step"


def sections(folder: Path, stages: Stages, progress: Progress) -> dict[str, str]:
    """Title to content of every section below the pictures; empty where there is nothing to tell."""
    writers = {"Locus": _locus, "Scaffold": _scaffold, "Solute": _built, "DNA": _dna, "Clashes": _clashes,
               "Box and ions": _box, "Force field": _topology, "Minimisation and dynamics": _dynamics,
               "Analysis": _analysis,
               "Pipeline": _pipeline, "Files": _files, "Provenance": _provenance}
    found = {}
    for done, (title, writer) in enumerate(writers.items()):
        progress(title, done / len(writers))
        found[title] = writer(folder, stages)
    return found


def duration(seconds: float) -> str:
    """Minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def clock(started: str) -> str:
    """2026-01-31T12:34:56Z as 2026-01-31 12:34 UTC."""
    return f"{started[:10]} {started[11:16]} UTC"


def _summary(stages: Stages, name: str) -> Summary:
    return stages.get(name, {}).get("summary", {})


def _count(number: int, one: str, many: str = "") -> str:
    """A number with its noun, as HTML."""
    return f"{html.text(number)} {one if number == 1 else many or one + 's'}"


# --- tables of any summary --------------------------------------------------------------------------------------------


def _facts(summary: Summary, leave_out: Iterable[str] = ()) -> str:
    """Every plain value with its unit, judged where there is a criterion for it."""
    rows = []
    for key, value in summary.items():
        if (isinstance(value, (str, int, float)) or value is None) and key not in leave_out:
            name, unit = _name_and_unit(key)
            rows.append((key, name, [unit, value]))
    return compared(("quantity", "unit", "value"), rows, _judged,
                    "No unit: a count, a ratio or a word. No verdict: for information, neither good nor bad by itself.")


def _name_and_unit(key: str) -> tuple[str, str]:
    """The words for a key of a summary, and its unit where it has one, as print has them: Å and nm³."""
    words = label(key)
    name, _, unit = words.rpartition(", ")
    if name and unit in _UNITS:
        words, unit = name, unit
    else:
        unit = CRITERIA[key].unit if key in CRITERIA else ""
    return words.replace("angstrom", "Å"), {"angstrom": "Å", "nm3": "nm³", "g/cm3": "g/cm³"}.get(unit, unit)


def _judged(key: str, value: object) -> Check | None:
    if key not in CRITERIA or not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return next(iter(measured({key: value}, (key,))), None)


def _records(summary: Summary) -> str:
    """Every list of records in a summary as a folded table."""
    parts = []
    for key, rows in summary.items():
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows) and key != "shifts":
            headers = list(rows[0])
            parts.append(html.fold(f"{label(key).capitalize()} ({len(rows)})", html.table(
                [label(h) for h in headers], [[row.get(h) for h in headers] for row in rows],
                note="For information: no value is good or bad by itself.")))
    return "".join(parts)


# --- the locus and what was built -------------------------------------------------------------------------------------


def _locus(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "scaffold")
    if not summary:
        return ""
    shifts, unused = summary.get("shifts", []), summary.get("ignored_contacts", [])
    where = (f"{html.text(summary['chromosome'])}:{summary['start'] + 1:,}–{summary['end']:,}, "
             if summary.get("chromosome") and "end" in summary else "")
    said = (f"<p>{where}{_count(summary['base_pairs'], 'base pair')} with "
            f"{_count(summary['nucleosomes'], 'nucleosome')}. "
            + (f"{_count(len(shifts), 'dyad')} had to be moved or dropped" if shifts
               else "Every dyad stands where it was mapped")
            + (f", and {_count(len(unused), 'contact')} cannot be used" if unused else "") + ".</p>")
    if "warning" in summary:
        said += f"<p>Look at the input again: {html.text(summary['warning'])}</p>"
    moved = html.table(
        ("nucleosome", "from, bp", "to, bp", "shift, bp", "reason"),
        [(s["nucleosome"], s["from"], s["to"], None if s["to"] is None else round(s["to"] - s["from"], 1),
          s.get("reason", "")) for s in shifts],
        note="Good: short shifts, of a few bp, as far as the positions were mapped. A dash: the dyad was dropped.")
    return (said + html.fold(f"Dyads that were moved or dropped ({len(shifts)})", moved if shifts else "")
            + html.fold(f"Contacts that are not used ({len(unused)}), and why",
                        html.table(["reason"], [[r] for r in unused]) if unused else "")
            + html.fold("All that the fold has recorded", _facts(summary)))


def _scaffold(folder: Path, stages: Stages) -> str:
    path, summary = folder / "scaffold.h5", _summary(stages, "scaffold")
    if not path.is_file():
        return ""
    scaffold = Scaffold.read(path)
    series = {name: values for name, values in scaffold.energy.items() if values.any()}
    linkers = _linkers(scaffold)
    spacing = np.diff(scaffold.dyad)
    return (f"<p>{_at_rest(summary)}" + (f" Mean distance between dyads: {spacing.mean():.1f} bp." if len(spacing)
                                         else "") + "</p>" + _sampling(series, scaffold.observables)
            + html.fold(f"Linkers ({len(linkers)}): length, rise and twist", html.table(
                ("linker", "steps, bp", "end to end, Å", "share of straight B-DNA", "rise, Å/step", "twist, °/step"),
                linkers, note=f"{_B_DNA}; a linker that departs from both is strained.") if linkers else "")
            + html.fold("Accepted Monte Carlo moves", html.table(
                ("move", "accepted share"), list(scaffold.acceptance.items()),
                note="Good: between about 0.2 and 0.7, so that moves are neither refused nor too small.")
                if scaffold.acceptance else ""))


def _at_rest(summary: Summary) -> str:
    """Whether the fibre was at rest while it was sampled."""
    if "energy_at_rest" not in summary:
        return "The fold of the fibre."
    drift, noise = summary.get("energy_drift_kbt"), summary.get("energy_noise_kbt")
    rest = summary["energy_at_rest"] in ("yes", True)
    numbers = (f": its energy drifted by {html.text(drift)} kT, with fluctuations of {html.text(noise)} kT"
               if noise else "")
    return f"The fibre {'was' if rest else '<b>was not</b>'} at rest at the end of the fold{numbers}."


def _sampling(series: dict[str, np.ndarray], built: Mapping[str, object]) -> str:
    """Energies and lengths while the fibre was sampled; ``built``: those of the conformation that was built from it."""
    sweep = series.pop("sweep", None)
    lengths = {name: series.pop(name) for name in ("radius_of_gyration", "end_to_end") if name in series}
    series.pop("contacts_kept", None)  # a count, no energy
    if sweep is None:
        return ""
    if series:
        series["total"] = series.get("total", sum(series.values()))
    curves = {label(name): (sweep, values) for name, values in lengths.items()}
    levels = {f"{label(name)}, as built": (sweep[[0, -1]], np.repeat(float(built[name]), 2))
              for name, values in lengths.items()
              if name in built and not np.isclose(values[-1], float(built[name]), rtol=1e-3)}
    after = (" Level lines: the conformation that is built, to which the tables refer. It was pressed into a small box "
             "after it was sampled (scaffold.choose)." if levels else "")
    drawn = [figure(Curves(group, "Monte Carlo sweep", axis), caption, name)
             for group, axis, caption, name in (
                 ({label(name): (sweep, values) for name, values in series.items()}, "energy, kT",
                  "Energy of the coarse-grained model while it is sampled. Good: no trend in the second half.",
                  "fold energy"),
                 (curves | levels, "length, nm", "Size of the fibre while it is sampled: radius of gyration and "
                  f"distance between the ends.{after}", "fold size"))]
    return f'<div class="pair">{"".join(drawn)}</div>' if any(drawn) else ""


def _linkers(scaffold: Scaffold) -> list[tuple]:
    """Rows on steps of free DNA: from the last wrapped base pair, or the start, to the next wrapped one, or the end."""
    origin = scaffold.origin
    laid_out = {(entry["first_bp"], entry["last_bp"]): entry for entry in scaffold.linkers}
    held = [(int(first), int(last), f"nucleosome {k}")
            for k, (first, last) in enumerate(zip(scaffold.first_bp, scaffold.last_bp, strict=True), start=1)]
    bound = scaffold.proteins
    held += [] if bound is None else zip(bound.first_bp.tolist(), bound.last_bp.tolist(), bound.name, strict=True)
    held.sort()
    n, closed = len(origin), scaffold.circular and bool(held)
    ends = [0, *(last for _, last, _ in held)], [*(first for first, *_ in held), n + held[0][0] if closed else n - 1]
    rows = []
    for k, (start, end) in enumerate(zip(*ends, strict=True)):
        if end > start and not (closed and k == 0):  # which is part of the linker across the seam
            chord = float(np.linalg.norm(origin[end % n] - origin[start]))
            step = laid_out.get((start, end % n), {})
            where = "before the first" if k == 0 else f"after {held[k - 1][2]}"
            rows.append((where, end - start, chord, chord / (3.34 * (end - start)), step.get("rise"),
                         step.get("twist")))
    return rows


def _built(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "build")
    if not summary:
        return ""
    linkers = summary.get("linkers", [])
    offered = sum(bool(linker.get("offered_shift")) for linker in linkers)
    said = f"<p>{_count(summary['atoms'], 'atom')}" + (
        f" in {_count(summary['residues'], 'residue')} and {_count(summary['molecules'], 'molecule')}"
        if "molecules" in summary else "") + "."
    if linkers:
        said += (f" {html.text(offered)} of {_count(len(linkers), 'linker')} would fit better after a shift."
                 if offered else " The twist of every linker fits.")
    table = html.fold(f"Linkers ({len(linkers)}): what they cost", html.table(
        [label(key) for key in linkers[0]],
        [[html.Judged(linker[key], "look" if value else "good") if key == "offered_shift" else value
          for key, value in linker.items()] for linker in linkers],
        note="Stretch: as a share. Good: no shift is offered, which is so up to build.linker_phase_limit.")
        ) if linkers else ""
    return (said + "</p>" + table + _records({k: v for k, v in summary.items() if k != "linkers"})
            + html.fold("All that the builder has recorded", _facts(summary)))


def _dna(folder: Path, stages: Stages) -> str:
    return dna_section(folder, solute_file(folder, stages))


# --- clashes ----------------------------------------------------------------------------------------------------------


def _clashes(folder: Path, stages: Stages) -> str:
    path = folder / "clash_report.json"
    if not path.is_file():
        return ""
    data = json.loads(path.read_text(encoding="utf-8"))
    before, after = data["before"], data["after"] or data["before"]

    def measure(value: object) -> object:
        """A finding as one value: itself, the count of a list, or a range."""
        if isinstance(value, dict):
            return f"{value['min']}–{value['max']}" if "min" in value else value.get("count")
        return value

    names = [name for name in before if isinstance(measure(before[name]), (int, float, str))]
    left = after["pairs_below_threshold"]["count"]
    moves = [move["kind"] for move in data["moves"]]
    kinds = ", ".join(f"{moves.count(kind)} {kind}" for kind in sorted(set(moves)))
    said = (f'<p><b class="{"bad" if left else "good"}">{_count(left, "pair")} closer than '
            f"{html.text(data['threshold'])} Å {'is' if left == 1 else 'are'} left</b>"
            + (f" after {_count(len(moves), 'move')} ({html.text(kinds)})" if moves else "")
            + ". Pairs are of atoms that are neither bonded nor bonded to a common neighbour; the worst are shown in "
              "clash_report.html.</p>")
    rows = [(key, name, (unit, measure(before[key]), measure(after[key])))
            for key in names for name, unit in [_name_and_unit(key)]]
    table = compared(("measure", "unit", "before", "after"), rows, _judged,
                     "No unit: a count. No verdict: for information, neither good nor bad by itself.")
    contacts = [html.fold(f"Closest contacts {title}", html.table(
        ("atom", "atom", "distance, Å", "class"),
        [(c["atom_a"], c["atom_b"], c["distance"], c["class"]) for c in state["worst_contacts"][:12]],
        note=f"Bad: below {data['threshold']} Å. Good: 2.2 Å and more, with hydrogen 1.3 Å and more."))
        for title, state in (("before", before), ("after", after)) if state.get("worst_contacts")]
    return said + table + "".join(contacts)


# --- the box, its force field and what ran in it ----------------------------------------------------------------------


def _box(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "solvate")
    if not summary:
        return ""
    counts, edges = summary["counts"], summary["box"]
    charge = summary["net_charge"]
    state, words = ("bad", "has a net charge") if charge else ("good", "is neutral")
    volume = float(np.prod(edges)) / 1000
    said = (f'<p>The box of {_count(summary["atoms"], "atom")} <b class="{state}">{words}</b> '
            f"({html.text(charge)} e) and holds {_count(counts['water'], 'water molecule')}.</p>")
    rows = [("", "diagonal of the vectors of the box" if "shape" in summary else "box edges",
             ["Å", " × ".join(f"{edge:.2f}" for edge in edges)]),
            ("", "volume", ["nm³", volume]),
            ("", "bricks", ["", " × ".join(map(str, summary["grid"]))]), ("", "atoms", ["", summary["atoms"]]),
            *(("", name, ["", count]) for name, count in counts.items()),
            ("net_charge", "net charge", ["e", charge]),
            *(("", name, [unit, value]) for key, value in summary.items() for name, unit in [_name_and_unit(key)]
              if key not in ("box", "grid", "atoms", "counts", "net_charge") and isinstance(value, (str, int, float)))]
    return said + compared(("quantity", "unit", "value"), rows, _judged,
                           "No unit: a count; water and ions are counted by molecule. No verdict: for information.")


def _topology(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "topology")
    if not summary:
        return ""
    return (f"<p>{_count(summary['atoms'], 'atom')} in the force field {html.text(summary['force_field'])}.</p>"
            if "force_field" in summary else "") + _facts(summary) + _records(summary)


def _analysis(folder: Path, stages: Stages) -> str:
    return analysis_section(folder)


def _dynamics(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "run")
    if not summary:
        return ""
    from chromabuild.simulate.replicas import replica_folder
    from chromabuild.simulate.result import Run

    steps = f" in {_count(summary['steps'], 'step')}" if "steps" in summary else ""
    phases = f" Phases: {html.text(summary['phases'])}." if "phases" in summary else ""
    parts = [f"<p>{html.text(summary.get('simulated_ps'))} ps were simulated{steps} with "
             f"{html.text(summary['engine'])}.{phases}</p>"]
    if summary.get("exchanges"):
        trips = _count(summary["round_trips"], "time")
        parts.append(f"<p>Replicas came back to the lowest temperature from the highest {trips}.</p>"
                     + _records({"exchanges": summary["exchanges"]}))
    if "boost_mean" in summary:
        parts.append(f"<p>The boost adds {summary['boost_mean']:.2f} kcal/mol, with a standard deviation of "
                     f"{summary['boost_deviation']:.2f} kcal/mol. With their weights, the frames are worth "
                     f"{100 * summary['boost_effective_share']:.1f} % of as many without a boost.</p>")
    replicas = summary.get("replica_runs")
    if replicas:
        parts.append(_records({"replicas": replicas}))
        for one in replicas:
            run = Run.read(replica_folder(folder / "md", one["replica"]))
            parts += [f"<h3>Replica {one['replica']}, seed {one['seed']}</h3>",
                      dynamics_section(folder, run, summary | one, f"replica {one['replica']} ")]
    else:
        parts.append(dynamics_section(folder, Run.read(folder / "md"), summary))
    return "".join(parts) + html.fold("All that the run has recorded", _facts(summary, ("drift_kT_per_ns_per_atom",)))


# --- how it was made --------------------------------------------------------------------------------------------------


def _pipeline(folder: Path, stages: Stages) -> str:
    rows = [(stage["title"], stage["seconds"], stage["threads"], clock(stage["started"]), list(stage["outputs"]))
            for stage in stages.values()]
    longest = max(stages.values(), key=lambda stage: stage["seconds"])
    total = sum(stage["seconds"] for stage in stages.values())
    return (f"<p>{_count(len(rows), 'stage')} took {duration(total)}; {html.text(longest['title'])} took longest, "
            f"{duration(longest['seconds'])}.</p>"
            + html.fold("Every stage", html.table(("stage", "wall time, s", "threads", "started", "files"), rows)))


def _files(folder: Path, stages: Stages) -> str:
    rows: list[Sequence[object]] = []
    for stage in stages.values():
        for name in stage["outputs"]:
            path = folder / name
            rows.append((name, path.stat().st_size if path.is_file() else None, stage["title"]))
    shards = list((folder / "shards").glob("brick_*"))
    if shards:
        rows.append((f"shards/brick_* ({len(shards)} files)", sum(p.stat().st_size for p in shards),
                     "water, ions and shards"))
    total = sum(size or 0 for _, size, _ in rows)
    return (f"<p>{total / 1e6:,.1f} MB lie in <code>{html.text(str(folder))}</code>.</p>"
            + html.fold(f"Every file ({len(rows)})", html.table(
                ("file", "size, bytes", "made by"), rows,
                note="Bad: a dash for the size, the file is missing. chromabuild verify compares all checksums.")))


def _provenance(folder: Path, stages: Stages) -> str:
    newest = max(stages.values(), key=lambda stage: stage["started"])["provenance"]
    inputs = {(entry["file"], entry["blake3"]) for stage in stages.values()
              for role, entry in stage["provenance"]["inputs"].items() if role in ("fasta", "nucleosomes", "contacts")}
    settings: dict[str, dict] = {}
    for stage in stages.values():
        for name, values in stage["provenance"]["settings"].items():
            settings.setdefault(name, {}).update(values)
    lines = "\n".join(f"{section}.{key}: {value}" for section, values in settings.items()
                      for key, value in values.items())
    return (f"<p>The same inputs, settings, seed ({newest['seed']}) and versions give the same files.</p>"
            + html.fold("Versions", html.facts(newest["versions"].items()))
            + html.fold(f"Inputs ({len(inputs)}) and their checksums",
                        html.table(("input", "blake3"), sorted(inputs)) if inputs else "")
            + html.fold("All settings", f"<pre class=mono>{html.text(lines)}</pre>"))
