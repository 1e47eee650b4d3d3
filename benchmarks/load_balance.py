"""Largest work of a rank over the mean, with even borders and with borders that follow the work.

A droplet of 512 waters in the lowest eighth of a box of 48 angstrom. The work is counted, so that the figures do not
depend on the machine. More ranks than cores take turns: 27 of them need a minute on two cores.
"""

import re
import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.engine import run, set_up, turned_waters, water_topology, write_system

EDGE, SIDE, SPACING = 48.0, 8, 3.1  # angstrom, waters an axis, angstrom
SHORT = {"cutoffdist": 6, "switchdist": 5, "pairlistdist": 6.5, "deterministic": True}


def droplet() -> np.ndarray:
    """Positions (n, 3), angstrom, of waters on a lattice, turned at random."""
    random = np.random.default_rng(3)
    site = SPACING * (np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.3)
    return turned_waters(site, random)


def main() -> None:
    """Run 60 steps on every grid of domains."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--domains", default="2x1x1,3x1x1,2x2x2,3x3x1,3x3x3")
    given = benchmark.start(quick={"domains": "2x1x1"})
    position = droplet()
    table = benchmark.table("work", f"Load imbalance (maximum over mean work per rank): a droplet of {len(position):,} "
                            f"atoms in the lowest eighth of a box with edges of {EDGE:.0f} Å", domains="",
                            uniform_borders=".2f", balanced_borders=".2f")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_system(folder, water_topology(len(position) // 3), position, np.full(3, EDGE))
        for text in given.domains.split(","):
            domains = tuple(int(n) for n in text.split("x"))
            set_up(folder, folder / "start_().rst", domains)
            run(folder, folder / "start_().rst", {
                "ENERGY": SHORT, "BOUNDARY": {"load_balance": True}, "CONSTRAINTS": {"rigid_bond": True},
                "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 300},
                "DYNAMICS": {"nsteps": 60, "timestep": 0.001, "eneout_period": 20, "rstout_period": 30,
                             "nbupdate_period": 10}}, folder / "end_().rst", ranks=int(np.prod(domains)))
            found = re.search(r"load balance.* ([\d.]+) with even borders, now ([\d.]+)",
                              (folder / "run.out").read_text())
            table.row(text.replace("x", " x "), float(found[1]), float(found[2]))
    benchmark.finish()


if __name__ == "__main__":
    main()
