"""Genome inputs become a Locus: sequence, nucleosomes that fit on it, contacts; validated and immutable.

Coordinates are 0-based and half open, as in BED. Everything that cannot be used is reported with its file, line and
value; everything that was changed (shifted or dropped nucleosomes, contacts that lie outside) is listed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.base.notebook import facts_html
from chromabuild.base.settings import LocusSection, changed
from chromabuild.base.summary import Summary
from chromabuild.genome.contacts import matrix_contacts, read_contacts
from chromabuild.genome.fasta import read_fasta
from chromabuild.genome.nucleosomes import Nucleosome, read_nucleosomes, resolve_overlaps
from mesoscale.fibre import Adjustment, Contact, Fibre

REGION = re.compile(r"^(?P<name>[^:\s]+):(?P<start>[\d,]+)-(?P<end>[\d,]+)$")


@dataclass(frozen=True)
class Locus:
    """A stretch of a genome with its nucleosomes and contacts, in indices of its own sequence.

    `adjustments` lists shifted and dropped nucleosomes, `ignored_contacts` says why contacts of the input are not used.
    """

    name: str
    chromosome: str
    start: int
    """0-based position of the first base on the chromosome."""
    sequence: str
    """Of A, C, G, T: strand I, 5' to 3'; base pair k is that of letter k."""
    nucleosomes: tuple[Nucleosome, ...]
    """By ascending dyad."""
    wrapped_length: int
    """Base pairs on a core."""
    contacts: tuple[Contact, ...]
    adjustments: tuple[Adjustment, ...]
    ignored_contacts: tuple[str, ...]

    @classmethod
    def from_files(cls, fasta: str | Path, nucleosomes: str | Path, contacts: str | Path | None = None,
                   **keys: object) -> "Locus":
        """Read a sequence (FASTA), nucleosomes (BED) and contacts (BEDPE, .cool, .mcool, .hic).

        ``keys`` are further settings of section ``locus``: ``name``, ``record``, ``start``, ``wrapped_length``,
        ``minimum_linker``, ``overlaps``. Raises BadInputError with one sentence for anything that cannot be used.

        >>> locus = Locus.from_files("demo.fa", "demo.dyads.bed", name="four nucleosomes")
        >>> locus.chromosome, len(locus.sequence), len(locus.nucleosomes)
        ('chrXIII', 679, 4)
        """
        keys |= {"fasta": fasta, "nucleosomes": nucleosomes, "contacts": contacts}
        return load_locus(changed(None, "locus", keys, None, "Locus.from_files()").locus)

    def summary(self) -> Summary:
        """Name, place, sizes, and what of the input was moved, dropped or left out."""
        return {"name": self.name, "chromosome": self.chromosome, "start": self.start,
                "end": self.start + len(self.sequence), "base_pairs": len(self.sequence),
                "nucleosomes": len(self.nucleosomes), "contacts": len(self.contacts),
                "adjusted_dyads": len(self.adjustments), "shifts": list(self.adjustments),
                "unused_contacts": len(self.ignored_contacts), "ignored_contacts": list(self.ignored_contacts)}

    def _repr_html_(self) -> str:
        place = f"{self.chromosome}:{self.start + 1:,}-{self.start + len(self.sequence):,}"
        return facts_html(self.name, {
            "place": place, "base pairs": len(self.sequence), "nucleosomes": len(self.nucleosomes),
            "contacts": len(self.contacts), "dyads moved or dropped": len(self.adjustments),
            "contacts left out": len(self.ignored_contacts)})

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
    nucleosomes, changes = resolve_overlaps(found, section, start, length)

    contacts, ignored = [], []
    if section.contacts is not None:
        matrix = section.contacts.endswith((".cool", ".mcool", ".hic"))
        for one, a, b, other, c, d, weight, where in (
            matrix_contacts(section.contacts, chromosome, start, start + length)
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
