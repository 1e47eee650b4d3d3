"""Sequences from FASTA."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.region import Region
from chromabuild.genome.text import stream_lines

_LISTED = 5


def read_fasta(path: str | Path, record: str | None = None) -> tuple[str, str]:
    """Header (without ``>``) and sequence, upper case, of one record: `record`, or the only one.

    Raises BadInputError for a file of several records without a choice, and for a letter other than A, C, G, T, with
    its position (1-based) in the record.
    """
    found: list[str] = []
    header, parts = None, []
    for title, line in _records(path):
        if title is not None:
            name = title.split()[0] if title else ""
            found.append(name)
            if record is None and len(found) > 1:
                raise BadInputError(f"{path} holds several records ({_some(path)}): name one with locus.record, or a "
                                    "place on it with locus.region")
            if header is not None:
                break
            header = title if record is None or name == record else None
        elif header is not None:
            parts.append(line)
    if header is None:
        raise BadInputError(f"{path} has no record {record!r}; it has {', '.join(found[:_LISTED]) or 'none'}")
    return header, _checked("".join(parts), path, header.split()[0] if header else "the record", 0)


def read_region(path: str | Path, region: Region, record: str | None = None) -> tuple[str, str]:
    """The chromosome as the file spells it, and the sequence of a region, upper case.

    It is cut from the record of that chromosome (or from `record`), or from one whose name is a region that holds it.
    A plain file with an index (.fai) beside it is read at that place only.
    Raises BadInputError when there is no such record or it ends before, and what ``read_fasta`` raises for letters.
    """
    indexed = _indexed(Path(path), region, record)
    if indexed is not None:
        return indexed
    found: list[str] = []
    wanted, parts, seen = None, [], 0
    for title, line in _records(path):
        if title is not None:
            if wanted is not None:
                break
            name = title.split()[0] if title else ""
            found.append(name)
            wanted = _part_of(name, region) if record in (None, name) else None
        elif wanted is not None:
            low, high = region.start - wanted.start - seen, region.end - wanted.start - seen
            if high <= 0:
                break
            if low < len(line):
                parts.append(line[max(low, 0):high])
            seen += len(line)
    if wanted is None:
        others = ", ".join(found[:_LISTED]) + (", ..." if len(found) > _LISTED else "")
        raise BadInputError(f"{path} has no record that holds {region}; it has {others}: correct locus.region")
    sequence = "".join(parts)
    if len(sequence) < region.end - region.start:
        raise BadInputError(f"{path}: {wanted.chromosome} ends at base {wanted.start + seen}, before locus.region "
                            f"{region} does: correct the region")
    return wanted.chromosome, _checked(sequence, path, wanted.chromosome, region.start)


def _records(path: str | Path) -> Iterator[tuple[str | None, str]]:
    """(title, "") at each record, (None, letters) for each of its lines."""
    begun = False
    with closing(stream_lines(path)) as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith(">"):
                begun = True
                yield line[1:].strip(), ""
            elif begun:
                yield None, line.strip()
            elif line.strip():
                raise BadInputError(f"{path}, line {number}: {line[:30]!r} comes before any '>' header: give a FASTA "
                                    "file")


def _some(path: str | Path) -> str:
    names = []
    for title, _ in _records(path):
        if title is not None:
            names.append(title.split()[0] if title else "")
            if len(names) > _LISTED:
                return ", ".join(names[:_LISTED]) + ", ..."
    return ", ".join(names)


def _part_of(name: str, region: Region) -> Region | None:
    """The stretch that a record of this name holds, when the region can lie on it."""
    own = Region.parse(name)
    if own is not None and same_chromosome(own.chromosome, region.chromosome) and own.start <= region.start:
        return own
    return Region(name, 0, 0) if same_chromosome(name, region.chromosome) else None


def _indexed(path: Path, region: Region, record: str | None) -> tuple[str, str] | None:
    """The region by the file's index; None when there is no index, or it does not know the chromosome or is older."""
    index = path.with_name(f"{path.name}.fai")
    if path.suffix == ".gz" or not index.is_file() or not path.is_file() \
            or index.stat().st_mtime < path.stat().st_mtime:
        return None
    for line in stream_lines(index):
        fields = line.split("\t")
        if len(fields) < 5 or (fields[0] != record if record else not same_chromosome(fields[0], region.chromosome)):
            continue
        try:
            length, offset, letters, width = (int(field) for field in fields[1:5])
        except ValueError:
            return None
        if region.end > length:
            raise BadInputError(f"{path}: {fields[0]} ends at base {length}, before locus.region {region} does: "
                                "correct the region")
        first, last = (offset + at // letters * width + at % letters for at in (region.start, region.end))
        with open(path, "rb") as handle:
            handle.seek(first)
            text = b"".join(handle.read(last - first).split()).decode("ascii", "replace")
        if len(text) != region.end - region.start or ">" in text:
            raise BadInputError(f"{index} does not fit {path}: make it again with samtools faidx, or remove it")
        return fields[0], _checked(text, path, fields[0], region.start)
    return None


def _checked(sequence: str, path: str | Path, name: str, start: int) -> str:
    """In upper case; ``start`` is the position of its first letter, 0-based."""
    sequence = sequence.upper()
    if not sequence:
        raise BadInputError(f"{path}: record {name!r} has no sequence")
    bad = re.search(r"[^ACGT]", sequence)
    if bad:
        what = "an unknown base" if bad.group() == "N" else "not one of A, C, G, T"
        raise BadInputError(f"{path}: base {start + bad.start() + 1} of {name} is {bad.group()!r}, {what}: replace it, "
                            "every base pair is built")
    return sequence
