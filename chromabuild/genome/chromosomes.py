"""Names of chromosomes, which files of different origin spell differently."""

from collections.abc import Iterable

_MITOCHONDRION = ("m", "mt", "mito", "mitochondrion")


def canonical(name: str) -> str:
    """What the spellings of a chromosome have in common: no ``chr`` before it, no capitals, one for the mitochondrion.

    Accession numbers and arabic against roman numbers are other names, not other spellings.

    >>> canonical("chrIV") == canonical("IV") == canonical("Chriv"), canonical("chrM") == canonical("MT")
    (True, True)
    >>> canonical("4") == canonical("IV")
    False
    """
    plain = name.strip().lower().removeprefix("chr")
    return "m" if plain in _MITOCHONDRION else plain


def same_chromosome(one: str, other: str) -> bool:
    """Whether two names are spellings of one."""
    return canonical(one) == canonical(other)


def spelled(name: str, known: Iterable[str]) -> str | None:
    """How ``known`` names spell a chromosome: exactly so, else in another spelling; None when it is not among them."""
    names = list(known)
    return name if name in names else next((one for one in names if same_chromosome(one, name)), None)
