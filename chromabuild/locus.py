"""Genome inputs become a Locus: sequence, nucleosomes that fit on it, contacts; validated and immutable.

Coordinates are 0-based and half open, as in BED. Everything that cannot be used is reported with its file, line and
value; everything that was changed (shifted or dropped nucleosomes, contacts that lie outside) is listed.
"""

import gzip
import io
import math
import re
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from chromabuild.config import LocusSection
from chromabuild.errors import BadInputError
from mesoscale.fibre import Contact, Fibre

# A matrix of contacts holds a count for every pair of bins; only pairs seen this many times more often than the mean
# pair at the same distance say something about folding.
ENRICHMENT = 2.0
BASES = frozenset("ACGT")
REGION = re.compile(r"^(?P<name>[^:\s]+):(?P<start>[\d,]+)-(?P<end>[\d,]+)$")


@dataclass(frozen=True)
class Nucleosome:
    """A mapped nucleosome: dyad as a 0-based index into the sequence, score, and where it came from."""

    dyad: int
    score: float
    name: str
    line: int


@dataclass(frozen=True)
class Locus:
    """A stretch of a genome with its nucleosomes and contacts, in indices of its own sequence.

    `adjustments` lists shifted and dropped nucleosomes as {nucleosome, from, to, reason}; positions are chromosome
    positions, `to` is None for a dropped one. `ignored_contacts` says why contacts of the input are not used.
    """

    name: str
    chromosome: str
    start: int
    sequence: str
    nucleosomes: tuple[Nucleosome, ...]
    wrapped_length: int
    contacts: tuple[Contact, ...]
    adjustments: tuple[dict, ...]
    ignored_contacts: tuple[str, ...]

    def fibre(self) -> Fibre:
        """What the mesoscale model needs to know of this locus."""
        return Fibre(
            sequence=self.sequence,
            dyads=tuple(n.dyad for n in self.nucleosomes),
            wrapped_length=self.wrapped_length,
            contacts=self.contacts,
            name=self.name,
            chromosome=self.chromosome,
            start=self.start,
            adjustments=self.adjustments,
        )


def read_lines(path: str | Path) -> list[str]:
    """Lines of a text file, plain or gzip, without line ends (Unix or Windows).

    Raises BadInputError for a missing, empty, truncated or non-ASCII file.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInputError(f"{path} does not exist: correct the path in locus.yaml") from None
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error):
            raise BadInputError(f"{path} is a damaged or truncated gzip file: copy or download it again") from None
    if not data.strip():
        raise BadInputError(f"{path} is empty: give a file with records")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInputError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not ASCII text: save the file as plain text"
        ) from None
    return [line.removesuffix("\r") for line in text.split("\n")]


def read_fasta(path: str | Path, record: str | None = None) -> tuple[str, str]:
    """Header (without ``>``) and sequence, upper case, of one record: `record`, or the first.

    Raises BadInputError for a letter other than A, C, G, T, with its position (1-based) in the record.
    """
    header, parts, found = None, [], []
    wanted = False
    for number, line in enumerate(read_lines(path), start=1):
        if line.startswith(">"):
            title = line[1:].strip()
            name = title.split()[0] if title else ""
            found.append(name)
            wanted = header is None and (record is None or name == record)
            if wanted:
                header = title
        elif wanted:
            parts.append(line.strip())
        elif not found and line.strip():
            raise BadInputError(f"{path}, line {number}: {line[:30]!r} comes before any '>' header: give a FASTA file")
    if header is None:
        raise BadInputError(f"{path} has no record {record!r}; it has {', '.join(found[:5]) or 'none'}")
    sequence = "".join(parts).upper()
    if not sequence:
        raise BadInputError(f"{path}: record {header.split()[0] if header else ''!r} has no sequence")
    bad = re.search(r"[^ACGT]", sequence)
    if bad:
        what = "an unknown base" if bad.group() == "N" else "not one of A, C, G, T"
        raise BadInputError(
            f"{path}: base {bad.start() + 1} of {header.split()[0] if header else 'the record'} is {bad.group()!r}, "
            f"{what}: replace it, every base pair is built"
        )
    return header, sequence


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,15}", text) else None


def bed_interval(path: str | Path, line: int, start_text: str, end_text: str) -> tuple[int, int]:
    """Start and end of a record. Raises BadInputError, with the line, when they are not whole numbers in order."""
    start, end = _integer(start_text), _integer(end_text)
    for label, text, value in (("start", start_text, start), ("end", end_text, end)):
        if value is None:
            raise BadInputError(f"{path}, line {line}: {label} {text!r} is not a whole number >= 0: correct the line")
    if end <= start:
        raise BadInputError(f"{path}, line {line}: end {end} is not beyond start {start}: correct the line")
    return start, end


def bed_records(path: str | Path, columns: int, kind: str) -> list[tuple[int, list[str]]]:
    """Numbered, tab-separated records of a BED-like file.

    Raises BadInputError, with the line, for one of fewer than ``columns`` fields; ``kind`` names the format.
    """
    records = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.startswith(("#", "track", "browser")):
            continue
        fields = line.split("\t")
        if len(fields) < columns:
            raise BadInputError(
                f"{path}, line {number}: {len(fields)} tab-separated columns in {line[:40]!r}: {kind} needs {columns}"
            )
        records.append((number, fields))
    return records


def _score(path: str | Path, line: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise BadInputError(f"{path}, line {line}: score {text!r} is not a finite number: correct it or write '.'")
    return score


def read_nucleosomes(path: str | Path, chromosome: str, start: int, length: int) -> list[Nucleosome]:
    """Nucleosomes of a BED file, sorted: an interval's middle base is the dyad; column 4 names it, column 5 scores it.

    `start` and `length` place the sequence on `chromosome`. Raises BadInputError, with the line, for a malformed
    record, another chromosome, a dyad outside the sequence or a dyad given twice.
    """
    found: list[Nucleosome] = []
    for line, fields in bed_records(path, 3, "BED"):
        first, end = bed_interval(path, line, fields[1], fields[2])
        if fields[0] != chromosome:
            raise BadInputError(
                f"{path}, line {line}: chromosome {fields[0]!r} is not the sequence's, {chromosome!r}: "
                "keep one chromosome and the same names in all files"
            )
        dyad = (first + end - 1) // 2
        if not start <= dyad < start + length:
            raise BadInputError(
                f"{path}, line {line}: dyad {dyad} is outside the sequence {chromosome}:{start}-{start + length}: "
                "cut the file to the locus or correct `start`"
            )
        name = fields[3] if len(fields) > 3 and fields[3] else f"line{line}"
        score = _score(path, line, fields[4]) if len(fields) > 4 and fields[4] not in (".", "") else 1.0
        found.append(Nucleosome(dyad - start, score, name, line))
    if not found:
        raise BadInputError(f"{path} holds no nucleosome: give at least one BED record")
    found.sort(key=lambda n: n.dyad)
    for one, other in zip(found, found[1:], strict=False):
        if one.dyad == other.dyad:
            raise BadInputError(
                f"{path}, line {other.line}: dyad {other.dyad + start} stands on line {one.line} already: keep one"
            )
    return found


def shifted_dyads(dyads: np.ndarray, spacing: int, lowest: int, highest: int) -> np.ndarray:
    """Integer positions nearest to `dyads` (n,) in the least-squares sense, `spacing` apart and within the bounds.

    With u_i = x_i - i * spacing the constraint is that u does not decrease: isotonic regression, clipped to the bounds
    (which keeps it optimal) and rounded (which keeps the order). Raises ValueError when there is no room.
    """
    ramp = spacing * np.arange(len(dyads))
    if lowest + ramp[-1] > highest:
        raise ValueError(f"{len(dyads)} nucleosomes {spacing} bp apart need {ramp[-1] + 1} bp from first to last dyad")
    level = isotonic_regression(np.asarray(dyads, float) - ramp).x
    return np.rint(np.clip(level, lowest, highest - ramp[-1])).astype(int) + ramp


def best_subset(dyads: np.ndarray, scores: np.ndarray, spacing: int) -> list[int]:
    """Indices of the subset with the highest sum of scores whose members are at least `spacing` apart.

    Weighted interval scheduling; `dyads` (n,) ascending. Scores that are not positive are never chosen.
    """
    n = len(dyads)
    best = np.zeros(n + 1)
    before = np.searchsorted(dyads, np.asarray(dyads) - spacing, side="right")
    for i in range(n):
        best[i + 1] = max(best[i], scores[i] + best[before[i]])
    chosen, i = [], n
    while i > 0:
        if best[i] > best[i - 1]:
            chosen.append(i - 1)
            i = int(before[i - 1])
        else:
            i -= 1
    return chosen[::-1]


def _arrange(
    found: list[Nucleosome], section: LocusSection, start: int, length: int
) -> tuple[list[Nucleosome], list[dict]]:
    """Apply the policy for nucleosomes that are too close to each other or to an end; list what was done.

    The default of `minimum_linker`, 10 bp, rests on sampling pairs of crystal cores: from 8 bp on every linker length
    found room at an elastic cost like that of long linkers (5 to 12 kBT); at 7 bp and less it was 24 to 510 kBT.
    """
    half = (section.wrapped_length - 1) // 2
    spacing = section.wrapped_length + section.minimum_linker
    lowest, highest = half, length - 1 - half
    dyads = np.array([n.dyad for n in found])

    def crowded(k: int) -> str:
        near = min((abs(int(dyads[k] - dyads[j])) for j in (k - 1, k + 1) if 0 <= j < len(dyads)), default=spacing)
        if not lowest <= dyads[k] <= highest:
            return f"less than {half} bp from an end of the sequence"
        return f"dyads {near} bp apart, {spacing} needed" if near < spacing else "neighbours were moved"

    if section.overlaps == "error":
        for k, n in enumerate(found):
            problem = crowded(k)
            if problem != "neighbours were moved":
                raise BadInputError(
                    f"{section.nucleosomes}, line {n.line}: dyad {n.dyad + start} does not fit ({problem}): "
                    "correct the map, extend the sequence, or set `overlaps: shift`"
                )
        return found, []

    changes: list[dict] = []
    if section.overlaps == "shift":
        try:
            moved = shifted_dyads(dyads, spacing, lowest, highest)
        except ValueError as error:
            raise BadInputError(
                f"{section.nucleosomes}: {error}, but the sequence leaves {max(highest - lowest + 1, 0)}: "
                "extend the sequence, lower `minimum_linker`, or set `overlaps: best-score`"
            ) from None
        result = []
        for k, (n, dyad) in enumerate(zip(found, moved.tolist(), strict=True)):
            result.append(Nucleosome(dyad, n.score, n.name, n.line))
            if dyad != n.dyad:
                reason = crowded(k)
                changes.append({"nucleosome": n.name, "from": n.dyad + start, "to": dyad + start, "reason": reason})
        return result, changes

    fits = np.flatnonzero((dyads >= lowest) & (dyads <= highest))
    kept = {int(fits[k]) for k in best_subset(dyads[fits], np.array([found[k].score for k in fits]), spacing)}
    for k, n in enumerate(found):
        if k not in kept:
            reason = crowded(k) if n.score > 0 else f"score {n.score:g} is not positive"
            changes.append({"nucleosome": n.name, "from": n.dyad + start, "to": None, "reason": reason})
    if not kept:
        raise BadInputError(
            f"{section.nucleosomes}: no nucleosome of positive score fits on the {length} bp of sequence: "
            "extend the sequence or correct the scores"
        )
    return [found[k] for k in sorted(kept)], changes


def read_contacts(path: str | Path) -> list[tuple[str, int, int, str, int, int, float, str]]:
    """Contacts of a BEDPE file: two intervals, the weight (column 8 when it is a number, else 1), and where it stood.

    Raises BadInputError, with the line, for a malformed record or a weight that is not positive.
    """
    contacts = []
    for line, fields in bed_records(path, 6, "BEDPE"):
        first = bed_interval(path, line, fields[1], fields[2])
        second = bed_interval(path, line, fields[4], fields[5])
        weight = _score(path, line, fields[7]) if len(fields) > 7 and fields[7] not in (".", "") else 1.0
        if weight <= 0:
            raise BadInputError(f"{path}, line {line}: score {fields[7]!r} is not positive: leave the contact out")
        contacts.append((fields[0], *first, fields[3], *second, weight, f"line {line}"))
    return contacts


def enriched_pairs(i: np.ndarray, j: np.ndarray, count: np.ndarray, bins: int) -> list[tuple[int, int, float]]:
    """Pairs of bins seen at least ENRICHMENT times as often as the mean pair at their distance, with that ratio.

    `i` <= `j` and `count` (n,) are the filled pixels of a matrix of `bins` bins. Pairs of neighbours are left out.
    """
    distance = j - i
    total = np.bincount(distance, weights=count, minlength=bins)
    mean = total / np.maximum(bins - np.arange(bins), 1)
    ratio = count / np.maximum(mean[distance], 1e-300)
    keep = (ratio >= ENRICHMENT) & (distance >= 2)
    return [(int(a), int(b), float(r)) for a, b, r in zip(i[keep], j[keep], ratio[keep], strict=True)]


def _matrix_contacts(path: str, chromosome: str, start: int, end: int) -> list[tuple]:
    """Contacts of a .cool, .mcool or .hic file within a region (whole bins only), at its finest resolution."""
    if not Path(path).exists():
        raise BadInputError(f"{path} does not exist: correct the path in locus.yaml")
    script = Path(__file__).with_name("matrix_reader.py")
    read = subprocess.run([sys.executable, "-P", script, path, chromosome, str(start), str(end)], capture_output=True)
    if read.returncode:
        said = read.stderr.decode(errors="replace").strip().splitlines()
        raise BadInputError(said[-1] if said else f"{path} cannot be read as .cool, .mcool or .hic")
    matrix = np.load(io.BytesIO(read.stdout))
    size, first = int(matrix["size"]), int(matrix["first"])
    i, j = np.minimum(matrix["row"], matrix["column"]), np.maximum(matrix["row"], matrix["column"])
    pairs = enriched_pairs(i.astype(int), j.astype(int), matrix["count"].astype(float), int(matrix["bins"]))
    origin = first * size
    return [
        (chromosome, origin + a * size, origin + (a + 1) * size, chromosome, origin + b * size, origin + (b + 1) * size,
         ratio, f"bins {origin + a * size} and {origin + b * size}")
        for a, b, ratio in pairs
    ]  # fmt: skip


def load_locus(section: LocusSection) -> Locus:
    """Read and validate all genome inputs of a build.

    Raises BadInputError with one sentence for anything that cannot be used.
    """
    if section.wrapped_length % 2 == 0:
        raise BadInputError(f"wrapped_length = {section.wrapped_length} is even: choose an odd number around the dyad")
    header, sequence = read_fasta(section.fasta, section.record)
    region = REGION.match(header.split()[0]) if header else None
    chromosome = region["name"] if region else (header.split()[0] if header else "")
    if section.start is not None:
        start = section.start
    elif region:
        first, last = (int(region[k].replace(",", "")) for k in ("start", "end"))
        if last - first + 1 != len(sequence):
            raise BadInputError(
                f"{section.fasta}: the header {header.split()[0]!r} names {last - first + 1} bases (1-based), "
                f"the record has {len(sequence)}: correct the header or set `start`"
            )
        start = first - 1
    else:
        start = 0
    length = len(sequence)
    found = read_nucleosomes(section.nucleosomes, chromosome, start, length)
    if length < section.wrapped_length:
        raise BadInputError(
            f"{section.fasta}: {length} bp of sequence are fewer than the {section.wrapped_length} of one nucleosome: "
            "extend the sequence"
        )
    nucleosomes, changes = _arrange(found, section, start, length)

    contacts, ignored = [], []
    if section.contacts is not None:
        matrix = section.contacts.endswith((".cool", ".mcool", ".hic"))
        for one, a, b, other, c, d, weight, where in (
            _matrix_contacts(section.contacts, chromosome, start, start + length)
            if matrix
            else read_contacts(section.contacts)
        ):
            if one != chromosome or other != chromosome:
                ignored.append(f"{where}: on {one} and {other}, not on {chromosome}")
            elif min(a, c) < start or max(b, d) > start + length:
                ignored.append(f"{where}: {a}-{b} with {c}-{d} reaches outside the locus")
            elif (a, b) == (c, d):
                ignored.append(f"{where}: {a}-{b} with itself")
            else:
                contacts.append(Contact((a - start, b - start), (c - start, d - start), weight))
    return Locus(
        name=section.name,
        chromosome=chromosome,
        start=start,
        sequence=sequence,
        nucleosomes=tuple(nucleosomes),
        wrapped_length=section.wrapped_length,
        contacts=tuple(contacts),
        adjustments=tuple(changes),
        ignored_contacts=tuple(ignored),
    )
