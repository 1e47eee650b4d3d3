"""DNA and a nucleosome in water, made by chromabuild's own chain: ff14SB, OL15, TIP3P, 0.15 mol/L."""

from pathlib import Path

import numpy as np

from chromabuild.base.settings import SolvateSection
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.solvate import solvate
from common.engine import restart_positions, run, set_up
from common.solutes import duplex, nucleosome

SYSTEMS = ("dna96k", "nucleosome")
"""42 base pairs of random sequence in a box of some 96,000 atoms; an octamer on 177 base pairs in a box of its own."""


def make(folder: Path, name: str) -> tuple[Topology, np.ndarray, np.ndarray]:
    """``topology.h5`` and ``start().rst``, minimised, 1 ps at 300 K; topology, positions (n, 3), box (3,), angstrom."""
    folder.mkdir(parents=True, exist_ok=True)
    solute = duplex(42) if name == "dna96k" else nucleosome()
    section = SolvateSection(box=(80.0, 80.0, 154.0)) if name == "dna96k" else SolvateSection()
    manifest = solvate(solute, section, 1, 1, folder / "shards")
    topology = make_topology(solute, manifest.counts, net_charge=manifest.net_charge)
    topology.write(folder / "topology.h5")
    set_up(folder, folder / "built().rst", shards=folder / "shards" / "bricks.txt")
    short = {"cutoffdist": 9, "switchdist": 9, "pairlistdist": 10.5}
    run(folder, folder / "built().rst", {"ENERGY": short, "MINIMIZE": {"method": "SD", "nsteps": 300}},
        folder / "minimised().rst", name="minimise")
    run(folder, folder / "minimised().rst", {
        "ENERGY": short, "DYNAMICS": {"nsteps": 1000, "timestep": 0.001}, "CONSTRAINTS": {"rigid_bond": True},
        "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 300, "tau_t": 0.1}},
        folder / "start().rst", name="equilibrate")
    return topology, restart_positions(folder / "start().rst"), np.array(manifest.box)
