"""The table of contact energies: BEDPE with the frequency and the energy of each contact."""

from collections.abc import Sequence
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.bed import bed_interval, bed_records, finite_score
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.circle import Circle, turned_interval
from mesoscale.contact_energies import ContactEnergy

COLUMNS = ("chrom1", "start1", "end1", "chrom2", "start2", "end2", "name", "target", "energy")
MOST = 20.0  # kBT: what holds a contact in all but one of 10^8 conformations is no well but a mistake


def read_contact_energies(
    path: str | Path, chromosome: str, start: int, length: int, circle: Circle | None = None, turn: int = 0,
) -> tuple[ContactEnergy, ...]:
    """Contact energies of a locus whose sequence begins at `start` (0-based) of `chromosome` and has `length` bp.

    Columns are COLUMNS: two intervals (0-based, half open), a name, the frequency that is wanted (0 to 1), the energy
    in kBT; lines that begin with # say nothing. Places of a `circle` may end beyond it, and are counted from `turn`
    base pairs after `start`. Raises BadInputError, with the line, for a malformed record, a place
    outside the locus, a frequency beyond 0 to 1, an energy of more than MOST in absolute value, and an empty table.
    """
    found = []
    for line, fields in bed_records(path, len(COLUMNS), "table of contact energies"):
        first = bed_interval(path, line, fields[1], fields[2])
        second = bed_interval(path, line, fields[4], fields[5])
        target, energy = (finite_score(path, line, fields[k]) for k in (7, 8))
        for name, (a, b) in ((fields[0], first), (fields[3], second)):
            inside = start <= a and b <= start + length if circle is None else circle.holds(a, b)
            if not (inside and same_chromosome(name, chromosome)):
                raise BadInputError(f"{path}, line {line}: {name}:{a}-{b} is not within the locus, "
                                    f"{chromosome}:{start}-{start + length}: make the table for this locus")
        if not 0 <= target <= 1:
            raise BadInputError(f"{path}, line {line}: the frequency {fields[7]} is not between 0 and 1: correct it")
        if abs(energy) > MOST:
            raise BadInputError(f"{path}, line {line}: the energy {fields[8]} kBT is beyond {MOST:g} kBT: make the "
                                "table again, or leave the contact out")
        places = [(a - start, b - start) for a, b in (first, second)]
        if circle is not None:
            places = [turned_interval(a, b, turn, length) for a, b in places]
        found.append(ContactEnergy(*places, target, energy))
    if not found:
        raise BadInputError(f"{path} holds no contact: make the table again, or leave scaffold.contact_energies empty")
    return tuple(found)


def contact_energies_text(energies: Sequence[ContactEnergy], chromosome: str, start: int) -> str:
    """The table of contact energies, counted from the start of a locus, which lies at `start` (0-based) of
    `chromosome`."""
    lines = ["#" + "\t".join(COLUMNS)]
    for k, contact in enumerate(energies, start=1):
        (a, b), (c, d) = contact.first, contact.second
        lines.append(f"{chromosome}\t{a + start}\t{b + start}\t{chromosome}\t{c + start}\t{d + start}\tcontact_{k}\t"
                     f"{contact.target:.6g}\t{contact.energy:.4f}")
    return "\n".join(lines) + "\n"
