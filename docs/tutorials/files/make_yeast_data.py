"""Stand-ins for a user's own files, from the yeast data that chromabuild carries: 12 kb of chromosome XIII.

    python make_yeast_data.py

writes my_gene.fa, mnase.bed (paired-end MNase-seq fragments, drawn about the mapped dyads), hic.cool (Hi-C at 2 kb) and
h2az.bw (a ChIP-seq signal, invented: high on the first nucleosomes behind two promoters).
"""

import gzip
import struct
import zlib
from pathlib import Path

import hictkpy
import numpy as np

from chromabuild.pipeline.workflow import workflow_folder

CHROMOSOME, START, END = "chrXIII", 84_000, 96_000
LENGTH = {CHROMOSOME: 924_431}
SOURCE = workflow_folder() / "config" / "loci"


def records(name: str) -> list[list[str]]:
    """Fields of a BED or BEDPE file that chromabuild carries."""
    data = (SOURCE / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def write_fasta(path: str) -> None:
    header, *lines = gzip.decompress((SOURCE / "chrXIII_36501-119500.fa.gz").read_bytes()).decode().split()
    sequence = "".join(line for line in lines if set(line) <= set("ACGT"))
    first = 36_500
    part = sequence[START - first:END - first]
    Path(path).write_text(f"{header.split(':')[0]}:{START + 1}-{END}\n{part}\n")


def write_fragments(path: str) -> None:
    """About 40 fragments a nucleosome; their middles scatter by 8 bp."""
    rng = np.random.default_rng(1)
    lines = []
    for fields in records("chrXIII_36501-119500.dyads.bed"):
        dyad, score = int(fields[1]), float(fields[4])
        if START + 74 <= dyad < END - 74:
            for middle in dyad + rng.normal(0, 8, rng.poisson(8 * score)).round().astype(int):
                length = int(rng.integers(138, 158))
                lines.append((middle - length // 2, middle - length // 2 + length))
    Path(path).write_text("".join(f"{CHROMOSOME}\t{a}\t{b}\n" for a, b in sorted(lines)))


def write_contacts(path: str) -> None:
    pairs = sorted((int(f[1]), int(f[4]), int(f[7])) for f in records("chrXIII_36501-119500.hic_2kb.bedpe.gz"))
    one, other, count = zip(*pairs, strict=True)
    with hictkpy.cooler.FileWriter(path, LENGTH, 2000) as file:
        file.add_pixels_from_dict({"bin1_id": [a // 2000 for a in one], "bin2_id": [b // 2000 for b in other],
                                   "count": list(count)})


def write_bigwig(path: str, start: int, values: np.ndarray) -> None:
    """A signal of one value a base pair from ``start`` on, as one bigWig section without zoom levels."""
    step = 10
    mean = values[:len(values) // step * step].reshape(-1, step).mean(axis=1)
    end = start + step * len(mean)
    section = zlib.compress(struct.pack("<IIIIIBBH", 0, start, end, step, step, 3, 0, len(mean))
                            + mean.astype("<f4").tobytes())
    name = CHROMOSOME.encode()
    tree = struct.pack("<IIIIQQ", 0x78CA8C91, 1, len(name), 8, 1, 0) + struct.pack("<BBH", 1, 0, 1) \
        + name + struct.pack("<II", 0, LENGTH[CHROMOSOME])
    summary = struct.pack("<Qdddd", end - start, mean.min(), mean.max(), step * mean.sum(), step * (mean**2).sum())
    at_summary, at_tree = 64, 64 + len(summary)
    at_data = at_tree + len(tree)
    at_index = at_data + 8 + len(section)
    index = struct.pack("<IIQIIIIQII", 0x2468ACE0, 1, 1, 0, start, 0, end, at_index, 1, 0) \
        + struct.pack("<BBH", 1, 0, 1) + struct.pack("<IIIIQQ", 0, start, 0, end, at_data + 8, len(section))
    header = struct.pack("<IHHQQQHHQQIQ", 0x888FFC26, 4, 0, at_tree, at_data, at_index, 0, 0, 0, at_summary,
                         24 + 4 * len(mean), 0)
    Path(path).write_bytes(header + summary + tree + struct.pack("<Q", 1) + section + index)


def write_h2az(path: str) -> None:
    position = np.arange(START, END)
    signal = sum(5 * np.exp(-((position - centre) / 90) ** 2) for centre in (87_400, 87_560, 91_000, 91_170))
    write_bigwig(path, START, signal)


if __name__ == "__main__":
    write_fasta("my_gene.fa")
    write_fragments("mnase.bed")
    write_contacts("hic.cool")
    write_h2az("h2az.bw")
