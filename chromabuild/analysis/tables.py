"""Results of analyses as tidy tables: one row an observation, units in the names of columns or in their own column.

Averages are over the equilibrated part of the frames, with block errors; series have a row a frame. ``counted_from``
writes into every table of averages from when its frames count.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.analysis.averages import averages, first_equilibrated
from chromabuild.analysis.backbone_states import TORSIONS, is_bii, is_canonical, is_south
from chromabuild.analysis.dna_analysis import DnaAnalysis
from chromabuild.analysis.duplex import PAIR_NAMES, STEP_NAMES
from chromabuild.analysis.fibre_analysis import FibreAnalysis
from chromabuild.analysis.helix_shape import GROOVES, bonds_kept, frayed, is_open
from chromabuild.analysis.nucleosome_analysis import NucleosomeAnalysis
from chromabuild.analysis.secondary_structure import HELIX, STRAND
from chromabuild.analysis.solvent import BOUND, DIRECT, SHELL, concentration, residence
from chromabuild.analysis.solvent import SITES as DNA_SITES
from chromabuild.analysis.solvent_analysis import SolventAnalysis
from chromabuild.analysis.solvent_maps import Settling, SolventMaps
from chromabuild.analysis.structure_analysis import KINDS as FAULTS
from chromabuild.analysis.structure_analysis import StructureAnalysis
from chromabuild.analysis.whole_nucleosomes import DYAD, SITES
from chromabuild.base.files import atomic_path

LENGTHS = ("angstrom",) * 3 + ("degree",) * 3
TURN = 10.3
"""Base pairs a turn of 1KX5's DNA, seen from the superhelix axis: from one minor groove that faces it to the next."""
ALL_SITES = "all"
"""Of a profile around whatever atom of DNA is nearest."""
AVERAGES = ("quantity", "unit", "mean", "block_error", "deviation")


@dataclass
class Table:
    """A table that is written as CSV."""

    header: tuple[str, ...]
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write CSV; numbers with six digits, nothing where there is none."""
        with atomic_path(path) as part, open(part, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.header)
            writer.writerows([_written(value) for value in row] for row in self.rows)


def counted_from(tables: Mapping[str, Table], moment: float) -> dict[str, Table]:
    """The tables, those without a row a frame with a column ``from_ps``: the time from which their frames count."""
    return {name: table if table.header[0] == "time_ps" else
            Table((*table.header, "from_ps"), [(*row, _moment(moment)) for row in table.rows])
            for name, table in tables.items()}


def _written(value: object) -> object:
    if isinstance(value, (float, np.floating)):
        return "" if not np.isfinite(value) else f"{float(value):.6g}"
    return int(value) if isinstance(value, np.integer) else value


def _add(table: Table, labels: Iterable[tuple[object, ...]], quantity: str, unit: str, values: np.ndarray, first: int,
         period: float | None = None) -> None:
    """A row for every element of series (f, n)."""
    found = averages(values, first, period)
    for label, *numbers in zip(labels, found.mean, found.error, found.deviation, strict=True):
        table.rows.append((*label, quantity, unit, *numbers))


def _series(time: np.ndarray, columns: Mapping[str, np.ndarray]) -> Table:
    return Table(("time_ps", *columns), list(zip(map(_moment, time), *columns.values(), strict=True)))


def _moment(time: float) -> str:
    """A time with more digits than other numbers: that of a frame far out differs little from the next one's."""
    return f"{time:.10g}"


def dna_tables(analysis: DnaAnalysis, time: np.ndarray) -> tuple[dict[str, Table], int]:
    """``dna_pairs``, ``dna_steps``, ``dna_nucleotides`` (averages along the sequence) and ``dna_series``; and the
    frame from which they count."""
    found, duplexes = analysis.results, analysis.nucleotides.duplexes
    opened, south = is_open(found.hydrogen_bond), is_south(found.pucker[..., 0])
    phosphate = np.isfinite(found.torsion[0, ..., 4]) & np.isfinite(found.torsion[0, ..., 5])
    bii, canonical = is_bii(found.torsion), is_canonical(found.torsion)
    starts = np.cumsum([0, *(len(pairs.first) for pairs in duplexes)])
    ends = [frayed(opened[:, a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    columns = {f"{name}_{unit}": found.pair[..., k].mean(axis=1)
               for k, (name, unit) in enumerate(zip(PAIR_NAMES, LENGTHS, strict=True))}
    columns |= {f"{name}_{unit}": found.step[..., k].mean(axis=1)
                for k, (name, unit) in enumerate(zip(STEP_NAMES, LENGTHS, strict=True))}
    columns |= {"open_pairs": opened.sum(axis=1), "frayed_pairs": sum(end.sum(axis=1) for end in ends),
                "bii_share": bii[:, phosphate].mean(axis=1), "south_share": south.mean(axis=(1, 2))}
    first = first_equilibrated(time, [columns[key] for key in ("slide_angstrom", "roll_degree", "twist_degree")])
    letter = analysis.nucleotides.letter
    pairs, steps = (Table(("duplex", what, "first", "second", "bases", *AVERAGES)) for what in ("pair", "step"))
    pair_labels, step_labels, nucleotide_labels = [], [], []
    name = analysis.nucleotides.name
    for d, run in enumerate(duplexes, 1):
        n = len(run.first)
        for k, (a, b) in enumerate(zip(run.first, run.second, strict=True), 1):
            pair_labels.append((d, k, name[a], name[b], letter[a] + letter[b]))
            if k <= run.steps:
                step_labels.append((d, k, name[a], name[run.first[k % n]], letter[a] + letter[run.first[k % n]]))
    for strand, rows in (("I", "first"), ("J", "second")):
        nucleotide_labels += [(d, strand, k, name[row], letter[row]) for d, run in enumerate(duplexes, 1)
                              for k, row in enumerate(getattr(run, rows), 1)]
    for k, (quantity, unit) in enumerate(zip(PAIR_NAMES, LENGTHS, strict=True)):
        _add(pairs, pair_labels, quantity, unit, found.pair[..., k], first)
    _add(pairs, pair_labels, "hydrogen bonds", "count", bonds_kept(found.hydrogen_bond), first)
    _add(pairs, pair_labels, "open", "share", opened, first)
    for k, (quantity, unit) in enumerate(zip(STEP_NAMES, LENGTHS, strict=True)):
        _add(steps, step_labels, quantity, unit, found.step[..., k], first)
    for k, groove in enumerate(GROOVES):
        _add(steps, step_labels, f"{groove.replace('_', ' ')} groove", "angstrom", found.groove[..., k], first)
    _add(steps, step_labels, "bend over a turn", "degree", found.bend, first)
    nucleotides = Table(("duplex", "strand", "pair", "nucleotide", "base", *AVERAGES))
    flat = len(nucleotide_labels)
    _add(nucleotides, nucleotide_labels, "pucker phase", "degree", found.pucker[..., 0].reshape(-1, flat), first, 360.0)
    _add(nucleotides, nucleotide_labels, "pucker amplitude", "degree", found.pucker[..., 1].reshape(-1, flat), first)
    for quantity, state, torsion in (("C2'-endo (south)", south, "delta"), ("BII", bii, "epsilon"),
                                     ("alpha/gamma canonical", canonical, "alpha")):
        known = np.isfinite(found.torsion[..., TORSIONS.index(torsion)])  # elsewhere there is no such state
        _add(nucleotides, nucleotide_labels, quantity, "share", np.where(known, state, np.nan).reshape(-1, flat), first)
    made = {"dna_pairs": pairs, "dna_steps": steps, "dna_nucleotides": nucleotides,
            "dna_series": _series(time, columns)}
    closed = [d for d, run in enumerate(duplexes, 1) if run.closed]
    if closed:
        made["dna_circles"] = Table(
            ("time_ps", "duplex", "linking_number_turns", "twist_turns", "writhe_turns", "knot_determinant"),
            [(_moment(moment), d, *found.circle[f, k]) for f, moment in enumerate(time) for k, d in enumerate(closed)])
    return made, first


def nucleosome_tables(analysis: NucleosomeAnalysis, time: np.ndarray) -> tuple[dict[str, Table], int]:
    """``nucleosome_series``, ``nucleosome_averages``, ``nucleosome_sites``, ``nucleosome_chains``,
    ``nucleosome_residues`` and ``nucleosome_tails``; and the frame from which they count."""
    found = analysis.results
    kinds = {
        "rmsd of the folds": ("angstrom", found.rmsd), "detached at the entry": ("bp", found.unwrapped[..., 0]),
        "detached at the exit": ("bp", found.unwrapped[..., 1]), "slid": ("bp", found.slid),
        "rotational phase": ("degree", found.turned), "gaping": ("degree", found.hinge[..., 1]),
        "twist of the wrapped DNA": ("degree", found.wrapped[..., 0]),
        "bend of the wrapped DNA over a turn": ("degree", found.wrapped[..., 1]),
        "turn about the dyad axis": ("degree", found.hinge[..., 0]),
        "turn about the superhelix axis": ("degree", found.hinge[..., 2]),
        "first dimer splits": ("angstrom", found.dimer[..., 0]),
        "second dimer splits": ("angstrom", found.dimer[..., 1]),
        "residues at the acidic patch": ("count", found.patch[..., 0]),
        "of these in H4 tails": ("count", found.patch[..., 1]),
        "phosphates held": ("count", found.phosphate.sum(axis=(2, 3)))}
    if any(one.linker_histone is not None for one in analysis.nucleosomes):
        kinds |= {f"detached of the {way} arm": ("bp", found.arm[..., k]) for k, way in enumerate(("entry", "exit"))}
        kinds |= {f"linker histone at {what}": ("count", found.linker_histone[..., k])
                  for k, what in enumerate(("the entry arm", "wrapped DNA", "the exit arm"))}
        kinds |= {f"linker histone {what}": (unit, found.pose[..., k]) for k, (what, unit) in enumerate(
            (("from the dyad axis", "angstrom"), ("moved", "angstrom"), ("turned", "degree")))}
    first = first_equilibrated(time, [found.rmsd.mean(axis=1), found.unwrapped.sum(axis=(1, 2))])
    names = [(k, nucleosome.octamer.name) for k, nucleosome in enumerate(analysis.nucleosomes, 1)]
    means, series = Table(("nucleosome", "segment", *AVERAGES)), Table(
        ("time_ps", "nucleosome", *(f"{quantity.replace(' ', '_')}_{unit}" for quantity, (unit, _) in kinds.items())))
    for quantity, (unit, values) in kinds.items():
        _add(means, names, quantity, unit, values, first, 360.0 if quantity == "rotational phase" else None)
    for f, moment in enumerate(time):
        series.rows += [(_moment(moment), k + 1, *(values[f, k] for _, values in kinds.values()))
                        for k in range(len(names))]
    rest = slice(first, None)
    sites = Table(("nucleosome", "site_bp", "superhelix_location", "detached_share", "phosphate_I_held_share",
                   "phosphate_J_held_share"))
    for k, _ in enumerate(names):
        held, off = found.phosphate[rest, k].mean(axis=0), found.detached[rest, k].mean(axis=0)
        sites.rows += [(k + 1, s - DYAD, (s - DYAD) / TURN, off[s], held[0, s], held[1, s]) for s in range(SITES)]
    residues = Table(("nucleosome", "chain", "histone", "residue", "rmsf_angstrom", "dna_contact_share",
                      "helix_share", "strand_share"))
    alpha = found.alpha[rest]
    moved = np.sqrt(((alpha - alpha.mean(axis=0)) ** 2).sum(axis=2).mean(axis=0))
    touching = found.contact[rest].mean(axis=0)
    known = found.structure[0] >= 0
    helix, strand = (np.where(known, (found.structure[rest] == kind).mean(axis=0), np.nan) for kind in (HELIX, STRAND))
    first_row, row, shaken = {}, 0, []
    for nucleosome, chain in analysis.chains:
        first_row[id(chain)] = row
        own = row + chain.core
        shaken.append(np.sqrt(((found.alpha[:, own] - alpha[:, own].mean(axis=0)) ** 2).sum(axis=2).mean(axis=1)))
        for number in chain.number:
            residues.rows.append((nucleosome + 1, chain.label, chain.name, int(number), moved[row], touching[row],
                                  helix[row], strand[row]))
            row += 1
    chains = Table(("nucleosome", "chain", "histone", *AVERAGES))
    labels = [(nucleosome + 1, chain.label, chain.name) for nucleosome, chain in analysis.chains]
    _add(chains, labels, "rmsd of the folds", "angstrom", found.chain_rmsd, first)
    _add(chains, labels, "fluctuation of the folds", "angstrom", np.stack(shaken, axis=1), first)
    tails = Table(("nucleosome", "chain", "tail", *AVERAGES))
    labels = [(nucleosome + 1, tail.chain.label, tail.name) for nucleosome, tail in analysis.tails]
    for k, quantity in enumerate(("end to end", "radius of gyration") if labels else ()):
        _add(tails, labels, quantity, "angstrom", found.tail[..., k], first)
    rows = [first_row[id(tail.chain)] + tail.residues for _, tail in analysis.tails]
    for quantity, kind in (("residues in helices", HELIX), ("residues in strands", STRAND)) if labels else ():
        counts = [np.where(known[row[0]], (found.structure[:, row] == kind).sum(axis=1), np.nan) for row in rows]
        _add(tails, labels, quantity, "count", np.stack(counts, axis=1), first)
    return {"nucleosome_series": series, "nucleosome_averages": means, "nucleosome_sites": sites,
            "nucleosome_chains": chains, "nucleosome_residues": residues, "nucleosome_tails": tails}, first


def fibre_tables(analysis: FibreAnalysis, time: np.ndarray) -> tuple[dict[str, Table], int]:
    """``fibre_series``, ``fibre_averages`` and, where there are any, ``fibre_linkers``; and the frame from which they
    count."""
    found = analysis.results
    m = len(analysis.whole.nucleosomes)
    columns = {"radius_of_gyration_angstrom": found.gyration, "sedimentation_svedberg": found.sedimentation,
               "stacked_pairs": found.stacked, "twist_turns": found.path[:, 0], "writhe_turns": found.path[:, 1],
               "knot_determinant": found.path[:, 2]}
    if m > 1:
        columns["next_distance_angstrom"] = found.next.mean(axis=1)
    if m > 2:
        columns["second_distance_angstrom"] = found.second.mean(axis=1)
    first = first_equilibrated(time, columns.values())
    means = Table(("of", *AVERAGES))
    for name, values in columns.items():
        quantity, _, unit = name.rpartition("_")
        unit = {"pairs": "count", "determinant": "1"}.get(unit, unit)
        _add(means, [("fibre",)], quantity.replace("_", " "), unit, values[:, None], first)
    _add(means, [(f"nucleosome {k}",) for k in range(1, m + 1)], "entry-exit angle", "degree", found.entry_exit, first)
    _add(means, [(f"nucleosomes {k} and {k + 1}",) for k in range(1, m)], "distance", "angstrom", found.next, first)
    linkers = [(f"linker after nucleosome {one.before + 1}",) for one in analysis.linkers]
    for k, quantity in enumerate(("bend from end to end", "twist") if linkers else ()):
        _add(means, linkers, quantity, "degree", found.linker[..., k], first)
    made = {"fibre_series": _series(time, columns), "fibre_averages": means}
    if linkers:
        made["fibre_linkers"] = Table(("time_ps", "linker", "bend_degree", "twist_degree"), [
            (_moment(moment), one.before + 1, *found.linker[f, k])
            for f, moment in enumerate(time) for k, one in enumerate(analysis.linkers)])
    return made, first


def solvent_tables(analysis: SolventAnalysis, time: np.ndarray) -> tuple[dict[str, Table], int]:
    """``solvent_series``, ``solvent_sites``, ``solvent_profile`` and ``solvent_residence``; and the frame from which
    they count."""
    found, kinds = analysis.results, analysis.solvent.kinds
    bound = {kind: found.bound[:, analysis.solvent.kind == kind] for kind in kinds}
    columns = {f"bound_{kind}_count": ions.sum(axis=1) for kind, ions in bound.items()}
    first = first_equilibrated(time, columns.values())
    sites = Table(("ion", "site", "within_angstrom", *AVERAGES))
    for k, kind in enumerate(kinds):
        labels = [(kind, site, reach) for site in DNA_SITES for reach in (BOUND, DIRECT)]
        _add(sites, labels, "ions", "count", found.at_site[:, k].reshape(len(time), -1), first)
    profile = Table(("ion", "site", "distance_angstrom", "ions_mean", "ions_block_error", "waters_mean", "molar"))
    for k, kind in enumerate(kinds):
        for j, site in enumerate((ALL_SITES, *DNA_SITES)):
            own = slice(None) if site == ALL_SITES else slice(j - 1, j)
            ions = averages(found.ions[:, k, own].sum(axis=1), first)
            water = found.water[first:, own].sum(axis=1).mean(axis=0)
            profile.rows += [(kind, site, (s + 0.5) * SHELL, *row) for s, row in enumerate(
                zip(ions.mean, ions.error, water, concentration(ions.mean, water), strict=True))]
    stay = Table(("ion", "residence_ps", "error_ps", "departures", "bound_share"))
    spacing = float(time[1] - time[0]) if len(time) > 1 else float("nan")
    for kind, ions in bound.items():
        one = residence(ions[first:], spacing)
        stay.rows.append((kind, one.time, one.error, one.departures, float(ions[first:].mean())))
    return {"solvent_series": _series(time, columns), "solvent_sites": sites, "solvent_profile": profile,
            "solvent_residence": stay}, first


def structure_tables(analysis: StructureAnalysis, time: np.ndarray) -> tuple[dict[str, Table], int]:
    """``structure_series`` and ``structure_findings``: what is wrong in how many frames. All frames count."""
    found = analysis.results
    columns = {f"{kind.replace(' ', '_')}_count": found.counts[:, k] for k, kind in enumerate(FAULTS)}
    seen: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for frame, findings in enumerate(found.findings):
        for fault in findings:
            seen.setdefault(fault, []).append(frame)
    table = Table(("fault", "atoms", "first_ps", "last_ps", "frames_share"))
    for (kind, atoms), frames in sorted(seen.items()):
        table.rows.append((FAULTS[kind], " ".join(map(analysis.identity, atoms)), _moment(time[frames[0]]),
                           _moment(time[frames[-1]]), len(frames) / len(time)))
    return {"structure_series": _series(time, columns), "structure_findings": table}, 0


def settling_tables(settling: Settling, time: np.ndarray) -> tuple[dict[str, Table], int]:
    """``map_series``; and the frame from which maps count."""
    columns = {"dna_moved_angstrom": settling.results.moved}
    columns |= {f"bound_{kind}_count": settling.results.bound[:, k]
                for k, kind in enumerate(settling.maps.solvent.kinds)}
    return {"map_series": _series(time, columns)}, first_equilibrated(time, columns.values())


def map_tables(analysis: SolventMaps) -> dict[str, Table]:
    """``map_peaks``: where ions stand most often, with the heavy atom of the solute that is nearest."""
    heavy = ~np.char.startswith(np.char.lstrip(analysis.solute_atoms.names.astype(str), "0123456789"), "H")
    atoms, tree = analysis.solute_atoms[heavy], cKDTree(analysis.structure[heavy])
    table = Table(("ion", "x_angstrom", "y_angstrom", "z_angstrom", "ions_mean", "nearest_atom", "distance_angstrom"))
    for kind, counts in zip(analysis.solvent.kinds, analysis.results.ions, strict=True):
        for place, value in analysis.grid.peaks(counts, analysis.n_frames):
            distance, k = tree.query(place)
            name = f"{atoms.segids[k]}:{atoms.resnames[k]}{atoms.resids[k]}:{atoms.names[k]}"
            table.rows.append((kind, *place, value, name, float(distance)))
    return {"map_peaks": table}
