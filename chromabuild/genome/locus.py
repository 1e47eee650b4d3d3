"""Genome inputs become a Locus: sequence, nucleosomes that fit on it, contacts; validated and immutable.

Coordinates are 0-based and half open, as in BED. Everything that cannot be used is reported with its file, line and
value; everything that was changed (shifted or dropped nucleosomes, contacts that lie outside) is listed.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.notebook import facts_html
from chromabuild.base.settings import LocusSection, changed
from chromabuild.base.summary import Summary
from chromabuild.genome.chromosomes import Chromosome, same_chromosome
from chromabuild.genome.circle import Circle, given_interval, turned_interval
from chromabuild.genome.contact_matrix import is_matrix
from chromabuild.genome.contacts import ENRICHMENT, matrix_contacts, read_contacts
from chromabuild.genome.dyad_phase import dyad_phase
from chromabuild.genome.fasta import read_fasta, read_region
from chromabuild.genome.missing_dimers import without_dimers
from chromabuild.genome.nucleosomes import Nucleosome, read_nucleosomes, resolve_overlaps, without_crossing
from chromabuild.genome.proteins import ProteinSite, check_room, read_protein_sites
from chromabuild.genome.records_used import RecordsUsed
from chromabuild.genome.region import Region
from chromabuild.genome.seam import check_room_at_seam, turned
from chromabuild.genome.wrapping import Wrapping
from mesoscale.fibre import Adjustment, Contact, Fibre

SHORTEST_DNA = 10
"""Base pairs: one turn."""
SHORTEST_CIRCLE = 60
"""Base pairs: a radius of 32 angstrom; a nucleosome's is 42."""


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
    """Of A, C, G, T: strand I, 5' to 3'; base pair k is that of letter k. Of a circle with nucleosomes, turned."""
    nucleosomes: tuple[Nucleosome, ...]
    """By ascending dyad."""
    wrapped_length: int
    """Base pairs on a core."""
    contacts: tuple[Contact, ...]
    adjustments: tuple[Adjustment, ...]
    ignored_contacts: tuple[str, ...]
    circular: bool = False
    """Whether the last base pair is followed by the first."""
    linking_number: int | None = None
    """Of a circle; None: the nearest to relaxed DNA, or that whose linkers are nearest to rest."""
    warnings: tuple[str, ...] = ()
    """What of the input does not look right; it is used all the same."""
    proteins: tuple[ProteinSite, ...] = ()
    """Of other proteins, by ascending base pair."""
    records_used: dict[str, str] = field(default_factory=dict)
    """Of files of which some records are left out: ``n of m``."""
    turn: int = 0
    """Base pairs of a circle from the first on the chromosome to base pair 0 (``genome.seam`` says why)."""

    @property
    def position(self) -> np.ndarray:
        """(n,) 0-based position of every base pair on the chromosome."""
        return self.fibre().position

    def given(self, stretch: tuple[int, int]) -> tuple[int, int]:
        """First and end base pair of a stretch on the chromosome, as input files have it."""
        return given_interval(stretch, self.start, self.turn, len(self.sequence))

    @classmethod
    def from_files(cls, fasta: str | Path, nucleosomes: str | Path | None = None, contacts: str | Path | None = None,
                   seed: int = 1, **keys: object) -> "Locus":
        """Read a sequence (FASTA), nucleosomes (BED; None: DNA alone) and contacts (BEDPE, .cool, .mcool, .hic).

        ``keys`` are further settings of section ``locus``: ``name``, ``record``, ``start``, ``wrapped_length``,
        ``minimum_linker``, ``overlaps``, ``region``, ``circular``, ``linking_number``, ``proteins``. ``seed`` draws
        nucleosomes with ``overlaps="draw"``. Raises BadInputError with one sentence for anything that cannot be used.

        >>> locus = Locus.from_files("demo.fa", "demo.dyads.bed", name="four nucleosomes")
        >>> locus.chromosome, len(locus.sequence), len(locus.nucleosomes)
        ('chrXIII', 679, 4)
        """
        keys |= {"fasta": fasta, "nucleosomes": nucleosomes, "contacts": contacts}
        return load_locus(changed(None, "locus", keys, None, "Locus.from_files()").locus, seed)

    def summary(self) -> Summary:
        """Name, place, sizes, and what of the input was moved, dropped or left out."""
        return {"name": self.name, "chromosome": self.chromosome, "start": self.start,
                "end": self.start + len(self.sequence), "base_pairs": len(self.sequence),
                "nucleosomes": len(self.nucleosomes), "contacts": len(self.contacts),
                **self._partial(),
                **({"proteins": len(self.proteins)} if self.proteins else {}),
                "adjusted_dyads": len(self.adjustments), "shifts": list(self.adjustments),
                "unused_contacts": len(self.ignored_contacts), "ignored_contacts": list(self.ignored_contacts),
                **({"records_used": dict(self.records_used)} if self.records_used else {}),
                **({"warning": "; ".join(self.warnings)} if self.warnings else {})}

    def _partial(self) -> Summary:
        """Counts of what is not wrapped or not built like the others; empty where all are alike."""
        lengths = [n.before + 1 + n.after for n in self.nucleosomes]
        lacking = [n.missing for n in self.nucleosomes]
        found: Summary = {}
        if set(lengths) - {self.wrapped_length}:
            found |= {"wrapped_shortest": min(lengths), "wrapped_longest": max(lengths)}
        if any(lacking):
            found |= {"hexasomes": sum(one in ("entry", "exit") for one in lacking),
                      "tetrasomes": lacking.count("both")}
        return found

    def _repr_html_(self) -> str:
        place = f"{self.chromosome}:{self.start + 1:,}-{self.start + len(self.sequence):,}"
        return facts_html(self.name, {
            "place": place, "base pairs": len(self.sequence), "nucleosomes": len(self.nucleosomes),
            **({"proteins": len(self.proteins)} if self.proteins else {}), "contacts": len(self.contacts),
            "dyads moved or dropped": len(self.adjustments),
            "contacts left out": len(self.ignored_contacts)})

    def fibre(self) -> Fibre:
        """What the mesoscale model needs to know of this locus."""
        ends = tuple((n.before, n.after) for n in self.nucleosomes)
        missing = tuple(n.missing for n in self.nucleosomes)
        half = (self.wrapped_length - 1) // 2
        return Fibre(
            sequence=self.sequence,
            dyads=tuple(n.dyad for n in self.nucleosomes),
            wrapped_length=self.wrapped_length,
            contacts=self.contacts,
            name=self.name,
            chromosome=self.chromosome,
            start=self.start,
            adjustments=self.adjustments,
            ends=ends if set(ends) - {(half, half)} else (),
            missing=missing if any(missing) else (),
            circular=self.circular,
            linking_number=self.linking_number,
            turn=self.turn,
        )


def load_locus(section: LocusSection, seed: int = 1) -> Locus:
    """Read and validate all genome inputs of a build; the seed draws nucleosomes where `overlaps` is ``draw``.

    Raises BadInputError with one sentence for anything that cannot be used.
    """
    if section.wrapped_length % 2 == 0:
        raise BadInputError(f"wrapped_length = {section.wrapped_length} is even: choose an odd number around the dyad")
    if section.linking_number is not None and not section.circular:
        raise BadInputError(f"locus.linking_number = {section.linking_number}, but linear DNA has none: leave it "
                            "empty, or set locus.circular")
    chromosome, start, sequence = _sequence(section)
    length = len(sequence)
    is_cut = section.region is not None
    used, circle = RecordsUsed(), Circle.of(start, length, section)
    if section.circular:
        _check_circle(section, length)
    sites = _protein_sites(section, chromosome, start, length, circle, used)
    if section.nucleosomes is None:
        return _bare(section, chromosome, start, sequence, sites, used)
    found = read_nucleosomes(section.nucleosomes, chromosome, start, length, is_cut, Wrapping.of(section), used, circle)
    if section.circular:
        found = [one for one in found if 0 <= one.dyad < length]
    if section.missing_dimers is not None:
        found = without_dimers(section.missing_dimers, found, chromosome, start, used, circle)
    shortest = min(n.before + 1 + n.after for n in found)
    if length < shortest:
        raise BadInputError(
            f"{section.fasta}: {length} bp of sequence are fewer than the {shortest} of one nucleosome: "
            "extend the sequence"
        )
    crossing: list[Adjustment] = []
    if is_cut and not section.circular:
        found, crossing = without_crossing(found, start, length)
        if not found:
            raise BadInputError(f"{section.nucleosomes}: no nucleosome lies wholly in locus.region {section.region}: "
                                "choose a longer region")
    turn = 0
    if section.circular:
        found, sites, turn = turned(found, sites, sequence, section)
        sequence = sequence[turn:] + sequence[:turn]
    warning = dyad_phase(sequence, [n.dyad for n in found]).warning
    nucleosomes, changes = resolve_overlaps(found, section, start, length, seed, turn)
    if section.circular:
        check_room_at_seam(nucleosomes, section, length)
    if sites:
        check_room(section.proteins, sites, [(n.first_bp, n.last_bp, f"nucleosome {n.name}") for n in nucleosomes],
                   start, turn, length if section.circular else None)
    contacts, ignored = _contacts(section, chromosome, start, length, turn, used)
    return Locus(
        name=section.name,
        chromosome=chromosome,
        start=start,
        sequence=sequence,
        nucleosomes=tuple(nucleosomes),
        wrapped_length=section.wrapped_length,
        contacts=tuple(contacts),
        adjustments=(*crossing, *changes),
        ignored_contacts=tuple(ignored),
        circular=section.circular,
        linking_number=section.linking_number,
        warnings=(f"{section.nucleosomes}: {warning}",) if warning else (),
        proteins=tuple(sites),
        records_used=used.partly(),
        turn=turn,
    )


def _protein_sites(section: LocusSection, chromosome: str, start: int, length: int, circle: Circle | None,
                   used: RecordsUsed) -> list[ProteinSite]:
    """Sites of other proteins."""
    if section.proteins is None:
        return []
    return read_protein_sites(section.proteins, chromosome, start, length, section.region is not None, used, circle)


def _check_circle(section: LocusSection, length: int) -> None:
    """Raise BadInputError for what a circle cannot have, and for one that is too short."""
    if section.nucleosomes is None and section.missing_dimers is not None:
        raise BadInputError("locus.circular: closed DNA is built without missing_dimers: leave locus.missing_dimers "
                            "empty")
    if length < SHORTEST_CIRCLE:
        raise BadInputError(f"{section.fasta}: {length} bp of sequence are fewer than the {SHORTEST_CIRCLE} that a "
                            "circle is built of: extend the sequence")


def _bare(section: LocusSection, chromosome: str, start: int, sequence: str, sites: list[ProteinSite],
          used: RecordsUsed) -> Locus:
    """DNA alone or with proteins that are no nucleosomes, linear or closed."""
    if len(sequence) < SHORTEST_DNA:
        raise BadInputError(f"{section.fasta}: {len(sequence)} bp of sequence are fewer than the {SHORTEST_DNA} that "
                            "DNA is built of: extend the sequence")
    turn = 0
    if section.circular and section.proteins is not None and not sites:
        raise BadInputError(f"{section.proteins}: no protein lies wholly in locus.region {section.region}: choose "
                            "another region, or leave locus.proteins empty")
    if section.circular and sites:
        _, sites, turn = turned((), sites, sequence, section)
        sequence = sequence[turn:] + sequence[:turn]
    if sites:
        check_room(section.proteins, sites, [], start, turn, len(sequence) if section.circular else None)
    contacts, ignored = _contacts(section, chromosome, start, len(sequence), turn, used)
    return Locus(section.name, chromosome, start, sequence, (), section.wrapped_length, tuple(contacts), (),
                 tuple(ignored), section.circular, section.linking_number, proteins=tuple(sites),
                 records_used=used.partly(), turn=turn)


def _sequence(section: LocusSection) -> tuple[Chromosome, int, str]:
    """Name of the chromosome, place of the first base on it (0-based) and sequence."""
    chromosome, start, sequence = _sequence_of_file(section)
    return Chromosome.of_table(chromosome, section.chromosome_names), start, sequence


def _sequence_of_file(section: LocusSection) -> tuple[str, int, str]:
    """The same, the chromosome as the FASTA file names it."""
    if section.region is not None:
        if section.start is not None:
            raise BadInputError(f"locus.region = {section.region!r} and locus.start = {section.start} both place the "
                                "locus: leave start empty")
        region = Region.of_setting(section.region)
        region = replace(region, chromosome=Chromosome.of_table(region.chromosome, section.chromosome_names))
        chromosome, sequence = read_region(section.fasta, region, section.record)
        return chromosome, region.start, sequence
    header, sequence = read_fasta(section.fasta, section.record)
    name = header.split()[0] if header else ""
    region = Region.parse(name)
    chromosome = region.chromosome if region else name
    if section.start is not None:
        return chromosome, section.start, sequence
    if region is None:
        return chromosome, 0, sequence
    if region.end - region.start != len(sequence):
        raise BadInputError(
            f"{section.fasta}: the header {name!r} names {region.end - region.start} bases (1-based), "
            f"the record has {len(sequence)}: correct the header or set `start`"
        )
    return chromosome, region.start, sequence


def _contacts(section: LocusSection, chromosome: str, start: int, length: int, turn: int, used: RecordsUsed
              ) -> tuple[list[Contact], list[str]]:
    """Contacts within the locus, and why others are not used: of a cut locus those that cross its border. Stretches
    are counted from base pair 0, before which ``turn`` base pairs of a circle lie.

    Raises BadInputError when none is used.
    """
    if section.contacts is None:
        return [], []
    circle, end = Circle.of(start, length, section), start + length

    def local(first: int, last: int) -> tuple[int, int]:
        return (turned_interval(first - start, last - start, turn, length) if section.circular
                else (first - start, last - start))

    contacts, ignored, reasons, crossing = [], [], [], None
    if is_matrix(section.contacts):
        found, crossing = matrix_contacts(section.contacts, chromosome, start, end, section.circular)
    else:
        found = read_contacts(section.contacts)
    for one, a, b, other, c, d, weight, where in found:
        is_here = same_chromosome(one, chromosome) and same_chromosome(other, chromosome)
        inside = [start <= first and last <= end if circle is None else circle.holds(first, last)
                  for first, last in ((a, b), (c, d))]
        if not is_here:
            reason = f"{where}: on {one} and {other}, not on {chromosome}"
        elif not all(inside):
            reason = f"{where}: {a}-{b} with {c}-{d} reaches outside the locus"
        elif (a, b) == (c, d):
            reason = f"{where}: {a}-{b} with itself"
        else:
            contacts.append(Contact(local(a, b), local(c, d), weight))
            continue
        reasons = reasons or [reason]
        if section.region is None or (is_here and any(inside)):
            ignored.append(reason)
    if not contacts:
        none_enriched = [f"no two bins are seen {ENRICHMENT:g} times as often as the mean pair at their distance"]
        reasons = reasons or none_enriched * is_matrix(section.contacts)
        why = f" ({reasons[0]})" if reasons else ""
        raise BadInputError(f"{section.contacts} holds no contact that can be used within {chromosome}:{start + 1}-"
                            f"{end}{why}: check names and positions, or leave locus.contacts empty")
    used.count(section.contacts, len(contacts), len(found))
    return contacts, ignored + [crossing] * (crossing is not None)
