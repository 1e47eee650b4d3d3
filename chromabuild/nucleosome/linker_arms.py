"""Which nucleosomes hold their linker arms: the ten base pairs on either side that a linker histone binds."""

from collections.abc import Sequence
from dataclasses import replace

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.genome.nucleosomes import Nucleosome
from chromabuild.genome.wrapping import ARM, FULL_HALF
from mesoscale.fibre import Fibre


def with_linker_arms(fibre: Fibre, nucleosomes: Sequence[Nucleosome], settings: Settings) -> Fibre:
    """The fibre, whose linker histones are known, with the base pairs that they hold beside the core.

    With ``build.linker_arms: held`` these are ten on every side where the core is wrapped to its end and the table of
    nucleosomes does not say otherwise; beside that, what the table says.

    Raises BadInputError, with the line of the nucleosome, for arms without a linker histone, beyond the sequence, or
    without room beside a neighbour; and for a path of DNA that has none.
    """
    ends = []
    for one, (before, after), carries in zip(nucleosomes, fibre.wrapped, fibre.linker_histone, strict=True):
        if settings.build.linker_arms == "held" and carries and not one.ends_given:
            before, after = (FULL_HALF + ARM if half == FULL_HALF else half for half in (before, after))
        if max(before, after) > FULL_HALF and not carries:
            raise BadInputError(
                f"{_where(settings, one)}: {before} and {after} bp beside the dyad are wrapped; a core holds "
                f"{FULL_HALF}, more is held by a linker histone, which {one.name} does not carry: set "
                "build.linker_histone, give it one in build.marks, or correct the line")
        ends.append((before, after))
    if settings.build.linker_arms == "held" and not any(max(pair) > FULL_HALF for pair in ends):
        raise BadInputError("build.linker_arms: held, but no nucleosome that is wrapped to its ends carries a linker "
                            "histone: set build.linker_histone and locus.wrapped_length 147, or linker_arms to free")
    if not any(max(pair) > FULL_HALF for pair in ends):
        return fibre
    if settings.build.nucleosome_path == "superhelix":
        raise BadInputError("build.nucleosome_path: superhelix has no linker arms: set it to crystal, or "
                            "build.linker_arms to free and columns 7 and 8 to within 73 bp of the dyad")
    _check_room(fibre, nucleosomes, ends, settings)
    return replace(fibre, ends=tuple(ends))


def held_arms(fibre: Fibre) -> int:
    """Sides of nucleosomes on which more is held than the core does."""
    return sum(half > FULL_HALF for pair in fibre.wrapped for half in pair)


def _where(settings: Settings, one: Nucleosome) -> str:
    return f"{settings.locus.nucleosomes}, line {one.line}"


def _check_room(fibre: Fibre, nucleosomes: Sequence[Nucleosome], ends: list[tuple[int, int]], settings: Settings
                ) -> None:
    """Raises BadInputError for arms that reach beyond the sequence, or too near to what stands beside them."""
    least, remedy = settings.locus.minimum_linker, (
        "move them apart, lower locus.minimum_linker, or leave an arm free (locus.wrapping: thick with columns 7 and 8 "
        f"within {FULL_HALF} bp of the dyad)")
    bodies = [(one.dyad - before, one.dyad + after, max(before, after) > FULL_HALF, one)
              for one, (before, after) in zip(nucleosomes, ends, strict=True)]
    bodies += [(one.first_bp, one.last_bp, False, one) for one in fibre.proteins]
    bodies.sort(key=lambda body: body[0])
    first, *others = bodies[0]
    behind = bodies[1:] + ([(first + len(fibre.sequence), *others)] if fibre.circular else [])
    for (_, last, held, one), (first, _, other_held, other) in zip(bodies, behind, strict=False):
        if (held or other_held) and first - last - 1 < least:
            own = one if isinstance(one, Nucleosome) else other
            room = first - last - 1
            left = f"leave {room} bp between them" if room >= 0 else f"share {-room} bp"
            raise BadInputError(f"{_where(settings, own)}: {one.name} and {other.name} {left} with their linker arms "
                                f"held, {least} are needed: {remedy}")
    beyond = [(one, max(-first, last + 1 - len(fibre.sequence))) for first, last, held, one in bodies
              if held and (first < 0 or last >= len(fibre.sequence))]
    if beyond:
        one, by = beyond[0]
        raise BadInputError(f"{_where(settings, one)}: the linker arms of {one.name} reach {by} bp beyond the "
                            f"sequence: extend it, or leave the arm free (locus.wrapping: thick with columns 7 and 8 "
                            f"within {FULL_HALF} bp of the dyad)")
