"""The origin of a circle that carries nucleosomes or proteins: where its numbering begins means nothing to the DNA.

A plasmid is numbered from anywhere, so that a nucleosome may lie across base pair 1. Everything behind the locus (fold,
path, atoms, analysis) takes a nucleosome or a protein as one run of base pairs. So the locus is turned once, where it
is read, to begin in the middle of its longest linker: the one choice that does not depend on the numbering of the
input, and the same atoms in the same order follow from any of them. What goes back to the user goes through the array
of positions that every locus, fibre and scaffold holds (``position``, of each base pair): tracks, marks, bins and
listings. The alternative, intervals modulo the length, would have to be known wherever base pairs are sliced.
"""

from collections.abc import Sequence
from dataclasses import replace

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection
from chromabuild.genome.circle import turned_interval
from chromabuild.genome.nucleosomes import Nucleosome
from chromabuild.genome.proteins import ProteinSite


def turned(found: Sequence[Nucleosome], sites: Sequence[ProteinSite], sequence: str, section: LocusSection
           ) -> tuple[list[Nucleosome], list[ProteinSite], int]:
    """Nucleosomes, by ascending dyad, and proteins, by ascending base pair, of a circle, counted from the middle of its
    longest linker, and that place.

    Of linkers that are equally long it is the one from which ``sequence`` comes first in the alphabet. Raises
    BadInputError, with the line, where what overlaps leaves no linker and one lies across the origin.
    """
    length = len(sequence)
    origin = _origin([(one.first_bp, one.last_bp) for one in found] + [(one.first_bp, one.end - 1) for one in sites],
                     sequence)
    result = sorted((replace(one, dyad=(one.dyad - origin) % length) for one in found), key=lambda one: one.dyad)
    moved = []
    for site in sites:
        first, end = turned_interval(site.first_bp, site.end, origin, length)
        if end > length:
            raise BadInputError(
                f"{section.proteins}, line {site.line}: {site.name} lies across base pair 1 of the circle, and no "
                "linker is free for it to begin in: extend the sequence or leave proteins out")
        moved.append(replace(site, first_bp=first, end=end))
    moved.sort(key=lambda site: (site.first_bp, site.end))
    for one in result:
        if one.first_bp < 0 or one.last_bp >= length:
            raise BadInputError(
                f"{section.nucleosomes}, line {one.line}: nucleosome {one.name} lies across base pair 1 of the circle, "
                "and no linker is free of nucleosomes for it to begin in: extend the sequence or leave nucleosomes out")
    return result, moved, origin


def check_room_at_seam(nucleosomes: Sequence[Nucleosome], section: LocusSection, length: int) -> None:
    """Raise BadInputError where the linker in which the turned circle begins is shorter than
    ``locus.minimum_linker``."""
    first, last = nucleosomes[0], nucleosomes[-1]
    linker = length - 1 - last.last_bp + first.first_bp
    if linker < section.minimum_linker:
        raise BadInputError(
            f"{section.nucleosomes}: nucleosomes {last.name} and {first.name} leave {linker} bp between them "
            f"on the circle, {section.minimum_linker} are needed: move them apart, extend the sequence "
            "or lower locus.minimum_linker")


def _origin(found: Sequence[tuple[int, int]], sequence: str) -> int:
    """The middle of the longest stretch between spans, first and last base pair, on a circle; 0 where they leave none.
    """
    length, free = len(sequence), []
    # Twice round: alternatives that overlap may reach beyond their neighbours, and across the origin.
    spans = sorted((first + lap * length, last + lap * length) for first, last in found for lap in (0, 1, 2))
    reach = spans[0][1] if spans else -1
    for first, last in spans[1:]:
        if first > reach + 1 and length <= reach + 1 < 2 * length:
            free.append((first - reach - 1, (reach + 1 + (first - reach - 1) // 2) % length))
        reach = max(reach, last)
    longest = max((size for size, _ in free), default=0)
    return min((middle for size, middle in free if size == longest),
               key=lambda middle: (sequence[middle:] + sequence[:middle], middle), default=0)
