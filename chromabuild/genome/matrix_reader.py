"""Part of a contact matrix (.cool, .mcool, .hic), read by hictkpy in a process of its own.

From its import on a thread of hictkpy (1.4) keeps a core busy, so that nothing that computes may import it. Run as a
script with PATH CHROMOSOME START END BIN CROSSING (0: none), the chromosome's other names behind its own, after tabs;
writes an .npz to standard output, or a line on what is wrong to standard error.
"""

import io
import sys

import hictkpy
import numpy as np

from chromabuild.genome.chromosomes import Chromosome, spelled


def main(path: str, chromosome: str, start: int, end: int, into: int, crossing: int) -> str | None:
    """Write the bin size, the first bin and number of bins that lie in the region, the filled pixels, counted from the
    first bin, and, with ``crossing``, number and sum of the pixels of one bin in the region with another of its
    chromosome. Of a file with several resolutions the finest, or the coarsest that divides ``into``. Returns what is
    wrong, if anything is."""
    try:
        if hictkpy.is_cooler(path):
            file = hictkpy.File(path)
        else:
            multi = hictkpy.MultiResFile(path)
            fitting = [size for size in multi.resolutions() if into and into % size == 0]
            file = multi[max(fitting) if fitting else min(multi.resolutions())]
        wanted = Chromosome.of_names(chromosome.split("\t"))
        name = spelled(wanted, file.chromosomes())
        if name is None:
            return f"{path} has no chromosome {str(wanted)!r}; it has {', '.join(list(file.chromosomes())[:5])}"
        size = file.resolution()
        first, last = -(-start // size), min(end, file.chromosomes()[name]) // size
        found, across = {"row": [], "column": [], "count": []}, np.zeros(2)
        if last > first:
            inside, end = f"{name}:{first * size}-{last * size}", file.chromosomes()[name]
            matrix = file.fetch(inside, count_type="float").to_coo()
            found = {"row": matrix.row, "column": matrix.col, "count": matrix.data}
            # Files hold the upper triangle: what comes before, with the region, and the region with what comes behind.
            sides = [(f"{name}:0-{first * size}", inside)] * (first > 0)
            sides += [(inside, f"{name}:{last * size}-{end}")] * (last * size < end)
            for one, other in sides if crossing else ():
                counts = file.fetch(one, other, count_type="float").to_coo().data
                across += len(counts), np.nansum(counts)
    except (RuntimeError, ValueError, OSError) as error:
        return f"{path} cannot be read as .cool, .mcool or .hic: {str(error).splitlines()[0]}"
    buffer = io.BytesIO()
    np.savez(buffer, size=size, first=first, bins=max(0, last - first), crossing=across, **found)
    sys.stdout.buffer.write(buffer.getvalue())
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], *(int(text) for text in sys.argv[3:])))
