"""Sequences from FASTA."""

import re
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.text import read_lines


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
