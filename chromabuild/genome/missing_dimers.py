"""Hexasomes and tetrasomes: which nucleosomes lack H2A-H2B dimers, from BED."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.bed import bed_interval, bed_records
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.circle import Circle, pieces_of
from chromabuild.genome.nucleosomes import Nucleosome
from chromabuild.genome.records_used import RecordsUsed
from mesoscale.fibre import MissingDimer

WITHOUT_DIMER = 38
"""Base pairs from the dyad that stay where the dimer is missing: hexasomes hold 112 bp, tetrasomes 77."""
SIDES: dict[str, tuple[MissingDimer, MissingDimer]] = {
    "proximal": ("entry", "exit"), "distal": ("exit", "entry"), "both": ("both", "both")}
"""What a name means on the upper strand, and on the lower."""


def without_dimers(path: str | Path, found: Sequence[Nucleosome], chromosome: str, start: int,
                   used: RecordsUsed | None = None, circle: Circle | None = None) -> list[Nucleosome]:
    """The nucleosomes, those whose mapped dyad lies in a record of a BED file without the dimers that it names.

    ``start`` is the position of base pair 0, ``circle`` the numbering where the DNA is closed; ``used`` counts the
    records that meet a nucleosome. Raises BadInputError, with the line, for a malformed record, an unknown name, two
    that do not agree, and a file that meets no nucleosome.
    """
    result, met, meeting = list(found), {}, set()
    records = bed_records(path, 4, "BED with names")
    for line, fields in records:
        first, end = bed_interval(path, line, fields[1], fields[2])
        name, strand = fields[3].strip(), fields[5].strip() if len(fields) > 5 else "+"
        if name not in SIDES:
            raise BadInputError(f"{path}, line {line}: {name!r} is none of {', '.join(SIDES)}: correct column 4")
        if strand not in ("+", "-", "."):
            raise BadInputError(f"{path}, line {line}: strand {strand!r} is none of + - .: correct column 6")
        if not same_chromosome(fields[0], chromosome):
            continue
        side = SIDES[name][strand == "-"]
        for k, one in enumerate(found):
            if not any(a <= one.dyad + start < b for a, b in pieces_of(circle, first, end)):
                continue
            if met.get(k, side) != side:
                raise BadInputError(f"{path}, line {line}: nucleosome {one.name} lacks another dimer already: keep one "
                                    "record for it, `both` where both are missing")
            met[k] = side
            meeting.add(line)
            result[k] = replace(one, missing=side,
                                before=min(one.before, WITHOUT_DIMER) if side in ("entry", "both") else one.before,
                                after=min(one.after, WITHOUT_DIMER) if side in ("exit", "both") else one.after)
    if not met:
        raise BadInputError(f"{path} meets no nucleosome of {chromosome}: check chromosome names and positions")
    if used is not None:
        used.count(path, len(meeting), len(records))
    return result
