"""Modified cytosines of a locus from bedMethyl or BED, strand by strand.

bedMethyl (ENCODE; modkit writes the same columns): column 4 names the modification, 6 is the strand, 10 counts the
reads, 11 gives the percentage of them that are modified. BED of fewer columns says of each of its cytosines that it is
modified. Positions are 0-based; column 6 (`.` or missing: both strands of the CpG that begins there).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.genome.bed import bed_interval
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.circle import Circle
from chromabuild.genome.records_used import RecordsUsed
from chromabuild.genome.text import stream_lines

MODIFIED = ("5mC", "5hmC", "5fC")
"""Modifications of cytosine by their code, from 1 on."""
_CODE = {"": 1, ".": 1, "m": 1, "5mc": 1, "c+m": 1, "h": 2, "5hmc": 2, "c+h": 2, "f": 3, "5fc": 3, "c+f": 3}
_COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
_STREAM = 0x6D657468
"""Second half of the Philox key: separates these draws from every other use of the seed."""
_ROUNDING = 1e-6


@dataclass(frozen=True)
class _Record:
    code: int
    fraction: float
    line: int


def read_methylation(path: str | Path, chromosome: str, start: int, sequence: str, threshold: float | None = None,
                     seed: int = 1, used: RecordsUsed | None = None, circle: Circle | None = None) -> np.ndarray:
    """(2, n) int8: of every base pair the code (``MODIFIED``, from 1; 0: none) of its base on strand + and on strand -.

    Args:
        path: bedMethyl or BED; records on other chromosomes and outside the sequence are left out.
        chromosome: of the sequence.
        start: 0-based position of its first base.
        sequence: (n,) letters of strand +.
        threshold: fraction from which on a base is modified; None: drawn with the fraction as probability.
        seed: of the draws, which depend on it and on the place of the CpG alone: both its strands have one draw.
        used: counts the records with a cytosine of the sequence.
        circle: of a sequence that is closed; its last base and its first one may be a CpG.

    Raises BadInputError, with the line, for a malformed record, a base that is no C, a modification that is not known,
    one given twice, fractions of one base that exceed 1, and for a file that holds no cytosine of the sequence.
    """
    found: dict[tuple[int, int], list[_Record]] = {}
    held, met = 0, set()
    is_here: dict[str, bool] = {}  # by spelling: the file of a genome has tens of millions of lines
    for line, fields in _records(path):
        held += 1
        if fields[0] not in is_here:
            is_here[fields[0]] = same_chromosome(fields[0], chromosome)
        if not is_here[fields[0]]:
            continue
        first, end = bed_interval(path, line, fields[1], fields[2])
        code, fraction = _code(path, line, fields), _fraction(path, line, fields)
        if fraction is None or end <= start or first >= start + len(sequence):
            continue
        for strand, position in _bases(path, line, fields, first, end):
            position = position if circle is None else circle.place(position)
            if not start <= position < start + len(sequence):
                continue
            letter = sequence[position - start]
            letter = letter if strand == 0 else _COMPLEMENT[letter]
            if letter != "C":
                raise BadInputError(f"{path}, line {line}: base {position} (from 0) of {chromosome} is {letter} on "
                                    f"strand {'+-'[strand]}, not C: check the assembly, the strand and the columns")
            records = found.setdefault((strand, position - start), [])
            twin = next((one for one in records if one.code == code), None)
            if twin is not None:
                raise BadInputError(f"{path}, line {line}: {MODIFIED[code - 1]} of base {position} on strand "
                                    f"{'+-'[strand]} stands on line {twin.line} already: keep one")
            records.append(_Record(code, fraction, line))
            met.add(line)
            if sum(one.fraction for one in records) > 1 + _ROUNDING:
                raise BadInputError(f"{path}, line {line}: the modifications of base {position} on strand "
                                    f"{'+-'[strand]} add up to more than all reads: correct the percentages")
    if not found:
        raise BadInputError(f"{path} holds no cytosine of {chromosome}:{start + 1}-{start + len(sequence)}: check "
                            "chromosome names and positions")
    if used is not None:
        used.count(path, len(met), held)
    result = np.zeros((2, len(sequence)), dtype=np.int8)
    for (strand, k), records in found.items():
        records.sort(key=lambda one: one.code)
        if threshold is None:
            begins = strand == 1 and (k > 0 or circle is not None) and sequence[k - 1] == "C"
            result[strand, k] = _drawn(records, seed, start + ((k - 1) % len(sequence) if begins else k))
        else:
            best = max(records, key=lambda one: one.fraction)
            result[strand, k] = best.code if best.fraction >= threshold - _ROUNDING else 0
    return result


def _drawn(records: list[_Record], seed: int, position: int) -> int:
    """The code that one random number, a function of seed and position, falls on; 0: on none."""
    number = np.random.Generator(np.random.Philox(key=[seed % 2**64, _STREAM], counter=position)).random()
    total = 0.0
    for record in records:
        total += record.fraction
        if number < total:
            return record.code
    return 0


def _records(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(stream_lines(path), start=1):
        if line.strip() and not line.startswith(("#", "track", "browser")):
            fields = line.split("\t") if "\t" in line else line.split()
            if len(fields) < 3:
                raise BadInputError(f"{path}, line {number}: {len(fields)} columns in {line[:40]!r}: bedMethyl and BED "
                                    "need 3 and more")
            yield number, fields


def _code(path: str | Path, line: int, fields: list[str]) -> int:
    """Of the modification in column 4; 5mC where it is empty. Names such as ``m,CG,0`` end at the comma."""
    name = fields[3].strip() if len(fields) > 3 else ""
    code = _CODE.get(name.split(",")[0].lower())
    if code is None:
        raise BadInputError(f"{path}, line {line}: {name!r} is no modification of cytosine that can be built: write "
                            "5mC (m), 5hmC (h) or 5fC (f) in column 4, or '.' for 5mC")
    return code


def _fraction(path: str | Path, line: int, fields: list[str]) -> float | None:
    """Of reads that are modified, 0 to 1; None where no read covers the base."""
    if len(fields) < 11:
        return 1.0
    if fields[9].strip() == "0":
        return None
    try:
        percent = float(fields[10])
    except ValueError:
        percent = np.nan
    if not 0.0 <= percent <= 100.0:
        raise BadInputError(f"{path}, line {line}: {fields[10]!r} in column 11 is no percentage from 0 to 100: "
                            "correct it")
    return percent / 100.0


def _bases(path: str | Path, line: int, fields: list[str], first: int, end: int) -> list[tuple[int, int]]:
    """(strand, position) of the bases that a record speaks of; strand 0 is +, 1 is -."""
    strand = fields[5].strip() if len(fields) > 5 else "."
    if strand not in ("+", "-", ".", ""):
        raise BadInputError(f"{path}, line {line}: strand {strand!r} is none of +, - and '.': correct column 6")
    if strand in ("+", "-"):
        return [("+-".index(strand), position) for position in range(first, end)]
    if end - first > 2:
        raise BadInputError(f"{path}, line {line}: {end - first} bases without a strand: name the strand in column 6, "
                            "or one CpG a line")
    return [(0, first), (1, first + 1)]
