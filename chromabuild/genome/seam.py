"""Nucleosomes of a circle beside its seam, where the last base pair is followed by the first."""

from collections.abc import Sequence

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import LocusSection
from chromabuild.genome.nucleosomes import Nucleosome


def check_seam(found: Sequence[Nucleosome], section: LocusSection, length: int) -> None:
    """Raise BadInputError, with the line and a better origin, for a nucleosome across the seam of ``length`` bp."""
    for one in found:
        if one.first_bp >= 0 and one.last_bp < length:
            continue
        origin = _middle_of_longest_linker(found, length)
        remedy = "extend the sequence or leave nucleosomes out" if origin is None else (
            f"turn the circle so that it begins in a linker, e.g. {origin} bp on: move the first {origin} letters of "
            f"the sequence to its end, take {origin} from all positions, and add {length} to those that fall below 0")
        raise BadInputError(
            f"{section.nucleosomes}, line {one.line}: nucleosome {one.name} lies across the seam of the circle, where "
            f"base pair {length} is followed by the first: {remedy}")


def check_room_at_seam(nucleosomes: Sequence[Nucleosome], section: LocusSection, length: int) -> None:
    """Raise BadInputError where the linker across the seam is shorter than ``locus.minimum_linker``."""
    first, last = nucleosomes[0], nucleosomes[-1]
    linker = length - 1 - last.last_bp + first.first_bp
    if linker < section.minimum_linker:
        raise BadInputError(
            f"{section.nucleosomes}: nucleosomes {last.name} and {first.name} leave {linker} bp between them "
            f"across the seam of the circle, {section.minimum_linker} are needed: move them apart, extend the sequence "
            "or lower locus.minimum_linker")


def _middle_of_longest_linker(found: Sequence[Nucleosome], length: int) -> int | None:
    """The middle of the longest linker of a circle, by ascending dyads; None where nucleosomes leave none."""
    behind = [*found[1:], found[0]]
    free = [((other.first_bp - one.last_bp - 1) % length if len(found) > 1 else length - 1 - one.last_bp + one.first_bp,
             one) for one, other in zip(found, behind, strict=True)]
    longest, before = max(free, key=lambda pair: pair[0])
    return (before.last_bp + 1 + longest // 2) % length if 0 < longest < length else None
