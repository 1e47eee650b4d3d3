"""The clash report: what was found before and after, what was moved, what could not be solved, which promises held."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.clash import reference
from chromabuild.clash.atoms import HYDROGEN, Atoms
from chromabuild.clash.audit import audit
from chromabuild.clash.detect import CellList, find_overlaps
from chromabuild.errors import BadInputError
from chromabuild.files import atomic_path

FORMAT = "chromabuild-clash-report"
VERSION = 1
LIST_LIMIT = 1000  # entries of a list in the report; the count beside it is always of all
WORST = 50
HISTOGRAM_EDGES = np.round(np.arange(0.0, 2.51, 0.1), 2)


@dataclass
class ClashReport:
    """The report as plain data (docs/formats.md, section 3)."""

    data: dict

    @property
    def fatal(self) -> int:
        """Pairs below the threshold and pierced rings that stand at the end."""
        last = self.data.get("after") or self.data["before"]
        return last["pairs_below_threshold"]["count"] + last["ring_piercings"]["count"]

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
            for key, kind in (("chirality_errors", "chirality"), ("cis_peptides", "cis peptide"),
                              ("twisted_peptides", "twisted peptide")):
                rows += [f"{stage}\t{kind}\t{atom}\t\t\t" for atom in found[key]["items"]]
            for key, kind in (("bond_outliers", "bond outlier"), ("angle_outliers", "angle outlier")):
                rows += [f"{stage}\t{kind}\t{item['atoms']}\t\t{item['value']}\tz={item['z']}"
                         for item in found[key]["items"]]
        for item in self.data["unresolved"]:
            rows.append(f"after\tunresolved\t{item['atom_a']}\t{item['atom_b']}\t{item['distance']}\t{item['reason']}")
        return "\n".join(rows) + "\n"

    def to_text(self) -> str:
        """One page for people."""
        data, before = self.data, self.data["before"]
        after = data.get("after") or before
        corrected = data.get("after") is not None
        lines = [f"Clash report: {before['atoms']} atoms, threshold {data['threshold']} A"
                 + (f", correction mode {data['mode']}, seed {data['seed']}" if corrected else ", check only"), ""]
        rows = [(f"pairs below {data['threshold']} A", lambda s: s["pairs_below_threshold"]["count"]),
                ("pairs below 2.0 A (1.3 A with hydrogen)", lambda s: s["severe_pairs"]["count"]),
                ("overlaps >= 0.4 A", lambda s: s["overlaps"]), ("overlaps > 0.9 A", lambda s: s["bad_overlaps"]),
                ("clashscore (per 1,000 atoms)", lambda s: s["clashscore"]),
                ("pierced rings", lambda s: s["ring_piercings"]["count"]),
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


def limited(items: list) -> dict:
    """Count of all and the first of them."""
    return {"count": len(items), "items": items[:LIST_LIMIT]}


def describe_pairs(atoms: Atoms, pairs: np.ndarray, distance: np.ndarray) -> list[dict]:
    """Pairs by name, closest first."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0], distance))
    return [{"atom_a": atoms.identity(pairs[k, 0]), "atom_b": atoms.identity(pairs[k, 1]),
             "distance": round(float(distance[k]), 4), "class": atoms.pair_class(*pairs[k])} for k in order]


def counts_by_class(atoms: Atoms, pairs: np.ndarray) -> dict[str, int]:
    """How many pairs of each class."""
    counts: dict[str, int] = {}
    for a, b in pairs.tolist():
        name = atoms.pair_class(a, b)
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


def findings(atoms: Atoms, threshold: float, threads: int = 1) -> dict:
    """Everything the report says about one state of a structure."""
    widest = max(float(HISTOGRAM_EDGES[-1]), threshold)
    pairs, distance = CellList(atoms.position, widest, threads).pairs(widest, atoms.graph)
    close = distance < threshold
    hydrogen = (atoms.element[pairs] == HYDROGEN).any(axis=1)
    severe = distance < np.maximum(threshold, np.where(hydrogen, reference.SEVERE_HYDROGEN, reference.SEVERE_HEAVY))
    worst = np.lexsort((pairs[:, 1], pairs[:, 0], distance - np.where(hydrogen, 0.0, 0.7)))[:WORST]
    overlaps = find_overlaps(atoms, threads)
    found = audit(atoms, threads)

    def outliers(rows: np.ndarray, value: np.ndarray, z: np.ndarray) -> dict:
        beyond = np.flatnonzero(np.abs(z) > reference.MAX_Z)
        beyond = beyond[np.argsort(-np.abs(z[beyond]), kind="stable")]
        items = [{"atoms": " ".join(atoms.identity(a) for a in rows[k]), "value": round(float(value[k]), 3),
                  "z": round(float(z[k]), 2)} for k in beyond[:LIST_LIMIT]]
        return {"count": len(beyond), "items": items}

    def rms(z: np.ndarray) -> float | None:
        return round(float(np.sqrt(np.mean(z**2))), 4) if len(z) else None

    link = found.link_length
    return {
        "atoms": atoms.n_atoms,
        "pairs_below_threshold": limited(describe_pairs(atoms, pairs[close], distance[close])),
        "counts_by_class": counts_by_class(atoms, pairs[close]),
        "severe_pairs": {"count": int(severe.sum()), "by_class": counts_by_class(atoms, pairs[severe])},
        "overlaps": len(overlaps.pairs),
        "bad_overlaps": overlaps.n_bad,
        "clashscore": round(overlaps.clashscore, 3),
        "has_hydrogens": overlaps.has_hydrogens,
        "ring_piercings": limited([
            {"ring": f"{atoms.residue_label[atoms.residue[p.ring[0]]]}:{'-'.join(atoms.name[list(p.ring)])}",
             "bond_a": atoms.identity(p.bond[0]), "bond_b": atoms.identity(p.bond[1])} for p in found.piercings]),
        "chirality_errors": limited([atoms.identity(a) for a in found.chirality_errors]),
        "cis_peptides": limited([atoms.identity(a) for a in found.cis_peptides]),
        "twisted_peptides": limited([atoms.identity(a) for a in found.twisted_peptides]),
        "bond_outliers": outliers(found.bonds, found.bond_length, found.bond_z),
        "angle_outliers": outliers(found.angles, found.angle_value, found.angle_z),
        "bond_rmsz": rms(found.bond_z), "angle_rmsz": rms(found.angle_z),
        "o3_p": {"count": len(link), "min": round(float(link.min()), 4) if len(link) else None,
                 "max": round(float(link.max()), 4) if len(link) else None,
                 "mean": round(float(link.mean()), 4) if len(link) else None},
        "short_distances": {"edges": HISTOGRAM_EDGES.tolist(),
                            "counts": np.histogram(distance, HISTOGRAM_EDGES)[0].tolist()},
        "worst_contacts": describe_pairs(atoms, pairs[worst], distance[worst]),
    }
