"""Write the bundled loci into workflows/config/loci from published yeast data (templates/SOURCES.md).

    python templates/tools/make_loci.py SEQUENCE.fa DYADS.bed LOOPS.bedpe HIC.bedpe

SEQUENCE has a header name:start-end (1-based). DYADS: BED of one-base dyads with a score in column 5. LOOPS: BEDPE
of called loops. HIC: pairs of bins with the raw count in column 7. The whole region and a cut of DEMO_NUCLEOSOMES
nucleosomes with short flanks are written as standard FASTA, BED and BEDPE.
"""

import gzip
import re
import sys
from pathlib import Path

DEMO_FIRST_DYAD = 42737
DEMO_NUCLEOSOMES = 4
DEMO_FLANK = 30  # bp
HALF = 73  # bp of a nucleosome on either side of its dyad
LOCI = Path(__file__).resolve().parents[2] / "workflows" / "config" / "loci"

SEQUENCE_SOURCE = "S. cerevisiae S288C, assembly sacCer3 (R64), SGD"
DYAD_SOURCE = [
    "Nucleosome dyads of S. cerevisiae by chemical cleavage, column 5 = NCP score, coordinates of sacCer3.",
    "Source: Brogaard, Xi, Wang & Widom, Nature 486:496 (2012), supplementary table of unique dyads.",
]
LOOP_SOURCE = [
    "Loops called in Micro-C XL data at 500 bp; column 8 = observed count.",
    "Source: Costantino, Hsieh, Lamothe, Darzacq & Koshland, eLife 9:e59889 (2020), GEO GSE151553.",
]
HIC_SOURCE = [
    "Hi-C of S. cerevisiae W303 in G1 at 2 kb; column 8 = raw count.",
    "Source: sequencing run SRR8769554 as distributed with chromosight (MIT licence).",
]


def records(path: str) -> list[list[str]]:
    """Tab-separated fields of all lines that are not comments."""
    return [line.split("\t") for line in Path(path).read_text().splitlines() if line and not line.startswith("#")]


def write(name: str, lines: list[str]) -> None:
    """Write a text file, gzip with a fixed time stamp when the name ends so."""
    data = ("\n".join(lines) + "\n").encode("ascii")
    if name.endswith(".gz"):
        data = gzip.compress(data, compresslevel=9, mtime=0)
    LOCI.mkdir(parents=True, exist_ok=True)
    (LOCI / name).write_bytes(data)
    print(f"{name}: {len(data)} bytes")


def fasta(chromosome: str, start: int, sequence: str) -> list[str]:
    """FASTA lines; start is 0-based, the header 1-based."""
    header = f">{chromosome}:{start + 1}-{start + len(sequence)} {SEQUENCE_SOURCE}"
    return [header, *(sequence[k : k + 60] for k in range(0, len(sequence), 60))]


def bed(dyads: list[list[str]], extra: list[str]) -> list[str]:
    """BED lines with their source as header."""
    return [f"# {line}" for line in DYAD_SOURCE + extra] + ["\t".join(d[:6]) for d in dyads]


def bedpe(pairs: list[list[str]], header: list[str], count_column: int) -> list[str]:
    """BEDPE lines of eight columns."""
    return [f"# {line}" for line in header] + ["\t".join([*p[:6], ".", f"{float(p[count_column]):g}"]) for p in pairs]


def main(sequence_file: str, dyad_file: str, loop_file: str, hic_file: str) -> None:
    """Read the four inputs and write both loci."""
    lines = Path(sequence_file).read_text().splitlines()
    region = re.match(r">([^:\s]+):(\d+)-(\d+)", lines[0])
    if region is None:
        raise SystemExit(f"{sequence_file}: the header must read >name:start-end")
    chromosome, start = region[1], int(region[2]) - 1
    sequence = "".join(lines[1:]).upper()
    end = start + len(sequence)
    dyads, loops, hic = records(dyad_file), records(loop_file), records(hic_file)

    name = f"{chromosome}_{start + 1}-{end}"
    write(f"{name}.fa.gz", fasta(chromosome, start, sequence))
    write(f"{name}.dyads.bed", bed(dyads, []))
    write(f"{name}.loops.bedpe", bedpe(loops, LOOP_SOURCE, 11))
    write(f"{name}.hic_2kb.bedpe.gz", bedpe(hic, HIC_SOURCE, 6))

    k = next(i for i, d in enumerate(dyads) if int(d[1]) == DEMO_FIRST_DYAD)
    chosen = dyads[k : k + DEMO_NUCLEOSOMES]
    low, high = int(chosen[0][1]) - HALF - DEMO_FLANK, int(chosen[-1][1]) + HALF + 1 + DEMO_FLANK
    write("demo.fa", fasta(chromosome, low, sequence[low - start : high - start]))
    write("demo.dyads.bed", bed(chosen, [f"Cut to {chromosome}:{low + 1}-{high}."]))
    inside = [p for p in loops if low < int(p[2]) and int(p[1]) < high or low < int(p[5]) and int(p[4]) < high]
    if inside:  # bins of the Hi-C are longer than the demo, and no loop should have an end in it
        raise SystemExit("a loop ends in the demo locus: give it a file of contacts")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
