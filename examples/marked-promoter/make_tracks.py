"""Tracks of an active promoter, in the formats in which public data come.

Yeast has neither methylated CpGs nor the rest of what a human promoter carries, so the signals follow the usual profile
about a start of transcription: H2A.Z and H3K27ac on both sides of it, H3K4me3 on the first nucleosomes of the gene,
CpGs free of methyl near it and methylated elsewhere, linker histones beyond the first nucleosome. Replace these files
by your own.
"""

from pathlib import Path

START = 44020  # of transcription, on strand +, from 0
PROFILE = {  # first and last base about the start, and the score of the peak
    "H3K4me3.narrowPeak": [(-250, 700, 640)],
    "H3K27ac.narrowPeak": [(-300, 300, 480)],
    "H2A.Z.narrowPeak": [(-230, -130, 310), (-30, 90, 720)],
}
FREE_OF_METHYL = range(-260, 120)
READS = 24


def locus() -> tuple[str, int, str]:
    """Chromosome, position of the first base (from 0) and letters of locus.fa."""
    header, *lines = Path("locus.fa").read_text().splitlines()
    name, _, stretch = header[1:].split()[0].partition(":")
    return name, int(stretch.split("-")[0]) - 1, "".join(lines)


def main() -> None:
    """Write the tracks beside this file's inputs."""
    name, first, letters = locus()
    for file, peaks in PROFILE.items():
        rows = [f"{name}\t{START + a}\t{START + b}\tpeak_{k}\t{score}\t.\t{score / 40:.2f}\t9.1\t6.4\t{(b - a) // 2}"
                for k, (a, b, score) in enumerate(peaks, start=1)]
        Path(file).write_text("\n".join(rows) + "\n")
    rows = []
    for k in range(len(letters) - 1):
        if letters[k:k + 2] == "CG":
            percent = 4 if first + k - START in FREE_OF_METHYL else 83
            for place, strand in ((first + k, "+"), (first + k + 1, "-")):
                rows.append(f"{name}\t{place}\t{place + 1}\tm\t{READS}\t{strand}\t{place}\t{place + 1}\t255,0,0\t"
                            f"{READS}\t{percent}")
    Path("wgbs.bedMethyl").write_text("\n".join(rows) + "\n")
    far = [(first, START - 400), (START + 150, first + len(letters))]
    Path("linker_histones.bed").write_text("".join(f"{name}\t{a}\t{b}\tH1.4\n" for a, b in far))


if __name__ == "__main__":
    main()
