"""The clash report: what was found before and after, what was moved, what could not be solved, which promises held."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import gemmi
import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import PARTS, POLAR_HYDROGEN, Atoms
from chromabuild.sterics.audit import RING_SEARCH, audit
from chromabuild.sterics.cell_list import CellList
from chromabuild.sterics.chains import Piercing
from chromabuild.sterics.detect import OVERLAP, close_pairs, overlaps_among, van_der_waals_sum

FORMAT = "chromabuild-clash-report"
VERSION = 1
LIST_LIMIT = 1000  # entries of a list in the report; the count beside it is always of all
WORST = 50
NEIGHBOURHOOD = 8.0  # angstrom around a contact, for pictures
VIEW_STEP, HIDING_WIDTH = 10.0, 1.3  # degree between views tried; angstrom beside a line of sight that an atom hides
FAMILY = {"DNA backbone": "DNA", "sugar": "DNA", "base": "DNA", "protein backbone": "protein", "side chain": "protein"}
HISTOGRAM_EDGES = np.round(np.arange(0.0, 2.51, 0.1), 2)


@dataclass
class ClashReport:
    """The report as plain data (docs/reference/file-formats.md), and what only the page for people shows."""

    data: dict
    neighbourhoods: list[dict] = field(default_factory=list)
    """Atoms around each of the worst contacts; see ``neighbourhoods_of``."""
    notes: dict = field(default_factory=dict)
    """``seconds`` taken: not part of the data, which are the same in every run."""

    @property
    def fatal(self) -> int:
        """Pairs below the threshold, pierced rings and backbones between two strands that stand at the end."""
        last = self.data.get("after") or self.data["before"]
        return sum(last[key]["count"] for key in ("pairs_below_threshold", "ring_piercings", "threaded_strands"))

    def bonds_left(self) -> list[dict]:
        """Bonds that a correction left in rings or between two strands: where, which, why."""
        after = self.data.get("after") or {}
        return [{"place": item[where], **{key: item[key] for key in ("bond_a", "bond_b", "reason")}}
                for key, where in (("ring_piercings", "ring"), ("threaded_strands", "step"))
                for item in after.get(key, {"items": []})["items"]]

    def to_json(self) -> str:
        """JSON text, keys in order of writing."""
        return json.dumps(self.data, indent=1) + "\n"

    def to_tsv(self) -> str:
        """One row per finding: when, kind, the atoms, value."""
        rows = ["stage\tkind\tatom_a\tatom_b\tvalue\tclass"]
        for stage in ("before", "after"):
            found = self.data.get(stage)
            if not found:
                continue
            for p in found["pairs_below_threshold"]["items"]:
                rows.append(f"{stage}\tpair\t{p['atom_a']}\t{p['atom_b']}\t{p['distance']}\t{p['class']}")
            for p in found["worst_contacts"]:
                rows.append(f"{stage}\tcontact\t{p['atom_a']}\t{p['atom_b']}\t{p['distance']}\t{p['class']}")
            for p in found["ring_piercings"]["items"]:
                rows.append(f"{stage}\tring piercing\t{p['ring']}\t{p['bond_a']}-{p['bond_b']}\t\t")
            for p in found["threaded_strands"]["items"]:
                rows.append(f"{stage}\tthreaded strands\t{p['step']}\t{p['bond_a']}-{p['bond_b']}\t\t")
            for m in found["merged_molecules"]["items"]:
                rows.append(f"{stage}\tmerged molecules\t{m['atom_a']}\t{m['atom_b']}\t{m['pairs']}\t")
            for key, kind in (("chirality_errors", "chirality"), ("cis_peptides", "cis peptide"),
                              ("twisted_peptides", "twisted peptide")):
                rows += [f"{stage}\t{kind}\t{atom}\t\t\t" for atom in found[key]["items"]]
            for key, kind in (("bond_outliers", "bond outlier"), ("angle_outliers", "angle outlier")):
                rows += [f"{stage}\t{kind}\t{item['atoms']}\t\t{item['value']}\tz={item['z']}"
                         for item in found[key]["items"]]
        rows += [f"after\tunresolved bond\t{b['place']}\t{b['bond_a']}-{b['bond_b']}\t\t{b['reason']}"
                 for b in self.bonds_left()]
        for item in self.data["unresolved"]:
            rows.append(f"after\tunresolved\t{item['atom_a']}\t{item['atom_b']}\t{item['distance']}\t{item['reason']}")
        return "\n".join(rows) + "\n"

    def to_text(self) -> str:
        """One page for people."""
        data, before = self.data, self.data["before"]
        after = data.get("after") or before
        corrected = data.get("after") is not None
        lines = [f"Clash report: {before['atoms']} atoms, threshold {data['threshold']} A"
                 + (f", correction mode {data['mode']}, seed {data['seed']}" if corrected else ", check only")]
        if data.get("left_out"):
            lines.append(f"Left out of it: {data['left_out']}")
        lines.append("")
        rows = [(f"pairs below {data['threshold']} A", lambda s: s["pairs_below_threshold"]["count"]),
                ("pairs below 2.2 A (1.3 A with hydrogen)", lambda s: s["severe_pairs"]["count"]),
                ("overlaps >= 0.4 A", lambda s: s["overlaps"]), ("overlaps > 0.9 A", lambda s: s["bad_overlaps"]),
                ("clashscore (per 1,000 atoms)", lambda s: s["clashscore"]),
                ("pierced rings", lambda s: s["ring_piercings"]["count"]),
                ("molecules within each other", lambda s: s["merged_molecules"]["count"]),
                ("backbones between two strands", lambda s: s["threaded_strands"]["count"]),
                ("turns of DNA strands", lambda s: round(sum(d["turns"] for d in s["duplexes"]), 1)),
                ("chirality errors", lambda s: s["chirality_errors"]["count"]),
                ("cis peptides (not proline)", lambda s: s["cis_peptides"]["count"]),
                ("twisted peptides", lambda s: s["twisted_peptides"]["count"]),
                ("DNA backbone bonds beyond 4 sigma", lambda s: s["bond_outliers"]["count"]),
                ("DNA backbone angles beyond 4 sigma", lambda s: s["angle_outliers"]["count"]),
                ("O3'-P range, A", lambda s: f"{s['o3_p']['min']}-{s['o3_p']['max']}" if s["o3_p"]["count"] else "-")]
        header = f"{'':44s}{'before':>14s}" + (f"{'after':>14s}" if corrected else "")
        lines.append(header)
        for title, value in rows:
            lines.append(f"{title:44s}{value(before)!s:>14s}" + (f"{value(after)!s:>14s}" if corrected else ""))
        if data["moves"]:
            kinds = sorted({move["kind"] for move in data["moves"]})
            lines += ["", "Moves: " + ", ".join(
                f"{sum(move['kind'] == kind for move in data['moves'])} {kind}" for kind in kinds)]
        if corrected:
            broken = [name for name, item in data["invariants"].items() if not item["holds"]]
            lines.append("Invariants: " + ("all hold" if not broken else "BROKEN: " + ", ".join(broken)))
            lines += [line for line in (solved_line(data), risen_line(data)) if line]
        cores = data.get("overlapping_cores", {"count": 0, "items": []})
        if cores["count"]:
            lines += ["", f"Overlapping cores or DNA paths ({cores['count']}), which torsions cannot part; "
                      f"{cores['items'][0]['remedy']}:"]
            lines += [f"  {c['distance']:.3f} A  {c['atom_a']} - {c['atom_b']}: {c['pairs']} pairs left, {c['fatal']} "
                      f"below {data['threshold']} A" for c in cores["items"][:25]]
        left = self.bonds_left()
        if left:
            lines += ["", f"Bonds left in rings or between strands ({len(left)}):"]
            lines += [f"  {b['bond_a']} - {b['bond_b']} through {b['place']}: {b['reason']}" for b in left[:25]]
        if data["unresolved"]:
            lines += ["", f"Not solved ({len(data['unresolved'])}, worst first):"]
            lines += [f"  {u['distance']:.3f} A  {u['atom_a']} - {u['atom_b']}: {u['reason']}"
                      for u in data["unresolved"][:25]]
        elif after["worst_contacts"]:
            lines += ["", "Closest contacts:"]
            lines += [f"  {p['distance']:.3f} A  {p['atom_a']} - {p['atom_b']}  ({p['class']})"
                      for p in after["worst_contacts"][:15]]
        return "\n".join(lines) + "\n"

    def write(self, stem: str | Path) -> list[Path]:
        """Write ``stem.json``, ``stem.tsv`` and ``stem.txt`` by atomic rename; returns their paths."""
        paths = []
        for suffix, text in ((".json", self.to_json()), (".tsv", self.to_tsv()), (".txt", self.to_text())):
            path = Path(stem).with_name(Path(stem).name + suffix)
            with atomic_path(path) as part:
                part.write_text(text, encoding="utf-8")
            paths.append(path)
        return paths

    @classmethod
    def read(cls, path: str | Path) -> "ClashReport":
        """Read the JSON form. Raises BadInputError when it is not a clash report."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInputError(f"cannot read {path} as a clash report ({error}): run chromabuild clash") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise BadInputError(f"{path} is not a clash report of version {VERSION}: run chromabuild clash again")
        return cls(data)


MEASURES_OF_CONTACTS = {
    "heavy_pairs_below_2": "heavy-atom pairs below 2 A", "severe_pairs": "pairs below 2.2 A (1.3 A with hydrogen)",
    "overlaps": "overlaps >= 0.4 A", "bad_overlaps": "overlaps > 0.9 A", "clashscore": "clashscore"}
"""Measures that a correction does not aim at, and may make worse, and what they are called."""


def risen_line(data: dict) -> str:
    """What is worse after the correction than before, and why that may be; empty where nothing is."""
    if data.get("after") is None:
        return ""

    def value(state: str, key: str) -> float:
        found = data[state][key]
        return found["count"] if isinstance(found, dict) else found

    risen = [f"{name} {value('before', key)} to {value('after', key)}" for key, name in MEASURES_OF_CONTACTS.items()
             if value("after", key) > value("before", key)]
    if not risen:
        return ""
    return (f"Rose with the correction: {', '.join(risen)}. Atoms that were moved out of each other are nearer to "
            "others now, within what minimisation resolves")


def solved_line(data: dict) -> str:
    """How many of the pairs below the threshold were solved, and where those stand that were not."""
    solved = data["solved"]
    before, after, cores = (solved[key] for key in ("fatal_before", "fatal_after", "fatal_at_overlapping_cores"))
    if not before and not after:
        return f"Solved: there were no pairs below {data['threshold']} A"
    return (f"Solved: {before - after} of {before} pairs below {data['threshold']} A "
            f"({100 * (before - after) / max(before, 1):.1f} %); {after} left"
            + (f", {cores} of them where cores overlap" if after else ""))


def limited(items: list) -> dict:
    """Count of all and the first of them."""
    return {"count": len(items), "items": items[:LIST_LIMIT]}


def describe_pairs(atoms: Atoms, pairs: np.ndarray, distance: np.ndarray) -> list[dict]:
    """The first pairs by name, closest first."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0], distance))[:LIST_LIMIT]
    return [{"atom_a": atoms.identity(pairs[k, 0]), "atom_b": atoms.identity(pairs[k, 1]),
             "distance": round(float(distance[k]), 4), "class": atoms.pair_class(*pairs[k]),
             "index": pairs[k].tolist()} for k in order]


def counts_by_class(atoms: Atoms, pairs: np.ndarray) -> dict[str, int]:
    """How many pairs of each class."""
    parts = np.sort(atoms.part[pairs], axis=1)
    each, count = np.unique(parts, axis=0, return_counts=True)
    return dict(sorted((f"{PARTS[a]} / {PARTS[b]}", int(n)) for (a, b), n in zip(each, count, strict=True)))


def near_contacts(atoms: Atoms, threshold: float, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The one search that serves the histogram, the audits and the overlaps: (m, 2) pairs and distances, angstrom."""
    limit = np.maximum(van_der_waals_sum() - OVERLAP, widest_of(threshold))
    return close_pairs(atoms.position, limit.max(), atoms.graph, atoms.box, threads, atoms.kind, limit)


def widest_of(threshold: float) -> float:
    """Up to here, angstrom, ``near_contacts`` holds the pairs of all kinds of atoms."""
    return max(float(HISTOGRAM_EDGES[-1]), threshold, RING_SEARCH)


def findings(atoms: Atoms, threshold: float, threads: int = 1, reason: Callable[[int, int], str] | None = None,
             contacts: tuple[np.ndarray, np.ndarray] | None = None) -> dict:
    """Everything the report says about one state of a structure.

    ``reason``, of two atoms, tells why a bond still runs through a ring or between two strands; ``contacts`` are the
    structure's ``near_contacts`` when they are known already.
    """
    pairs, distance = near_contacts(atoms, threshold, threads) if contacts is None else contacts
    overlaps = overlaps_among(atoms, pairs, distance)
    near = distance < widest_of(threshold)
    pairs, distance = pairs[near], distance[near]
    close = distance < threshold
    found = audit(atoms, threads, (pairs, distance))
    kind = atoms.kind[pairs]
    severe = distance < np.maximum(threshold, reference.severe_distance()[kind[:, 0], kind[:, 1]])
    rank = distance - np.where((kind <= POLAR_HYDROGEN).any(axis=1), 0.0, 0.7)
    first = np.argpartition(rank, WORST)[:WORST] if len(rank) > WORST else np.arange(len(rank))
    first = np.flatnonzero(rank <= rank[first].max(initial=-np.inf))
    worst = first[np.lexsort((pairs[first, 1], pairs[first, 0], rank[first]))][:WORST]

    def outliers(rows: np.ndarray, value: np.ndarray, z: np.ndarray) -> dict:
        beyond = np.flatnonzero(np.abs(z) > reference.MAX_Z)
        beyond = beyond[np.argsort(-np.abs(z[beyond]), kind="stable")]
        items = [{"atoms": " ".join(atoms.identity(a) for a in rows[k]), "value": round(float(value[k]), 3),
                  "z": round(float(z[k]), 2)} for k in beyond[:LIST_LIMIT]]
        return {"count": len(beyond), "items": items}

    def through(piercing: Piercing) -> dict:
        bond = {"bond_a": atoms.identity(piercing.bond[0]), "bond_b": atoms.identity(piercing.bond[1])}
        return bond if reason is None else {**bond, "reason": reason(piercing.bond[0], piercing.ring[0])}

    def rms(z: np.ndarray) -> float | None:
        return round(float(np.sqrt(np.mean(z**2))), 4) if len(z) else None

    link = found.link_length
    return {
        "atoms": atoms.n_atoms,
        "pairs_below_threshold": {"count": int(close.sum()),
                                  "items": describe_pairs(atoms, pairs[close], distance[close])},
        "counts_by_class": counts_by_class(atoms, pairs[close]),
        "severe_pairs": {"count": int(severe.sum()), "by_class": counts_by_class(atoms, pairs[severe])},
        "heavy_pairs_below_2": int((distance[(kind > POLAR_HYDROGEN).all(axis=1)] < 2.0).sum()),
        "overlaps": len(overlaps.pairs),
        "bad_overlaps": overlaps.n_bad,
        "clashscore": round(overlaps.clashscore, 3),
        "has_hydrogens": overlaps.has_hydrogens,
        "ring_piercings": limited([
            {"ring": f"{atoms.residue_label[atoms.residue[p.ring[0]]]}:{'-'.join(map(atoms.name_of, p.ring))}",
             **through(p)} for p in found.piercings]),
        "chirality_errors": limited([atoms.identity(a) for a in found.chirality_errors]),
        "cis_peptides": limited([atoms.identity(a) for a in found.cis_peptides]),
        "twisted_peptides": limited([atoms.identity(a) for a in found.twisted_peptides]),
        "bond_outliers": outliers(found.bonds, found.bond_length, found.bond_z),
        "angle_outliers": outliers(found.angles, found.angle_value, found.angle_z),
        "bond_rmsz": rms(found.bond_z), "angle_rmsz": rms(found.angle_z),
        "o3_p": {"count": len(link), "min": round(float(link.min()), 4) if len(link) else None,
                 "max": round(float(link.max()), 4) if len(link) else None,
                 "mean": round(float(link.mean()), 4) if len(link) else None},
        "merged_molecules": limited([{"atom_a": atoms.identity(m.first), "atom_b": atoms.identity(m.second),
                                      "pairs": m.pairs} for m in found.merged]),
        "duplexes": [{"first": atoms.residue_label[int(d.first[0])], "last": atoms.residue_label[int(d.first[-1])],
                      "base_pairs": len(d.first), "turns": d.turns} for d in found.duplexes],
        "threaded_strands": limited([
            {"step": " ".join(atoms.residue_label[atoms.residue[a]] for a in p.ring), **through(p)}
            for p in found.threaded]),
        "short_distances": {"edges": HISTOGRAM_EDGES.tolist(),
                            "counts": np.histogram(distance, HISTOGRAM_EDGES)[0].tolist()},
        "worst_contacts": describe_pairs(atoms, pairs[worst], distance[worst]),
    }


def neighbourhoods_of(found: dict, before: Atoms, after: Atoms | None = None) -> list[dict]:
    """For each of the worst contacts found ``before``: names, distances, the atoms around and their bonds.

    An atom is (element, name, residue, x, y, z before, x, y, z after, ``protein``, ``DNA`` or ``other``, 1 in a residue
    of the contact). Coordinates are in the frame of the contact: origin in its middle, x along it, z to the
    side from which it is seen best; angstrom, two decimals.
    """
    contacts = found["worst_contacts"]
    if not contacts:
        return []
    pairs = np.array([c["index"] for c in contacts])
    place = before.position
    middle = place[pairs].astype(np.float64).mean(axis=1)
    which, near = CellList(place, 5.0).in_spheres(middle, NEIGHBOURHOOD)
    result = []
    for k, contact in enumerate(contacts):
        own = before.residue[pairs[k]]
        spans = [np.arange(before.residue_first[r], before.residue_first[r + 1]) for r in own]
        atoms = np.unique(np.concatenate([near[which == k], *spans]))
        local = {int(a): i for i, a in enumerate(atoms)}
        bonds = [[i, local[b]] for a, i in local.items() for b in before.graph.neighbours(a).tolist()
                 if b > a and b in local]
        x, y = (place[p].astype(np.float64) for p in pairs[k])
        frame = contact_frame(y - x, place[atoms].astype(np.float64) - middle[k])
        states = [np.round((state.position[atoms].astype(np.float64) - middle[k]) @ frame.T, 2)
                  for state in (before, before if after is None else after)]
        ends = (after or before).position[pairs[k]].astype(np.float64)
        result.append({
            "atom_a": contact["atom_a"], "atom_b": contact["atom_b"], "distance": contact["distance"],
            "after": round(float(np.linalg.norm(ends[0] - ends[1])), 4), "pair": [local[int(a)] for a in pairs[k]],
            "atoms": [[gemmi.Element(int(before.element[a])).name, before.name_of(a),
                       before.residue_label[before.residue[a]], *states[0][i].tolist(), *states[1][i].tolist(),
                       FAMILY.get(PARTS[before.part[a]], "other"), int(before.residue[a] in own)]
                      for i, a in enumerate(atoms.tolist())],
            "bonds": bonds})
    return result


def contact_frame(along: np.ndarray, around: np.ndarray) -> np.ndarray:
    """(3, 3) rows x, y, z: x along a contact, z to where the fewest of the (n, 3) atoms ``around`` hide it."""
    length = np.linalg.norm(along)
    x = along / length if length > 1e-6 else np.array([1.0, 0.0, 0.0])
    away = -around.mean(axis=0)
    away -= (away @ x) * x
    if np.linalg.norm(away) < 1e-3:
        away = np.cross(x, np.eye(3)[np.argmin(np.abs(x))])
    away /= np.linalg.norm(away)
    turn = np.radians(np.arange(0.0, 360.0, VIEW_STEP))[:, None]
    z = np.cos(turn) * away + np.sin(turn) * np.cross(x, away)
    height, aside = around @ z.T, around @ np.cross(z, x).T
    beyond = np.maximum(np.abs(around @ x) - length / 2, 0.0)[:, None]
    hidden = np.where(height > 0.3, np.exp(-(aside**2 + beyond**2) / (2 * HIDING_WIDTH**2)), 0.0).sum(axis=0)
    best = z[int(np.argmin(np.round(hidden, 6)))]
    return np.stack([x, np.cross(best, x), best])
