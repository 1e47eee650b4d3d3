"""Names of chromosomes, which files of different origin spell differently, and tables of their other names."""

from collections.abc import Iterable
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.genome.text import read_lines

_MITOCHONDRION = ("m", "mt", "mito", "mitochondrion")
_ALIAS_COLUMNS = ("alias", "chrom", "source")
"""Header of UCSC's older tables: a line an alias, the last column names who uses it."""


class Chromosome(str):
    """The name of a chromosome that knows the other names of it in a table (``locus.chromosome_names``)."""

    others: frozenset[str] = frozenset()
    """In their canonical form."""

    @classmethod
    def of_table(cls, name: str, path: str | Path | None) -> "Chromosome":
        """A name with the others that the table gives the same chromosome; without a table there are none.

        Raises BadInputError for a table that cannot be read, or in which this name is not.
        """
        made = cls(name)
        if path is not None:
            own = canonical(name)
            row = next((row for row in read_names(path) if own in row), None)
            if row is None:
                raise BadInputError(f"{path} has no line with {name!r}, the name of the sequence: add it to the names "
                                    "of its chromosome")
            made.others = row - {own}
        return made

    @classmethod
    def of_names(cls, names: Iterable[str]) -> "Chromosome":
        """The first name, with the others."""
        first, *others = names
        made = cls(first)
        made.others = frozenset(others)
        return made


def read_names(path: str | Path) -> list[frozenset[str]]:
    """Rows of a table of names, canonical: each line has the names of one chromosome, separated by tabs or blanks.

    That is the form of UCSC's ``chromAlias.txt``, whose older form (columns ``alias``, ``chrom``, ``source`` in its
    header, a line an alias) is read as well. Raises BadInputError, with the line, for a name of two chromosomes.
    """
    groups: dict[str, set[str]] = {}
    by_alias = False
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.removeprefix("#").split()
        if line.startswith("#"):
            by_alias = by_alias or tuple(field.lower() for field in fields) == _ALIAS_COLUMNS
            continue
        names = {canonical(name) for name in (fields[:2] if by_alias else fields)}
        if not names:
            continue
        if len(fields) < 2:
            raise BadInputError(f"{path}, line {number}: {line.strip()[:40]!r} is one name: a line holds all names of "
                                "one chromosome")
        known = names & groups.keys()
        if known and not by_alias:
            raise BadInputError(f"{path}, line {number}: {sorted(known)[0]!r} is the name of another line, too: keep "
                                "all names of a chromosome on one line, and each name once")
        merged = names.union(*(groups[name] for name in known))
        groups |= dict.fromkeys(merged, merged)
    if not groups:
        raise BadInputError(f"{path} holds no names: give a line with all names of a chromosome")
    return list({frozenset(names) for names in groups.values()})


def canonical(name: str) -> str:
    """What the spellings of a chromosome have in common: no ``chr`` before it, no capitals, one for the mitochondrion.

    Accession numbers and arabic against roman numbers are other names, not other spellings: a table has them.

    >>> canonical("chrIV") == canonical("IV") == canonical("Chriv"), canonical("chrM") == canonical("MT")
    (True, True)
    >>> canonical("4") == canonical("IV")
    False
    """
    plain = name.strip().lower().removeprefix("chr")
    return "m" if plain in _MITOCHONDRION else plain


def same_chromosome(one: str, other: str) -> bool:
    """Whether two names are spellings of one, or names of it in a table that one of them knows."""
    a, b = canonical(one), canonical(other)
    return a == b or any(plain in known.others for plain, known in ((b, one), (a, other))
                         if isinstance(known, Chromosome))


def spelled(name: str, known: Iterable[str]) -> str | None:
    """How ``known`` names spell a chromosome: exactly so, else otherwise; None when it is not among them."""
    names = list(known)
    return str(name) if name in names else next((one for one in names if same_chromosome(one, name)), None)
