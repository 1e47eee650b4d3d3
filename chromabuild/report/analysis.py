"""The report's section on the analysis of a trajectory, from the tables of `chromabuild analyse`."""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from chromabuild.analysis.record import FILE_NAME, FOLDER, is_whole, read_record
from chromabuild.report import html
from chromabuild.report.downloads import figure
from chromabuild.report.trace import Curves

Rows = list[dict[str, str]]
_MOST_CURVES = 4
"""Nucleosomes that are drawn one by one; of more, the mean and the farthest."""


def analysis_section(folder: Path) -> str:
    """HTML on the tables in an output folder; empty where there are none, a remark where they are not those that this
    version wrote."""
    tables = folder / FOLDER
    if not (tables / FILE_NAME).is_file():
        return ""
    measures = read_record(tables)
    whole = {measure: entry for measure, entry in measures.items() if is_whole(tables, entry)}
    parts, said = [], ""
    for measure, title, writer in (("dna", "DNA", _dna), ("nucleosome", "Nucleosomes", _nucleosomes),
                                   ("fibre", "Fibre", _fibre), ("solvent", "Ions", _solvent),
                                   ("structure", "Structure", _structure), ("map", "Maps of the solvent", _maps)):
        if measure in whole:
            lead = _lead(whole[measure])
            parts.append(f"<h3>{title}</h3>{lead if lead != said else ''}{writer(tables)}")
            said = lead
    run = folder / "md" / "phases.json"
    if parts and run.is_file() and run.stat().st_mtime > (tables / FILE_NAME).stat().st_mtime:
        parts.insert(0, '<p class="alert">The run has gone on since it was analysed: <code>chromabuild analyse</code> '
                        "measures it again.</p>")
    if not measures or len(whole) < len(measures):
        parts.insert(0, f'<p class="alert">Tables in <code>{FOLDER}/</code> are damaged or of another version and left '
                        "out: <code>chromabuild analyse</code> makes them again.</p>")
    return "".join(parts)


def _lead(entry: dict) -> str:
    return (f"<p><b>{html.text(entry['frames'])}</b> frames of {html.text(entry['source'])}; averages are over "
            f"{html.text(round(entry['from_ps'], 3))} to {html.text(round(entry['to_ps'], 3))} ps, from where the "
            "series are equilibrated (Chodera 2016), with block errors. What does not change is not drawn.</p>")


def _read(path: Path) -> Rows:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _numbers(rows: Rows, column: str) -> np.ndarray:
    return np.array([float(row[column] or "nan") for row in rows])


def _of(rows: Rows, quantity: str) -> Rows:
    return [row for row in rows if row["quantity"] == quantity]


def _average(row: dict[str, str]) -> tuple[float | None, ...]:
    return tuple(float(row[key]) if row[key] else None for key in ("mean", "block_error", "deviation"))


def _drawn(plots: Iterable[tuple[Curves, str, str]]) -> str:
    shown = [drawing for curves, caption, name in plots if any(np.ptp(y) != 0 for _, y in curves.series.values())
             and (drawing := figure(curves, caption, name))]
    return f'<div class="pair">{"".join(shown)}</div>' if shown else ""


def _along(rows: Rows, place: str, quantities: Iterable[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Means along the first duplex, by quantity."""
    first = [row for row in rows if row["duplex"] == "1"]
    return {quantity: (_numbers(found, place), _numbers(found, "mean"))
            for quantity in quantities if (found := _of(first, quantity))}


def _dna(tables: Path) -> str:
    pairs, steps, series = (_read(tables / f"dna_{name}.csv") for name in ("pairs", "steps", "series"))
    time = _numbers(series, "time_ps")

    def over_time(*columns: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {column.rpartition("_")[0]: (time, _numbers(series, column)) for column in columns}

    return _drawn((
        (Curves(_along(steps, "step", ("roll", "tilt")), "step", "roll and tilt, degree"),
         "Mean roll and tilt along the first duplex.", "analysis roll"),
        (Curves(_along(steps, "step", ("twist",)), "step", "twist, degree"), "Mean twist.", "analysis twist"),
        (Curves(_along(steps, "step", ("shift", "slide")), "step", "shift and slide, Å"), "Mean shift and slide.",
         "analysis slide"),
        (Curves(_along(steps, "step", ("minor refined groove", "major refined groove")), "step", "groove width, Å"),
         "Widths of the grooves (El Hassan and Calladine 1998), van der Waals radii not subtracted: 11.7 Å and 17.2 Å "
         "in canonical B-DNA.", "analysis grooves"),
        (Curves(_along(pairs, "pair", ("hydrogen bonds",)), "base pair", "hydrogen bonds"),
         "Mean number of Watson-Crick hydrogen bonds up to 3.5 Å.", "analysis hydrogen bonds"),
        (Curves(over_time("twist_degree"), "time, ps", "mean twist, degree"), "Twist over time, mean of all steps.",
         "analysis twist over time"),
        (Curves(over_time("roll_degree"), "time, ps", "mean roll, degree"), "Roll over time.",
         "analysis roll over time"),
        (Curves(over_time("bii_share", "south_share"), "time, ps", "share of nucleotides"),
         "Phosphates in BII, and sugars around C2'-endo.", "analysis states"),
    ))


def _nucleosomes(tables: Path) -> str:
    series, means, sites, residues, chains = (_read(tables / f"nucleosome_{name}.csv")
                                              for name in ("series", "averages", "sites", "residues", "chains"))
    time = np.unique(_numbers(series, "time_ps"))

    def curves(column: str, label: str) -> Curves:
        values = _numbers(series, column).reshape(len(time), -1)
        if values.shape[1] <= _MOST_CURVES:
            names = [f"nucleosome {k}" for k in range(1, values.shape[1] + 1)]
            return Curves({name: (time, values[:, k]) for k, name in enumerate(names)}, "time, ps", label)
        farthest = np.take_along_axis(values, np.abs(values).argmax(axis=1)[:, None], axis=1)[:, 0]
        return Curves({"mean": (time, values.mean(axis=1)), "farthest": (time, farthest)}, "time, ps", label)

    first_sites = [row for row in sites if row["nucleosome"] == "1"]
    place = _numbers(first_sites, "site_bp")
    held = {f"strand {strand}": (place, _numbers(first_sites, f"phosphate_{strand}_held_share")) for strand in "IJ"}
    fluctuation = {}
    for row in residues:
        if row["nucleosome"] == "1" and row["histone"] not in fluctuation:
            chain = [one for one in residues if one["nucleosome"] == "1" and one["chain"] == row["chain"]]
            fluctuation[row["histone"]] = (_numbers(chain, "residue"), _numbers(chain, "rmsf_angstrom"))
    rows = [(int(row["nucleosome"]), row["quantity"], row["unit"], *_average(row)) for row in means]
    by_chain = [(int(row["nucleosome"]), row["chain"], row["histone"], row["quantity"], row["unit"], *_average(row))
                for row in chains]
    table = html.table(("nucleosome", "quantity", "unit", "mean", "block error", "deviation"), rows,
                       note="For information. Zero of rotational phase, gaping and splitting is PDB 1KX5.")
    return _drawn((
        (curves("detached_at_the_entry_bp", "base pairs detached at the entry"), "Unwrapping at the entry.",
         "analysis unwrapping at the entry"),
        (curves("detached_at_the_exit_bp", "base pairs detached at the exit"), "Unwrapping at the exit.",
         "analysis unwrapping at the exit"),
        (curves("slid_bp", "DNA slid, base pairs"), "Sliding of DNA along the octamer, against the start.",
         "analysis sliding"),
        (curves("gaping_degree", "gaping, degree"), "Opening of the two gyres about the dyad.", "analysis gaping"),
        (curves("rmsd_of_the_folds_angstrom", "RMSD of the folds from 1KX5, Å"), "Folds of the histones.",
         "analysis folds"),
        (Curves(fluctuation, "residue", "fluctuation of Cα, Å"), "Fluctuation of the first nucleosome's histones about "
         "their mean, seen from the folds.", "analysis fluctuation"),
        (Curves(held, "base pairs from the dyad", "share of frames"), "Phosphates of the first nucleosome that a "
         "histone's nitrogen holds within 4 Å.", "analysis phosphates"),
    )) + html.fold(f"Averages of nucleosomes ({len(rows)})", table) + html.fold(
        f"Folds of histones ({len(by_chain)})",
        html.table(("nucleosome", "chain", "histone", "quantity", "unit", "mean", "block error", "deviation"), by_chain,
                   note="For information. RMSD is from PDB 1KX5, as the octamer lies."))


def _fibre(tables: Path) -> str:
    series, means = _read(tables / "fibre_series.csv"), _read(tables / "fibre_averages.csv")
    time = _numbers(series, "time_ps")
    labels = {"radius_of_gyration_angstrom": "radius of gyration, Å", "sedimentation_svedberg": "sedimentation, S",
              "next_distance_angstrom": "distance of neighbours, Å", "stacked_pairs": "stacked pairs"}
    plots = ((Curves({label: (time, _numbers(series, column))}, "time, ps", label),
              f"{label.split(',')[0].capitalize()} over time.", f"analysis {label.split(',')[0]}")
             for column, label in labels.items() if series and column in series[0])
    rows = [(row["of"], row["quantity"], row["unit"], *_average(row)) for row in means]
    return _drawn(plots) + html.fold(f"Averages of the fibre ({len(rows)})", html.table(
        ("of", "quantity", "unit", "mean", "block error", "deviation"), rows, note="For information."))


def _solvent(tables: Path) -> str:
    profile, series = _read(tables / "solvent_profile.csv"), _read(tables / "solvent_series.csv")
    stay = _read(tables / "solvent_residence.csv")
    kinds = list(dict.fromkeys(row["ion"] for row in profile))
    sites = list(dict.fromkeys(row["site"] for row in profile))
    molar = {(kind, site): (_numbers(found, "distance_angstrom"), _numbers(found, "molar")) for kind in kinds
             for site in sites if (found := [row for row in profile if row["ion"] == kind and row["site"] == site])}
    places = [Curves({site: molar[kind, site] for site in sites[1:]}, "distance from the nearest atom of DNA, Å",
                     f"concentration of {kind}, mol/L") for kind in kinds]
    bound = {kind: (_numbers(series, "time_ps"), _numbers(series, f"bound_{kind}_count")) for kind in kinds}
    times = [(row["ion"], *(float(row[key]) if row[key] else None for key in ("residence_ps", "error_ps")),
              int(row["departures"]), float(row["bound_share"])) for row in stay]
    return _drawn((
        (Curves({kind: molar[kind, sites[0]] for kind in kinds}, "distance from the nearest atom of DNA, Å",
                "concentration, mol/L"),
         "Ions around DNA: 55.35 mol/L times the ratio of ions to waters in each shell.", "analysis ions around DNA"),
        *((curves, f"{kind} by the atom of DNA that is nearest.", f"analysis {kind} by groove")
          for kind, curves in zip(kinds, places, strict=True)),
        (Curves(bound, "time, ps", "ions within 6 Å"), "Ions within 6 Å of DNA.", "analysis bound ions"),
    )) + html.table(("ion", "residence, ps", "error", "departures", "share bound"), times,
                    note="For information. Residence within 6 Å: time bound divided by departures seen.")


def _structure(tables: Path) -> str:
    found = [(row["fault"], row["atoms"], float(row["first_ps"]), float(row["last_ps"]), float(row["frames_share"]))
             for row in _read(tables / "structure_findings.csv")]
    severe = [row for row in found if row[0] != "twisted peptide"]
    text = (f'<p class="alert">{len(severe)} faults that no force field mends, such as {html.text(severe[0][0])}.</p>'
            if severe else "<p>No pierced ring, no threaded strand, no mirrored centre and no cis peptide in any frame."
                           "</p>")
    if not found:
        return text
    return text + html.fold(f"Faults of the structure ({len(found)})", html.table(
        ("fault", "atoms", "first, ps", "last, ps", "share of frames"), found,
        note="Good is none. Twisted peptides (omega 30 to 150 degrees) may come and go."))


def _maps(tables: Path) -> str:
    peaks = [(row["ion"], row["nearest_atom"], float(row["distance_angstrom"]), float(row["ions_mean"]))
             for row in _read(tables / "map_peaks.csv")]
    files = ", ".join(f"<code>{html.text(path.name)}</code>" for path in sorted(tables.glob("map_*.mrc")))
    held = html.table(("ion", "nearest atom", "distance, Å", "ions within 2 Å"), sorted(peaks, key=lambda row: -row[3]),
                      note="For information. Places that most ions were near, on average over the frames.")
    return f"<p>{files} open beside <code>map_structure.pdb</code> in ChimeraX, VMD and PyMOL.</p>{held * bool(peaks)}"
