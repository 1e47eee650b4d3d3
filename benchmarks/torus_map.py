"""Links that a byte of the halo travels on a torus, before and after chromamd places its ranks.

Compiles the engine's own mapping, fortran/comm/comm_torus_map.f90, with gfortran. Domains of 30 angstrom, halo of 13.5
angstrom; the last two axes of a TofuD are those within a group of twelve nodes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from common.command import Benchmark

FORTRAN = Path(__file__).resolve().parents[1] / "fortran"
SOURCES = (FORTRAN / "base" / "base_kinds.f90", FORTRAN / "comm" / "comm_torus_map.f90",
           Path(__file__).with_suffix(".f90"))
EDGE, WIDTH = 30.0, 13.5  # angstrom
CASES = {
    "8 x 8 x 8, 1": ((8, 8, 8), (8, 8, 8)),
    "8 x 8 x 16, 4": ((16, 16, 16), (8, 8, 16)),
    "16 x 16 x 32, 4": ((32, 32, 32), (16, 16, 32)),
    "TofuD 4 x 3 x 2 cells, 6": ((12, 12, 12), (4, 3, 2, 2, 3, 2)),
    "8 x 8 x 8, 1 (no factorisation: snake order)": ((16, 8, 4), (8, 8, 8)),
    "5 x 7 x 9, 2": ((10, 9, 7), (5, 7, 9)),
}
"""Domains and axes of the torus, by torus and ranks per node."""


def main() -> None:
    """Compile, run, keep the table."""
    benchmark = Benchmark(__doc__, computed="counted, independent of the machine")
    benchmark.start(quick={})
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "torus_links"
        done = subprocess.run(["gfortran", "-O2", "-J", folder, *SOURCES, "-o", binary], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{SOURCES[-1]} does not compile (Debian: apt install gfortran):\n{done.stderr}")
        lines = [" ".join(map(str, (*domains, len(torus), *torus, EDGE, EDGE, EDGE, WIDTH)))
                 for domains, torus in CASES.values()]
        text = subprocess.run([binary], input="\n".join(lines) + "\n", check=True, capture_output=True,
                              text=True).stdout
    table = benchmark.table("links", f"Mean number of links per byte of the halo exchange, domains of {EDGE:g} Å, "
                            f"halo of {WIDTH:g} Å", domains="",
                            **{"torus, ranks per node": "", "links per byte, default placement": ".2f",
                               "links per byte, mapped placement": ".2f"})
    for (label, (domains, _)), line in zip(CASES.items(), text.splitlines(), strict=True):
        table.row(" x ".join(map(str, domains)), label, *map(float, line.split()))
    benchmark.finish()


if __name__ == "__main__":
    main()
