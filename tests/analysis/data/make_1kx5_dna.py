"""Cut the DNA of PDB entry 1KX5 out of its file: python tests/analysis/data/make_1kx5_dna.py 1kx5.pdb"""

import gzip
import sys
from pathlib import Path

lines = [line[:66].rstrip() for line in Path(sys.argv[1]).read_text().splitlines()
         if line.startswith("ATOM") and line[21] in "IJ" and line[17:20].strip() in ("DA", "DC", "DG", "DT")]
target = Path(__file__).with_name("1kx5_dna.pdb.gz")
target.write_bytes(gzip.compress(("\n".join([*lines, "END"]) + "\n").encode(), mtime=0))
