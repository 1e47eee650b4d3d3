"""The table of contact energies: BEDPE with name, target frequency and energy after the places."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.bed import bed_interval, bed_records, finite_score
from mesoscale.fibre import Contact


@dataclass(frozen=True)
class ContactEnergy:
    """A contact of two stretches of a chromosome, 0-based and half open."""

    first: tuple[int, int]
    second: tuple[int, int]
    target: float
    """Frequency that it shall have, 0 to 1."""
    energy: float
    """kBT by which it is favoured."""


def contact_energies_text(entries: Sequence[ContactEnergy], chromosome: str) -> str:
    """The table as text; its numbers come back to the last bit."""
    rows = [("#chrom1", "start1", "end1", "chrom2", "start2", "end2", "name", "target", "energy")]
    for k, one in enumerate(entries, start=1):
        places = (chromosome, *one.first, chromosome, *one.second)
        rows.append((*map(str, places), f"contact_{k}", repr(one.target), repr(one.energy)))
    return "".join("\t".join(row) + "\n" for row in rows)


def read_contact_energies(path: str | Path) -> list[ContactEnergy]:
    """Read the table. Raises BadInputError, with the line, for what is malformed and a target that is no frequency."""
    entries = []
    for line, fields in bed_records(path, 9, "a table of contact energies"):
        first, second = (bed_interval(path, line, fields[k], fields[k + 1]) for k in (1, 4))
        target, energy = (finite_score(path, line, fields[k]) for k in (7, 8))
        if not 0 <= target <= 1:
            raise BadInputError(f"{path}, line {line}: target {fields[7]} is no frequency: give 0 to 1")
        entries.append(ContactEnergy(first, second, target, energy))
    return entries


def attractive_contacts(path: str | Path, start: int, length: int) -> tuple[Contact, ...]:
    """Contacts with a positive energy of a locus of ``length`` bp from ``start`` on, the energy as weight.

    Raises BadInputError for one that reaches outside.
    """
    found = []
    for one in read_contact_energies(path):
        if min(one.first[0], one.second[0]) < start or max(one.first[1], one.second[1]) > start + length:
            raise BadInputError(f"{path}: {one.first[0]}-{one.first[1]} with {one.second[0]}-{one.second[1]} reaches "
                                "outside the locus: it was made for another one")
        if one.energy > 0:
            places = [(a - start, b - start) for a, b in (one.first, one.second)]
            found.append(Contact(places[0], places[1], one.energy))
    return tuple(found)
