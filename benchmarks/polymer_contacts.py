"""How contacts fall off with distance in coarse polymers of the 83 kb locus, in spheres of several radii.

Eight polymers of each kind, one node a nucleosome; the exponent is that of the mean contacts at each distance from 4 to
20 kb in bins of 2 kb. 190 nm is the share of 83 kb in a yeast nucleus.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from common.command import Benchmark

from chromabuild.base.settings import load_config
from chromabuild.genome.locus import load_locus
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain
from mesoscale.observables import contact_map
from mesoscale.polymer import coarse_path, nodes_of

CONFIG = Path(__file__).resolve().parents[1] / "workflows/config/chrXIII.yaml"
BIN = 2000  # base pairs
FITTED = slice(1, 10)  # of the distances in bins from 1: 4 to 20 kb


def exponent(fibre: Fibre, radius: float, loops: bool, polymers: int) -> float:
    """Of the mean contacts against distance."""
    chain = build_chain(fibre if loops else replace(fibre, contacts=()),
                        Parameters(confinement_radius=radius, core_charges="formal"))
    nodes, offset = nodes_of(chain), fibre.start % BIN
    bins = -(-(offset + len(fibre.sequence)) // BIN)
    paths = [coarse_path(chain, nodes, np.random.Generator(np.random.Philox(key=seed))) for seed in range(polymers)]
    counts = contact_map(chain.bp[nodes] + offset, paths, bins, BIN)
    mean = np.array([np.diagonal(counts, k).mean() for k in range(1, bins)])[FITTED]
    return float(np.polyfit(np.log(np.arange(1, bins)[FITTED]), np.log(mean), 1)[0])


def main() -> None:
    """Fit all spheres, with and without loops."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--radii", type=float, nargs="+", default=[60.0, 90.0, 120.0, 190.0], help="nm")
    add("--polymers", type=int, default=8)
    given = benchmark.start(quick={"radii": [190.0], "polymers": 2})
    fibre = load_locus(load_config(CONFIG).locus).fibre()
    table = benchmark.table("exponents", "Exponent of contact probability against genomic distance, 4 to 20 kb, "
                            f"{given.polymers} coarse polymers", **{
                                "radius of the confining sphere, nm": ".0f", "seven loops in every polymer": ".2f",
                                "no loops": ".2f"})
    for radius in given.radii:
        table.row(radius, *(exponent(fibre, radius, loops, given.polymers) for loops in (True, False)))
    benchmark.finish()


if __name__ == "__main__":
    main()
