"""report.html: what was built, how well, how long it took, and where the files are; whatever stages have been run."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np

from chromabuild import __version__
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.labels import label
from chromabuild.base.progress import Progress, silent
from chromabuild.base.record import StageRecord
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.molecule.solute import Solute
from chromabuild.report import html, pictures
from chromabuild.report.dna import dna_section
from chromabuild.report.dynamics import dynamics_section
from chromabuild.report.plots import line_plot

if TYPE_CHECKING:
    pass

Stages = Mapping[str, StageRecord]
"""Name to record of every stage that was run."""
WATER_LIMIT = 3_000_000  # waters read for the picture of the box; more are thinned by whole bricks


def write_report(config: Settings, stages: Stages, threads: int = 1, progress: Progress = silent) -> Summary:
    """Write ``report.html`` into the output folder and give the names of its sections.

    ``stages`` is the record of what was run, by stage; others are left out. The page is the same for any number of
    ``threads``. Raises BadInputError when nothing has been run.
    """
    folder = Path(config.output)
    if not any(name != "report" for name in stages):
        raise BadInputError(f"{folder} holds no results to report: run `chromabuild all`")
    with ThreadPoolExecutor(threads) as pool:
        # Matplotlib's plots are not for several threads: all the sections that have any are one task.
        drawings = [pool.submit(draw, folder, stages) for draw in (_solute_figure, _box_figure, _scaffold_figure)]
        text = pool.submit(_sections, folder, stages, progress)
        try:
            found = {"Result": "".join(drawing.result() for drawing in drawings), **text.result()}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    parts = {title: html.section(title, content) for title, content in found.items() if content}
    name = config.locus.name
    body = (f"<h1>{html.text(name)}</h1><p class=lead>{_lead(stages)}</p>{_tiles(stages)}{''.join(parts.values())}"
            f"<footer>Written by chromabuild {html.text(__version__)}. "
            "This page is one file and loads nothing.</footer>")
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    with atomic_path(folder / "report.html") as part:
        part.write_text(html.page(f"{name}: chromabuild report", body, style), encoding="utf-8")
    return {"sections": list(parts)}


def _summary(stages: Stages, name: str) -> Summary:
    return stages.get(name, {}).get("summary", {})


def _lead(stages: Stages) -> str:
    scaffold = _summary(stages, "scaffold")
    where = scaffold.get("chromosome")
    place = f"{where}:{scaffold['start'] + 1:,}–{scaffold['end']:,}, " if where and "end" in scaffold else ""
    size = (f"{html.text(scaffold['base_pairs'])} base pairs, {html.text(scaffold['nucleosomes'])} nucleosomes. "
            if scaffold else "")
    seconds = sum(stage["seconds"] for stage in stages.values())
    last = max(stage["started"] for stage in stages.values())
    return f"{html.text(place)}{size}Built in {_duration(seconds)}, {html.text(_clock(last))}."


def _clock(started: str) -> str:
    """2026-01-31T12:34:56Z as 2026-01-31 12:34 UTC."""
    return f"{started[:10]} {started[11:16]} UTC"


def _tiles(stages: Stages) -> str:
    box, run, clash = (_summary(stages, name) for name in ("solvate", "run", "clash"))
    values = [("atoms in all", box.get("atoms")), ("solute atoms", _summary(stages, "build").get("atoms")),
              ("box, nm", "×".join(f"{edge / 10:.0f}" for edge in box["box"]) if "box" in box else None),
              (f"pairs < {clash.get('threshold')} Å left", clash.get("pairs_after")),
              ("simulated, ps", run.get("simulated_ps")), ("engine, ns/day", run.get("ns_per_day"))]
    return html.tiles((name, value) for name, value in values if value is not None)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


# --- pictures ---------------------------------------------------------------------------------------------------------


def _solute_file(folder: Path, stages: Stages) -> Path | None:
    """The newest solute that is there: what was put into water, or else the corrected or the built one."""
    taken = stages.get("solvate", {}).get("provenance", {}).get("inputs", {}).get("solute", {}).get("file")
    files = (folder / name for name in (taken, "solute_clean.h5", "solute.h5") if name)
    return next((file for file in files if file.is_file()), None)


def _solute(folder: Path, stages: Stages) -> Solute | None:
    file = _solute_file(folder, stages)
    return Solute.read(file) if file else None


def _solute_figure(folder: Path, stages: Stages) -> str:
    solute = _solute(folder, stages)
    if solute is None:
        return ""
    return html.picture(pictures.solute_picture(solute.position, *pictures.atom_style(solute)),
                        f"The solute: every atom of DNA and histones, {solute.n_atoms:,} in all.",
                        list(pictures.molecule_colours(solute).items()))


def _box_figure(folder: Path, stages: Stages) -> str:
    solute = _solute(folder, stages)
    if solute is None or "solvate" not in stages:
        return ""
    box, position, *solvent = _box_atoms(folder / "shards", solute.n_atoms)
    return html.picture(pictures.box_picture(position, *pictures.atom_style(solute), box, *solvent),
                        "The periodic box, cut open: water and ions in front are left out.",
                        [("cations", pictures.CATION), ("Cl-", pictures.CHLORIDE), ("water", pictures.WATER)])


def _scaffold_figure(folder: Path, stages: Stages) -> str:
    if not (folder / "scaffold.h5").is_file():
        return ""
    with h5py.File(folder / "scaffold.h5", "r") as file:
        arrays = [file[name][...] for name in ("bp/origin", "bp/frame", "bp/nucleosome", "nucleosome/origin",
                                               "nucleosome/frame")]
    return html.picture(pictures.scaffold_picture(*arrays),
                        "The scaffold: DNA by nucleosome from blue (start) to red (end), linkers grey, histone cores "
                        "as discs.")


def _box_atoms(folder: Path, solute_atoms: int) -> tuple[np.ndarray, ...]:
    """Box (3,), then positions (k, 3) in it of the solute, of water oxygens, of cations and of chloride."""
    from chromabuild.shards.brick_file import read_brick

    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    counts = manifest["counts"]
    every = max(1, round(counts["water"] / WATER_LIMIT))
    first_ion = solute_atoms + 3 * counts["water"]
    first_chloride = manifest["atoms"] - counts["chloride"]
    solute = np.empty((solute_atoms, 3))
    water, cations, chloride = [], [], []
    for k, shard in enumerate(manifest["shards"]):
        brick = read_brick(folder / f"{shard['name']}.cbb")
        ids, position = brick.global_id, brick.position / 1000
        solute[ids[ids < solute_atoms]] = position[ids < solute_atoms]
        if k % every == 0:
            is_water = (ids >= solute_atoms) & (ids < first_ion)
            water.append(position[is_water & ((ids - solute_atoms) % 3 == 0)])
        cations.append(position[(ids >= first_ion) & (ids < first_chloride)])
        chloride.append(position[ids >= first_chloride])
    return (np.array(manifest["box"]), solute, *(np.concatenate(p) for p in (water, cations, chloride)))


# --- tables and plots -------------------------------------------------------------------------------------------------


def _sections(folder: Path, stages: Stages, progress: Progress) -> dict[str, str]:
    """Title to content of every section below the pictures; empty where there is nothing to tell."""
    writers = {"Pipeline": _pipeline, "Locus": _locus, "Scaffold": _scaffold, "Solute": _built, "DNA": _dna,
               "Clashes": _clashes, "Box and ions": _box, "Force field": _topology,
               "Minimisation and dynamics": _dynamics, "Files": _files, "Provenance": _provenance}
    found = {}
    for done, (title, writer) in enumerate(writers.items()):
        progress(title, done / len(writers))
        found[title] = writer(folder, stages)
    return found


def _pipeline(folder: Path, stages: Stages) -> str:
    rows = [(stage["title"], stage["seconds"], stage["threads"], _clock(stage["started"]), list(stage["outputs"]))
            for stage in stages.values()]
    return html.table(("stage", "seconds", "threads", "started", "files"), rows)


def _locus(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "scaffold")
    if not summary:
        return ""
    shifts = summary.get("shifts", [])
    moved = html.table(("nucleosome", "from", "to", "shift, bp", "reason"),
                       [(s["nucleosome"], s["from"], s["to"],
                         None if s["to"] is None else round(s["to"] - s["from"], 1), s.get("reason", ""))
                        for s in shifts]) if shifts else "<p>Every dyad stands where it was mapped.</p>"
    unused = summary.get("ignored_contacts", [])
    left_out = "<h3>Contacts that are not used</h3>" + html.table(["reason"], [[r] for r in unused]) if unused else ""
    return _plain_facts(summary) + "<h3>Dyads that were moved or dropped</h3>" + moved + left_out


def _plain_facts(summary: Summary) -> str:
    return html.facts((label(key), value) for key, value in summary.items()
                      if isinstance(value, (str, int, float)) or value is None)


def _nested_tables(summary: Summary) -> str:
    """Every list of records in a summary as a table of its own."""
    parts = []
    for key, rows in summary.items():
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows) and key != "shifts":
            headers = list(rows[0])
            parts.append(f"<h3>{html.text(label(key).capitalize())}</h3>")
            parts.append(html.table([label(h) for h in headers],
                                    [[row.get(h) for h in headers] for row in rows]))
    return "".join(parts)


def _scaffold(folder: Path, stages: Stages) -> str:
    path = folder / "scaffold.h5"
    if not path.is_file():
        return ""
    series, acceptance = {}, []
    with h5py.File(path, "r") as file:
        for name, values in file.get("energy", {}).items():
            if values[...].any():
                series[name] = values[...]
        for name, value in file.get("acceptance", {}).items():
            acceptance.append((name, float(value[()])))
        dyads, first, last = (file[f"nucleosome/{k}"][...] for k in ("dyad_index", "first_bp", "last_bp"))
        origin = file["bp/origin"][...]
        laid_out = {(e["first_bp"], e["last_bp"]): e for e in json.loads(file.attrs.get("linkers", "[]"))}
    parts = []
    sweep = series.pop("sweep", None)
    lengths = {name: series.pop(name) for name in ("radius_of_gyration", "end_to_end") if name in series}
    if series:
        series["total"] = sum(series.values())
    plots = [html.plot(line_plot({label(name): (sweep, values) for name, values in group.items()},
                                 "Monte Carlo sweep", axis, f"scaffold {axis}"), caption)
             for group, axis, caption in (
                 (series, "energy, kT", "Energy of the coarse-grained model while it is sampled."),
                 (lengths, "length, nm", "Size of the fibre while it is sampled.")) if group and sweep is not None]
    parts.append(f'<div class="pair">{"".join(plots)}</div>' if plots else "")
    if acceptance:
        parts.append("<h3>Acceptance</h3>" + html.table(("move", "accepted share"), acceptance))
    # From the last wrapped base pair (or the start) to the next wrapped one (or the end): steps of free DNA.
    ends = [0, *map(int, last)], [*map(int, first), len(origin) - 1]
    rows = []
    for k, (start, end) in enumerate(zip(*ends, strict=True)):
        if end > start:
            chord = float(np.linalg.norm(origin[end] - origin[start]))
            step = laid_out.get((start, end), {})
            where = "before the first" if k == 0 else f"after nucleosome {k}"
            straight = chord / (3.34 * (end - start))
            rows.append((where, end - start, chord, straight, step.get("rise"), step.get("twist")))
    parts.append("<h3>Linkers</h3>" + html.table(
        ("linker", "base-pair steps", "end to end, Å", "of straight B-DNA", "rise, Å", "twist, °"), rows))
    spacing = np.diff(dyads)
    if len(spacing):
        parts.append(f"<p>Mean distance between dyads: {spacing.mean():.1f} bp.</p>")
    return "".join(parts)


def _built(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "build")
    return _plain_facts(summary) + _nested_tables(summary) if summary else ""


def _dna(folder: Path, stages: Stages) -> str:
    return dna_section(folder, _solute_file(folder, stages))


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
    parts = [f"<p>Mode {html.text(data['mode'])}. Pairs are of atoms closer than {html.text(data['threshold'])} Å that "
             "are neither bonded nor bonded to a common neighbour. "
             f'<b class="{"bad" if left else "good"}">Left: {left}.</b></p>',
             html.table(("measure", "before", "after"),
                        [(label(name), measure(before[name]), measure(after[name])) for name in names])]
    if data["moves"]:
        kinds = sorted({move["kind"] for move in data["moves"]})
        parts.append("<p>Moves: " + html.text(", ".join(
            f"{sum(move['kind'] == kind for move in data['moves'])} {kind}" for kind in kinds)) + ".</p>")
    for title, state in (("before", before), ("after", after)):
        contacts = state.get("worst_contacts", [])[:12]
        if contacts:
            parts.append(f"<h3>Closest contacts {title}</h3>" + html.table(
                ("atom", "atom", "Å", "class"),
                [(c["atom_a"], c["atom_b"], c["distance"], c["class"]) for c in contacts]))
    return "".join(parts)


def _box(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "solvate")
    if not summary:
        return ""
    rows = [("box, Å", " × ".join(f"{edge:.2f}" for edge in summary["box"])),
            ("bricks", " × ".join(map(str, summary["grid"]))), ("atoms", summary["atoms"]),
            *((name, count) for name, count in summary["counts"].items()), ("net charge, e", summary["net_charge"]),
            *((label(key), value) for key, value in summary.items()
              if key not in ("box", "grid", "atoms", "counts", "net_charge") and isinstance(value, (str, int, float)))]
    return html.facts(rows)


def _topology(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "topology")
    return _plain_facts(summary) + _nested_tables(summary) if summary else ""


def _dynamics(folder: Path, stages: Stages) -> str:
    summary = _summary(stages, "run")
    if not summary:
        return ""
    from chromabuild.simulate.replicas import replica_folder
    from chromabuild.simulate.result import Run

    parts = [_plain_facts(summary)]
    replicas = summary.get("replica_runs")
    if not replicas:
        return "".join([*parts, dynamics_section(folder, Run.read(folder / "md"), summary)])
    parts.append(_nested_tables(summary))
    for one in replicas:
        run = Run.read(replica_folder(folder / "md", one["replica"]))
        parts += [f"<h3>Replica {one['replica']}, seed {one['seed']}</h3>",
                  dynamics_section(folder, run, summary | one)]
    return "".join(parts)


def _files(folder: Path, stages: Stages) -> str:
    rows = []
    for stage in stages.values():
        for name in stage["outputs"]:
            path = folder / name
            rows.append((name, path.stat().st_size if path.is_file() else None, stage["title"]))
    shards = list((folder / "shards").glob("brick_*"))
    if shards:
        rows.append((f"shards/brick_* ({len(shards)} files)", sum(p.stat().st_size for p in shards),
                     "water, ions and shards"))
    return f"<p>In <code>{html.text(str(folder))}</code>:</p>" + html.table(("file", "bytes", "made by"), rows)


def _provenance(folder: Path, stages: Stages) -> str:
    newest = max(stages.values(), key=lambda stage: stage["started"])["provenance"]
    inputs = {(entry["file"], entry["blake3"]) for stage in stages.values()
              for role, entry in stage["provenance"]["inputs"].items() if role in ("fasta", "nucleosomes", "contacts")}
    settings = {}
    for stage in stages.values():
        for name, values in stage["provenance"]["settings"].items():
            settings.setdefault(name, {}).update(values)
    lines = "\n".join(f"{section}.{key}: {value}" for section, values in settings.items()
                      for key, value in values.items())
    return (html.facts([("seed", newest["seed"]), *newest["versions"].items()])
            + html.table(("input", "blake3"), sorted(inputs))
            + "<details><summary>All settings</summary>"
              f"<pre class=mono>{html.text(lines)}</pre></details>")
