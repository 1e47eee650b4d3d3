"""What a build will need: atoms, box, memory, disk and time, before anything is written.

Counts of solute atoms are exact; the box is that of the scaffold when there is one. Memory, disk and times are
scaled with the number of atoms from runs of the demo on two cores, and are right within a factor of two.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import h5py
import numpy as np

from chromabuild.config import Config
from chromabuild.locus import load_locus
from chromabuild.nucleosome.octamer import octamer
from chromabuild.residues import residue_library, residue_names
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain
from mesoscale.montecarlo import straight_conformation
from mesoscale.scaffold import build_scaffold

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
MARGIN = 20.0
"""Angstrom that the backbone and the histone tails reach beyond the path of the DNA."""
WATER_VOLUME = 29.9
"""Cubic angstrom a molecule of water takes at 300 K."""
SOLUTE_VOLUME = 8.6
"""Cubic angstrom an atom of DNA or protein takes: their partial specific volume."""

# Measured on the demo with two threads.
SOLUTE_BYTES_PER_ATOM = 900
ENGINE_BYTES_PER_ATOM = 1200
DISK_BYTES_PER_ATOM = 70
SECONDS_PER_SWEEP_AND_NUCLEOSOME = 4e-4
BUILD_SECONDS_PER_ATOM = 3e-5
CLASH_SECONDS_PER_ATOM = 1e-4
SOLVATE_SECONDS_PER_ATOM = 5e-6
TOPOLOGY_SECONDS_PER_ATOM = 1e-5
STEP_SECONDS_PER_ATOM = 1.5e-6


@dataclass(frozen=True)
class Estimate:
    """What a build will need. Lengths in angstrom."""

    base_pairs: int
    nucleosomes: int
    solute_atoms: int
    box: tuple[float, float, float]
    box_from: str
    atoms: int
    shards: int
    memory_gigabytes: float
    disk_gigabytes: float
    seconds: dict[str, float]

    def as_dict(self) -> dict:
        """Plain data for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        edges = " x ".join(f"{edge:.0f}" for edge in self.box)
        return [f"locus: {self.base_pairs} base pairs, {self.nucleosomes} nucleosomes",
                f"solute: {self.solute_atoms} atoms", f"box: {edges} angstrom (from {self.box_from})",
                f"solvated: about {self.atoms:.3g} atoms in {self.shards} shards",
                f"memory: about {self.memory_gigabytes:.1f} GB", f"disk: about {self.disk_gigabytes:.2f} GB",
                *(f"time, {name}: about {_span(value)}" for name, value in self.seconds.items()),
                f"time in all: about {_span(sum(self.seconds.values()))}"]


def estimate(config: Config, threads: int) -> Estimate:
    """Estimate a build from its locus and settings. Raises BadInputError when the locus cannot be read."""
    fibre = load_locus(config.locus).fibre()
    sizes = {name: len(template.atoms) for name, template in residue_library().items()}
    pair = {base: sizes[f"D{base}"] + sizes[f"D{other}"] for base, other in COMPLEMENT.items()}
    dna = sum(pair[base] for base in fibre.sequence)
    for first, last in ((fibre.sequence[0], fibre.sequence[-1]),
                        (COMPLEMENT[fibre.sequence[-1]], COMPLEMENT[fibre.sequence[0]])):
        dna += sizes[f"D{first}5"] - sizes[f"D{first}"] + sizes[f"D{last}3"] - sizes[f"D{last}"]
    histones = sum(sizes[residue_names()[k]] for k in octamer().residue_template)
    solute = dna + histones * len(fibre.dyads)
    extent, source = _extent(config, fibre)
    padded = np.array(config.solvate.box or extent + 2 * config.solvate.padding)
    volume = float(padded.prod())
    atoms = round(solute + 3 * max(volume - SOLUTE_VOLUME * solute, 0) / WATER_VOLUME)
    share = 2 / threads
    dynamics = config.dynamics
    seconds = {
        "scaffold": SECONDS_PER_SWEEP_AND_NUCLEOSOME * config.scaffold.sweeps * len(fibre.dyads),
        "build": BUILD_SECONDS_PER_ATOM * solute,
        "clash": CLASH_SECONDS_PER_ATOM * solute,
        "solvate": SOLVATE_SECONDS_PER_ATOM * atoms * share,
        "topology": TOPOLOGY_SECONDS_PER_ATOM * atoms,
        "run": STEP_SECONDS_PER_ATOM * atoms * (dynamics.minimise_steps + dynamics.steps) * share,
    }
    return Estimate(
        base_pairs=len(fibre.sequence), nucleosomes=len(fibre.dyads), solute_atoms=solute,
        box=tuple(round(float(edge), 1) for edge in padded), box_from=source, atoms=atoms,
        shards=int(np.prod(np.maximum(np.round(padded / config.solvate.brick_edge), 1))),
        memory_gigabytes=max(SOLUTE_BYTES_PER_ATOM * solute, ENGINE_BYTES_PER_ATOM * atoms) / 1e9,
        disk_gigabytes=(DISK_BYTES_PER_ATOM * atoms
                        + 12 * atoms * (dynamics.steps // dynamics.trajectory_period)) / 1e9,
        seconds={name: round(value, 1) for name, value in seconds.items()})


def _extent(config: Config, fibre: Fibre) -> tuple[np.ndarray, str]:
    """Edges (3,) of the smallest upright box around the solute, angstrom, and where they were taken from."""
    path = Path(config.output) / "scaffold.h5"
    if path.is_file():
        with h5py.File(path, "r") as file:
            origin, source = file["bp/origin"][...], "scaffold.h5"
    elif config.scaffold.container:
        return 10 * np.array(config.scaffold.container) + 2 * MARGIN, "scaffold.container"
    else:
        parameters = Parameters(temperature=config.scaffold.temperature, salt=config.scaffold.salt)
        chain = build_chain(fibre, parameters)
        origin = build_scaffold(fibre, chain, *straight_conformation(chain), parameters).origin
        source = "the fibre with straight linkers"
    return np.ptp(origin, axis=0) + 2 * MARGIN, source


def _span(seconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
