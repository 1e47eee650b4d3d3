"""The beginning of a bundled locus."""

import gzip
import re
from pathlib import Path

WRAPPED = 147


def shorten(folder: Path, base_pairs: int) -> None:
    """Leave the first base pairs of the locus in a new project, and the nucleosomes that lie on them."""
    fasta = next(folder.glob("*.fa*"))
    opened = gzip.open if fasta.suffix == ".gz" else open
    with opened(fasta, "rt") as file:
        header, _, sequence = file.read().partition("\n")
    name, first = re.match(r">(.*):([\d,]+)-", header).groups()
    first = int(first.replace(",", ""))
    kept = "".join(sequence.split())[:base_pairs]
    with opened(fasta, "wt") as file:
        file.write(f">{name}:{first}-{first + len(kept) - 1}\n{kept}\n")
    dyads = next(folder.glob("*.dyads.bed"))
    lines = [line for line in dyads.read_text().splitlines(keepends=True)
             if line.startswith("#") or int(line.split()[1]) < first + len(kept) - WRAPPED // 2]
    dyads.write_text("".join(lines))
