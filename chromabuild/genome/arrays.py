"""Regular arrays: so many nucleosomes on copies of one positioning sequence, at one repeat."""

import re
from dataclasses import dataclass

from chromabuild.base.errors import BadInputError

WRAPPED = 147
POSITIONING = {
    "601": ("CTGGAGAATCCCGGTGCCGAGGCCGCTCAATTGGTCGTAGACAGCTCTAGCACCGCTTAAACGCACGTACGCGC"
            "TGTCCCCCGCGTTTTAACCGCCAAGGGGATTACTCCCTAGTCTCCAGGCACGTGTCAGATATATACATCCTGT"),
}
"""Sequences of 147 bp, dyad in the middle. 601: Lowary & Widom, J. Mol. Biol. 276:19 (1998), as bases 11 to 157 of
chain I of PDB 4QLC."""
SPACER = ("GCATGTAAGTTCAGTCGATACGTTAGCAAGCTGATCGTCAACTGGCCTTACGATCCGTAAGCTTGACATCGAATGCCTAGTACAGCTTCGATGACTTGCA"
          "CGTACTAAGGCTTACCATGATCGCAAGTCTGATACCGTTCAGCATAGCTCGATTGGACCTATGCAGTTACGCTAGACTTCCGATAGTCAACGGTATCTGAG")
"""Linkers are cut from its middle: 201 bp without a purpose, of this project."""
SHORTEST_REPEAT, LONGEST_REPEAT, MOST = 147 + 10, 147 + len(SPACER), 10_000
_ARRAY = re.compile(r"(\d+)x(\w+):(\d+)")


@dataclass(frozen=True)
class Array:
    """A sequence and the dyads on it, indices from 0."""

    name: str
    sequence: str
    dyads: tuple[int, ...]

    def fasta(self) -> str:
        """One record in lines of 60 bases."""
        lines = [self.sequence[k:k + 60] for k in range(0, len(self.sequence), 60)]
        return "\n".join([f">{self.name}", *lines]) + "\n"

    def bed(self) -> str:
        """One line a dyad."""
        return "".join(f"{self.name}\t{dyad}\t{dyad + 1}\tN{k}\n" for k, dyad in enumerate(self.dyads, start=1))


def array_of(text: str) -> Array:
    """The array that ``12x601:197`` names: nucleosomes, positioning sequence, repeat in base pairs.

    Half a linker stands at either end. Raises BadInputError for what is no such array.

    >>> array = array_of("2x601:167")
    >>> len(array.sequence), array.dyads
    (334, (83, 250))
    """
    found = _ARRAY.fullmatch(text.strip())
    if found is None or found[2] not in POSITIONING:
        raise BadInputError(f"--array {text!r} is not of the form NUMBERxSEQUENCE:REPEAT with the sequence "
                            f"{' or '.join(POSITIONING)}: write e.g. 12x601:197")
    number, repeat, core = int(found[1]), int(found[3]), POSITIONING[found[2]]
    single = number == 1 and repeat >= WRAPPED
    if not 1 <= number <= MOST or not (single or SHORTEST_REPEAT <= repeat) or repeat > LONGEST_REPEAT:
        raise BadInputError(f"--array {text!r}: give 1 to {MOST} nucleosomes and a repeat of {SHORTEST_REPEAT} to "
                            f"{LONGEST_REPEAT} base pairs (of one nucleosome: from {WRAPPED})")
    free = repeat - WRAPPED
    before = free // 2
    first = (len(SPACER) - free) // 2
    linker = SPACER[first:first + free]
    unit = linker[free - before:] + core + linker[:free - before]
    return Array(f"array_{number}x{found[2]}_{repeat}", number * unit,
                 tuple(k * repeat + before + WRAPPED // 2 for k in range(number)))
